/// \file
/// Multi-layer symmetric successive over-relaxation (MLSSOR) of the five-point equations (R1), sweeps.hpp, in
/// subdomains that drift from layer to layer [Di et al. 2010].
///
/// A forward sweep relaxes every node K times: layer k = 0 ... K-1 is a sweep of SOR in lexicographic order,
/// from the first row and column on. A backward sweep is its mirror image. Sweeps of both directions
/// alternate (K-layer SSOR), and each is made parallel without respecting all dependences of the sequential
/// one:
///
/// Along an axis of N nodes there are P = ceil(N / n) subdomains. Subdomain s begins at the position
///
///     b_s(k) = s n + k,  s = 1 ... P-1,  b_0(k) = the grid's first,  b_P(k) = its end (M1)
///
/// in layer k, so that it drifts in the direction of the sweep; where a grid ends within a subdomain, what
/// lies outside is left away. (Positions are the numbers of the nodes in a forward sweep, P n - 1 less that
/// number in a backward one: both kinds of sweeps cut the grid at the multiples of n.) The plane
///
///     c_s(k) = s n + n - 1 - k (M2)
///
/// cuts it in two parts, of which the first, [b_s, c_s), gets smaller from layer to layer, and the second,
/// [c_s, b_{s+1}), larger. A subdomain of a grid is one along each axis; the parts of its rows and its
/// columns make four tiles, T11, T12, T21 and T22 (the row's part comes first), each a number of nodes in
/// every layer. T11 is relaxed in all subdomains, then T12, T21 and T22, the nodes of a tile in the order of
/// layer, row, column, always with the values that are there at the time.
///
/// As long as
///
///     2 K <= n (M3)
///
/// the tiles of one kind do not depend on each other: along an axis, all layers of a first part write
/// [s n, s n + n - 2] and read one node more on either side; all of a second part write [s n + n - K,
/// s n + n + K - 2] and read one more; so what a tile reads outside itself no other one of its kind writes.
/// Within a subdomain every dependence of the sequential sweep is respected.
///
/// A stripe consists of whole subdomains, from one cut along the rows to another, and K ghost rows on either
/// side. In a forward sweep its T11 and T12 need one row before its own ones; T21 and T22 reach over the cut
/// behind it, and need there the first K rows of the next stripe after T12: its `lead`. They relax these to
/// the end, so that the next stripe has to be given them back: the `trail`, the stripe's own last row and the
/// K - 1 rows that follow. Nothing else is exchanged, and each node is relaxed in one place only.
#pragma once

#include "sweeps.hpp"

namespace asterism::relaxation {

enum class Direction { forward, backward };

[[nodiscard]] ASTERISM_HOST_DEVICE inline Direction reversed(Direction direction) {
  return direction == Direction::forward ? Direction::backward : Direction::forward;
}

/// The parts of a subdomain along an axis (M2).
enum class Part { first, second };

/// Positions [begin, end).
struct Span {
  Index begin, end;
};

/// An axis of the grid with its subdomains, as a sweep sees it.
struct CutAxis {
  Index extent;     ///< nodes: N
  Index subdomain;  ///< nodes of a subdomain: n
  Direction direction;

  /// P
  [[nodiscard]] ASTERISM_HOST_DEVICE Index subdomains() const { return (extent + subdomain - 1) / subdomain; }
  /// The position of a node, or the node at a position.
  [[nodiscard]] ASTERISM_HOST_DEVICE Index mirrored(Index i) const {
    return direction == Direction::forward ? i : subdomains() * subdomain - 1 - i;
  }
  /// The positions of the grid.
  [[nodiscard]] ASTERISM_HOST_DEVICE Span grid() const {
    const Index begin = direction == Direction::forward ? 0 : subdomains() * subdomain - extent;
    return {begin, begin + extent};
  }
  /// The positions of a part of subdomain s in layer k; none where end <= begin.
  [[nodiscard]] ASTERISM_HOST_DEVICE Span span(Part part, Index s, Index k) const {
    const Span all = grid();
    const Index cut = (s + 1) * subdomain - 1 - k;
    const Index begin = part == Part::second ? cut : s == 0 ? all.begin : s * subdomain + k;
    const Index end = part == Part::first ? cut : s == subdomains() - 1 ? all.end : (s + 1) * subdomain + k;
    return {begin > all.begin ? begin : all.begin, end < all.end ? end : all.end};
  }
};

/// The most layers that (M3) allows, at least 1; n = 1 has none.
constexpr Index most_layers(Index subdomain) { return subdomain / 2; }

/// What the kernels have to know.
struct MultiLayer {
  /// Natural, with `halo` >= K; its first row is a multiple of n, as is its end unless the grid ends there.
  Stripe stripe;
  Index grid_rows;  ///< of all stripes together
  Index subdomain;  ///< n
  Index layers;     ///< K
  double along_y, along_x, omega;
  bool has_source;  ///< whether there is a g; without one its tile is 1 x 1 and not looked at

  [[nodiscard]] ASTERISM_HOST_DEVICE CutAxis rows(Direction direction) const {
    return {grid_rows, subdomain, direction};
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE CutAxis columns(Direction direction) const {
    return {stripe.nodes, subdomain, direction};
  }
  /// The subdomains of the stripe along the rows: numbers [begin, end).
  [[nodiscard]] ASTERISM_HOST_DEVICE Span subdomains(Direction direction) const {
    const Index all = rows(direction).subdomains(), first = stripe.first_row / subdomain;
    const Index end = (stripe.first_row + stripe.rows + subdomain - 1) / subdomain;
    return direction == Direction::forward ? Span{first, end} : Span{all - end, all - first};
  }
  template <class T>
  [[nodiscard]] ASTERISM_HOST_DEVICE FivePoint<T> weights() const {
    return {static_cast<T>(along_y), static_cast<T>(along_x)};
  }

  // Rows of the tile where K rows begin:

  /// the stripe's own lead,
  [[nodiscard]] Index lead(Direction direction) const {
    return direction == Direction::forward ? stripe.halo : stripe.halo + stripe.rows - layers;
  }
  /// the ghost rows that take the next stripe's lead,
  [[nodiscard]] Index lead_ghosts(Direction direction) const {
    return direction == Direction::forward ? stripe.halo + stripe.rows : stripe.halo - layers;
  }
  /// the trail that this stripe leaves,
  [[nodiscard]] Index trail(Direction direction) const {
    return direction == Direction::forward ? stripe.halo + stripe.rows - 1 : stripe.halo - layers + 1;
  }
  /// and the rows that take that of the stripe before.
  [[nodiscard]] Index arriving(Direction direction) const {
    return direction == Direction::forward ? stripe.halo - 1 : stripe.halo + stripe.rows - layers + 1;
  }
  /// Whether there is a stripe before this one in the direction of a sweep, and after it.
  [[nodiscard]] bool has_previous(Direction direction) const {
    return direction == Direction::forward ? !stripe.first : !stripe.last;
  }
  [[nodiscard]] bool has_next(Direction direction) const { return has_previous(reversed(direction)); }
};

/// Half of a sweep: T11 and T12, or T21 and T22.
struct HalfSweep {
  MultiLayer problem;
  Direction direction;
  bool arrives = false;                     ///< whether a trail of an earlier sweep is to be taken first
  Direction arriving = Direction::forward;  ///< the direction of that sweep
};

/// Whole sweeps over a stripe that is the whole grid.
struct WholeSweeps {
  MultiLayer problem;
  Direction first;  ///< of the first sweep
  bool alternate;   ///< whether the directions alternate
  Index sweeps;
};

// The grid is a stripe's tile `u` with `g` beside it, as sweeps.hpp makes them (fill_stripe, fill_ghosts); the
// tiles of rows that cross a cut are K x tile_cols.
namespace cpu {

/// A tile of the subdomain with the numbers s, t along the rows and columns of the grid.
template <class T>
void relax_subdomain(const MultiLayer& problem, Direction direction, Part of_rows, Part of_columns, Index s,
                     Index t, InOut<T> u, In<T> g);

/// T11 and T12 of all of a stripe's subdomains. `trail`: that of the stripe before, looked at if it arrives;
/// `lead`: this stripe's, not written if there is no stripe before it.
template <class T>
void mlssor_first(const HalfSweep& args, InOut<T> u, In<T> g, In<T> trail, Out<T> lead);
/// T21 and T22. `lead`: the next stripe's; `trail`: this one's; neither is used if there is no next one.
template <class T>
void mlssor_second(const HalfSweep& args, InOut<T> u, In<T> g, In<T> lead, Out<T> trail);
/// Takes the trail of the stripe before, as mlssor_first does, which may take it again.
template <class T>
void mlssor_receive(const HalfSweep& args, InOut<T> u, In<T> trail);

template <class T>
void mlssor_sweeps(const WholeSweeps& args, InOut<T> u, In<T> g);

}  // namespace cpu

namespace cuda {

/// The largest subdomain that the kernels hold.
constexpr Index largest_subdomain = 128;

// By thread blocks that load the footprints of some subdomains' tiles into shared memory and work on all
// layers there. Up to 33 nodes; larger subdomains are done by rows.
template <class T>
void mlssor_first_whole(Stream stream, const HalfSweep& args, InOut<T> u, In<T> g, In<T> trail, Out<T> lead);
template <class T>
void mlssor_second_whole(Stream stream, const HalfSweep& args, InOut<T> u, In<T> g, In<T> lead, Out<T> trail);
template <class T>
void mlssor_sweeps_whole(Stream stream, const WholeSweeps& args, InOut<T> u, In<T> g);

// With less shared memory: only the row that is being relaxed and the two beside it are kept there.
template <class T>
void mlssor_first_rows(Stream stream, const HalfSweep& args, InOut<T> u, In<T> g, In<T> trail, Out<T> lead);
template <class T>
void mlssor_second_rows(Stream stream, const HalfSweep& args, InOut<T> u, In<T> g, In<T> lead, Out<T> trail);
template <class T>
void mlssor_sweeps_rows(Stream stream, const WholeSweeps& args, InOut<T> u, In<T> g);

template <class T>
void mlssor_receive(Stream stream, const HalfSweep& args, InOut<T> u, In<T> trail);

}  // namespace cuda
}  // namespace asterism::relaxation

namespace asterism::relaxation::codelets {

#ifdef ASTERISM_WITH_CUDA
#define ASTERISM_MLSSOR_CUDA(half) \
  { cuda::half##_whole<T>, cuda::half##_rows<T> }
#else
#define ASTERISM_MLSSOR_CUDA(half) \
  {}
#endif

/// Ports: u, g, the trail of the stripe before, this stripe's lead.
template <class T>
inline const Codelet<HalfSweep, InOut<T>, In<T>, In<T>, Out<T>> mlssor_first{
    typed_name<T>("mlssor_first"), {cpu::mlssor_first<T>}, ASTERISM_MLSSOR_CUDA(mlssor_first)};

/// Ports: u, g, the next stripe's lead, this stripe's trail.
template <class T>
inline const Codelet<HalfSweep, InOut<T>, In<T>, In<T>, Out<T>> mlssor_second{
    typed_name<T>("mlssor_second"), {cpu::mlssor_second<T>}, ASTERISM_MLSSOR_CUDA(mlssor_second)};

/// Ports: u, g.
template <class T>
inline const Codelet<WholeSweeps, InOut<T>, In<T>> mlssor_sweeps{
    typed_name<T>("mlssor_sweeps"), {cpu::mlssor_sweeps<T>}, ASTERISM_MLSSOR_CUDA(mlssor_sweeps)};

/// Ports: u, the trail of the stripe before.
template <class T>
inline const Codelet<HalfSweep, InOut<T>, In<T>> mlssor_receive{
    typed_name<T>("mlssor_receive"), cpu::mlssor_receive<T>, ASTERISM_CUDA_KERNEL(cuda::mlssor_receive<T>)};

#undef ASTERISM_MLSSOR_CUDA

}  // namespace asterism::relaxation::codelets
