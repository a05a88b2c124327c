/// \file
/// Real transforms (T1) of lines whose FFT has a power of two for its length, in one kernel: a line is loaded
/// once, transformed in shared memory and stored once, so that a number costs no more traffic than that of
/// copying it. For the lengths that `line_transform_fits` admits it replaces the several kernels of
/// transform.cu.
#pragma once

#include "transform.hpp"

namespace asterism::kernels::cuda {

/// Whether `line_transform` does lines of this kind and length, `width` side by side, on the calling thread's
/// current device: dst1 of 2^p - 1 points, dct1 of 2^p + 1, the others of 2^p, from 3 (dst1, dct1: 5) or 4
/// points to as many as its shared memory holds, on an H200 2^14 in float64 and 2^15 in float32. Lines side
/// by side are done several at a time, and end sooner. Where there is no device: as on an H200.
template <class T>
bool line_transform_fits(Transform kind, Index length, Index width);

/// Transforms lines that fit. `from` and `to` have equal extents; they are the same memory with the same
/// layout, or do not overlap. Asynchronous, like a kernel; but the first call with a length makes its tables
/// on the current device, where they stay until the process ends. A call with no lines (count = 0) does just
/// that.
template <class T>
void line_transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to);

}  // namespace asterism::kernels::cuda
