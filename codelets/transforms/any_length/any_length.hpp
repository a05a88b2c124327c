/// \file
/// Real transforms (T1) of lines of nearly any length in one kernel: a line is loaded once, transformed in shared
/// memory and stored once, as line_transform.hpp has it for powers of two.
#pragma once

#include "../transform.hpp"

namespace asterism::transforms::cuda {

/// Whether `any_length_transform` does lines of this kind and length, `width` side by side, on the calling thread's
/// current device. The FFT has N = n + 1 (dst1), n - 1 (dct1) or n complex numbers for a line (kinds I and IV)
/// or for two (the others). N must not be a multiple of the square of a prime above 17, and shared memory has to hold
/// it, or, of lines side by side, 16 bytes' worth of them: on an H200 N is at most 14,528 in float64 and 29,056 in float32;
/// half of that where N has a prime p above 17 and p - 1 has another one.
template <class T>
bool any_length_fits(Transform kind, Index length, Index width);

/// Transforms lines that fit. `from` and `to` have equal extents; they are the same memory with the same
/// layout, or do not overlap. Asynchronous, like a kernel; but the first call of a kind and length makes its tables
/// on the current device, where they stay until the process ends. A call with no lines (count = 0) does just that.
template <class T>
void any_length_transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to);

}  // namespace asterism::transforms::cuda
