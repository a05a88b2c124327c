#include "transform.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <type_traits>

#include "chirp.hpp"
#include "fftw.hpp"
#include "fold.hpp"
#include "lanes/in_lanes.hpp"

namespace asterism::transforms {
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

// Three ways to transform one line of adjacent points.

/// (T2) to (T8) as they stand, in the precision of U.
template <Transform kind, class U>
class Direct {
 public:
  explicit Direct(Index n)
      : n_(n),
        fft_(fft_kind(kind), fft_length(kind, n)),
        fold_(is_first_kind(kind) ? rotations<U>(fft_length(kind, n), 0, 1, fft_length(kind, n))
                                  : fold_rotations<U>(kind, n)),
        unfold_(unfold_rotations<U>(kind, n)) {}

  template <class T>
  void operator()(T* line) const {
    (*this)(line, line, std::integral_constant<Index, 1>());
  }

  /// From a line to each step-th point of another, or of the same.
  template <class From, class T, class Step>
  void operator()(const From* from, T* to, Step step) const {
    const auto lines = fft_.lines();
    fold_line(from, reinterpret_cast<Sequence*>(lines.in));
    fft_(lines);
    unfold_line(reinterpret_cast<const Spectrum*>(lines.out), to, step);
  }

 private:
  using Sequence = std::conditional_t<folds_to_real(kind), U, Complex<U>>;
  using Spectrum = std::conditional_t<unfolds_real(kind), U, Complex<U>>;

  // Whether pairs inside have a second place, as this one has.
  static constexpr bool folds_to_two = fold_to(kind, 9, 1).second != nowhere,
                        unfolds_from_two = unfold_from(kind, 9, 1).second != nowhere,
                        unfolds_to_two = unfold_to(kind, 9, 1).second != nowhere,
                        turns_folding = fft_kind(kind) != FftKind::from_real && kind != Transform::idft,
                        turns_unfolding = kind == Transform::dct2 || kind == Transform::dst2 ||
                                          kind == Transform::dct4 || kind == Transform::dst4;

  template <class T>
  void fold_line(const T* __restrict line, Sequence* __restrict to) const {
    const Index n = n_, pairs = fold_pairs(kind, n);
    const Complex<U>* const rotations = fold_.data();
    const auto rotation = [=](Index p) { return turns_folding ? rotations[p] : Complex<U>{}; };
    const auto at_end = [=](Index p) {
      const PairPlaces here = fold_from(kind, n, p), there = fold_to(kind, n, p);
      const auto point = [=](Index j) { return j != nowhere ? static_cast<U>(line[j]) : U{0}; };
      const auto pair = fold<kind, U>(n, p, point(here.first), point(here.second), rotation(p));
      to[there.first] = pair.first;
      if (there.second != nowhere) to[there.second] = pair.second;
    };
    at_end(0);
    if constexpr (is_first_kind(kind)) {
      // The second of a pair is the first of its mirror image, and compilers find vectors where places go one way.
      for (Index p = 1; p < fft_length(kind, n); ++p) {
        const PairPlaces here = fold_from(kind, n, p, Position::inside);
        to[p] = fold<kind, U>(n, p, line[here.first], line[here.second], rotations[p]).first;
      }
      return;
    }
    for (Index p = 1; p < pairs - 1; ++p) {
      const PairPlaces here = fold_from(kind, n, p, Position::inside),
                   there = fold_to(kind, n, p, Position::inside);
      const auto pair = fold<kind, U>(n, p, line[here.first], line[here.second], rotation(p));
      to[there.first] = pair.first;
      if constexpr (folds_to_two) to[there.second] = pair.second;
    }
    if (pairs > 1) at_end(pairs - 1);
  }

  template <class T, class Step>
  void unfold_line(const Spectrum* __restrict from, T* __restrict line, Step step) const {
    const Index n = n_, pairs = unfold_pairs(kind, n);
    const Complex<U>* const rotations = unfold_.data();
    const auto rotation = [=](Index p) { return turns_unfolding ? rotations[p] : Complex<U>{}; };
    const auto at_end = [=](Index p) {
      const PairPlaces here = unfold_from(kind, n, p), there = unfold_to(kind, n, p);
      const Spectrum second = here.second != nowhere ? from[here.second] : Spectrum{};
      const Pair<U> pair = unfold<kind>(from[here.first], second, rotation(p), rotation(p + 1));
      line[there.first * step] = static_cast<T>(pair.first);
      if (there.second != nowhere) line[there.second * step] = static_cast<T>(pair.second);
    };
    at_end(0);
    for (Index p = 1; p < pairs - 1; ++p) {
      const PairPlaces here = unfold_from(kind, n, p, Position::inside),
                   there = unfold_to(kind, n, p, Position::inside);
      const Spectrum second = unfolds_from_two ? from[here.second] : Spectrum{};
      const Pair<U> pair = unfold<kind>(from[here.first], second, rotation(p), rotation(p + 1));
      line[there.first * step] = static_cast<T>(pair.first);
      if constexpr (unfolds_to_two) line[there.second * step] = static_cast<T>(pair.second);
    }
    if (pairs > 1) at_end(pairs - 1);
  }

  Index n_;
  LineFft<U> fft_;
  std::vector<Complex<U>> fold_;  // of dst1 and dct1 for every element of the sequence, not for pairs
  std::vector<Complex<U>> unfold_;
};

/// dst1 and dct1 by (T9), in the precision of U.
template <Transform kind, class U>
class Halved {
 public:
  static bool pays(Index n) {
    // FFTW vectorises complex transforms best: while they stay in the first-level cache they cost no more than two halves.
    constexpr Index small = std::is_same_v<U, float> ? 2048 : 256;
    return fft_length(kind, n) % 2 == 0 && fft_length(kind, n) > small;
  }

  explicit Halved(Index n) : half_(fft_length(kind, n) / 2), transform_odd_(half_), room_(half_ + evens()) {
    if (pays(evens())) {
      transform_even_ = std::make_unique<Halved>(evens());
      room_ += transform_even_->room_;
    } else {
      transform_rest_ = std::make_unique<Direct<kind, U>>(evens());
    }
  }

  template <class T>
  void operator()(T* line) const {
    struct Halves;
    transform(line, reinterpret_cast<U*>(thread_memory<Halves>(room_ * static_cast<Index>(sizeof(U)))), line,
              1);
  }

 private:
  static constexpr bool sine = kind == Transform::dst1;

  [[nodiscard]] Index evens() const { return sine ? half_ - 1 : half_ + 1; }

  /// From a line to each step-th output of another, or of the same.
  template <class From, class T>
  void transform(const From* from, U* room, T* to, Index step) const {
    U *const odd = room, *const even = odd + half_;
    halve(from, even, odd);
    transform_odd_(odd, to + (sine ? step - 1 : step), 2 * step);
    if (transform_even_) return transform_even_->transform(even, even + evens(), to, 2 * step);
    (*transform_rest_)(even, to + (sine ? 2 * step - 1 : 0), 2 * step);
  }

  template <class From>
  void halve(const From* __restrict x, U* __restrict even, U* __restrict odd) const {
    const Index M = half_, N = 2 * M;
    if constexpr (sine) {
      for (Index j = 1; j < M; ++j) {
        const U left = x[j - 1], right = x[N - j - 1];
        even[j - 1] = left - right;
        odd[j - 1] = left + right;
      }
      odd[M - 1] = 2 * static_cast<U>(x[M - 1]);
    } else {
      for (Index j = 0; j < M; ++j) {
        const U left = x[j], right = x[N - j];
        even[j] = left + right;
        odd[j] = left - right;
      }
      even[M] = 2 * static_cast<U>(x[M]);
    }
  }

  Index half_;  // M
  Direct<sine ? Transform::dst3 : Transform::dct3, U> transform_odd_;
  std::unique_ptr<Halved> transform_even_;
  std::unique_ptr<Direct<kind, U>> transform_rest_;  // of evens that are not halved again
  Index room_;                                       // numbers that it works in
};

/// dct4 and dst4 of an even n by (T10) and (T8), in the precision of U.
template <Transform kind, class U>
class HalvedFourth {
 public:
  static bool can(Index n) { return n % 2 == 0; }

  explicit HalvedFourth(Index n)
      : n_(n), fft_(FftKind::complex, n / 2), rotations_(rotations<U>(n / 2, 1, 8, 8 * n)) {}

  template <class T>
  void operator()(T* __restrict line) const {
    constexpr bool sine = kind == Transform::dst4;
    const auto lines = fft_.lines();
    const Complex<U>* const r = rotations_.data();  // conjugate
    for (Index j = 0; j < n_ / 2; ++j) {
      const U even = line[2 * j], odd = line[n_ - 1 - 2 * j];
      lines.in[j] = turned_back({even, sine ? -odd : odd}, r[j]);
    }
    fft_(lines);
    for (Index l = 0; l < n_ / 2; ++l) {
      const Complex<U> a = turned_back(lines.out[l], r[l]);
      line[sine ? n_ - 1 - 2 * l : 2 * l] = static_cast<T>(2 * a.re);
      line[sine ? 2 * l : n_ - 1 - 2 * l] = static_cast<T>(-2 * a.im);
    }
  }

 private:
  static Complex<U> turned_back(Complex<U> z, Complex<U> r) {
    return {z.re * r.re + z.im * r.im, z.im * r.re - z.re * r.im};
  }

  Index n_;
  LineFft<U> fft_;
  std::vector<Complex<U>> rotations_;
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
        if (Halved<Transform::dst1, U>::pays(n)) return use(planned<Halved<Transform::dst1, U>>(n));
        return use(planned<Direct<Transform::dst1, U>>(n));
      case Transform::dst2:
        return use(planned<Direct<Transform::dst2, U>>(n));
      case Transform::dst3:
        return use(planned<Direct<Transform::dst3, U>>(n));
      case Transform::dst4:
        if (HalvedFourth<Transform::dst4, U>::can(n)) return use(planned<HalvedFourth<Transform::dst4, U>>(n));
        return use(planned<Direct<Transform::dst4, U>>(n));
      case Transform::dct1:
        if (Halved<Transform::dct1, U>::pays(n)) return use(planned<Halved<Transform::dct1, U>>(n));
        return use(planned<Direct<Transform::dct1, U>>(n));
      case Transform::dct2:
        return use(planned<Direct<Transform::dct2, U>>(n));
      case Transform::dct3:
        return use(planned<Direct<Transform::dct3, U>>(n));
      case Transform::dct4:
        if (HalvedFourth<Transform::dct4, U>::can(n)) return use(planned<HalvedFourth<Transform::dct4, U>>(n));
        return use(planned<Direct<Transform::dct4, U>>(n));
      case Transform::dft:
        return use(planned<Direct<Transform::dft, U>>(n));
      case Transform::idft:
        return use(planned<Direct<Transform::idft, U>>(n));
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
  constexpr Index cache_line = 64 / sizeof(T), most = 2 * cache_line;
  // An odd number of cache lines: copies a power of two apart would drive each other out of the cache.
  const Index n = lines.length, pitch = ((n / cache_line + 1) | 1) * cache_line;
  struct Copies;
  T* const copies = reinterpret_cast<T*>(
      thread_memory<Copies>(std::min(most, lines.width) * pitch * static_cast<Index>(sizeof(T))));
  for (Index first = 0; first < lines.width; first += most) {
    const Index count = std::min(most, lines.width - first);
    for (Index j = 0; j < n; ++j) {
      const T* const points = group + j * lines.stride + first;
      for (Index w = 0; w < count; ++w) copies[w * pitch + j] = points[w];
    }
    for (Index w = 0; w < count; ++w) transform_line(copies + w * pitch);
    for (Index j = 0; j < n; ++j) {
      T* const points = group + j * lines.stride + first;
      for (Index w = 0; w < count; ++w) points[w] = copies[w * pitch + j];
    }
  }
}

}  // namespace

template <class T>
void plan_transform(Transform kind, const Lines<T>& shape) {
  if (shape.length < 1) return;
  if (wants_lanes(kind, shape.length)) return plan_in_lanes<T>(kind, shape.length, shape.care);
  with_line_transform<T>(kind, shape.length, [](const auto&) {});
}

template <class T>
void transform(Transform kind, const Lines<T>& lines) {
  if (lines.count < 1 || lines.width < 1 || lines.length < 1) return;
  if (wants_lanes(kind, lines.length)) return transform_in_lanes<T>(kind, lines);
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
}  // namespace asterism::transforms
