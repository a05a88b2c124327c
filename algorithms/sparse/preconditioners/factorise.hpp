/// \file
/// Incomplete factorisations on a given pattern.
#pragma once

#include <functional>
#include <optional>

#include "../csr.hpp"
#include "../graph/pattern.hpp"

namespace asterism::sparse {

/// A pivot that cannot be divided by, or has no root.
struct Breakdown {
  Index row = 0;
  double pivot = 0;
};

/// Which rows can be factorised at once, as those that they need were before: turn t has the rows[begins[t]] to
/// rows[begins[t + 1]]. Rows that are left out are not factorised, and none needs them. A row needs those of its
/// columns before its own that the pattern has.
struct Turns {
  std::vector<Index> rows;
  std::vector<Index> begins = {0};

  [[nodiscard]] Index count() const { return static_cast<Index>(begins.size()) - 1; }
};

/// All rows, one after the other.
Turns one_by_one(Index rows);

/// An incomplete factorisation of A + shift diag(A), on the pattern that it was given.
struct Factorisation {
  Csr<double> factor;                  ///< rows before a breakdown are factorised, others may not be
  double shift = 0;                    ///< times the diagonal
  std::optional<Breakdown> breakdown;  ///< nothing: it is done
};

/// Incomplete LU: L below the diagonal of the factor, whose own diagonal is 1, and U on and above it, so that
/// (L U)_ij = a_ij wherever the pattern has (i, j). It breaks down where a pivot is at most 2^-52 of the largest entry
/// of its row of A, or not finite.
/// @param pattern has the diagonal. Entries of A that it does not have are ignored; where it has more, A has zeros.
/// @throw Error: a shift that is negative or not finite; a diagonal entry that the pattern lacks; a matrix that is not
///   square, not whole, or of another size than the pattern
/// @param threads at most so many; 0: as many as there are cores. Turns and threads change no bit of the factors of
///   their rows, and no breakdown: it is that of the lowest row.
Factorisation incomplete_lu(const Csr<double>& matrix, PatternView pattern, const Turns& turns,
                            double shift = 0, int threads = 0);

/// Incomplete Cholesky: the factor is L, lower triangular with its diagonal last in each row, so that
/// (L L^T)_ij = a_ij wherever the pattern has (i, j), i >= j. Entries above the diagonal, of the pattern and of A, are
/// ignored. It breaks down where a pivot is not positive, or not finite.
/// @param pattern, turns, threads as for incomplete_lu. @throw Error as incomplete_lu
Factorisation incomplete_cholesky(const Csr<double>& matrix, PatternView pattern, const Turns& turns,
                                  double shift = 0, int threads = 0);

/// One row after the other.
inline Factorisation incomplete_lu(const Csr<double>& matrix, PatternView pattern, double shift = 0) {
  return incomplete_lu(matrix, pattern, one_by_one(matrix.rows()), shift, 1);
}
inline Factorisation incomplete_cholesky(const Csr<double>& matrix, PatternView pattern, double shift = 0) {
  return incomplete_cholesky(matrix, pattern, one_by_one(matrix.rows()), shift, 1);
}

/// Factorises with the shift 0, then 1e-3, then twice as much every time, until it does not break down: the shift is
/// 1e-3 or at most twice that needed. What has broken down with a shift of over 1000 does so with any (a diagonal
/// entry is 0 or, for Cholesky, negative), and is returned as it is.
Factorisation with_growing_shift(const std::function<Factorisation(double shift)>& factorise);

}  // namespace asterism::sparse
