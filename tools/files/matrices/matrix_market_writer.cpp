#include <fmt/format.h>

#include <algorithm>

#include "../../../runtime/error.hpp"
#include "../text/text_output.hpp"
#include "matrix_file.hpp"

namespace asterism::tools {
namespace {

/// Where row r ends in the file: of a symmetric matrix after its diagonal.
Index written_end(const sparse::Csr<double>& matrix, Symmetry symmetry, Index r) {
  const auto begin = matrix.columns.begin() + matrix.row_begin[static_cast<std::size_t>(r)];
  const Index end = matrix.row_begin[static_cast<std::size_t>(r) + 1];
  if (symmetry == Symmetry::general) return end;
  return std::upper_bound(begin, matrix.columns.begin() + end, r) - matrix.columns.begin();
}

}  // namespace

void write_matrix_market(const std::filesystem::path& target, const sparse::Csr<double>& matrix,
                         Symmetry symmetry) {
  if (symmetry == Symmetry::skew_symmetric)
    throw Error(fmt::format("{}: matrices are written as general or symmetric ones, not as {}",
                            target.string(), to_string(symmetry)));
  if (matrix.first_row != 0 || matrix.rows() != matrix.total_rows)
    throw Error(fmt::format("{}: rows {} to {} are here, all {} are written", target.string(),
                            matrix.first_row, matrix.first_row + matrix.rows(), matrix.total_rows));
  Index entries = 0;
  for (Index r = 0; r < matrix.rows(); ++r)
    entries += written_end(matrix, symmetry, r) - matrix.row_begin[static_cast<std::size_t>(r)];

  OutputFile file(target);
  TextOutput text(file, target);
  text.put(fmt::format("%%MatrixMarket matrix coordinate real {}\n{} {} {}\n", to_string(symmetry),
                       matrix.rows(), matrix.cols, entries));
  for (Index r = 0; r < matrix.rows(); ++r) {
    for (Index i = matrix.row_begin[static_cast<std::size_t>(r)], end = written_end(matrix, symmetry, r);
         i < end; ++i) {
      text.put(r + 1);
      text.put(" ");
      text.put(matrix.columns[static_cast<std::size_t>(i)] + 1);
      text.put(" ");
      text.put(matrix.values[static_cast<std::size_t>(i)]);
      text.end_line();
    }
  }
  text.write();
  file.commit();
}

}  // namespace asterism::tools
