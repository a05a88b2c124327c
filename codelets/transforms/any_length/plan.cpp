#include "plan.hpp"

#include <algorithm>
#include <complex>
#include <numbers>
#include <span>
#include <utility>

#include "radices.hpp"

namespace asterism::transforms {
namespace {

using Exact = std::complex<long double>;

/// exp(-2 pi i p / q)
Exact root(Index p, Index q) {
  const long double angle =
      2 * std::numbers::pi_v<long double> * static_cast<long double>(p % q) / static_cast<long double>(q);
  return {std::cos(angle), -std::sin(angle)};
}

template <class T>
Complex<T> rounded(Exact z) {
  return {static_cast<T>(z.real()), static_cast<T>(z.imag())};
}

/// (A1) of butterflies.cuh for any length, by its prime factors: out of place, all of `x`'s numbers from first
/// on, step apart.
std::vector<Exact> discrete_fourier(const std::vector<Exact>& x, const std::vector<Exact>& roots,
                                    std::size_t first, std::size_t step) {
  const std::size_t n = x.size() / step;
  if (n == 1) return {x[first]};
  std::size_t p = 2;
  while (n % p != 0) ++p;
  std::vector<std::vector<Exact>> parts;
  for (std::size_t m = 0; m < p; ++m) parts.push_back(discrete_fourier(x, roots, first + m * step, p * step));
  std::vector<Exact> X(n);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t m = 0; m < p; ++m) X[k] += roots[m * k % n * step] * parts[m][k % (n / p)];
  return X;
}

std::vector<Exact> discrete_fourier(const std::vector<Exact>& x) {
  const auto n = static_cast<Index>(x.size());
  std::vector<Exact> roots;
  for (Index k = 0; k < n; ++k) roots.push_back(root(k, n));
  return discrete_fourier(x, roots, 0, 1);
}

/// A direction of (L1) along which numbers are either transformed by passes or, where `prime` is not 0, convolved.
struct Box {
  Index length;  ///< of the FFTs in it
  Index prime;
  std::vector<Direction> directions;
  bool halved = false;         ///< (L4)
  Index below = 1, above = 1;  ///< where it is one digit of (L3): the values of those after and before it

  [[nodiscard]] Index modulus() const { return prime != 0 ? prime : length; }
  /// That of all the digits
  [[nodiscard]] Index whole_modulus() const { return below * modulus() * above; }
  /// Its digit of a j and of a k of (L3)
  [[nodiscard]] Index digit_in(Index j) const { return j / below % modulus(); }
  [[nodiscard]] Index digit_out(Index k) const { return k / above % modulus(); }
  [[nodiscard]] Index first() const { return prime != 0 ? 1 : 0; }  ///< x_0 of (L2) lies before
  [[nodiscard]] Index slots() const { return first() + length; }
  [[nodiscard]] Index convolved() const { return halved ? (prime - 1) / 2 : prime - 1; }
  [[nodiscard]] bool padded() const { return prime != 0 && length > convolved(); }

  /// Where number m of the FFT's sequence is put, given m's multiple along each direction.
  template <class Along>
  Index place(Along along) const {
    Index at = 0;
    for (const Direction& d : directions) at = at * d.length + along(d);
    return at;
  }
  [[nodiscard]] Index place_of_number(Index m) const {
    return place([=](const Direction& d) { return m % d.length; });
  }
  [[nodiscard]] Index place_of_input(Index j) const {
    return place([=, this](const Direction& d) { return j % d.length * d.inverse % d.length; });
  }
  /// Of frequency k_d along each direction d, in the order of its reversed digits.
  template <class Along>
  Index place_of_frequency(Along along) const {
    return place([=](const Direction& d) {
      Index left = d.length, k = along(d), at = 0;
      for (const int radix : d.radices) {
        left /= radix;
        at += k % radix * left;
        k /= radix;
      }
      return at;
    });
  }
};

std::vector<Box> boxes(Index N) {
  std::vector<Box> all;
  Index rest = N;
  const std::vector<Index> primes = large_primes(N);
  for (const Index p : primes) rest /= p;
  if (rest > 1) all.push_back({rest, 0, directions(rest)});
  for (std::size_t i = 0; i < primes.size(); ++i) {
    const Index p = primes[i], length = smooth_convolution_length(p - 1);
    Box box{length, p, directions(length)};
    for (std::size_t before = i; before > 0 && primes[before - 1] == p; --before) box.above *= p;
    for (std::size_t after = i + 1; after < primes.size() && primes[after] == p; ++after) box.below *= p;
    all.push_back(std::move(box));
  }
  return all;
}

/// @param columns numbers of each of its rows: all together are to find room in a symmetric plan, where that is possible
Box half_box(Index p, Index columns) {
  const Index length = smooth_convolution_length((p - 1) / 2, (most_symmetric_numbers - 1) / columns - 1);
  return {.length = length, .prime = p, .directions = directions(length), .halved = true};
}

/// (L4)'s w^m
Exact twist(const Box& box, Index m) {
  const Index M = box.convolved();
  if (box.padded()) return 1;
  return M % 2 == 0 ? root(m, 2 * M) : m % 2 == 0 ? 1 : -1;
}

/// Where the directions of a box send j and k of (L1).
struct Places {
  std::vector<Index> in, out;
};

Places places(const Box& box) {
  const Index n = box.modulus();
  Places places{std::vector<Index>(static_cast<std::size_t>(n)),
                std::vector<Index>(static_cast<std::size_t>(n))};
  if (box.prime == 0) {
    for (Index j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(j);
      places.in[at] = box.place_of_input(j);
      places.out[at] = box.place_of_frequency([=](const Direction& d) { return j % d.length; });
    }
  } else {
    const std::vector<Index> powers = powers_of_generator(n);
    const Index convolved = box.convolved();
    for (Index m = 0; m < n - 1; ++m) {
      const auto at = static_cast<std::size_t>(powers[static_cast<std::size_t>(m)]);
      places.in[at] = 1 + box.place_of_number(m % convolved);
      places.out[at] = 1 + box.place_of_number((n - 1 - m) % convolved);
    }
  }
  return places;
}

/// The DFT of b of (L2) over its length, place after place; of a halved box that of c_r of (L4) for s = 1, or of
/// c_r w^r for s = -1.
std::vector<Exact> multipliers(const Box& box, int s) {
  const Index p = box.prime, L = box.length, n = box.convolved();
  const std::vector<Index> powers = powers_of_generator(p);
  const auto factor = [&](Index r) -> Exact {  // r from 1 - n on
    const Exact b = root(powers[static_cast<std::size_t>((p - 1 - r) % (p - 1))], p);
    if (!box.halved) return b;
    return s > 0 ? Exact{b.real(), 0} : Exact{0, b.imag()} * twist(box, r);
  };
  std::vector<Exact> sequence(static_cast<std::size_t>(L)), by_place(sequence.size());
  for (Index r = 0; r < n; ++r) sequence[static_cast<std::size_t>(r)] = factor(r);
  if (box.padded())
    for (Index r = 1; r < n; ++r) sequence[static_cast<std::size_t>(L - r)] = factor(-r);
  const std::vector<Exact> spectrum = discrete_fourier(sequence);
  for (Index k = 0; k < L; ++k) {
    const Index at =
        box.place_of_frequency([=](const Direction& d) { return k % d.length * d.inverse % d.length; });
    by_place[static_cast<std::size_t>(at)] =
        spectrum[static_cast<std::size_t>(k)] / static_cast<long double>(L);
  }
  return by_place;
}

Index count_numbers(std::span<const Box> all) {
  Index numbers = 1;
  for (const Box& box : all) numbers *= box.slots();
  return numbers;
}

constexpr Index most_numbers = Index{1} << 16;  // places are numbers of 16 bits

int count_passes(const Box& box) {
  int radices = 0;
  for (const Direction& direction : box.directions) radices += static_cast<int>(direction.radices.size());
  return (box.prime == 0 ? radices : 2 * radices - 1) + (box.below > 1 ? 1 : 0);
}

/// Whether (L4) along rows of Q numbers has anything to do between columns, or with their rotations.
bool combines_columns(const Box& box, Index Q) { return Q > 1 || !box.padded(); }

/// The rotations of (L3) behind the first of some digits, place after place; zeros where no number is.
std::vector<Exact> digit_rotations(std::span<const Box> digits) {
  const Box& first = digits.front();
  const std::span<const Box> rest = digits.subspan(1);
  const Index places_of_rest = count_numbers(rest);
  std::vector<Index> place_of(static_cast<std::size_t>(first.below));  // of r
  Index inner = places_of_rest;
  for (const Box& box : rest) {
    inner /= box.slots();
    const Places of_box = places(box);
    for (Index r = 0; r < first.below; ++r)
      place_of[static_cast<std::size_t>(r)] += of_box.in[static_cast<std::size_t>(box.digit_in(r))] * inner;
  }
  std::vector<Exact> rotations(static_cast<std::size_t>(first.slots() * places_of_rest));
  const Places of_first = places(first);
  for (Index k_1 = 0; k_1 < first.prime; ++k_1)
    for (Index r = 0; r < first.below; ++r)
      rotations[static_cast<std::size_t>(of_first.out[static_cast<std::size_t>(k_1)] * places_of_rest +
                                         place_of[static_cast<std::size_t>(r)])] =
          root(r * k_1, first.prime * first.below);
  return rotations;
}

/// The digits of (L3) from box i on: itself alone where it is the last one, or no digit.
std::span<const Box> digits_from(const std::vector<Box>& all, std::size_t i) {
  std::size_t count = 1;
  for (Index below = all[i].below; below > 1; below /= all[i].prime) ++count;
  return std::span(all).subspan(i, count);
}

/// Appends the passes of a box and their tables.
/// @param inner numbers of all boxes behind this one, for one of its own
template <class T>
class PassList {
 public:
  PassList(const Box& box, Index inner, Index numbers, FftView<T>& view, std::vector<Complex<T>>& tables)
      : box_(box), inner_(inner), numbers_(numbers), view_(view), tables_(tables) {}

  void append() {
    const int first = view_.passes;
    Index below = box_.length;
    for (const Direction& direction : box_.directions) {
      below /= direction.length;
      Index left = direction.length;
      for (const int radix : direction.radices) {
        left /= radix;
        add(radix, left, below * inner_);
      }
    }
    if (box_.prime == 0) return;
    Pass& last = view_.pass[view_.passes - 1];
    last.kind = PassKind::convolving;
    append_multipliers(last, multipliers(box_, 1));
    if (box_.halved) {
      const auto start = last.multipliers;
      append_multipliers(last, multipliers(box_, -1));
      last.odd_multipliers = last.multipliers - start;
      last.multipliers = start;
    }
    for (int pass = view_.passes - 2; pass >= first; --pass) {
      view_.pass[view_.passes] = view_.pass[pass];
      view_.pass[view_.passes++].kind = PassKind::backward;
    }
  }

  /// Behind the passes of the first of these digits.
  void append_rotations(std::span<const Box> digits) {
    const std::vector<Exact> by_place = digit_rotations(digits);
    const Index groups = static_cast<Index>(by_place.size()), of_digits = box_.slots() * inner_;
    Pass& pass = view_.pass[view_.passes++];
    pass.kind = PassKind::rotating;
    pass.per_line = Divisor(static_cast<unsigned>(numbers_));
    pass.span = Divisor(static_cast<unsigned>(of_digits / groups));
    pass.groups = Divisor(static_cast<unsigned>(groups));
    pass.rotations = static_cast<unsigned>(tables_.size());
    for (const Exact& rotation : by_place) tables_.push_back(rounded<T>(rotation));
  }

 private:
  void add(int radix, Index stride, Index step) {
    const Index span = stride * step, butterflies = box_.length * inner_ / radix;
    const auto positive = [](Index x) { return static_cast<unsigned>(x); };
    Pass& pass = view_.pass[view_.passes++];
    pass.kind = PassKind::forward;
    pass.radix = radix;
    pass.per_line = Divisor(positive(numbers_ / (box_.slots() * inner_) * butterflies));
    pass.span = Divisor(positive(span));
    pass.groups = Divisor(positive(butterflies / span));
    pass.start = positive(box_.first() * inner_);
    pass.pitch = positive(box_.slots() * inner_);
    pass.step = Divisor(positive(step));
    pass.stride = positive(stride);
    pass.rotations = positive(static_cast<Index>(tables_.size()));
    if (stride == 1) return;
    // Not as products of a few of them: in float32 their errors, the same in every line, there and back, add up.
    for (Index q = 1; q < radix; ++q)
      for (Index j = 0; j < stride; ++j) tables_.push_back(rounded<T>(root(j * q, radix * stride)));
  }

  void append_multipliers(Pass& pass, const std::vector<Exact>& by_place) {
    pass.multipliers = static_cast<unsigned>(tables_.size());
    const Index radix = pass.radix;
    for (Index q = 0; q < radix; ++q)
      for (Index group = 0; group < box_.length / radix; ++group)
        tables_.push_back(rounded<T>(by_place[static_cast<std::size_t>(group * radix + q)]));
  }

  const Box& box_;
  Index inner_, numbers_;
  FftView<T>& view_;
  std::vector<Complex<T>>& tables_;
};

}  // namespace

PlanSize fft_plan_size(Index N) {
  if (N < 1 || N > most_numbers) return {};
  const std::vector<Box> all = boxes(N);
  PlanSize size{count_numbers(all), 0};
  for (const Box& box : all) size.passes += count_passes(box);
  return size.passes > most_passes || size.numbers > most_numbers ? PlanSize{} : size;
}

PlanSize half_rows_size(Index p, Index Q) {
  const PlanSize row = fft_plan_size(Q);
  if (row.numbers == 0 || p < 2 || large_primes(p) != std::vector{p} || Q % p == 0) return {};
  const Box box = half_box(p, row.numbers);
  const PlanSize size{box.slots() * row.numbers,
                      row.passes + count_passes(box) + (combines_columns(box, Q) ? 2 : 0)};
  return size.passes > most_passes || size.numbers > most_numbers ? PlanSize{} : size;
}

template <class T>
FftPlan<T>::FftPlan(Index N, Index rows) : in(static_cast<std::size_t>(N)), out(in.size()) {
  const std::vector<Box> all = boxes(N);
  const Index numbers = count_numbers(all);
  view.length = static_cast<int>(N);
  view.numbers = static_cast<int>(rows * numbers);
  Index inner = numbers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Box& box = all[i];
    inner /= box.slots();
    view.padded = view.padded || box.padded();
    PassList<T> passes(box, inner, rows * numbers, view, tables);
    passes.append();
    if (box.below > 1) passes.append_rotations(digits_from(all, i));
    const Places of_box = places(box);
    const Index n = box.whole_modulus(), inverse = inverse_modulo(N / n, n);
    for (Index j = 0; j < N; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const auto in_box = static_cast<std::size_t>(box.digit_in(j * inverse % n)),
                 out_box = static_cast<std::size_t>(box.digit_out(j % n));
      in[at] = static_cast<std::uint16_t>(in[at] + of_box.in[in_box] * inner);
      out[at] = static_cast<std::uint16_t>(out[at] + of_box.out[out_box] * inner);
    }
  }
}

template <class T>
HalfRowsPlan<T>::HalfRowsPlan(Index p, Index Q)
    : rows(half_box(p, fft_plan_size(Q).numbers).slots()), fft(Q, rows) {
  const Box box = half_box(p, fft_plan_size(Q).numbers);
  const Places of_box = places(box);
  in.assign(of_box.in.begin(), of_box.in.end());
  out.assign(of_box.out.begin(), of_box.out.end());
  if (!box.padded()) {
    twist.assign(static_cast<std::size_t>(rows), {1, 0});
    for (Index m = 0; m < box.convolved(); ++m)
      twist[static_cast<std::size_t>(1 + box.place_of_number(m))] =
          rounded<T>(transforms::twist(box, m));
  }

  FftView<T>& view = fft.view;
  const Index numbers = view.numbers;
  view.padded = view.padded || box.padded();
  const bool combines = combines_columns(box, Q);
  const auto between_columns = [&](PassKind kind) {
    const Index pairs = Q / 2 + 1;
    Pass& pass = view.pass[view.passes++];
    pass.kind = kind;
    pass.per_line = Divisor(static_cast<unsigned>(rows * pairs));
    pass.span = Divisor(static_cast<unsigned>(pairs));
  };
  if (combines) between_columns(PassKind::combining);
  PassList<T>(box, numbers / rows, numbers, view, fft.tables).append();
  if (combines) between_columns(PassKind::separating);
}

template struct FftPlan<float>;
template struct FftPlan<double>;
template struct HalfRowsPlan<float>;
template struct HalfRowsPlan<double>;

}  // namespace asterism::transforms
