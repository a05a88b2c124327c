/// \file
/// What a sparse matrix is like, as far as one look at all of its entries tells: what solvers ask before they begin,
/// and reports say. All functions throw an Error where only some of the rows are here.
#pragma once

#include <optional>

#include "../csr.hpp"

namespace asterism::sparse {

/// Rows with a property.
struct FoundRows {
  Index count = 0;
  Index first = -1;  ///< the lowest; -1 where there is none
};

struct Structure {
  Index fewest = 0, most = 0;  ///< entries in a row
  double mean = 0;             ///< entries per row
  FoundRows empty;
  Index lower_bandwidth = 0,
        upper_bandwidth = 0;       ///< the largest i - j and j - i of entries (i, j); at least 0
  Index diagonals = 0;             ///< that have entries: different j - i
  FoundRows without_diagonal;      ///< rows i < columns without an entry (i, i)
  FoundRows nonpositive_diagonal;  ///< entries (i, i) that are not above 0, NaNs too
  Index dominant = 0;              ///< rows with |a_ii| >= the sum of the others' absolute values
  Index strictly_dominant = 0;     ///< of these, those with >
};

template <class T>
[[nodiscard]] bool is_square(const Csr<T>& matrix) {
  return matrix.total_rows == matrix.cols;
}

/// In one pass over the entries.
template <class T>
[[nodiscard]] Structure structure_of(const Csr<T>& matrix);

template <class T>
struct Entry {
  Index row, col;
  T value;
};

/// The first entry, row by row, that is NaN or infinite.
template <class T>
[[nodiscard]] std::optional<Entry<T>> first_not_finite(const Csr<T>& matrix);

/// Two entries that mirror each other, above and below the diagonal: row < col.
template <class T>
struct MirroredPair {
  Index row, col;
  T upper;  ///< (row, col); 0 where there is no such entry
  T lower;  ///< (col, row); 0 where there is no such entry
};

template <class T>
struct SymmetryCheck {
  Index unpaired = 0;  ///< entries without a mirror image
  Index unequal = 0;   ///< pairs that differ by more than the tolerance; what is not there is 0
  std::optional<MirroredPair<T>> first_unpaired, first_unequal;  ///< by row, then by column

  [[nodiscard]] bool structural() const { return unpaired == 0; }
  [[nodiscard]] bool numerical() const { return unequal == 0; }
};

/// In one pass over the entries, with a number for each row.
/// @param tolerance  of the difference of two values in proportion to the larger: 0 asks for equality
/// @throw Error: the matrix is not square
template <class T>
[[nodiscard]] SymmetryCheck<T> check_symmetry(const Csr<T>& matrix, double tolerance);

}  // namespace asterism::sparse
