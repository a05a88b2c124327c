/// \file
/// Real transforms of lines on cores, as many at a time as a vector register has lanes: by the plans and the passes that
/// GPUs do them with. For the lengths whose prime factors FFTW has no good code for, and powers of two.
#pragma once

#include "../transform.hpp"

namespace asterism::transforms::cpu {

/// Whether `transform_in_lanes` does lines of this kind and length, and best: where N, see fft_length, is odd or has a prime
/// factor above 13, and there is a plan for it that stays in a core's caches; or where it is a power of two from 32 to 4096.
///
/// dst1 in float64, microseconds a line on an EPYC 7003 (AVX2), by the transforms of FFTW that (T2) and (T9) want, and in
/// lanes: N = 257 8.2, 2.6; 601 15, 6.6; 1001 = 7 11 13 6.0, 3.9; 4097 = 17 241 136, 28; 5001 = 3 1667 190, 40;
/// 10,001 = 73 137 480, 71. On a Xeon (AVX-512) N = 64 0.57, 0.04; 256 0.96, 0.17; 1024 3.4, 1.3; 4096 15, 5.3. Errors for
/// noise, relative in the 2-norm: 1.7 to 3.3 units of rounding, where FFTW's smooth lengths have 1 to 1.5.
bool wants_lanes(Transform kind, Index n);

/// Makes the plan and its tables, which all threads share and which live until the process ends. Thread-safe.
/// @param kind,n that want lanes; also below @param care see Lines
template <class T>
void plan_in_lanes(Transform kind, Index n, Care care);

/// (T1) for every line, in place; where N is no power of two in double precision. A line gets the same bits whatever is beside
/// it.
template <class T>
void transform_in_lanes(Transform kind, const Lines<T>& lines);

}  // namespace asterism::transforms::cpu
