/// \file
/// The triangular factor of a symmetric positive definite matrix in supernodes, and solving with it:
///
///     (F2)  R A R^T = L L^T. A supernode s has columns of L that follow each other, `width` of them: a triangle L_1 on
///           the diagonal, and L_2 with its `below` rows further down, which are the same for all these columns but for
///           padding. Its parent has the first of these rows. K = L_1^-1 is kept in the place of L_1.
///           Forward:  v = (b_s, 0) + the u_c of its children c, each at the places of its rows; y = K v_1, u = v_2 - L_2 y.
///           Backward: x_s = K^T (y - L_2^T x at its rows).
///
/// No two supernodes write to the same number, so no order of the work changes the solution. Supernodes of several
/// matrices make a forest: what is independent of each other is solved at once.
#pragma once

#include <cstdint>
#include <vector>

#include "../../../runtime/codelet.hpp"

namespace asterism::decomposition {

struct Supernode {
  Index panel =
      0;  ///< where its numbers begin: K, column by column without what is above the diagonal, then L_2 by columns
  Index rows = 0;  ///< where its rows begin, among those of all supernodes
  std::int32_t first = 0, width = 0, below = 0;
  std::int32_t parent = -1;                    ///< -1: none
  std::int32_t children = 0, child_count = 0;  ///< where they are in SupernodeLists::order

  [[nodiscard]] ASTERISM_HOST_DEVICE Index triangle() const { return Index{width} * (width + 1) / 2; }
  [[nodiscard]] ASTERISM_HOST_DEVICE Index entries() const { return triangle() + Index{width} * below; }
  /// K(i, j), j <= i
  template <class V>
  [[nodiscard]] ASTERISM_HOST_DEVICE V inverse(const V* panels, Index i, Index j) const {
    return panels[panel + j * width - j * (j - 1) / 2 + (i - j)];
  }
  /// L_2(k, j)
  template <class V>
  [[nodiscard]] ASTERISM_HOST_DEVICE V lower(const V* panels, Index k, Index j) const {
    return panels[panel + triangle() + j * below + k];
  }
};

/// Zeros behind the last panel, and room behind that of a solution: a core works on so many numbers at a time.
constexpr std::int32_t panel_margin = 8;

/// Supernodes have at most so many columns: what a block of GPU threads has room for.
constexpr std::int32_t most_width = 1024;
/// What a warp works on alone: so many rows and numbers. Of several such supernodes a job is made, one for each warp.
constexpr std::int32_t most_small_width = 32, most_small_rows = 160, most_small_entries = 2048;
constexpr std::int32_t small_of_job = 16;
[[nodiscard]] ASTERISM_HOST_DEVICE inline bool is_small(const Supernode& s) {
  return s.width <= most_small_width && s.width + s.below <= most_small_rows &&
         s.entries() <= most_small_entries;
}

/// Supernodes in an order in which children come before their parents, and subtrees are consecutive.
struct Supernodes {
  std::vector<Supernode> nodes;
  std::vector<std::int32_t> rows;    ///< of each below its columns, ascending
  std::vector<std::int32_t> places;  ///< of these rows in the parent: its columns, then its rows
  /// All supernodes, those that most others wait for first; children of the same one follow each other.
  std::vector<std::int32_t> order;
  /// Where a job begins in `order`, and the end: a large supernode, or several small ones.
  std::vector<std::int32_t> jobs;
  std::int32_t depth = 0;  ///< supernodes on the longest way to a root

  [[nodiscard]] Index entries() const {
    return nodes.empty() ? 0 : nodes.back().panel + nodes.back().entries();
  }
  [[nodiscard]] Index columns() const { return nodes.empty() ? 0 : nodes.back().first + nodes.back().width; }
};

/// (F2). Each tile has one row.
template <template <class> class As, class V>
struct SupernodePorts {
  As<Optional<In<Supernode>>> nodes;
  As<Optional<In<std::int32_t>>> lists;  ///< rows, places, order and jobs of Supernodes, one after the other
  As<Optional<In<V>>> panels;            ///< with their margin
};

/// What SupernodePorts::lists has.
struct SupernodeLists {
  const std::int32_t *rows, *places, *order, *jobs;
  Index row_count, job_count;

  /// @param rows of all supernodes together
  template <class V>
  SupernodeLists(const SupernodePorts<AsPorts, V>& ports, Index rows_of_all)
      : rows(ports.lists.data),
        places(rows + rows_of_all),
        order(places + rows_of_all),
        jobs(order + ports.nodes.cols),
        row_count(rows_of_all),
        job_count(ports.lists.cols - 2 * rows_of_all - ports.nodes.cols - 1) {}
};

/// Numbers behind x of a solution that a core works in, beside those for a supernode's rows.
inline Index core_room(Index columns) { return (columns < most_width ? columns : most_width) + panel_margin; }
/// Room for x of a solution, and behind it for the u of all supernodes on a GPU, or what a core needs.
inline Index supernodal_work(Index columns, Index rows) { return columns + rows + core_room(columns); }
/// Counters of a solution on a GPU.
inline Index supernodal_counters(Index nodes) { return 2 * nodes + 1; }

/// Right-hand sides, or solutions: each a row, `ld` elements from the one before.
template <class T>
struct Rows {
  T* data;
  Index ld;
  [[nodiscard]] ASTERISM_HOST_DEVICE T* row(Index i) const { return data + i * ld; }
};

namespace cpu {
/// w = (L L^T)^-1 w, for several w. A supernode is read once for all of them, and each has the same bits as alone.
/// @param room for core_room() more numbers than a supernode has rows at most
template <class V>
void solve_supernodes(const SupernodePorts<AsPorts, V>& ports, Index columns, const Rows<V>& w, V* room);
}  // namespace cpu

namespace cuda {
/// (F1) with (F2): x at columns = (L L^T)^-1 b at rows, of several right-hand sides, each with the same bits as alone.
/// @param work, counters a row for each right-hand side, of supernodal_work() and supernodal_counters() numbers
/// @param b, x may be the same
template <class T, class V>
void solve_supernodes(Stream stream, const SupernodePorts<AsPorts, V>& ports, In<std::int32_t> rows,
                      Index columns, const Rows<const T>& b, Scratch<V> work,
                      Optional<Scratch<std::int32_t>> counters, const Rows<T>& x);
}  // namespace cuda

}  // namespace asterism::decomposition
