#include "transform.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "chirp.hpp"
#include "fftw.hpp"
#include "transform_fold.hpp"

namespace asterism::kernels {
namespace {

/// exp(i pi (first + p step) / denominator) for p = 0 ... count-1, in the first half of the circle
template <class T>
std::vector<Complex<T>> rotations(Index count, Index first, Index step, Index denominator) {
  // sin of at most pi/2 throughout: no cancellation, and exactly 0 where the cosine is.
  const auto sin_pi = [](Index p, Index q) {
    p = p > q / 2 ? q - p : p;
    return std::sin(std::numbers::pi_v<long double> * static_cast<long double>(p) /
                    static_cast<long double>(q));
  };
  std::vector<Complex<T>> table;
  table.reserve(static_cast<std::size_t>(count));
  for (Index p = 0; p < count; ++p) {
    const Index angle = first + p * step;
    table.push_back({static_cast<T>(sin_pi(denominator - 2 * angle, 2 * denominator)),
                     static_cast<T>(sin_pi(angle, denominator))});
  }
  return table;
}

}  // namespace

const char* name(Transform kind) {
  switch (kind) {
    case Transform::dst1:
      return "dst1";
    case Transform::dst2:
      return "dst2";
    case Transform::dst3:
      return "dst3";
    case Transform::dst4:
      return "dst4";
    case Transform::dct1:
      return "dct1";
    case Transform::dct2:
      return "dct2";
    case Transform::dct3:
      return "dct3";
    case Transform::dct4:
      return "dct4";
    case Transform::dft:
      return "dft";
    case Transform::idft:
      return "idft";
  }
  return "";
}

template <class T>
std::vector<Complex<T>> fold_rotations(Transform kind, Index n) {
  const Index pairs = fold_pairs(kind, n);
  switch (kind) {
    case Transform::dst1:
    case Transform::dct1:
      return rotations<T>(pairs, 0, 1, fft_length(kind, n));
    case Transform::dct3:
    case Transform::dst3:
      return rotations<T>(pairs, 0, 1, 2 * n);
    case Transform::dct4:
    case Transform::dst4:
      return rotations<T>(pairs, 1, 2, 4 * n);
    default:
      return {};
  }
}

template <class T>
std::vector<Complex<T>> unfold_rotations(Transform kind, Index n) {
  const Index pairs = unfold_pairs(kind, n);
  switch (kind) {
    case Transform::dct2:
    case Transform::dst2:
      return rotations<T>(pairs + 1, 0, 1, 2 * n);
    case Transform::dct4:
    case Transform::dst4:
      return rotations<T>(pairs + 1, 0, 1, n);
    default:
      return {};
  }
}

template std::vector<Complex<float>> fold_rotations(Transform, Index);
template std::vector<Complex<double>> fold_rotations(Transform, Index);
template std::vector<Complex<float>> unfold_rotations(Transform, Index);
template std::vector<Complex<double>> unfold_rotations(Transform, Index);

namespace cpu {
namespace {

// Three ways to transform one line of adjacent points, in the precision of U. Each is Planned, see fftw.hpp.

/// (T2) to (T4) as they stand.
template <Transform kind, class U>
class Direct {
 public:
  explicit Direct(Index n)
      : N_(fft_length(kind, n)),
        fft_(plan_fft<U>(N_, 1, FFTW_FORWARD)),
        rotations_(fold_rotations<U>(kind, n)) {}

  template <class T>
  void operator()(T* line) const {
    static_assert(kind == Transform::dst1 || kind == Transform::dct1);
    constexpr bool sine = kind == Transform::dst1;
    constexpr Index first = sine ? 1 : 0;  // the index of the line's first point in the formulas
    const Index N = N_, n = sine ? N - 1 : N + 1;
    const auto [in, out] = fft_lines<Complex<U>>(N);
    const Complex<U>* const rotation = rotations_.data();
    in[0] = sine ? Complex<U>{0, 0} : fold<kind, U>(n, 0, line[0], line[n - 1], rotation[0]).first;
    for (Index j = 1; 2 * j <= N; ++j) {
      const auto pair = fold<kind, U>(n, j, line[j - first], line[N - j - first], rotation[j]);
      in[j] = pair.first;
      in[N - j] = pair.second;
    }
    Fftw<U>::execute(fft_, fftw<U>(in), fftw<U>(out));
    const U* const u = reinterpret_cast<const U*>(out);
    if constexpr (!sine) line[0] = static_cast<T>(u[0]);
    for (Index k = 1; k < N; ++k)
      line[k - first] = static_cast<T>(unfold<kind, U, U>(u[k], u[2 * N - k], {}, {}).first);
    if constexpr (!sine) line[N] = static_cast<T>(u[N]);
  }

 private:
  Index N_;
  typename Fftw<U>::Plan fft_;
  std::vector<Complex<U>> rotations_;
};

/// FFTW's own.
template <class U>
class Ready {
 public:
  Ready(Transform kind, Index n) : n_(n), plan_(plan_real<U>(n, fftw_kind(kind))) {}

  template <class T>
  void operator()(T* line) const {
    const auto [in, out] = fft_lines<U>(n_);
    std::copy(line, line + n_, in);
    Fftw<U>::execute_real(plan_, in, out);
    std::transform(out, out + n_, line, [](U y) { return static_cast<T>(y); });
  }

 private:
  static fftw_r2r_kind fftw_kind(Transform kind) {
    switch (kind) {
      case Transform::dst1:
        return FFTW_RODFT00;
      case Transform::dst2:
        return FFTW_RODFT10;
      case Transform::dst3:
        return FFTW_RODFT01;
      case Transform::dst4:
        return FFTW_RODFT11;
      case Transform::dct1:
        return FFTW_REDFT00;
      case Transform::dct2:
        return FFTW_REDFT10;
      case Transform::dct3:
        return FFTW_REDFT01;
      case Transform::dct4:
        return FFTW_REDFT11;
      case Transform::dft:
        return FFTW_R2HC;
      default:
        return FFTW_HC2R;
    }
  }

  Index n_;
  typename Fftw<U>::Plan plan_;
};

/// (T2) by way of (C1).
void chirped(const ChirpConvolution& convolve, double* row) {
  const Chirp& chirp = convolve.chirp();
  const Index N = chirp.N, M = chirp.M, n = N - 1;
  const Chirp::Grid grid = chirp.grid();
  const Complex<double>*const w = chirp.w.data(), *const v = chirp.v.data();
  const auto fft = convolve.lines();
  Complex<double>*const high = fft.in, *const rest = fft.in + M;

  int exponent = 0;
  for (Index j = 0; j < n; ++j) exponent = std::max(exponent, biased_exponent(row[j]));
  const double scale = line_scale(exponent), inverse = 1 / scale;

  const auto put = [&](Index j, Complex<double> a) {
    const HighAndRest split = chirp_split(a, grid.coarse);
    high[j] = split.high;
    rest[j] = split.rest;
  };
  put(0, {0, 0});
  for (Index j = 1; 2 * j <= N; ++j) {
    const Pair<Complex<double>> pair =
        chirp_fold(row[j - 1] * inverse, row[N - j - 1] * inverse, w[j], v[j], v[j - 1], grid.mirror_sign);
    put(j, pair.first);
    put(N - j, pair.second);
  }
  std::fill(high + N, high + M, Complex<double>{0, 0});
  std::fill(rest + N, rest + M, Complex<double>{0, 0});
  convolve(fft);
  for (Index l = 0; 2 * l < N; ++l) {
    const Complex<double> U = chirp_join({high[l], rest[l]}, w[l], grid.fine);
    if (l > 0) row[2 * l - 1] = U.re * scale;
    if (2 * l < n) row[2 * l] = U.im * scale;
  }
}

/// Calls use(transform_line) with what transforms one line of n adjacent points best.
template <class T, class Use>
void with_line_transform(Transform kind, Index n, Use use) {
  kind = done_as(kind, n);
  const bool hard = has_large_prime(fft_length(kind, n));
  const auto in_precision = [&]<class U>(U) {
    switch (kind) {
      case Transform::dst1:
        return use(planned<Direct<Transform::dst1, U>>(n));
      case Transform::dct1:
        return use(planned<Direct<Transform::dct1, U>>(n));
      default:
        return use(planned<Ready<U>>(kind, n));
    }
  };
  if constexpr (std::is_same_v<T, float>) {
    if (!hard) return in_precision(0.0F);
  } else {
    if (hard && kind == Transform::dst1)
      return use([&convolve = chirp_convolution(n + 1)](double* line) { chirped(convolve, line); });
  }
  in_precision(0.0);
}

/// Calls transform_line for a copy of every line of a group whose points are not adjacent, and takes back
/// what it makes. So many lines are copied at a time that whole cache lines are read and written.
template <class T, class TransformLine>
void transform_copies(const Lines<T>& lines, T* group, const TransformLine& transform_line) {
  constexpr Index most = 2 * 64 / sizeof(T);
  const Index n = lines.length;
  struct Copies;
  T* const copies = reinterpret_cast<T*>(
      thread_memory<Copies>(std::min(most, lines.width) * n * static_cast<Index>(sizeof(T))));
  for (Index first = 0; first < lines.width; first += most) {
    const Index count = std::min(most, lines.width - first);
    for (Index j = 0; j < n; ++j) {
      const T* const points = group + j * lines.stride + first;
      for (Index w = 0; w < count; ++w) copies[w * n + j] = points[w];
    }
    for (Index w = 0; w < count; ++w) transform_line(copies + w * n);
    for (Index j = 0; j < n; ++j) {
      T* const points = group + j * lines.stride + first;
      for (Index w = 0; w < count; ++w) points[w] = copies[w * n + j];
    }
  }
}

}  // namespace

template <class T>
void plan_transform(Transform kind, const Lines<T>& shape) {
  if (shape.length >= 1) with_line_transform<T>(kind, shape.length, [](const auto&) {});
}

template <class T>
void transform(Transform kind, const Lines<T>& lines) {
  if (lines.count < 1 || lines.width < 1 || lines.length < 1) return;
  with_line_transform<T>(kind, lines.length, [&lines](const auto& transform_line) {
    const bool adjacent = lines.width == 1 && (lines.stride == 1 || lines.length == 1);
    for (Index g = 0; g < lines.count; ++g) {
      T* const group = lines.data + g * lines.distance;
      if (adjacent)
        transform_line(group);
      else
        transform_copies(lines, group, transform_line);
    }
  });
}

template void plan_transform(Transform, const Lines<float>&);
template void plan_transform(Transform, const Lines<double>&);
template void transform(Transform, const Lines<float>&);
template void transform(Transform, const Lines<double>&);

}  // namespace cpu
}  // namespace asterism::kernels
