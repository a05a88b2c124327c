/// \file
/// Real transforms (T1) of lines whose FFT has a power of two for its length, in one kernel: a line is loaded
/// once, transformed in shared memory and stored once, so that a number costs no more traffic than that of
/// copying it. For the lengths that `line_transform_fits` admits it replaces the several kernels of
/// transform.cu.
#pragma once

#include "../transform.hpp"

namespace asterism::transforms::cuda {

/// Whether `line_transform` does lines of this kind and length, `width` side by side, on the calling thread's
/// current device: dst1 of 2^p - 1 points, dct1 of 2^p + 1, the others of 2^p, p >= 2, as long as shared
/// memory holds a line or, of lines side by side, 16 bytes' worth of them: on an H200 p <= 14 in float64 and
/// 15 in float32, and 13 side by side. Where there is no device: as on an H200.
///
/// Measured on an H200, as a part of the bandwidth of a copy, dst1 and dct3: 511^3 points along x 0.74 and
/// 0.79 in float64, 0.62 and 0.62 in float32; along y 0.64 and 0.66, 0.59 and 0.55; 8191^2 points along x
/// 0.57 and 0.56, 0.51 and 0.53; along y, where 16 bytes are loaded at a time, 0.25 to 0.30. Errors for
/// noise, relative in the 2-norm: 1.8 units of rounding for 511 points, at most 3 for the longest lines.
template <class T>
bool line_transform_fits(Transform kind, Index length, Index width);

/// Transforms lines that fit. `from` and `to` have equal extents; they are the same memory with the same
/// layout, or do not overlap. Asynchronous, like a kernel; but the first call of a precision makes its tables
/// on the current device, where they stay until the process ends. A call with no lines (count = 0) does just
/// that.
template <class T>
void line_transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to);

}  // namespace asterism::transforms::cuda
