#include "vector_file.hpp"

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
#include "../file_bytes.hpp"
#include "../given_values.hpp"
#include "../npy/npy.hpp"
#include "../text/text_output.hpp"
#include "matrix_market_entries.hpp"
#include "row_share.hpp"

namespace asterism::tools {
namespace {

namespace fs = std::filesystem;

std::size_t index(const Vectors& vectors, Index row, Index col) {
  return static_cast<std::size_t>(row * vectors.cols + col);
}

Vectors read_npy(const fs::path& path) {
  const NpyReader reader(path, {1, 2});
  return {reader.header().rows(), reader.header().cols(), read_array(reader)};
}

Vectors read_matrix_market_array(const fs::path& path) {
  TextLines lines(path, "a file of vectors");
  const MatrixMarketHeader header = read_matrix_market_header(lines);
  if (header.format != Format::array || header.symmetry != Symmetry::general)
    throw Error(fmt::format(
        "{}: line 1: holds a matrix, '{} {} {}'; vectors are an 'array real general', or a .npy file",
        path.string(), to_string(header.format), to_string(header.field), to_string(header.symmetry)));
  require_memory(path, static_cast<double>(header.entries) * sizeof(double),
                 fmt::format("{} numbers", header.entries));
  Vectors vectors{header.rows, header.cols, std::vector<double>(static_cast<std::size_t>(header.entries))};
  for_entries(lines, header, [&](Index row, Index col, LineTokens& tokens) {
    vectors.values[index(vectors, row, col)] = value_of(header, tokens);
  });
  return vectors;
}

void write_npy(const OutputFile& file, const fs::path& target, const Vectors& vectors) {
  NpyHeader header;
  header.shape = {vectors.rows};
  if (vectors.cols != 1) header.shape.push_back(vectors.cols);
  const std::string text = header_text(header);
  write_all(file.descriptor(), target, text.data(), text.size(), 0);
  write_all(file.descriptor(), target, vectors.values.data(), vectors.values.size() * sizeof(double),
            text.size());
}

void write_matrix_market_array(OutputFile& file, const fs::path& target, const Vectors& vectors) {
  TextOutput text(file, target);
  text.put(fmt::format("%%MatrixMarket matrix array real general\n{} {}\n", vectors.rows, vectors.cols));
  for (Index col = 0; col < vectors.cols; ++col) {
    for (Index row = 0; row < vectors.rows; ++row) {
      text.put(vectors.values[index(vectors, row, col)]);
      text.end_line();
    }
  }
  text.write();
}

const fs::path& with_known_ending(const fs::path& target) {
  if (target.extension() != ".npy" && target.extension() != ".mtx")
    throw Error(
        fmt::format("{}: vectors are written to a file whose name ends in .npy or .mtx", target.string()));
  return target;
}

}  // namespace

Vectors read_vectors(const fs::path& path) {
  const bool npy = begins_with(path, "\x93NUMPY", "a file of vectors");
  return npy ? read_npy(path) : read_matrix_market_array(path);
}

VectorFile::VectorFile(const fs::path& target) : target_(with_known_ending(target)), file_(target) {}

void VectorFile::write(const Vectors& vectors) {
  if (target_.extension() == ".npy")
    write_npy(file_, target_, vectors);
  else
    write_matrix_market_array(file_, target_, vectors);
  file_.commit();
}

}  // namespace asterism::tools
