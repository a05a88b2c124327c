/// \file
/// Rows of the matrix that is left when the rows of one of two colours are eliminated, [Saad 2003] 12.4.2.
#pragma once

#include <span>
#include <vector>

#include "../csr.hpp"
#include "../graph/rows.hpp"
#include "../preconditioners/preconditioner.hpp"
#include "shared_elements.hpp"

namespace asterism::sparse {

// A row that is eliminated has, in place of its number among those that are left, -1 less its number among red ones.
constexpr bool is_red(Index number) { return number < 0; }
/// Either way.
constexpr Index red_number(Index number) { return -1 - number; }

/// Whether a pivot can be divided by, as incomplete_lu() has it. @param largest magnitude in its row of A
bool is_sound_pivot(double pivot, double largest, MatrixClass matrix_class);

/// S = C - F D^-1 E of the rows of a rank, whose red neighbours may be on others.
template <class T>
class RedElimination {
 public:
  /// @param mine this rank's rows of A @param diagonal theirs @param numbers of all rows of A in S
  /// @param neighbours this rank's rows that others have entries in. With several ranks: collective.
  /// All of these have to live as long.
  RedElimination(const Csr<T>& mine, const Array<double>& diagonal, std::span<const Index> numbers,
                 const SharedElements& neighbours);

  /// Terms of the sums that S consists of. @param black this rank's rows, counted from its first
  [[nodiscard]] Index terms(std::span<const Index> black) const;

  /// Appends S_ik = a_ik - sum over red j of a_ij a_jk / a_jj, where S has these rows.
  /// @param black some of this rank's rows
  /// @return whether all pivots can be divided by, as incomplete_lu() has it
  bool append(std::span<const Index> black, MatrixClass matrix_class, RowsInTheMaking<T>& to) const;

 private:
  struct Row {
    std::span<const Index> columns;
    std::span<const T> values;
    double diagonal;
  };
  /// Terms of the sums that a row of S consists of.
  struct Terms {
    std::vector<Index> columns;  // in S
    std::vector<double> values;
    double largest = 0;  // magnitude in the row of A
  };
  void find_terms(Index i, Terms& terms) const;
  [[nodiscard]] Row own_row(Index i) const;
  [[nodiscard]] Row row(Index number) const;

  const Csr<T>& mine_;
  const Array<double>& diagonal_;
  std::span<const Index> numbers_;
  const SharedElements& neighbours_;
  SharedElements::Lists<Index> their_columns_;
  SharedElements::Lists<T> their_values_;
  std::vector<double> their_diagonal_;
};

}  // namespace asterism::sparse
