/// \file
/// Sums that all ranks need, by tasks: nobody waits for them on the host.
#pragma once

#include "../../codelets/sums/add_up.hpp"
#include "../../runtime/per_rank.hpp"

namespace asterism {

/// Submits tasks after which every one of `totals` is the sum of all `parts`, element by element and in the order in which
/// they are given: the same bits on all ranks, however many there are and whatever finishes first. Every part travels to
/// every rank, so parts are small: a dot product's share, a norm's.
/// @param totals of the parts' shape
/// @throw Error as Codelet says
template <class T>
void all_reduce(const TileList<T>& parts, const PerRank<T>& totals, const Hints& hints = {}) {
  for (const Tile<T>& total : totals) sums::codelets::add_up<T>(parts, total, hints);
}

}  // namespace asterism
