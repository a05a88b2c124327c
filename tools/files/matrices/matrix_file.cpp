#include "matrix_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "../../../runtime/error.hpp"
#include "../file_bytes.hpp"

namespace asterism::tools {
namespace {

/// Row r of the Laplacian. @param here  where its entries go, one after the other
void laplacian_row(const sparse::Csr<double>& pattern, Index r, sparse::Csr<double>& laplacian) {
  const auto begin = static_cast<std::size_t>(pattern.row_begin[static_cast<std::size_t>(r)]);
  const auto end = static_cast<std::size_t>(pattern.row_begin[static_cast<std::size_t>(r) + 1]);
  const Index row = pattern.first_row + r;
  const auto put = [&](Index col, double value) {
    laplacian.columns.push_back(col);
    laplacian.values.push_back(value);
  };
  const std::size_t others =
      end - begin -
      std::binary_search(pattern.columns.begin() + static_cast<std::ptrdiff_t>(begin),
                         pattern.columns.begin() + static_cast<std::ptrdiff_t>(end), row);
  std::size_t i = begin;
  for (; i < end && pattern.columns[i] < row; ++i) put(pattern.columns[i], -1);
  put(row, static_cast<double>(others) + 1);
  for (; i < end; ++i)
    if (pattern.columns[i] != row) put(pattern.columns[i], -1);
  laplacian.row_begin.push_back(static_cast<Index>(laplacian.columns.size()));
}

}  // namespace

MatrixFile read_matrix(const std::filesystem::path& path, const RowShare& share) {
  const bool zip = begins_with(path, "PK", "a file of a matrix");
  return zip ? read_scipy_matrix(path, share) : read_matrix_market(path, share);
}

sparse::Csr<double> laplacian_of_pattern(const sparse::Csr<double>& pattern) {
  if (pattern.total_rows != pattern.cols)
    throw Error(fmt::format("a pattern of {} x {} has no Laplacian: it must be square", pattern.total_rows,
                            pattern.cols));
  sparse::Csr<double> laplacian;
  laplacian.first_row = pattern.first_row;
  laplacian.total_rows = pattern.total_rows;
  laplacian.cols = pattern.cols;
  const auto most = static_cast<std::size_t>(pattern.entries() + pattern.rows());  // with diagonal entries
  laplacian.row_begin.reserve(pattern.row_begin.size());
  laplacian.columns.reserve(most);
  laplacian.values.reserve(most);
  for (Index r = 0; r < pattern.rows(); ++r) laplacian_row(pattern, r, laplacian);
  return laplacian;
}

}  // namespace asterism::tools
