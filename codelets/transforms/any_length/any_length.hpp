/// \file
/// Real transforms (T1) of lines of nearly any length in one kernel: a line is loaded once, transformed in shared
/// memory and stored once, as power_of_two/line_transform.hpp has it.
#pragma once

#include "../transform.hpp"

namespace asterism::transforms::cuda {

/// Whether `any_length_transform` does lines of this kind and length, `width` side by side, on the calling thread's
/// current device: as long as shared memory holds the numbers of a line, or, of lines side by side, 16 bytes' worth of
/// them. The FFT has N = n + 1 (dst1), n - 1 (dct1) or n complex numbers for a line (kinds I and IV) or for two (the
/// others); kind I with an odd N does with little more than half where symmetric_plan.hpp's D is there, or a prime above 17
/// once. On an H200 a block has room for 14,528 numbers in float64 and 29,056 in float32, a cluster of blocks for 49,152; a
/// prime p above 17 takes twice its numbers where p - 1, or (p - 1) / 2 where it is the one of symmetric_plan.hpp, has
/// another one.
///
/// Measured on an H200 (copy 4.26 TB/s), dst1 in float64 and float32, Gcell/s: 1000 points along x 93 and 148,
/// along y 82 and 127; 600 points (N prime) 46 and 67, 54 and 75; 5000 59 and 69, 8192 57 and 96, 10,000 41 and
/// 68. dct2 of 1000 points along x 130 and 194. Errors for noise, relative in the 2-norm: 2 units of rounding,
/// with primes above 17 up to 5.3. Poisson's solver, float64: 10,006 x 10,006 11.1, 16,000 x 16,000 15.8 and
/// 24,000 x 24,000 12.5, where clusters without symmetry gave 2.8, 6.4 and 5.3 and cuFFT in passes of its own 1.6, 1.7 and
/// 1.8; in clusters of blocks 14,000 x 14,000 8.0, 15,048 x 15,048 6.2.
template <class T>
bool any_length_fits(Transform kind, Index length, Index width);

/// Whether dst1 or dct1 of an even N are better done by halves (T9), each of which is a transform of its own: lines that do
/// not fit into one block, and long ones that take much more than N numbers.
template <class T>
bool any_length_wants_halves(Transform kind, Index length);

/// Transforms lines that fit. `from` and `to` have equal extents; they are the same memory with the same
/// layout, or do not overlap. Asynchronous, like a kernel; but the first call of a kind and length makes its tables
/// on the current device, where they stay until the process ends. A call with no lines (count = 0) does just that.
template <class T>
void any_length_transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to);

}  // namespace asterism::transforms::cuda
