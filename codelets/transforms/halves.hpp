/// \file
/// dst1 and dct1 of long lines by (T9) of transform.hpp, in place: e_j and s_j, a transform of each of them, and the
/// outputs into their order.
#pragma once

#include "transform.hpp"

namespace asterism::transforms::cuda {

/// A transform of a part of a line.
struct Part {
  Transform kind;
  Index length;
};

/// (T9)'s transforms, of the front and of the back of a line. s_j or e_j lie in the back in reverse order, so that
/// (T8) makes a dct3 of the dst3 there, and the other way round; `join_halves` changes the signs.
struct Halves {
  Part front, back;
};

/// @param kind dst1 or dct1
/// @param n points, N = n + 1 or n - 1 even and at least 4
constexpr Halves halves_of(Transform kind, Index n) {
  const Index M = kind == Transform::dst1 ? (n + 1) / 2 : (n - 1) / 2;
  return kind == Transform::dst1 ? Halves{{Transform::dst1, M - 1}, {Transform::dct3, M}}
                                 : Halves{{Transform::dct1, M + 1}, {Transform::dst3, M}};
}

/// Whether lines of this kind and length, `width` side by side, have such halves, and the current device can join them.
bool has_halves(Transform kind, Index length, Index width);

/// e_j and s_j of lines that have halves. `from` and `to` have equal extents; they are the same memory with the same
/// layout, or do not overlap. Asynchronous, like a kernel.
template <class T>
void split_into_halves(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to);

/// The outputs of `kind` from those of the halves, in place. Asynchronous, like a kernel.
template <class T>
void join_halves(Stream stream, Transform kind, const Lines<T>& lines);

}  // namespace asterism::transforms::cuda
