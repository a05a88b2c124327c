#include "stripe.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <type_traits>
#include <utility>
#include <vector>

#include "../common/core_caches.hpp"
#include "../common/denormals.hpp"
#include "../sums/sums.hpp"

namespace asterism::relaxation {

Discretisation discretise_five_point(Index m, Index n, double ly, double lx) {
  const auto square = [](double x) { return x * x; };
  const double y = square(static_cast<double>(m + 1) / ly), x = square(static_cast<double>(n + 1) / lx);
  const double diagonal = 2 * (y + x);
  const auto cosine = [](Index count) { return std::cos(std::numbers::pi / static_cast<double>(count + 1)); };
  return {y / diagonal, x / diagonal, diagonal, 2 * (y * cosine(m) + x * cosine(n)) / diagonal};
}

double Discretisation::optimal_omega() const {
  return 2 / (1 + std::sqrt((1 - jacobi_radius) * (1 + jacobi_radius)));
}

namespace cpu {
namespace {

/// Nodes of one row: where the first of them and its neighbours lie.
struct Nodes {
  Index count;
  Places first;
};

/// All nodes of a natural row; each next to the one before it.
Nodes all_nodes(const Stripe& stripe) { return {stripe.nodes, {1, 1, 0, 2}}; }

/// Those of one colour in the tile's row `r`: numbers 2 - s, 4 - s, ... not beyond n, 2 columns apart in the
/// natural arrangement and next to each other in the separated one.
Nodes nodes_of(const Stripe& stripe, Colour colour, Index r) {
  const Index s = stripe.start(colour, r);
  return {(stripe.nodes + s) / 2, places_of(stripe, colour, 1 - s, s)};
}

/// to = relax(from, balance + g), node by node. The nodes that are written are no neighbours of each other,
/// or `to` is another tile; `from` may be `to`. (Inlined, GCC takes some of these loops for cold ones and
/// does not vectorise them.)
template <Index stride, bool in_place, bool has_source, class T, class Relax>
[[gnu::noinline]] void relax_nodes(Index count, const FivePoint<T>& a, const T* __restrict above,
                                   const T* __restrict below, const T* __restrict left,
                                   const T* __restrict right, const T* __restrict g, const T* __restrict from,
                                   T* __restrict to, Relax relax) {
  for (Index k = 0; k < count * stride; k += stride) {
    T sum = balance(a, above[k], below[k], left[k], right[k]);
    if constexpr (has_source) sum += g[k];
    to[k] = relax(in_place ? to[k] : from[k], sum);
  }
}

/// Calls body(std::bool_constant<value>).
template <class Body>
void with_constant(bool value, Body body) {
  if (value)
    body(std::true_type{});
  else
    body(std::false_type{});
}

/// The same, of row r of a stripe.
/// @param near  holds the neighbours
template <Index stride, class T, class Relax>
void relax_row(const Nodes& nodes, Index r, const FivePoint<T>& a, const In<T>& near, bool has_source,
               const In<T>& g, const In<T>& from, const InOut<T>& to, Relax relax) {
  with_constant(has_source, [&](auto source) {
    with_constant(from.data == to.data, [&](auto in_place) {
      relax_nodes<stride, in_place, source>(
          nodes.count, a, near.row(r - 1) + nodes.first.across, near.row(r + 1) + nodes.first.across,
          near.row(r) + nodes.first.left, near.row(r) + nodes.first.right,
          source ? g.row(r) + nodes.first.own : nullptr, from.row(r) + nodes.first.own,
          to.row(r) + nodes.first.own, relax);
    });
  });
}

/// How many of the passes go over the rows of a tile together, each a row behind the one before it: where the tile stays in a core's
/// second-level cache as many as find all their rows in the first, four at least; else as many as find them in the second, or all
/// where these are so few that memory is read more often than it gains. On two cores of a Xeon (48 KiB and 2 MiB), us a sweep of 32
/// a task with f, so and with all 64 passes at a time: 2047 x 2047 1170 and 1450, 4095 x 4095 5600 and 8900, 1023 x 16,383 8700 and
/// 9800; 200 x 65,535, 4 passes at a time 11,500, all 8700.
/// @param passes at least 1 @param arrays as large as the tile that passes read or write
template <class T>
Index passes_at_once(Index passes, const InOut<T>& tile, Index arrays) {
  constexpr Index fewest_in_first = 4, fewest_in_second = 6;
  const auto [first, second] = core_caches();
  const Index row_bytes = arrays * tile.cols * static_cast<Index>(sizeof(T));
  const Index in_first = first / 3 * 2 / row_bytes, in_second = second / row_bytes;
  const Index most = tile.rows * row_bytes <= second ? std::max(in_first, fewest_in_first)
                     : in_second < fewest_in_second  ? passes
                                                     : in_second;
  return parts(passes, parts(passes, most));  // groups of one size
}

/// Calls body(pass, row) for the rows [begin(pass), end(pass)) of all passes, so that each finds its row and
/// the two beside it as the pass before left them, and while they are in the cache: of those that go together, pass h is h
/// rows behind the first one. For the same reason a pass may write over what the pass before it has read.
template <class Begin, class End, class Body>
void pipeline(Index passes, Index at_once, Begin begin, End end, Body body) {
  for (Index first = 0; first < passes; first += at_once) {
    const Index last = std::min(first + at_once, passes) - 1;
    for (Index y = begin(first); y < end(last) + last - first; ++y)
      for (Index pass = first; pass <= last; ++pass)
        if (const Index row = y - (pass - first); begin(pass) <= row && row < end(pass)) body(pass, row);
  }
}

/// Whether the result of a task's sweeps lies in the other tile.
template <class Args>
bool ends_in_other(const Args& args) {
  return args.sweeps % 2 != 0;
}

/// The sweeps over a stripe whose ghost rows are filled.
template <class T>
void sweep(const JacobiArgs& args, InOut<T> u, InOut<T> other, In<T> g) {
  const DenormalsAreZero here;
  const Stripe& stripe = args.stripe;
  const std::array<InOut<T>, 2> tiles{u, other};
  const FivePoint<T> a = weights<T>(args);
  const auto begin = [&](Index pass) { return stripe.begin(pass + 1); };
  const auto end = [&](Index pass) { return stripe.end(pass + 1); };
  const Index at_once = passes_at_once(args.sweeps, u, args.has_source ? 3 : 2);
  pipeline(args.sweeps, at_once, begin, end, [&](Index pass, Index row) {
    const auto old = static_cast<std::size_t>(pass % 2);
    relax_row<1>(all_nodes(stripe), row, a, reading(tiles[old]), args.has_source, g, reading(tiles[old]),
                 tiles[1 - old], [](T, T sum) { return sum; });
  });
}

/// An odd number of sweeps goes over to `other` with the first pass of either colour, and stays there.
template <class T>
void sweep(const ColourArgs& args, InOut<T> u, InOut<T> other, In<T> g) {
  const DenormalsAreZero here;
  const Stripe& stripe = args.stripe;
  const InOut<T>& result = ends_in_other(args) ? other : u;
  const FivePoint<T> a = weights<T>(args);
  const T omega = static_cast<T>(args.omega);
  const auto once = [omega](T v, T sum) { return relaxed(omega, v, sum); };
  const auto twice = [once](T v, T sum) { return once(once(v, sum), sum); };
  const auto begin = [&](Index pass) { return args.begin(pass); };
  const auto end = [&](Index pass) { return args.end(pass); };
  const Index at_once = passes_at_once(args.passes(), u, args.has_source ? 2 : 1);
  pipeline(args.passes(), at_once, begin, end, [&](Index pass, Index row) {
    const Nodes nodes = nodes_of(stripe, args.colour(pass), row);
    const In<T> near = reading(pass == 0 ? u : result), from = reading(pass < 2 ? u : result);
    const auto relax = [&](auto rule) {
      if (stripe.arrangement == Arrangement::natural)
        relax_row<2>(nodes, row, a, near, args.has_source, g, from, result, rule);
      else
        relax_row<1>(nodes, row, a, near, args.has_source, g, from, result, rule);
    };
    if (args.relaxations(pass) == 1)
      relax(once);
    else
      relax(twice);
  });
}

/// `count` rows of a tile to rows of another.
template <class T>
void copy_rows(const T* from, Index from_ld, T* to, Index to_ld, Index count, Index cols) {
  for (Index i = 0; i < count; ++i) std::copy_n(from + i * from_ld, cols, to + i * to_ld);
}

/// Zero in what pads the tile's row `r`.
template <class T>
void pad(const Stripe& stripe, Index r, T* row) {
  const Index count = stripe.nodes + 2;
  if (stripe.arrangement == Arrangement::natural) {
    std::fill(row + count, row + stripe.tile_cols(), T{0});
    return;
  }
  for (const Index s : {Index{0}, Index{1}}) {
    T* const half = row + column_of(stripe, r, s);
    std::fill(half + (count + 1 - s) / 2, half + stripe.half(), T{0});
  }
}

/// Numbers 0 ... n+1 to where the tile's row `r` has them.
template <class T>
void arrange(const Stripe& stripe, Index r, const T* __restrict numbers, T* __restrict row) {
  const Index count = stripe.nodes + 2;
  pad(stripe, r, row);
  if (stripe.arrangement == Arrangement::natural) {
    std::copy_n(numbers, count, row);
    return;
  }
  for (const Index s : {Index{0}, Index{1}}) {
    T* const half = row + column_of(stripe, r, s);
    for (Index k = 0; k < (count + 1 - s) / 2; ++k) half[k] = numbers[2 * k + s];
  }
}

/// Of them 0 and n+1 alone.
template <class T>
void arrange_frame(const Stripe& stripe, Index r, const T* numbers, T* row) {
  pad(stripe, r, row);
  for (const Index number : {Index{0}, stripe.nodes + 1}) row[column_of(stripe, r, number)] = numbers[number];
}

/// Nodes 0 ... n-1 from there.
template <class T>
void gather(const Stripe& stripe, Index r, const T* __restrict row, T* __restrict nodes) {
  if (stripe.arrangement == Arrangement::natural) {
    std::copy_n(row + 1, stripe.nodes, nodes);
    return;
  }
  for (const Colour colour : {Colour::red, Colour::black}) {
    const Nodes of = nodes_of(stripe, colour, r);
    const T* const half = row + of.first.own;
    T* const first = nodes + (1 - stripe.start(colour, r));
    for (Index k = 0; k < of.count; ++k) first[2 * k] = half[k];
  }
}

/// What an end's rows are after the sweeps, to `edge`.
template <class Args, class T>
void sweep_end(const Args& args, const End& end, In<T> tile, In<T> g, In<T> above, In<T> below, Out<T> edge,
               Scratch<T> work) {
  const Index rows = end.stripe.tile_rows(), cols = end.stripe.tile_cols();
  const InOut<T> u{work.data, rows, cols, cols}, other{work.data + rows * cols, rows, cols, cols};
  copy_rows(tile.row(end.first_tile_row), tile.ld, u.data, u.ld, rows, cols);
  fill_ghosts<T>(end.stripe, {u, above, below});
  std::copy_n(u.data, rows * cols, other.data);  // both need the frame
  Args part = args;
  part.stripe = end.stripe;
  sweep(part, u, other, args.has_source ? In<T>{g.row(end.first_tile_row), rows, cols, g.ld} : g);
  const InOut<T>& result = ends_in_other(args) ? other : u;
  copy_rows(result.row(end.stripe.halo), cols, edge.data, edge.ld, end.stripe.halo, cols);
}

template <class Args, class T>
void sweep_border(const Args& args, const BorderPorts<AsPorts, T>& p) {
  const End upper = End::upper(args.stripe), lower = End::lower(args.stripe);
  // Towards the interior, the ghost rows are rows of the stripe itself.
  const Index halo = args.stripe.halo;
  const auto rows_of_u = [&](Index tile_row) { return In<T>{p.u.row(tile_row), halo, p.u.cols, p.u.ld}; };
  sweep_end(args, upper, p.u, p.g, p.above, rows_of_u(2 * halo), p.top, p.work);
  sweep_end(args, lower, p.u, p.g, rows_of_u(lower.first_tile_row), p.below, p.bottom, p.work);
}

}  // namespace

template <class T>
void fill_stripe(const FillArgs& args, FillPorts<AsPorts, T> p) {
  const Stripe& stripe = args.stripe;
  const Index n = stripe.nodes, begin = stripe.halo, end = stripe.halo + stripe.rows;
  std::vector<T> numbers(static_cast<std::size_t>(n + 2));
  for (Index r = 0; r < stripe.tile_rows(); ++r) {
    const bool own = begin <= r && r < end;
    if (r < begin && stripe.first) {
      std::copy_n(p.frame_rows.row(0), n + 2, numbers.begin());
    } else if (r >= end && stripe.last) {
      std::copy_n(p.frame_rows.row(1), n + 2, numbers.begin());
    } else {
      numbers.front() = p.frame_columns.row(r)[0];
      numbers.back() = p.frame_columns.row(r)[1];
      if (own)
        std::copy_n(p.initial.row(r - begin), n, numbers.begin() + 1);
      else
        std::fill_n(numbers.begin() + 1, n, T{0});
    }
    arrange(stripe, r, numbers.data(), p.u.row(r));
    if (own)
      arrange_frame(stripe, r, numbers.data(), p.other.row(r));
    else
      std::copy_n(p.u.row(r), p.u.cols, p.other.row(r));
    if (!args.has_source) continue;
    std::fill(numbers.begin(), numbers.end(), T{0});
    if (own)
      std::transform(p.f.row(r - begin), p.f.row(r - begin) + n, numbers.begin() + 1,
                     [&](T value) { return static_cast<T>(-static_cast<double>(value) / args.diagonal); });
    arrange(stripe, r, numbers.data(), p.g.row(r));
  }
  if (!args.has_source) *p.g.data = 0;
}

template <class T>
void copy_edges(const Stripe& stripe, EdgePorts<AsPorts, T> p) {
  copy_rows(p.tile.row(stripe.halo), p.tile.ld, p.top.data, p.top.ld, stripe.halo, p.tile.cols);
  copy_rows(p.tile.row(stripe.rows), p.tile.ld, p.bottom.data, p.bottom.ld, stripe.halo, p.tile.cols);
}

template <class T>
void fill_ghosts(const Stripe& stripe, GhostPorts<AsPorts, T> p) {
  const auto& [tile, above, below] = p;
  if (!stripe.first) copy_rows(above.data, above.ld, tile.data, tile.ld, stripe.halo, tile.cols);
  if (!stripe.last)
    copy_rows(below.data, below.ld, tile.row(stripe.halo + stripe.rows), tile.ld, stripe.halo, tile.cols);
}

template <class T>
void store_stripe(const Stripe& stripe, In<T> u, Out<T> result) {
  for (Index i = 0; i < stripe.rows; ++i)
    gather(stripe, stripe.halo + i, u.row(stripe.halo + i), result.row(i));
}

template <class T>
void jacobi_interior(const JacobiArgs& args, InteriorPorts<AsPorts, T> p) {
  fill_ghosts<T>(args.stripe, {p.u, p.above, p.below});
  sweep(args, p.u, p.other, p.g);
}

template <class T>
void relax_colours_interior(const ColourArgs& args, InteriorPorts<AsPorts, T> p) {
  fill_ghosts<T>(args.stripe, {p.u, p.above, p.below});
  if (args.stale_ghosts) fill_ghosts<T>(args.stripe, {p.other, p.above, p.below});
  sweep(args, p.u, p.other, p.g);
}

template <class T>
void jacobi(const JacobiArgs& args, SweepPorts<AsPorts, T> p) {
  jacobi_interior<T>(args, {p.u, p.other, p.g, p.above, p.below});
  copy_edges<T>(args.stripe, {reading(ends_in_other(args) ? p.other : p.u), p.top, p.bottom});
}

template <class T>
void relax_colours(const ColourArgs& args, SweepPorts<AsPorts, T> p) {
  relax_colours_interior<T>(args, {p.u, p.other, p.g, p.above, p.below});
  copy_edges<T>(args.stripe, {reading(ends_in_other(args) ? p.other : p.u), p.top, p.bottom});
}

template <class T>
void jacobi_border(const JacobiArgs& args, BorderPorts<AsPorts, T> p) {
  sweep_border(args, p);
}

template <class T>
void relax_colours_border(const ColourArgs& args, BorderPorts<AsPorts, T> p) {
  sweep_border(args, p);
}

// In float64 whatever T, because r comes from the difference of numbers that are nearly the same.
template <class T>
void stripe_residual(const ResidualArgs& args, ResidualPorts<AsPorts, T> p) {
  const Stripe& stripe = args.stripe;
  const FivePoint<double> a{args.along_y, args.along_x};
  const Index begin = stripe.halo, end = stripe.halo + stripe.rows;
  const auto real = [](T value) { return static_cast<double>(value); };
  sums::SquareSum r2{}, v2{}, g2{};
  const auto add = [&](const Nodes& nodes, Index r) {
    const T* const up =
        (r > begin || stripe.first ? p.u.row(r - 1) : p.above.row(stripe.halo - 1)) + nodes.first.across;
    const T* const down = (r + 1 < end || stripe.last ? p.u.row(r + 1) : p.below.row(0)) + nodes.first.across;
    const T *const left = p.u.row(r) + nodes.first.left, *const right = p.u.row(r) + nodes.first.right,
                   *const own = p.u.row(r) + nodes.first.own;
    const T* const source = args.has_source ? p.g.row(r) + nodes.first.own : nullptr;
    const auto imbalance = [&](Index j) {
      return balance(a, real(up[j]), real(down[j]), real(left[j]), real(right[j])) - real(own[j]);
    };
    v2 += sums::cpu::sum_of_squares(nodes.count, [&](Index k) { return real(own[k]); });
    if (args.has_source) {
      r2 += sums::cpu::sum_of_squares(nodes.count, [&](Index k) { return imbalance(k) + real(source[k]); });
      g2 += sums::cpu::sum_of_squares(nodes.count, [&](Index k) { return real(source[k]); });
    } else {
      r2 += sums::cpu::sum_of_squares(nodes.count, [&](Index k) { return imbalance(k); });
    }
  };
  for (Index r = begin; r < end; ++r)
    if (stripe.arrangement == Arrangement::natural) {
      add(all_nodes(stripe), r);
    } else {
      add(nodes_of(stripe, Colour::red, r), r);
      add(nodes_of(stripe, Colour::black, r), r);
    }
  p.sums.data[residual_squares] = r2;
  p.sums.data[solution_squares] = v2;
  p.sums.data[source_squares] = g2;
}

#define ASTERISM_INSTANTIATE(T)                                                       \
  template void fill_stripe(const FillArgs&, FillPorts<AsPorts, T>);                  \
  template void copy_edges(const Stripe&, EdgePorts<AsPorts, T>);                     \
  template void fill_ghosts(const Stripe&, GhostPorts<AsPorts, T>);                   \
  template void store_stripe(const Stripe&, In<T>, Out<T>);                           \
  template void jacobi(const JacobiArgs&, SweepPorts<AsPorts, T>);                    \
  template void relax_colours(const ColourArgs&, SweepPorts<AsPorts, T>);             \
  template void jacobi_border(const JacobiArgs&, BorderPorts<AsPorts, T>);            \
  template void relax_colours_border(const ColourArgs&, BorderPorts<AsPorts, T>);     \
  template void jacobi_interior(const JacobiArgs&, InteriorPorts<AsPorts, T>);        \
  template void relax_colours_interior(const ColourArgs&, InteriorPorts<AsPorts, T>); \
  template void stripe_residual(const ResidualArgs&, ResidualPorts<AsPorts, T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE

}  // namespace cpu
}  // namespace asterism::relaxation
