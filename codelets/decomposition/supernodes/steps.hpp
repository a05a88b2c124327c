/// \file
/// (F2) as threads work on it that meet, on a GPU or one after the other on the host: `Team` has their loops and sums.
///
/// A team of a given size always adds up in the same order.
#pragma once

#include "nodes.hpp"

namespace asterism::decomposition {

/// Lanes that share a column's sum, of a team with so many threads: 4, 8, 16 or 32.
ASTERISM_HOST_DEVICE inline int lanes_of_column(int threads, Index columns) {
  int lanes = 32;
  while (lanes > 4 && threads / lanes < columns) lanes /= 2;
  return lanes;
}
/// Threads between those of a row that share its sum; all of them: there is only one.
ASTERISM_HOST_DEVICE inline int row_stride(int threads, Index rows) {
  const int grain = threads > 32 ? 32 : 4;
  return rows >= threads ? threads : rows == 0 ? grain : static_cast<int>((rows + grain - 1) / grain) * grain;
}

/// What other threads of the grid have written, and what they never write.
template <class V>
ASTERISM_HOST_DEVICE inline V fresh(const V* at) {
#ifdef __CUDA_ARCH__
  return __ldcg(at);
#else
  return *at;
#endif
}

template <class V>
struct SupernodalSolve {
  const Supernode* nodes;
  const V* panels;
  const std::int32_t *rows, *places, *order;
  V *x, *updates;  ///< y and then x; the u of all
};

/// What a team has in the memory that it shares. v_2 is with the updates where it is longer than `most_below`.
template <class V>
struct TeamRoom {
  V *v1, *y, *v2;
  Index most_below;
};

/// @param b b(i) is what belongs to column i of L
template <class Team, class V, class Given>
ASTERISM_HOST_DEVICE void forward_step(const Team& team, const SupernodalSolve<V>& at, const Supernode& s,
                                       const TeamRoom<V>& room, const Given& b) {
  const Index w = s.width, m = s.below;
  V* const u = at.updates + s.rows;
  V* const v1 = room.v1;
  V* const v2 = m <= room.most_below ? room.v2 : u;
  team.each(w, [&](Index i) { v1[i] = b(s.first + i); });
  team.each(m, [&](Index k) { v2[k] = 0; });
  team.meet();
  for (std::int32_t c = 0; c < s.child_count; ++c) {
    const Supernode& child = at.nodes[at.order[s.children + c]];
    const std::int32_t* const places = at.places + child.rows;
    const V* const of_child = at.updates + child.rows;
    team.each(child.below, [&](Index k) {
      const Index place = places[k];
      V& v = place < w ? v1[place] : v2[place - w];
      v += fresh(of_child + k);
    });
    team.meet();
  }
  V *const y = room.y, *const all_y = at.x + s.first;
  team.row_sums(
      w, [](Index i) { return i + 1; }, [&](Index i, Index j) { return s.inverse(at.panels, i, j) * v1[j]; },
      [&](Index i, V sum) { all_y[i] = y[i] = sum; });
  team.meet();
  team.row_sums(
      m, [w](Index) { return w; }, [&](Index k, Index j) { return s.lower(at.panels, k, j) * y[j]; },
      [&](Index k, V sum) { u[k] = v2[k] - sum; });
}

/// @param give give(i, value) takes x at column i of L
template <class Team, class V, class Taken>
ASTERISM_HOST_DEVICE void backward_step(const Team& team, const SupernodalSolve<V>& at, const Supernode& s,
                                        const TeamRoom<V>& room, const Taken& give) {
  const Index w = s.width, m = s.below;
  const std::int32_t* const rows = at.rows + s.rows;
  const bool fits = m <= room.most_below;
  V *const z = room.v1, *const v2 = room.v2, *const x = at.x + s.first;
  if (fits) team.each(m, [&](Index k) { v2[k] = fresh(at.x + rows[k]); });
  team.meet();
  team.column_sums(
      w, [](Index) { return Index{0}; }, m,
      [&](Index k, Index j) { return s.lower(at.panels, k, j) * (fits ? v2[k] : fresh(at.x + rows[k])); },
      [&](Index j, V sum) { z[j] = fresh(x + j) - sum; });
  team.meet();
  team.column_sums(
      w, [](Index j) { return j; }, w, [&](Index i, Index j) { return s.inverse(at.panels, i, j) * z[i]; },
      [&](Index j, V sum) {
        x[j] = sum;
        give(s.first + j, sum);
      });
}

}  // namespace asterism::decomposition
