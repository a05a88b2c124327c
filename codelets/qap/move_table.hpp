/// \file
/// The changes by all moves of a permutation, on a core: kept from swap to swap, and searched for the best one.
///
/// Written with vectors of 64 bytes, which GCC and Clang make of whatever the machine has: 32 elements of 16 bits, 16 of 32,
/// 8 of 64.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "moves.hpp"
#include "walk.hpp"

namespace asterism::qap::cpu {

/// Rows of elements, each from the first lane of a vector on.
template <class E>
class VectorRows {
 public:
  using U = Unsigned<E>;
  static constexpr Index lanes = 64 / sizeof(E);
  // They may be looked at element by element.
  typedef U Vector __attribute__((vector_size(64), may_alias));

  VectorRows(Index rows, Index ld) : vectors_(ld / lanes), blocks_(static_cast<std::size_t>(rows * vectors_)) {}

  [[nodiscard]] Vector* vectors(Index row) { return reinterpret_cast<Vector*>(blocks_.data()) + row * vectors_; }
  [[nodiscard]] U* operator[](Index row) { return reinterpret_cast<U*>(vectors(row)); }
  [[nodiscard]] const U* operator[](Index row) const { return blocks_[static_cast<std::size_t>(row * vectors_)].of; }
  void clear() { std::fill(blocks_.begin(), blocks_.end(), Block{}); }

 private:
  struct alignas(64) Block {
    U of[lanes];
  };
  Index vectors_;
  std::vector<Block> blocks_;
};

template <class E>
class MoveTable {
 public:
  using U = Unsigned<E>;

  explicit MoveTable(const MatrixView<E>& matrices);

  /// Fills the tables for a permutation: O(n^3).
  void begin(const std::int32_t* permutation);

  struct Best {
    Move<E> free;  ///< of the moves that are not tabu; no_delta() where there is none
    Move<E> tabu;  ///< of the others
  };
  /// The best moves of the permutation as it is.
  /// @param tabu moves, each once
  Best best(std::span<const Pair> tabu);

  /// Makes a move, one after each best(): O(n^2), without the changes of moves that do not touch it, which best() brings up to date while it
  /// looks at them.
  void swap(std::int32_t u, std::int32_t v);

  [[nodiscard]] const std::vector<std::int32_t>& permutation() const { return p_; }
  /// The change by a move of the permutation as it is, after best().
  [[nodiscard]] E delta(Index r, Index s) const { return static_cast<E>(deltas_[r][s]); }

 private:
  using Vector = typename VectorRows<E>::Vector;
  typedef E Signs __attribute__((vector_size(64), may_alias));
  static constexpr Index lanes = VectorRows<E>::lanes;

  [[nodiscard]] Index vectors() const { return m_.ld / lanes; }
  void update_products();
  void fill_row(Index r);
  [[nodiscard]] U pending_change(Index r, Index s) const;
  void update_deltas();
  template <int terms>
  void update_deltas_of(Index block);
  [[nodiscard]] Move<E> least() const;

  const MatrixView<E> m_;
  std::vector<std::int32_t> p_;
  VectorRows<E> products_, deltas_;  // w; Delta where r < s
  VectorRows<E> x_, h_, y_;          // of the last swap, a row for each term: see (M2), (M3)
  VectorRows<E> diagonal_;           // w[r][p(r)]
  VectorRows<E> parts_;              // what a row of moves is made of
  VectorRows<E> least_;              // of each column: its least change, and where
  std::vector<U> hidden_;                  // changes by tabu moves
};

}  // namespace asterism::qap::cpu
