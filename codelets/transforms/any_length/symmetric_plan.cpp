#include "symmetric_plan.hpp"

#include <algorithm>
#include <numeric>

#include "radices.hpp"

namespace asterism::transforms::cuda {

int symmetric_radix(Index N) {
  if (N < 3 || N % 2 == 0) return 0;
  for (const int radix : {15, 13, 11, 9, 7, 5, 3})
    if (N % radix == 0 && N > radix && std::gcd(N / radix, Index{radix}) == 1 &&
        fft_plan_numbers(N / radix) > 0)
      return radix;
  return 0;
}

int symmetric_numbers(Index N) {
  const int radix = symmetric_radix(N);
  if (radix == 0) return 0;
  const Index numbers = Index{fft_plan_numbers(N / radix)} * (radix / 2 + 1);
  return numbers < most_symmetric_numbers ? static_cast<int>(numbers) : 0;
}

namespace {

/// A place in the rows, or that of the number's mirror.
struct Place {
  Index at;
  bool is_mirror;
};

/// The numbers of a row and the places in it; D rows would have all numbers.
struct Rows {
  Index D, Q, numbers;
  Index inverse_of_Q, inverse_of_D;  ///< modulo D and Q
  const std::vector<std::uint16_t>&in, &out;

  [[nodiscard]] Index in_row(Index b) const { return in[static_cast<std::size_t>(b % Q)]; }
  [[nodiscard]] Index out_row(Index d) const { return out[static_cast<std::size_t>(d % Q)]; }

  /// Of z_j
  [[nodiscard]] Place element(Index j) const {
    const Index a = j * inverse_of_Q % D, b = j * inverse_of_D % Q;
    return a > D / 2 ? Place{(D - a) * numbers + in_row(Q - b), true} : Place{a * numbers + in_row(b), false};
  }

  /// Whether the butterfly of d and -d has d for its first.
  [[nodiscard]] bool is_first(Index d) const { return out_row(d) <= out_row(Q - d); }

  /// Of Z_k
  [[nodiscard]] Place frequency(Index k) const {
    const bool mirror = !is_first(k % Q);
    const Index c = mirror ? (D - k % D) % D : k % D, d = mirror ? Q - k % Q : k % Q;
    if (c <= D / 2) return {c * numbers + out_row(d), mirror};
    // Z_{c,0} is the mirror of Z_{D-c,0}, which is stored.
    return {(D - c) * numbers + out_row(Q - d), mirror != (d == 0)};
  }
};

Target target(const Rows& rows, Index N, Index i) {
  const bool odd = i % 2 != 0;
  const Index j = (odd ? N - i : i) / 2;
  const Place place = rows.element(j), opposite = rows.element((N - j) % N);
  const bool has_mirror = place.at < rows.numbers && j > 0;
  const auto number = [=](Index at) { return static_cast<std::uint32_t>(2 * at + (odd ? 1 : 0)); };
  Target target{};
  target.at = number(place.at) & 0x7fff;
  target.negative = odd != place.is_mirror;
  target.mirror = number(has_mirror ? opposite.at : 0) & 0x7fff;
  target.has_mirror = has_mirror;
  return target;
}

Source source(const Rows& rows, Transform kind, Index N, Index k) {
  const Place place = rows.frequency(k % N);
  const bool sine = kind == Transform::dst1, odd = k % 2 != 0, negative = sine && place.is_mirror;
  // (-1)^k Re - Im, or Re + (-1)^k Im
  Source source{};
  source.at = static_cast<std::uint16_t>(place.at) & 0x3fff;
  source.negative_first = negative != (sine && odd);
  source.negative_second = negative != (sine || odd);
  return source;
}

}  // namespace

template <class T>
SymmetricPlan<T>::SymmetricPlan(Transform kind, Index N)
    : radix(symmetric_radix(N)), rows(N / radix, radix / 2 + 1) {
  const Index Q = N / radix;
  const Rows places{radix,
                    Q,
                    rows.view.numbers / (radix / 2 + 1),
                    inverse_modulo(Q, radix),
                    inverse_modulo(radix, Q),
                    rows.in,
                    rows.out};
  for (Index i = 0; i <= N; ++i) {
    targets.push_back(target(places, N, i));
    sources.push_back(source(places, kind, N, i));
  }
  for (Index d = 0; d < Q; ++d)
    if (places.is_first(d))
      pairs.push_back(
          {static_cast<std::uint16_t>(places.out_row(d)), static_cast<std::uint16_t>(places.out_row(Q - d))});
  std::ranges::sort(pairs, {}, &PlacePair::plus);
}

template struct SymmetricPlan<float>;
template struct SymmetricPlan<double>;

}  // namespace asterism::transforms::cuda
