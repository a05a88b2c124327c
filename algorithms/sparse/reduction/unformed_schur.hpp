/// \file
/// A Schur complement of which only the factors are stored, for a GPU that has room for them on its chip.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "../blocks/formats.hpp"
#include "../csr.hpp"

namespace asterism::sparse {

/// Whether a GPU keeps S with so many diagonals of G; its reach is known.
using KeepsSchur = std::function<bool(const BlockShape& s, int diagonals)>;

/// S = C - F D^-1 F^T of a symmetric matrix, as C - G G^T with G = F D^-1/2: Format::schur. What else a ReducedSystem
/// asks of the matrix follows from it, too, with the rounding of G's numbers.
class UnformedSchur {
 public:
  /// None: G has more than most_schur_diagonals, `keeps` says no, the matrix is not symmetric, or there is a pivot that
  /// cannot be divided by.
  /// @param a all rows of a positive definite matrix @param diagonal theirs
  /// @param numbers of black rows in S, and of red ones as red_number() has it @param black the rows of S
  static std::optional<UnformedSchur> of(const Csr<double>& a, const Array<double>& diagonal,
                                         std::span<const Index> numbers, std::span<const Index> black,
                                         const KeepsSchur& keeps);

  [[nodiscard]] const BlockArrays<double>& arrays() const { return arrays_; }
  /// Of C and G.
  [[nodiscard]] Index entries() const { return entries_; }
  /// Of S.
  [[nodiscard]] const Array<double>& inverse_diagonal() const { return inverse_diagonal_; }

  // Rows of A times a vector, but for the diagonal of A. @param black, red the vector's elements, by their numbers
  [[nodiscard]] double product_of_black(Index number, const double* red) const;
  [[nodiscard]] double product_of_red(Index number, const double* black) const;

 private:
  UnformedSchur() = default;
  [[nodiscard]] Index rows() const { return arrays_.shape.rows; }
  [[nodiscard]] const double* g() const { return arrays_.values.data() + rows(); }
  void take_roots(const Array<double>& diagonal, std::span<const Index> numbers);
  [[nodiscard]] bool fill(const Csr<double>& a, const Array<double>& diagonal, std::span<const Index> numbers,
                          std::span<const Index> black);
  [[nodiscard]] bool is_symmetric(const Csr<double>& a, std::span<const Index> numbers) const;

  BlockArrays<double> arrays_;
  std::vector<Index> diagonals_;  // of G
  Array<double> roots_;           // of D
  Index entries_ = 0;
  Array<double> inverse_diagonal_;
};

}  // namespace asterism::sparse
