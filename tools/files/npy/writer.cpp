#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "../../../runtime/error.hpp"
#include "../file_bytes.hpp"
#include "../row_pieces.hpp"
#include "npy.hpp"

namespace asterism::tools {

namespace fs = std::filesystem;

NpyWriter::NpyWriter(const fs::path& target, Precision precision, std::vector<Index> shape, int threads)
    : NpyWriter(OutputFile(target), NpyHeader{precision, std::move(shape)}, threads) {
  const std::string text = header_text(header_);
  header_.data_offset = text.size();
  write_all(file_.descriptor(), target, text.data(), text.size(), 0);
  file_.reserve(header_.file_bytes());
}

NpyWriter::NpyWriter(OutputFile file, NpyHeader header, int threads)
    : file_(std::move(file)), header_(std::move(header)), threads_(default_threads(threads)) {}

NpyWriter NpyWriter::attach(const fs::path& temporary, int threads) {
  OutputFile file = OutputFile::attach(temporary);
  NpyHeader header = read_header(file.descriptor(), temporary);
  return NpyWriter(std::move(file), std::move(header), threads);
}

template <class T>
void NpyWriter::write_rows(Index first_row, Index count, const T* from, Index ld) const {
  require_rows(temporary(), header_, first_row, count, ld);
  if (header_.precision != precision_of<T>)
    throw Error(fmt::format("{}: is a file of {}, the rows are {}", temporary().string(),
                            to_string(header_.precision), to_string(precision_of<T>)));
  const Index cols = header_.cols();
  const auto bytes = [](Index elements) { return static_cast<std::size_t>(elements) * sizeof(T); };
  const std::size_t offset = header_.data_offset + bytes(first_row * cols);
  for_pieces(
      count * cols, piece_bytes / static_cast<Index>(sizeof(T)), threads_, [&](Index begin, Index end) {
        if (in_place<T>(cols, ld)) {
          for_runs(begin, end, from, cols, ld, [&](Index element, const T* run, Index length) {
            write_all(file_.descriptor(), temporary(), run, bytes(length), offset + bytes(element));
          });
          return;
        }
        const auto buffer = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(end - begin));
        for_runs(begin, end, from, cols, ld, [&](Index element, const T* run, Index length) {
          std::copy_n(run, length, buffer.get() + (element - begin));
        });
        write_all(file_.descriptor(), temporary(), buffer.get(), bytes(end - begin), offset + bytes(begin));
      });
}

template void NpyWriter::write_rows(Index, Index, const float*, Index) const;
template void NpyWriter::write_rows(Index, Index, const double*, Index) const;

}  // namespace asterism::tools
