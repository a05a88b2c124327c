/// \file
/// The passes of a plan over lines in shared memory: what each thread of a block does between two barriers. They run on the host too.
#pragma once

#include "butterflies.cuh"
#include "plan.hpp"

/// Into the kernel: a call would keep what it needs in memory.
#ifdef __CUDACC__
#define ASTERISM_INLINED __host__ __device__ __forceinline__
#else
#define ASTERISM_INLINED inline
#endif

namespace asterism::transforms::cuda {

/// a_q by the q-th power of exp(-2 pi i j / L), see (F2). `tables` is that of j.
template <int R, class T>
ASTERISM_INLINED void rotate_by(Complex<T>* a, const Complex<T>* tables, unsigned stride) {
  constexpr int few = R < 4 ? R : 4;
  Complex<T> w[4];
  ASTERISM_UNROLL
  for (int q = 1; q < few; ++q) {
    w[q] = tables[static_cast<unsigned>(q - 1) * stride];
    a[q] = a[q] * w[q];
  }
  ASTERISM_UNROLL
  for (int p = 4; p < R; p += 4) {
    const Complex<T> v = tables[static_cast<unsigned>(p / 4 + 2) * stride];
    a[p] = a[p] * v;
    ASTERISM_UNROLL
    for (int q = 1; q < 4 && p + q < R; ++q) a[p + q] = a[p + q] * (v * w[q]);
  }
}

template <int R, class T>
ASTERISM_INLINED void conjugate(Complex<T>* a) {
  ASTERISM_UNROLL
  for (int q = 0; q < R; ++q) a[q] = conj(a[q]);
}

/// (L2), between the DFT of a and the inverse of its product with that of b.
/// @param has_0 whether a[0] is frequency 0: then x_0 is there, and X_0 takes its place
template <int R, class T>
ASTERISM_INLINED void multiply(Complex<T>* a, const Complex<T>* multipliers, unsigned groups, bool has_0,
                               Complex<T>* x_0) {
  const Complex<T> total = a[0];
  ASTERISM_UNROLL
  for (int q = 0; q < R; ++q) a[q] = a[q] * multipliers[static_cast<unsigned>(q) * groups];
  if (!has_0) return;
  const Complex<T> first = *x_0;
  *x_0 = first + total;
  a[0] = a[0] + first;
}

/// Butterfly t of a line's pass.
template <PassKind kind, int R, class T>
ASTERISM_INLINED void pass_butterfly(Complex<T>* line, const Pass& pass, const Complex<T>* tables,
                                     unsigned t) {
  const unsigned span = pass.span.divisor, group = pass.span.quotient(t), v = t - group * span,
                 outer = pass.groups.quotient(group), g = group - outer * pass.groups.divisor;
  Complex<T>* const block = line + outer * pass.pitch;
  Complex<T>* const first = block + pass.start + g * (static_cast<unsigned>(R) * span) + v;
  const Complex<T>* const rotations = tables + pass.rotations + pass.step.quotient(v);
  Complex<T> a[R];
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
    multiply<R>(a, tables + pass.multipliers + g, pass.groups.divisor, g == 0, block + v);
    conjugate<R>(a);
    butterfly<R>(a);
  }
  if constexpr (kind != PassKind::forward) conjugate<R>(a);
  ASTERISM_UNROLL
  for (int m = 0; m < R; ++m) first[static_cast<unsigned>(m) * span] = a[m];
}

}  // namespace asterism::transforms::cuda
