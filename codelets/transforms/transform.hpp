/// \file
/// Real transforms of many lines at once: discrete sine, cosine and Fourier transforms.
///
/// In FFTW's conventions, without normalisation, for a line x_0 ... x_{n-1} and k = 0 ... n-1:
///
///     dst1   Y_k = 2 sum x_j sin(pi (j+1) (k+1) / (n+1))
///     dst2   Y_k = 2 sum x_j sin(pi (j+1/2) (k+1) / n)
///     dst3   Y_k = (-1)^k x_{n-1} + 2 sum_{j < n-1} x_j sin(pi (j+1) (k+1/2) / n)
///     dst4   Y_k = 2 sum x_j sin(pi (j+1/2) (k+1/2) / n)
///     dct1   Y_k = x_0 + (-1)^k x_{n-1} + 2 sum_{0 < j < n-1} x_j cos(pi j k / (n-1))
///     dct2   Y_k = 2 sum x_j cos(pi (j+1/2) k / n)
///     dct3   Y_k = x_0 + 2 sum_{j > 0} x_j cos(pi j (k+1/2) / n)
///     dct4   Y_k = 2 sum x_j cos(pi (j+1/2) (k+1/2) / n)
///     dft    Re X_0, Re X_1, ... Re X_{n/2}, Im X_{(n+1)/2-1}, ... Im X_1,
///            where X_k = sum x_j exp(-2 pi i j k / n)
///     idft   the inverse of dft, times n                                                           (T1)
///
/// and dct1 of a line of one point is x_0. They diagonalise the second difference with zero values, zero
/// slopes or periodicity at the ends: see grid/axis.hpp.
///
/// All are one FFT of real or complex numbers per line, between a folding of the line and an unfolding of the
/// spectrum that do no more than rotate by unit numbers and add pairs: the error grows like that of the FFT.
/// (The textbook's dst1 and dct1 by a real FFT need a running sum over the outputs, which in float32 loses
/// all accuracy for long lines.)
///
/// dst1, with N = n + 1 and x_1 ... x_n for the line. With e_j = x_j - x_{N-j} and s_j = x_j + x_{N-j}, the
/// even-numbered outputs are sums of e_j sin(2 pi j l / N) and the odd-numbered ones of
/// s_j sin(pi j (2l+1) / N); both are DFTs of Hermitian sequences, hence real, so that
///
///     U = DFT_N( -s_j cos(pi j / N) + i (e_j + s_j sin(pi j / N)) ),
///     U_l = Y_{2l} + i Y_{2l+1}.                                                                   (T2)
///
/// All of U, read as real numbers, is one period of Y, and Y_{2N-k} = -Y_k: every output is there twice, from
/// different sums. The mean of both rounds less than either,
///
///     Y_k = (U[k] - U[2N - k]) / 2,   U[k] the k-th real number of U,                              (T3)
///
/// which brings cuFFT's errors down to those of FFTW. It takes 0.4 (float32) and 0.7 (float64) of the time of FFTW's own
/// RODFT00 at n = 4095, because FFTW vectorises complex transforms only; dct2 and the like by (T5) and FFTW's r2c take half
/// the time of its REDFT10 at n = 1024. So transforms are done by these formulas, which fold.hpp has point by point: on
/// cores with FFTW where N is even and has no prime above 13, long lines by (T9) first, and dct4 and dst4 of an even n by
/// (T10); other lengths, and 2^5 to 2^12, as GPUs do them (lanes/in_lanes.hpp). Lines that GPUs hold in shared memory
/// (power_of_two/, any_length/) by these formulas or by halves of them, the others with cuFFT. dst1 of lengths with
/// large primes that are too long for all this as chirp.hpp says.
///
/// dct1, with N = n - 1, in the same way, where Y_{2N-k} = Y_k:
///
///     U = DFT_N( s_j + i e_j exp(-i pi j / N) ),   s_j = x_j + x_{N-j},   e_j = x_j - x_{N-j},
///     U_l = Y_{2l} + i Y_{2l+1},   Y_k = (U[k] + U[2N - k]) / 2.                                   (T4)
///
/// dct2 (Makhoul, IEEE Trans. ASSP 28, 1980), and its transpose dct3 with a Hermitian V:
///
///     v_j = x_{2j},   v_{n-1-j} = x_{2j+1},   V = DFT_n(v),
///     Y_k - i Y_{n-k} = 2 exp(-i pi k / 2n) V_k;                                                   (T5)
///     V_0 = x_0,   V_k = (x_k - i x_{n-k}) exp(i pi k / 2n),   v_j = sum V_k exp(2 pi i j k / n),
///     Y_{2j} = v_j,   Y_{2j+1} = v_{n-1-j}.                                                        (T6)
///
/// dct4, whose odd-numbered outputs come from Y_{2n-1-k} = -Y_k:
///
///     A = DFT_n( x_j exp(-i pi (2j+1) / 4n) ),   Y_{2l} = 2 Re( exp(-i pi l / n) A_l ),
///     Y_{2l+1} = 2 Re( exp(i pi (l+1) / n) A_{n-1-l} ).                                            (T7)
///
/// The other sine transforms, by reversing one side and alternating the signs of the other:
///
///     dst2(x)_k = dct2(x')_{n-1-k},   dst4(x)_k = dct4(x')_{n-1-k},   x'_j = (-1)^j x_j,
///     dst3(x)_k = (-1)^k dct3(x'')_k,   x''_j = x_{n-1-j}.                                         (T8)
///
/// dst1 and dct1 with an even N = 2M, in halves, with e_j and s_j of (T2) and (T4), of which the one for j = M is 2 x_M:
///
///     dst1:   Y_{2l} = dst1(e_1, ..., e_{M-1})_l,   Y_{2l+1} = dst3(s_1, ..., s_M)_l,
///     dct1:   Y_{2l} = dct1(s_0, ..., s_M)_l,       Y_{2l+1} = dct3(e_0, ..., e_{M-1})_l,          (T9)
///
/// outputs and points of dst1 counted from 1 as in (T2). Again and again that is half the arithmetic of (T2) and (T4), all
/// of it in real FFTs of at most half the length: less time than (T2) beyond FFT lengths of 256 (2048 in float32).
///
/// dct4 with an even n = 2M in half of (T7)'s FFT, with r_j = exp(-i pi (8j+1) / 8n):
///
///     A = DFT_M( r_j (x_{2j} + i x_{n-1-2j}) ),   Y_{2l} = 2 Re(r_l A_l),   Y_{n-1-2l} = -2 Im(r_l A_l).  (T10)
#pragma once

#include "../../runtime/ports.hpp"

namespace asterism::transforms {

enum class Transform { dst1, dst2, dst3, dst4, dct1, dct2, dct3, dct4, dft, idft };

/// The transform that undoes another, up to a factor.
constexpr Transform inverse(Transform kind) {
  switch (kind) {
    case Transform::dst2:
      return Transform::dst3;
    case Transform::dst3:
      return Transform::dst2;
    case Transform::dct2:
      return Transform::dct3;
    case Transform::dct3:
      return Transform::dct2;
    case Transform::dft:
      return Transform::idft;
    case Transform::idft:
      return Transform::dft;
    default:
      return kind;
  }
}

/// The factor by which a transform followed by its inverse multiplies a line of n points.
constexpr double round_trip(Transform kind, Index n) {
  const auto points = static_cast<double>(n);
  switch (kind) {
    case Transform::dst1:
      return 2 * (points + 1);
    case Transform::dct1:
      return n == 1 ? 1 : 2 * (points - 1);
    case Transform::dft:
    case Transform::idft:
      return points;
    default:
      return 2 * points;
  }
}

const char* name(Transform kind);

/// How much the roundings of a line matter: there are plans that round less, and take longer.
enum class Care {
  usual,  ///< the only axis of an array that is transformed
  more,   ///< one of several, whose roundings add up
  most,   ///< the same where what is done along other axes, which rounds less, matters little
};

/// Lines in an array: `count` groups, `distance` apart, of `width` lines each, side by side; the points of a
/// line are `stride` apart. Point j of line w of group g is data[g * distance + j * stride + w].
///
/// Rows of a stack of planes of ny x nx: {data, planes * ny, nx, nx, 1, 1}; its columns: {data, planes, ny *
/// nx, ny, nx, nx}.
template <class T>
struct Lines {
  T* data;
  Index count, distance;
  Index length, stride;
  Index width;
  Care care = Care::usual;
};

/// The same lines, the last group first.
template <class T>
Lines<T> backwards(const Lines<T>& lines) {
  Lines<T> result = lines;
  result.data += (lines.count - 1) * lines.distance;
  result.distance = -lines.distance;
  return result;
}

namespace cpu {

/// Makes the plans and tables for lines of this shape, so that no task has to; their data are not looked at.
/// Thread-safe; plans are shared by all workers and live until the process ends. (FFTW's planner knows no
/// locks: a program that makes FFTW plans of its own does so while no Asterism task runs.)
template <class T>
void plan_transform(Transform kind, const Lines<T>& shape);

/// (T1) for every line, in place.
template <class T>
void transform(Transform kind, const Lines<T>& lines);

}  // namespace cpu

namespace cuda {

/// The number of elements of T that `transform` wants as working memory for lines of this shape, or of fewer
/// groups of them, none for lines that shared memory holds, whole or by halves; the data are not looked at. It is
/// bounded: more lines than fill the device are done in several rounds. Asks cuFFT by making the plans on the calling
/// thread's current device; GPUs of the same kind want the same.
template <class T>
Index transform_scratch(Transform kind, const Lines<T>& shape);

/// Makes the cuFFT plans and the tables of the calling thread's current device for lines of this shape, and
/// of fewer groups of them, so that no task has to; the data are not looked at. Thread-safe; they live until
/// the process ends.
template <class T>
void plan_transform(Transform kind, const Lines<T>& shape);

/// (T1) for every line of `from` into the same line of `to`, which has the same extents and is either other
/// memory or the same with the same layout, in the order of the groups. Asynchronous, like a kernel. `work`:
/// transform_scratch<T>(kind, shape) elements of device memory, aligned to 256 bytes, for a shape of the same
/// length and width with at least as many groups.
template <class T>
void transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to, T* work);

}  // namespace cuda
}  // namespace asterism::transforms
