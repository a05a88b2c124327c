/// \file
/// Sparse matrices in files: Matrix Market, and what scipy.sparse.save_npz writes.
#pragma once

#include <filesystem>

#include "../../../algorithms/sparse/csr.hpp"
#include "matrix_market_header.hpp"
#include "row_share.hpp"

namespace asterism::tools {

/// What a file holds, or the rows of it that were asked for. The file's indices may begin at 1, here they begin at 0;
/// of symmetric files both triangles are here.
struct MatrixFile {
  sparse::Csr<double> matrix;  ///< of a pattern all values are 1
  Field field = Field::real;
  /// As the file states it: one that says "general" may hold a symmetric matrix all the same.
  Symmetry symmetry = Symmetry::general;
  /// Entries of the file with the place of one before: they are summed. All of the file's are the sum over the ranks.
  Index duplicates = 0;
};

/// Reads the matrix, or the rows of it that `share` chooses. Rectangular ones are read, too. A file whose first bytes
/// are those of a zip archive is SciPy's, any other has to be a Matrix Market file.
///
/// Several ranks read the same file, each with a share of its own: numbers in rows of others are not looked at.
/// @throw Error with file, line (member, byte) and token
MatrixFile read_matrix(const std::filesystem::path& path, const RowShare& share = whole_matrix);

/// Coordinates: of them explicit zeros stay. Arrays: zeros are left out.
MatrixFile read_matrix_market(const std::filesystem::path& path, const RowShare& share = whole_matrix);

/// Compressed rows (CSR) of numbers of any type, indices of any order.
MatrixFile read_scipy_matrix(const std::filesystem::path& path, const RowShare& share = whole_matrix);

/// The matrix with that pattern and -1 off its diagonal, on it the number of the row's other entries plus 1: definite,
/// where the pattern is symmetric. Diagonal entries need not be in the pattern.
/// @param pattern  square; values are of no account
/// @throw Error: it is not square
sparse::Csr<double> laplacian_of_pattern(const sparse::Csr<double>& pattern);

/// Writes coordinates of real numbers, of a symmetric matrix those of the lower triangle; numbers are as short as they
/// can be without being others. An old file stays as it is until the new one is complete.
/// @param matrix    all of its rows
/// @param symmetry  general or symmetric, which is not looked at
/// @throw Error: a number that is not finite; a file that cannot be written
void write_matrix_market(const std::filesystem::path& target, const sparse::Csr<double>& matrix,
                         Symmetry symmetry);

}  // namespace asterism::tools
