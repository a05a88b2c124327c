/// \file
/// What is forbidden of the moves in a table, for `.cu` files only.
#pragma once

#include "../walk.hpp"
#include "move_table.cuh"

namespace asterism::qap::cuda {

/// The moves that a walk's list forbids. A thread has the same places of the list in all members, so none has to wait for
/// another one; the table they change is that of all threads.
template <class E, int terms, Tables where>
class TabuMoves {
 public:
  using U = Unsigned<E>;
  using Table = BlockTable<E, terms, where>;

  __device__ TabuMoves(const TabuList& list, const Table& table)
      : list_(list), forbidden_(table.arrays().forbidden), hidden_(table.arrays().hidden) {}

  /// Finds those of an iteration. @param length of the list
  __device__ void find(const Table& table, std::int32_t length, std::int64_t now) {
    const int shift =
        list_.rule == TabuRule::pair ? 0 : 1;  // an entry is about a pair, or about two assignments
    count_ = length << shift;
    for (int i = first(); i < count_; i += threads) {
      const Pair pair = list_.forbidden(i >> shift, i & shift, now, table.permutation(), table.inverse());
      forbidden_[i] = pair.r < 0 ? -1 : pair.r << 15 | pair.s;
    }
  }

  /// Makes them what update() will not find. @return the best of those of the caller's warp, for all of its threads
  __device__ Candidate<E> hide(Table& table) {
    Candidate<E> best = Candidate<E>::none();
    for (int i = first(); i < count_; i += threads) {
      if (forbidden_[i] < 0) continue;
      const Candidate<E> move{0, forbidden_[i]};
      const U change = table.pending_change(move.r(), move.s()),
              delta = static_cast<U>(static_cast<U>(table.delta(move.r(), move.s())) + change);
      hidden_[i] = delta;
      table.set(move.r(), move.s(), static_cast<U>(static_cast<U>(no_delta<E>()) - change));
      best.take({static_cast<E>(delta), move.order});
    }
    return best_of_warp(best);
  }

  /// Makes them what they were, after update().
  __device__ void show(Table& table) {
    for (int i = first(); i < count_; i += threads) {
      if (forbidden_[i] < 0) continue;
      const Candidate<E> move{0, forbidden_[i]};
      table.set(move.r(), move.s(), hidden_[i]);
    }
  }

 private:
  /// The last threads first: the others have more to do.
  static __device__ int first() { return threads - 1 - static_cast<int>(threadIdx.x); }

  const TabuList& list_;
  std::int32_t* const forbidden_;
  U* const hidden_;
  int count_ = 0;
};

}  // namespace asterism::qap::cuda
