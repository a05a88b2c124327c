/// \file
/// Real transforms of many lines at once.
///
/// The discrete sine transform of the first kind (DST-I) of a line x_1 ... x_n is, with N = n + 1,
///
///     Y_k = 2 sum_{j=1}^{n} x_j sin(pi j k / N),   k = 1 ... n                                          (T1)
///
/// (the convention of FFTW's RODFT00). Applied twice it multiplies by 2N. It diagonalises the second
/// difference with zero Dirichlet values at both ends.
///
/// CPU (FFTW) and CUDA (cuFFT) alike: one complex FFT of length N per line. With e_j = x_j - x_{N-j} and
/// s_j = x_j + x_{N-j}, the even-numbered outputs are sums of e_j sin(2 pi j l / N) and the odd-numbered ones
/// of s_j sin(pi j (2l+1) / N); both are DFTs of Hermitian sequences, hence real, so that
///
///     U = DFT_N( -s_j cos(pi j / N) + i (e_j + s_j sin(pi j / N)) ),   U_l = Y_{2l} + i Y_{2l+1}.     (T2)
///
/// All of U, read as real numbers, is one period of Y, and Y_{2N-k} = -Y_k: every output is there twice, from different
/// sums. The mean of both rounds less than either,
///
///     Y_k = (U[k] - U[2N - k]) / 2,   U[k] the k-th real number of U,                                 (T3)
///
/// which brings cuFFT's errors down to those of FFTW.
///
/// Only rotations by unit numbers and one FFT occur, so the error grows like that of the FFT: unlike the
/// textbook method with a real FFT of length N, no running sum over the outputs is needed, which in float32
/// loses all accuracy for long lines. Although (T2) does more arithmetic than FFTW's own RODFT00, it takes
/// 0.4 (float32) and 0.7 (float64) of its time at n = 4095, and a third to a half where N is odd, because
/// FFTW vectorises complex transforms only.
#pragma once

#include <vector>

#include "../runtime/ports.hpp"

namespace asterism::kernels {

/// The factor by which a DST-I (T1) applied twice multiplies a line of n points.
constexpr double dst_twice(Index n) { return 2.0 * (static_cast<double>(n) + 1.0); }

/// Whether N has a prime factor from which on FFTs of length N (FFTW's: 37, cuFFT's own code for primes ends at 127) round
/// noticeably more than those of powers of two: by the factor 1.4 for N = 37, 1.9 for 1021, 2.3 for 49,157. Such lengths
/// are transformed in double precision where T is float, and as chirp.hpp says where it is double.
constexpr bool has_large_prime(Index N) {
  for (Index p = 2; p <= 31; ++p)
    while (N % p == 0) N /= p;
  return N > 1;
}

/// A complex number as FFTW and cuFFT store it.
template <class T>
struct alignas(2 * sizeof(T)) Complex {
  T re, im;
};

/// The rotations of (T2): exp(i pi j / N) for j = 0 ... N/2, correctly rounded but for a few of them.
template <class T>
std::vector<Complex<T>> dst_rotations(Index n);

/// Elements j and N - j of the sequence that (T2) transforms.
template <class T>
struct FoldedPair {
  Complex<T> at_j, at_mirror;
};

/// @param x,mirror x_j and x_{N-j}
/// @param rotation exp(i pi j / N)
template <class T>
ASTERISM_HOST_DEVICE inline FoldedPair<T> dst_fold(T x, T mirror, Complex<T> rotation) {
  const T e = x - mirror, s = x + mirror, c = s * rotation.re, d = s * rotation.im;
  return {{-c, d + e}, {c, d - e}};
}

/// (T3)
/// @param u,mirror U[k] and U[2N - k]
template <class T>
ASTERISM_HOST_DEVICE inline T dst_unfold(T u, T mirror) {
  return (u - mirror) / 2;
}

namespace cpu {

/// Makes the plan and the rotations for lines of n points, so that no task has to. Thread-safe; plans are
/// shared by all workers and live until the process ends. (FFTW's planner knows no locks: a program that
/// makes FFTW plans of its own does so while no Asterism task runs.)
template <class T>
void plan_dst(Index n);

/// DST-I (T1) of every row of `lines`, in place.
template <class T>
void dst(InOut<T> lines);

}  // namespace cpu

namespace cuda {

/// The number of elements of T that `dst` wants as working memory for lines of n points when it may transform
/// `lines_at_once` lines together (more lines than that are done in several rounds). Asks cuFFT by making the
/// plan on the calling thread's current device; GPUs of the same kind want the same.
template <class T>
Index dst_scratch(Index n, Index lines_at_once);

/// A sensible `lines_at_once` for tiles of `rows` lines: enough lines to fill the device, few enough for the
/// working set to stay in its second-level cache where the lines' length allows it, and rounds of equal size.
template <class T>
Index dst_lines_at_once(Index n, Index rows);

/// Makes the cuFFT plan and the table of rotations of the calling thread's current device, so that no task
/// has to. Thread-safe; they live until the process ends.
template <class T>
void plan_dst(Index n, Index lines_at_once);

/// DST-I (T1) of every row of `from` (n = from.cols points each) into the rows of `to`, which may be the same
/// memory (same ld then). Asynchronous, like a kernel. `work`: at least dst_scratch<T>(n, lines_at_once)
/// elements of device memory, aligned to 256 bytes.
template <class T>
void dst(Stream stream, In<T> from, Out<T> to, T* work, Index lines_at_once);

}  // namespace cuda
}  // namespace asterism::kernels
