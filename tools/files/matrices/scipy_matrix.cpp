// What scipy.sparse.save_npz writes: a zip archive with the arrays format, shape, indptr, indices and data.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "../../../runtime/error.hpp"
#include "../npy/header.hpp"
#include "../zip/zipped_array.hpp"
#include "entry_order.hpp"
#include "matrix_file.hpp"

namespace asterism::tools {
namespace {

namespace fs = std::filesystem;

void require_csr(const ZipArchive& archive) {
  ZippedArray array(archive, "format");
  const std::string format = array.read_text();
  array.require_end();
  if (format != "csr")
    throw Error(
        fmt::format("{}: the format is {}; 'csr' is read: scipy.sparse.save_npz(path, a.tocsr()) writes it",
                    array.path().string(), tools::quoted(format)));
}

struct Extents {
  Index rows, cols;
};

Extents read_extents(const ZipArchive& archive) {
  ZippedArray array(archive, "shape");
  if (require_line(array) != 2)
    throw Error(fmt::format("{}: a matrix has two extents, not {}", array.path().string(), array.size()));
  Index extents[2];
  array.read(extents, 2);
  array.require_end();
  for (const Index extent : extents)
    if (extent < 1)
      throw Error(fmt::format("{}: the matrix is {} x {}: every extent must be at least 1",
                              array.path().string(), extents[0], extents[1]));
  return {extents[0], extents[1]};
}

std::vector<Index> read_row_begin(const ZipArchive& archive, Index rows) {
  ZippedArray array(archive, "indptr");
  if (require_line(array) - 1 != rows)
    throw Error(fmt::format("{}: {} numbers; a matrix of {} rows has one more than rows",
                            array.path().string(), array.size(), rows));
  require_memory(array.path(), static_cast<double>(array.size()) * sizeof(Index),
                 fmt::format("{} rows", rows));
  std::vector<Index> row_begin(static_cast<std::size_t>(array.size()));
  array.read(row_begin.data(), array.size());
  array.require_end();
  if (row_begin.front() != 0)
    throw Error(fmt::format("{}: the number at [0] is {}: rows begin at 0", array.path().string(),
                            row_begin.front()));
  const auto falling = std::ranges::adjacent_find(row_begin, std::greater<>());
  if (falling != row_begin.end())
    throw Error(fmt::format("{}: the number at [{}] is {}, less than {} before it: rows follow each other",
                            array.path().string(), falling - row_begin.begin() + 1, falling[1], falling[0]));
  return row_begin;
}

void require_entries(const ZippedArray& array, Index entries) {
  if (require_line(array) != entries)
    throw Error(fmt::format("{}: {} numbers; the rows have {} entries", array.path().string(), array.size(),
                            entries));
}

/// Reads the numbers of the rows that are here, from `first` on, of an array with one for each entry.
template <class T>
void read_part(ZippedArray& array, Index first, Array<T>& into) {
  array.skip(first);
  array.read(into.data(), static_cast<Index>(into.size()));
  array.skip(array.size() - array.position());
  array.require_end();
}

/// @throw Error: one of the numbers that were read from `first` on is none that a matrix has
template <class T, class Good>
void require_all(const ZippedArray& array, Index first, const Array<T>& numbers, const Good& good,
                 const std::string& wanted) {
  const auto bad = std::ranges::find_if_not(numbers, good);
  if (bad != numbers.end())
    throw Error(fmt::format("{}: the number at [{}] is {}: {}", array.path().string(),
                            first + (bad - numbers.begin()), *bad, wanted));
}

}  // namespace

MatrixFile read_scipy_matrix(const fs::path& path, const RowShare& share) {
  const ZipArchive archive(path);
  require_csr(archive);
  const auto [rows, cols] = read_extents(archive);
  const std::vector<Index> row_begin = read_row_begin(archive, rows);
  ZippedArray indices(archive, "indices"), data(archive, "data");
  require_entries(indices, row_begin.back());  // before there is room for as many
  require_entries(data, row_begin.back());

  MatrixFile file;
  file.matrix = room_for_rows(path, row_begin, cols, share);
  const Index first = row_begin[static_cast<std::size_t>(file.matrix.first_row)];
  read_part(indices, first, file.matrix.columns);
  require_all(
      indices, first, file.matrix.columns, [cols = cols](Index col) { return col >= 0 && col < cols; },
      fmt::format("columns are from 0 to {}", cols - 1));
  read_part(data, first, file.matrix.values);
  require_all(
      data, first, file.matrix.values, [](double value) { return std::isfinite(value); },
      "every number must be finite");
  if (data.type()[0] != 'f') file.field = Field::integer;
  const Duplicates duplicates = order_entries(file.matrix, path);
  file.duplicates = duplicates.lower + duplicates.upper;
  return file;
}

}  // namespace asterism::tools
