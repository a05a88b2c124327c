/// \file
/// Real transforms (T1) of lines whose FFT has a power of two for its length, in one kernel: a line is loaded
/// once, transformed in shared memory and stored once, so that a number costs no more traffic than that of
/// copying it. For the lengths that `line_transform_fits` admits it replaces the several kernels of
/// transform.cu.
#pragma once

#include "transform.hpp"

namespace asterism::kernels::cuda {

/// Whether `line_transform` does lines of this kind and length, `width` side by side, on the calling thread's
/// current device: dst1 of 2^p - 1 points, dct1 of 2^p + 1, the others of 2^p, p >= 2, as long as shared
/// memory holds a line or, of lines side by side, 16 bytes' worth of them: on an H200 p <= 14 in float64 and
/// 15 in float32, and one less side by side. Where there is no device: as on an H200.
///
/// Part of the bandwidth of a copy that it reached on an H200, 8 or 16 bytes a number, measured: 511^3 points
/// along x 0.74 (dst1, float64), 0.79 (dct3), 0.60 (dst1, float32), 0.62 (dct3); along y 0.65, 0.68, 0.58,
/// 0.55; 8191^2 points (dct3: 8192^2) along x 0.57, 0.58, 0.51, 0.52; along y, where 16 bytes are loaded at a
/// time, 0.25 to 0.30.
template <class T>
bool line_transform_fits(Transform kind, Index length, Index width);

/// Transforms lines that fit. `from` and `to` have equal extents; they are the same memory with the same
/// layout, or do not overlap. Asynchronous, like a kernel; but the first call with a length makes its tables
/// on the current device, where they stay until the process ends. A call with no lines (count = 0) does just
/// that.
template <class T>
void line_transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to);

}  // namespace asterism::kernels::cuda
