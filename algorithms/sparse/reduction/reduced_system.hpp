/// \file
/// The half of a linear system that is left where two colours are enough: [Saad 2003] 12.4.2.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../../runtime/runtime.hpp"
#include "../../common/partition.hpp"
#include "../csr.hpp"
#include "../graph/colouring.hpp"
#include "../preconditioners/preconditioner.hpp"
#include "red_elimination.hpp"
#include "shared_elements.hpp"
#include "unformed_schur.hpp"

namespace asterism::sparse {

/// With the rows of the first colour, "red", before those of the second, "black",
///
///     A = | D  E |      S = C - F D^-1 E,    S x_b = b_b - F D^-1 b_r,    x_r = D^-1 (b_r - E x_b),
///         | F  C |
///
/// where D and C are diagonal. ILU(0) of A in this order has the pivots diag(S), so an iteration for S with that as its
/// preconditioner makes the iterates of one for A with ILU(0), once the red residual is zero; with vectors of half the
/// size, and without triangular solves. Rows of S are black ones in the order of A, in grains of their own; each of its
/// sums is formed in one way, and so it has the same bits in every division of A among ranks, and is symmetric where A is.
template <class T>
class ReducedSystem {
 public:
  /// None: two colours are not enough, S has more than twice A's entries, or a pivot that cannot be divided by, or more
  /// rows than half of what 32 bits count.
  /// @param mine this rank's rows: whole grains
  /// @param keeps of one rank with all of a positive definite A: whether S need not be formed; none: it is
  /// @param seconds to which the times of the parts are added
  /// With several ranks: collective. Every rank gets the pattern of A for a while.
  /// @throw Error: as prepare(), of A's diagonal
  static std::optional<ReducedSystem> of(const Runtime& runtime, const Csr<T>& mine, MatrixClass matrix_class,
                                         const KeepsSchur& keeps, std::map<std::string, double>& seconds);

  /// Of A, on all ranks.
  [[nodiscard]] Index rows() const { return facts_.rows_of_colours[0] + facts_.rows_of_colours[1]; }
  /// Of S, on this rank.
  [[nodiscard]] Index own_rows() const { return reduced_.count(); }
  /// S: this rank's rows, if it is formed.
  [[nodiscard]] const Csr<T>& matrix() const { return s_; }
  /// Else; nullptr: it is formed.
  [[nodiscard]] const UnformedSchur* unformed() const { return unformed_ ? &*unformed_ : nullptr; }
  /// Of ILU(0).
  [[nodiscard]] const PreconditionerFacts& facts() const { return facts_; }

  // Vectors, of this rank's rows of A and of S; what is of S is smaller by `scale`. With several ranks: collective.
  [[nodiscard]] Array<T> right_hand_side(const T* b, double scale) const;
  [[nodiscard]] Array<T> first_guess(const T* x, double scale) const;
  /// Elements of this rank's rows, and behind them those of its neighbours. Where S is not formed: of black rows, and
  /// behind them of red ones.
  using Vector = Array<double>;
  /// @return x / scale
  Vector solution(const T* b, const Array<T>& black, double scale, T* x) const;
  /// An element of b - A x, counted from this rank's first: x as solution() returns it.
  [[nodiscard]] double residual(Index row, const T* b, double scale, const Vector& x) const {
    return static_cast<double>(b[row]) / scale - product(row, x);
  }

 private:
  ReducedSystem() = default;
  void number(std::span<const Index> numbers);
  void take_entries(const Csr<T>& mine);
  [[nodiscard]] bool make(const RedElimination<T>& elimination, Index terms, MatrixClass matrix_class);
  void move(const Csr<T>& made);
  void leave_unformed(const Csr<T>& mine, std::span<const Index> numbers, const KeepsSchur& keeps);
  /// Of one of this rank's rows, in a Vector.
  [[nodiscard]] Index place(Index row) const;
  [[nodiscard]] bool is_red(Index row) const {
    return sparse::is_red(numbers_[static_cast<std::size_t>(row)]);
  }
  template <class ValueOf>
  [[nodiscard]] Vector vector(const ValueOf& value) const;
  void tell_neighbours(Vector& v) const;
  [[nodiscard]] double product(Index row, const Vector& v) const;

  const Runtime* runtime_ = nullptr;
  Partition::Range rows_, black_, reduced_;  // of this rank: of A, which of its rows are black, of S
  Array<Index> numbers_;                     // of this rank's rows in S, or among red ones
  Array<Index> black_rows_;                  // of these, counted from this rank's first
  SharedElements neighbours_;                // rows of A that others have entries in
  Redivision to_s_, from_s_;                 // of black rows
  // A's entries, with their columns' places in a Vector.
  Array<Index> row_begin_;
  Array<std::int32_t> places_;
  Array<T> values_;
  Array<double> diagonal_;
  Csr<T> s_;
  std::optional<UnformedSchur> unformed_;
  PreconditionerFacts facts_;
};

}  // namespace asterism::sparse
