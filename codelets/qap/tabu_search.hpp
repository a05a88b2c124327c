/// \file
/// Tabu search: a task makes the planned iterations of a batch of walks.
///
/// Every iteration makes the best of all moves that are not tabu; or a tabu one, where that is better and leads to a
/// cost below the walk's best. All workers make the same moves.
#pragma once

#include <atomic>
#include <memory>

#include "../../runtime/codelet.hpp"
#include "matrices.hpp"
#include "walk.hpp"

namespace asterism::qap {

struct TabuArguments {
  Index n = 0;
  int terms = 1;
  bool has_diagonals = false;
  std::int64_t unit = 1;    ///< what a difference of 1 is in costs
  Index capacity = 0;       ///< see WalkView
  std::int64_t target = 0;  ///< a walk ends where its best cost is this or less
  /// Walks on cores end when it is set, those on GPUs are not begun; may be nullptr. Tasks own it, too: whoever leaves by
  /// an exception does not wait for them.
  std::shared_ptr<const std::atomic<bool>> stop = {};

  [[nodiscard]] bool is_stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

namespace cpu {
/// @param matrices see MatrixView @param walks a WalkView in each row @param room not used
template <class E>
void tabu_search(const TabuArguments& a, In<E> matrices, Many<InOut<unsigned char>> walks,
                 Scratch<unsigned char> room);
}  // namespace cpu

namespace cuda {
/// A block of threads for each walk of all tiles, one kernel for all iterations.
/// @param room room_of_walk() bytes in a row for each walk
template <class E>
void tabu_search(Stream stream, const TabuArguments& a, In<E> matrices, Many<InOut<unsigned char>> walks,
                 Scratch<unsigned char> room);
}  // namespace cuda

/// Bytes that a walk works in on a GPU beside shared memory: stamps, and tables that do not fit there.
template <class E>
constexpr Index room_of_walk(Index n) {
  constexpr Index most_gap = 4;  // behind a row of such a table
  return n * n * static_cast<Index>(sizeof(Stamp)) +
         2 * n * padded<E>(n + most_gap) * static_cast<Index>(sizeof(E));
}

/// Bytes of a walk on a GPU, with its room.
template <class E>
constexpr Index bytes_of_walk(Index n, Index capacity) {
  return WalkView::bytes(n, capacity) + room_of_walk<E>(n);
}

/// Bytes of a row of `room` where a task runs: cores have no use for it.
template <class E>
constexpr Index room_of_walk(Index n, Where where) {
  constexpr Index least = 16;
  return where == Where::cpu ? least : room_of_walk<E>(n);
}

/// What makes the planned iterations of walks.
template <class E>
using WalkCodelet = Codelet<TabuArguments, In<E>, Many<InOut<unsigned char>>, Scratch<unsigned char>>;

namespace codelets {
/// "qap_tabu_search_i16", ...
template <class E>
const WalkCodelet<E>& tabu_search();
}  // namespace codelets

}  // namespace asterism::qap
