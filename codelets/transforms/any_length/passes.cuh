/// \file
/// The passes of a plan over lines in shared memory: what each thread of a block does between two barriers.
/// They run on the host too. `Memory` is a pointer to complex numbers, or works like one (cluster_numbers.cuh).
#pragma once

#include <type_traits>

#include "butterflies.cuh"
#include "plan.hpp"

namespace asterism::transforms {

/// a_q by the q-th power of exp(-2 pi i j / L), see (F2). `tables` is that of j.
template <int R, class T, class S>
ASTERISM_INLINED void rotate_by(Complex<T>* a, const Complex<S>* tables, unsigned stride) {
  ASTERISM_UNROLL
  for (int q = 1; q < R; ++q) a[q] = a[q] * tables[static_cast<unsigned>(q - 1) * stride];
}

template <int R, class T>
ASTERISM_INLINED void conjugate(Complex<T>* a) {
  ASTERISM_UNROLL
  for (int q = 0; q < R; ++q) a[q] = conj(a[q]);
}

/// (L2), between the DFT of a and the inverse of its product with that of b.
/// @param has_0 whether a[0] is frequency 0: then x_0 is there, and X_0 takes its place
template <int R, class T, class S>
ASTERISM_INLINED void multiply(Complex<T>* a, const Complex<S>* multipliers, unsigned groups, bool has_0,
                               Complex<T>* x_0) {
  const Complex<T> total = a[0];
  ASTERISM_UNROLL
  for (int q = 0; q < R; ++q) a[q] = a[q] * multipliers[static_cast<unsigned>(q) * groups];
  if (!has_0) return;
  const Complex<T> first = *x_0;
  *x_0 = first + total;
  a[0] = a[0] + first;
}

/// Columns that are all transformed alike.
struct EqualColumns {
  [[nodiscard]] ASTERISM_HOST_DEVICE static bool is_odd(unsigned) { return false; }
};

/// Butterfly t of a line's pass.
/// @param columns tell which of them have multipliers of their own, where a pass has such
template <PassKind kind, int R, class Memory, class S, class Columns>
ASTERISM_INLINED void pass_butterfly(Memory line, const Pass& pass, const Complex<S>* tables, unsigned t,
                                     Columns columns) {
  using Number = std::remove_reference_t<decltype(line[0U])>;
  const unsigned span = pass.span.divisor, group = pass.span.quotient(t), v = t - group * span,
                 outer = pass.groups.quotient(group), g = group - outer * pass.groups.divisor;
  const Memory block = line + outer * pass.pitch;
  const Memory first = block + pass.start + g * (static_cast<unsigned>(R) * span) + v;
  const Complex<S>* const rotations = tables + pass.rotations + pass.step.quotient(v);
  Number a[R];
  ASTERISM_UNROLL
  for (int m = 0; m < R; ++m) a[m] = first[static_cast<unsigned>(m) * span];
  if constexpr (kind == PassKind::backward) {
    conjugate<R>(a);
    if (pass.stride > 1) rotate_by<R>(a, rotations, pass.stride);
  }
  butterfly<R>(a);
  if constexpr (kind == PassKind::forward)
    if (pass.stride > 1) rotate_by<R>(a, rotations, pass.stride);
  if constexpr (kind == PassKind::convolving) {
    const bool is_odd = pass.odd_multipliers > 0 && columns.is_odd(v);
    const Complex<S>* const multipliers = tables + pass.multipliers + (is_odd ? pass.odd_multipliers : 0);
    multiply<R>(a, multipliers + g, pass.groups.divisor, g == 0, &block[v]);
    conjugate<R>(a);
    butterfly<R>(a);
  }
  if constexpr (kind != PassKind::forward) conjugate<R>(a);
  ASTERISM_UNROLL
  for (int m = 0; m < R; ++m) first[static_cast<unsigned>(m) * span] = a[m];
}

/// The most threads of a block: so few that each has registers for the largest butterflies.
template <class T>
constexpr int most_block_threads = sizeof(T) == 8 ? 512 : 640;

/// Which of all butterflies a thread does: from, from + step, ... below `end`.
struct ThreadRange {
  unsigned from, end, step;
};

/// @param numbers that the lines take together
template <class T>
ASTERISM_HOST_DEVICE ThreadRange thread_range(const Complex<T>*, unsigned all, unsigned /*numbers*/,
                                              int thread, int threads) {
  return {static_cast<unsigned>(thread), all, static_cast<unsigned>(threads)};
}

/// A thread's share of lines in shared memory, `pitch` apart.
template <class Memory>
struct SharedLines {
  Memory first;
  int count, pitch, thread, threads;

  /// Calls use(line, i) for i = 0 ... per_line - 1 of every line.
  template <class Use>
  ASTERISM_INLINED void for_each(Divisor per_line, Use use) const {
    const auto range = thread_range(first, static_cast<unsigned>(count) * per_line.divisor,
                                    static_cast<unsigned>(count * pitch), thread, threads);
    for (unsigned i = range.from; i < range.end; i += range.step) {
      const unsigned line = per_line.quotient(i);
      use(first + line * static_cast<unsigned>(pitch), i - line * per_line.divisor);
    }
  }
};

template <int R, PassKind kind, class Memory, class T, class Columns>
ASTERISM_INLINED void run_pass_of(const SharedLines<Memory>& share, const Pass& pass,
                                  const Complex<T>* tables, Columns columns) {
  share.for_each(pass.per_line,
                 [&](Memory line, unsigned t) { pass_butterfly<kind, R>(line, pass, tables, t, columns); });
}

template <int R, class Memory, class T, class Columns>
ASTERISM_INLINED void run_pass_of(const SharedLines<Memory>& share, const Pass& pass,
                                  const Complex<T>* tables, Columns columns) {
  switch (pass.kind) {
    case PassKind::forward:
      return run_pass_of<R, PassKind::forward>(share, pass, tables, columns);
    case PassKind::convolving:
      return run_pass_of<R, PassKind::convolving>(share, pass, tables, columns);
    default:
      return run_pass_of<R, PassKind::backward>(share, pass, tables, columns);
  }
}

/// (L3)
template <class Memory, class T>
ASTERISM_INLINED void rotate_lines(const SharedLines<Memory>& share, const Pass& pass,
                                   const Complex<T>* rotations) {
  share.for_each(pass.per_line, [&](Memory line, unsigned t) {
    const unsigned group = pass.span.quotient(t),
                   g = group - pass.groups.quotient(group) * pass.groups.divisor;
    line[t] = line[t] * rotations[g];
  });
}

template <class Memory, class T, class Columns = EqualColumns>
ASTERISM_INLINED void run_pass(const SharedLines<Memory>& share, const Pass& pass, const Complex<T>* tables,
                               Columns columns = {}) {
  if (pass.kind == PassKind::rotating) return rotate_lines(share, pass, tables + pass.rotations);
  switch (pass.radix) {
    case 2:
      return run_pass_of<2>(share, pass, tables, columns);
    case 3:
      return run_pass_of<3>(share, pass, tables, columns);
    case 4:
      return run_pass_of<4>(share, pass, tables, columns);
    case 5:
      return run_pass_of<5>(share, pass, tables, columns);
    case 6:
      return run_pass_of<6>(share, pass, tables, columns);
    case 7:
      return run_pass_of<7>(share, pass, tables, columns);
    case 8:
      return run_pass_of<8>(share, pass, tables, columns);
    case 9:
      return run_pass_of<9>(share, pass, tables, columns);
    case 10:
      return run_pass_of<10>(share, pass, tables, columns);
    case 11:
      return run_pass_of<11>(share, pass, tables, columns);
    case 12:
      return run_pass_of<12>(share, pass, tables, columns);
    case 13:
      return run_pass_of<13>(share, pass, tables, columns);
    case 14:
      return run_pass_of<14>(share, pass, tables, columns);
    case 15:
      return run_pass_of<15>(share, pass, tables, columns);
    case 16:
      return run_pass_of<16>(share, pass, tables, columns);
    default:
      return run_pass_of<17>(share, pass, tables, columns);
  }
}

}  // namespace asterism::transforms
