#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "../../../runtime/error.hpp"
#include "../file_bytes.hpp"
#include "../finite.hpp"
#include "../row_pieces.hpp"
#include "npy.hpp"

namespace asterism::tools {

namespace fs = std::filesystem;

namespace {

/// Where the number `element`, counted through the file, is in an array of that shape.
std::vector<Index> indices(const std::vector<Index>& shape, Index element) {
  std::vector<Index> at(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) at[axis] = element % shape[axis];
  return at;
}

/// Reads the numbers [begin, end) of rows that start at byte `offset` of a file of numbers of type F.
template <class F, class T>
void read_piece(int file, const fs::path& path, std::size_t offset, Index begin, Index end, T* into,
                Index cols, Index ld) {
  const auto bytes = [](Index count) { return static_cast<std::size_t>(count) * sizeof(F); };
  if constexpr (std::is_same_v<F, T>) {
    if (in_place<T>(cols, ld)) {
      for_runs(begin, end, into, cols, ld, [&](Index element, T* run, Index count) {
        read_all(file, path, run, bytes(count), offset + bytes(element));
      });
      return;
    }
  }
  const auto buffer = std::make_unique_for_overwrite<F[]>(static_cast<std::size_t>(end - begin));
  read_all(file, path, buffer.get(), bytes(end - begin), offset + bytes(begin));
  for_runs(begin, end, into, cols, ld, [&](Index element, T* run, Index count) {
    std::transform(buffer.get() + (element - begin), buffer.get() + (element - begin) + count, run,
                   [](F value) { return static_cast<T>(value); });
  });
}

}  // namespace

NpyReader::NpyReader(fs::path path, Dimensions dimensions, int threads)
    : path_(std::move(path)), threads_(default_threads(threads)) {
  file_ = open_to_read(path_);
  header_ = read_header(file_.number(), path_);
  const auto [least, most] = dimensions;
  const std::size_t axes = header_.shape.size();
  if (axes < least || axes > most)
    throw Error(fmt::format("{}: an array of {} dimension{}, its shape is {}; {} dimension{} wanted",
                            path_.string(), axes, axes == 1 ? "" : "s", shape_text(header_.shape),
                            least == most ? std::to_string(least) : fmt::format("{} to {}", least, most),
                            most == 1 ? " is" : "s are"));
}

template <class T>
void NpyReader::read_rows(Index first_row, Index count, T* into, Index ld, Values values) const {
  require_rows(path_, header_, first_row, count, ld);
  const Index cols = header_.cols();
  const std::size_t number = bytes_of(header_.precision);
  const std::size_t offset = header_.data_offset + static_cast<std::size_t>(first_row * cols) * number;
  for_pieces(count * cols, piece_bytes / static_cast<Index>(number), threads_, [&](Index begin, Index end) {
    if (header_.precision == Precision::f32)
      read_piece<float>(file_.number(), path_, offset, begin, end, into, cols, ld);
    else
      read_piece<double>(file_.number(), path_, offset, begin, end, into, cols, ld);
    if (values == Values::any) return;
    for_runs(begin, end, into, cols, ld, [&](Index element, const T* run, Index length) {
      if (const auto bad = first_not_finite(run, 1, length, length)) {
        const Index at = element + bad->col;
        throw Error(fmt::format("{}: byte {}: the number at [{}] is {}: every number must be finite",
                                path_.string(), offset + static_cast<std::size_t>(at) * number,
                                fmt::join(indices(header_.shape, first_row * cols + at), ", "),
                                run[bad->col]));
      }
    });
  });
}

template void NpyReader::read_rows(Index, Index, float*, Index, Values) const;
template void NpyReader::read_rows(Index, Index, double*, Index, Values) const;

}  // namespace asterism::tools
