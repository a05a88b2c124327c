#include "mlssor.hpp"

#include <algorithm>

namespace asterism::relaxation::cpu {
namespace {

/// Subdomains of a row of subdomains that are worked on together, node by node: each alone would wait for its
/// last node all the time.
constexpr Index together = 8;

/// The tiles of `count` subdomains from t on, whose spans are the same but for their places: relax_subdomain.
template <Index count, bool has_source, class T>
void relax_subdomains(const MultiLayer& m, Direction direction, Part of_rows, Part of_columns, Index s,
                      Index t, const InOut<T>& u, const In<T>& g) {
  const CutAxis rows = m.rows(direction), columns = m.columns(direction);
  const FivePoint<T> a = m.weights<T>();
  const T omega = static_cast<T>(m.omega);
  const Index step = direction == Direction::forward ? 1 : -1, apart = step * m.subdomain;
  for (Index k = 0; k < m.layers; ++k) {
    const Span lines = rows.span(of_rows, s, k), nodes = columns.span(of_columns, t, k);
    for (Index p = lines.begin; p < lines.end; ++p) {
      const Index row = rows.mirrored(p) - m.stripe.first_row + m.stripe.halo;
      const T *const above = u.row(row - 1), *const below = u.row(row + 1);
      const T* const source = has_source ? g.row(row) : nullptr;
      T* const line = u.row(row);
      Index first = columns.mirrored(nodes.begin) + 1;
      for (Index q = nodes.begin; q < nodes.end; ++q, first += step) {
        T next[count];
        for (Index l = 0; l < count; ++l) {
          const Index c = first + l * apart;
          T sum = balance(a, above[c], below[c], line[c - 1], line[c + 1]);
          if constexpr (has_source) sum += source[c];
          next[l] = relaxed(omega, line[c], sum);
        }
        for (Index l = 0; l < count; ++l) line[first + l * apart] = next[l];
      }
    }
  }
}

/// Of a whole row of subdomains.
template <bool has_source, class T>
void relax_row_of_subdomains(const MultiLayer& m, Direction direction, Part of_rows, Part of_columns, Index s,
                             const InOut<T>& u, const In<T>& g) {
  const Index all = m.columns(direction).subdomains();
  // The spans of the first one, and of the last two, may be cut off by the grid's ends.
  for (Index t = 0; t < all;) {
    if (t > 0 && t + together <= all - 2) {
      relax_subdomains<together, has_source>(m, direction, of_rows, of_columns, s, t, u, g);
      t += together;
    } else {
      relax_subdomains<1, has_source>(m, direction, of_rows, of_columns, s, t, u, g);
      ++t;
    }
  }
}

/// Half of a sweep of a stripe.
template <class T>
void relax_half(const MultiLayer& m, Direction direction, Part of_rows, const InOut<T>& u, const In<T>& g) {
  const Span subdomains = m.subdomains(direction);
  for (const Part of_columns : {Part::first, Part::second})
    for (Index s = subdomains.begin; s < subdomains.end; ++s) {
      if (m.has_source)
        relax_row_of_subdomains<true>(m, direction, of_rows, of_columns, s, u, g);
      else
        relax_row_of_subdomains<false>(m, direction, of_rows, of_columns, s, u, g);
    }
}

template <class From, class To>
void copy_rows(Index count, Index columns, const From& from, Index from_row, const To& to, Index to_row) {
  for (Index i = 0; i < count; ++i) std::copy_n(from.row(from_row + i), columns, to.row(to_row + i));
}

}  // namespace

template <class T>
void relax_subdomain(const MultiLayer& problem, Direction direction, Part of_rows, Part of_columns, Index s,
                     Index t, InOut<T> u, In<T> g) {
  if (problem.has_source)
    relax_subdomains<1, true>(problem, direction, of_rows, of_columns, s, t, u, g);
  else
    relax_subdomains<1, false>(problem, direction, of_rows, of_columns, s, t, u, g);
}

template <class T>
void mlssor_receive(const HalfSweep& args, InOut<T> u, In<T> trail) {
  const MultiLayer& m = args.problem;
  if (args.arrives && m.has_previous(args.arriving))
    copy_rows(m.layers, u.cols, trail, 0, u, m.arriving(args.arriving));
}

template <class T>
void mlssor_first(const HalfSweep& args, InOut<T> u, In<T> g, In<T> trail, Out<T> lead) {
  const MultiLayer& m = args.problem;
  mlssor_receive(args, u, trail);
  relax_half(m, args.direction, Part::first, u, g);
  if (m.has_previous(args.direction)) copy_rows(m.layers, u.cols, u, m.lead(args.direction), lead, 0);
}

template <class T>
void mlssor_second(const HalfSweep& args, InOut<T> u, In<T> g, In<T> lead, Out<T> trail) {
  const MultiLayer& m = args.problem;
  if (m.has_next(args.direction)) copy_rows(m.layers, u.cols, lead, 0, u, m.lead_ghosts(args.direction));
  relax_half(m, args.direction, Part::second, u, g);
  if (m.has_next(args.direction)) copy_rows(m.layers, u.cols, u, m.trail(args.direction), trail, 0);
}

template <class T>
void mlssor_sweeps(const WholeSweeps& args, InOut<T> u, In<T> g) {
  Direction direction = args.first;
  for (Index sweep = 0; sweep < args.sweeps; ++sweep) {
    relax_half(args.problem, direction, Part::first, u, g);
    relax_half(args.problem, direction, Part::second, u, g);
    if (args.alternate) direction = reversed(direction);
  }
}

template void relax_subdomain(const MultiLayer&, Direction, Part, Part, Index, Index, InOut<float>,
                              In<float>);
template void relax_subdomain(const MultiLayer&, Direction, Part, Part, Index, Index, InOut<double>,
                              In<double>);
template void mlssor_first(const HalfSweep&, InOut<float>, In<float>, In<float>, Out<float>);
template void mlssor_first(const HalfSweep&, InOut<double>, In<double>, In<double>, Out<double>);
template void mlssor_second(const HalfSweep&, InOut<float>, In<float>, In<float>, Out<float>);
template void mlssor_second(const HalfSweep&, InOut<double>, In<double>, In<double>, Out<double>);
template void mlssor_receive(const HalfSweep&, InOut<float>, In<float>);
template void mlssor_receive(const HalfSweep&, InOut<double>, In<double>);
template void mlssor_sweeps(const WholeSweeps&, InOut<float>, In<float>);
template void mlssor_sweeps(const WholeSweeps&, InOut<double>, In<double>);

}  // namespace asterism::relaxation::cpu
