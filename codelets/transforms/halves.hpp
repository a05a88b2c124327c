/// \file
/// dst1 and dct1 of long lines by (T9) of transform.hpp, in place: e_j and s_j, a transform of each of them, and the
/// outputs into their order.
#pragma once

#include "fold.hpp"

namespace asterism::transforms {

/// A transform of one half of a line.
struct HalfLine {
  Transform kind;
  Index length;
};

/// (T9)'s transforms, of the front and of the back of a line. s_j or e_j lie in the back in reverse order, so that
/// (T8) makes a dct3 of the dst3 there, and the other way round.
struct HalfLines {
  HalfLine front, back;
};

/// The N from which on halves may take less than a plan for all of a line.
constexpr Index least_in_halves = 1 << 11;

/// @param kind dst1 or dct1
/// @param n points, N = n + 1 or n - 1 even and at least 4
ASTERISM_HOST_DEVICE constexpr HalfLines halves_of(Transform kind, Index n) {
  const Index M = kind == Transform::dst1 ? (n + 1) / 2 : (n - 1) / 2;
  return kind == Transform::dst1 ? HalfLines{{Transform::dst1, M - 1}, {Transform::dct3, M}}
                                 : HalfLines{{Transform::dct1, M + 1}, {Transform::dst3, M}};
}

/// Points and outputs of dst1 are counted from 1.
ASTERISM_HOST_DEVICE constexpr Index first_number(Transform kind) { return kind == Transform::dst1 ? 1 : 0; }

/// x_j and x_{N-j} give way to their numbers of the halves, e_j in front and s_j behind for dst1, s_j in front and e_j
/// behind for dct1: those of j = M alone to one, 2 x_M.
/// @param j from first_number() to M
/// @param x,y where the line is and where its halves are to be, which may be the same
template <class T>
ASTERISM_HOST_DEVICE void split_pair(Transform kind, Index n, Index j, const T* x, Index x_stride, T* y,
                                     Index y_stride) {
  const bool sine = kind == Transform::dst1;
  const Index N = fft_length(kind, n), at_j = j - first_number(kind), at_mirror = N - j - first_number(kind);
  const T point = x[at_j * x_stride], mirror = x[at_mirror * x_stride];
  const T e = point - mirror, s = point + mirror;
  const bool is_middle = 2 * j == N;
  if (!is_middle || !sine) y[at_j * y_stride] = sine ? e : s;
  if (!is_middle || sine) y[at_mirror * y_stride] = sine ? s : e;
}

/// Where an output of a line is among those of its halves, and whether with the other sign, see HalfLines.
struct HalvesOutput {
  Index at;
  bool negative;
};

/// @param at of the output, from 0
ASTERISM_HOST_DEVICE constexpr HalvesOutput halves_output(Transform kind, Index n, Index at) {
  const Index first = first_number(kind), k = at + first;
  return {k % 2 == 0 ? k / 2 - first : halves_of(kind, n).front.length + k / 2, k % 4 == 3};
}

namespace cuda {

/// Whether lines of this kind and length, `width` side by side, have such halves, and the current device can join them.
bool has_halves(Transform kind, Index length, Index width);

/// e_j and s_j of lines that have halves. `from` and `to` have equal extents; they are the same memory with the same
/// layout, or do not overlap. Asynchronous, like a kernel.
template <class T>
void split_into_halves(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to);

/// The outputs of `kind` from those of the halves, in place. Asynchronous, like a kernel.
template <class T>
void join_halves(Stream stream, Transform kind, const Lines<T>& lines);

}  // namespace cuda
}  // namespace asterism::transforms
