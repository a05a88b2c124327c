/// \file
/// The changes by all moves of a permutation, on a core: kept from swap to swap, and searched for the best one.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "moves.hpp"
#include "walk.hpp"

namespace asterism::qap::cpu {

/// Rows of elements, each from a multiple of 64 bytes on.
template <class E>
class AlignedRows {
 public:
  using U = Unsigned<E>;

  /// @param ld as padded() has it
  AlignedRows(Index rows, Index ld)
      : blocks_of_row_(ld / in_block), blocks_(static_cast<std::size_t>(rows * blocks_of_row_)) {}

  [[nodiscard]] U* operator[](Index row) {
    return blocks_[static_cast<std::size_t>(row * blocks_of_row_)].of;
  }
  [[nodiscard]] const U* operator[](Index row) const {
    return blocks_[static_cast<std::size_t>(row * blocks_of_row_)].of;
  }
  void clear() { std::fill(blocks_.begin(), blocks_.end(), Block{}); }

 private:
  static constexpr Index in_block = 64 / sizeof(E);
  struct alignas(64) Block {
    U of[in_block];
  };
  Index blocks_of_row_;
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

  /// Makes a move, one after each best(): O(n^2), without the changes of moves that do not touch it, which best()
  /// brings up to date while it looks at them.
  void swap(std::int32_t u, std::int32_t v);

  [[nodiscard]] const std::vector<std::int32_t>& permutation() const { return p_; }
  /// The change by a move of the permutation as it is, after best().
  [[nodiscard]] E delta(Index r, Index s) const { return static_cast<E>(deltas_[r][s]); }

 private:
  struct RowParts {
    U *w_rs, *w_sr, *g, *d, *g_ss;  // as in MoveParts, for every s
  };
  void update_products();
  RowParts gather_parts(Index r);
  void fill_row(Index r);
  [[nodiscard]] U pending_change(Index r, Index s) const;
  void update_deltas();
  template <int terms>
  void update_columns(Index first);
  [[nodiscard]] Move<E> least() const;

  const MatrixView<E> m_;
  std::vector<std::int32_t> p_;
  AlignedRows<E> products_, deltas_;  // w; Delta where r < s
  AlignedRows<E> x_, h_, y_;          // of the last swap, a row for each term: see (M2), (M3)
  AlignedRows<E> diagonal_;           // w[r][p(r)]
  AlignedRows<E> parts_;              // what a row of moves is made of
  AlignedRows<E> least_;              // of each column: its least change, and where
  std::vector<U> hidden_;             // changes by tabu moves
};

}  // namespace asterism::qap::cpu
