#include "symmetric_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace asterism::transforms {

namespace {

/// A place in the rows, or that of the number's mirror.
struct Place {
  Index at;
  bool is_mirror;
};

/// Whether d is the first of d and -d, by their places in a row.
bool is_first(const std::vector<std::uint16_t>& out, Index d) {
  const auto Q = static_cast<Index>(out.size());
  return out[static_cast<std::size_t>(d)] <= out[static_cast<std::size_t>((Q - d) % Q)];
}

/// d and -d once, in the order of places.
std::vector<PlacePair> column_pairs(const std::vector<std::uint16_t>& out) {
  const auto Q = static_cast<Index>(out.size());
  std::vector<PlacePair> pairs;
  for (Index d = 0; d < Q; ++d)
    if (is_first(out, d))
      pairs.push_back({out[static_cast<std::size_t>(d)], out[static_cast<std::size_t>((Q - d) % Q)]});
  std::ranges::sort(pairs, {}, &PlacePair::plus);
  return pairs;
}

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

  /// Whether z_{-j} is stored, too.
  [[nodiscard]] bool has_both(Index j) const { return element(j).at < numbers && j % (D * Q) > 0; }

  /// Of Z_k
  [[nodiscard]] Place frequency(Index k) const {
    const bool mirror = !is_first(out, k % Q);
    const Index c = mirror ? (D - k % D) % D : k % D, d = mirror ? Q - k % Q : k % Q;
    if (c <= D / 2) return {c * numbers + out_row(d), mirror};
    // Z_{c,0} is the mirror of Z_{D-c,0}, which is stored.
    return {(D - c) * numbers + out_row(Q - d), mirror != (d == 0)};
  }
};

/// The numbers of (Y3) and their places; p rows would have all numbers.
class HalfRows {
 public:
  template <class T>
  HalfRows(Index p, Index Q, const HalfRowsPlan<T>& plan)
      : p_(p),
        Q_(Q),
        row_numbers_(plan.fft.view.numbers / plan.rows),
        inverse_of_Q_(inverse_modulo(Q, p)),
        inverse_of_p_(inverse_modulo(p, Q)),
        exponents_(static_cast<std::size_t>(p)),
        row_in_(plan.in),
        row_out_(plan.out),
        in_(plan.fft.in),
        out_(plan.fft.out) {
    Index exponent = 0;
    for (const Index power : powers_of_generator(p)) exponents_[static_cast<std::size_t>(power)] = exponent++;
  }

  /// Of z_j
  [[nodiscard]] Place element(Index j) const {
    const Index a = j * inverse_of_Q_ % p_, b = j * inverse_of_p_ % Q_;
    return place(row_in_, a, exponent_of(a), in_, b);
  }

  /// Whether z_{-j} is stored, too.
  [[nodiscard]] bool has_both(Index j) const { return j % p_ == 0 && j % Q_ != 0; }

  /// Of Z_k
  [[nodiscard]] Place frequency(Index k) const {
    const Index c = k % p_;
    return place(row_out_, c, (p_ - 1 - exponent_of(c)) % (p_ - 1), out_, k % Q_);
  }

 private:
  using Places = std::vector<std::uint16_t>;

  /// The m of g^m; 0 for 0, which is no power.
  [[nodiscard]] Index exponent_of(Index a) const { return exponents_[static_cast<std::size_t>(a)]; }

  /// Of column b, or, for an exponent from M on, of the mirror in column -b.
  [[nodiscard]] Place place(const Places& rows, Index row, Index exponent, const Places& columns,
                            Index b) const {
    const bool is_mirror = exponent >= (p_ - 1) / 2;
    const Index column = is_mirror ? (Q_ - b) % Q_ : b;
    return {rows[static_cast<std::size_t>(row)] * row_numbers_ + columns[static_cast<std::size_t>(column)],
            is_mirror};
  }

  Index p_, Q_, row_numbers_;
  Index inverse_of_Q_, inverse_of_p_;  ///< modulo p and Q
  std::vector<Index> exponents_;
  const Places &row_in_, &row_out_, &in_, &out_;
};

template <class Places>
Target target(const Places& places, Index N, Index i) {
  const bool odd = i % 2 != 0;
  const Index j = (odd ? N - i : i) / 2;
  const Place place = places.element(j), opposite = places.element((N - j) % N);
  const bool has_mirror = places.has_both(j);
  const auto number = [=](Index at) { return static_cast<std::uint32_t>(2 * at + (odd ? 1 : 0)); };
  Target target{};
  target.at = number(place.at) & 0x7fff;
  target.negative = odd != place.is_mirror;
  target.mirror = number(has_mirror ? opposite.at : 0) & 0x7fff;
  target.has_mirror = has_mirror;
  return target;
}

template <class Places>
Source source(const Places& places, Transform kind, Index N, Index k) {
  const Place place = places.frequency(k % N);
  const bool sine = kind == Transform::dst1, odd = k % 2 != 0, negative = sine && place.is_mirror;
  // (-1)^k Re - Im, or Re + (-1)^k Im
  Source source{};
  source.at = static_cast<std::uint16_t>(place.at) & 0x3fff;
  source.negative_first = negative != (sine && odd);
  source.negative_second = negative != (sine || odd);
  return source;
}

}  // namespace

std::vector<SymmetricWay> symmetric_ways(Index N) {
  std::vector<SymmetricWay> ways;
  if (N < 3 || N % 2 == 0) return ways;
  const auto add = [&](Index divisor, PlanSize size) {
    if (size.numbers > 0 && size.numbers < most_symmetric_numbers)
      ways.push_back({static_cast<int>(divisor), size});
  };
  for (const Index D : {15, 13, 11, 9, 7, 5, 3}) {
    if (N % D != 0 || N == D || std::gcd(N / D, D) != 1) continue;
    if (const PlanSize row = fft_plan_size(N / D); row.numbers > 0) {
      add(D, {row.numbers * (D / 2 + 1), row.passes + 1});
      break;
    }
  }
  for (const Index p : large_primes(N)) add(p, half_rows_size(p, N / p));
  return ways;
}

template <class T>
SymmetricPlan<T>::SymmetricPlan(Transform kind, Index N, const SymmetricWay& way)
    : divisor(way.divisor), row_count(divisor / 2 + 1), rows(1) {
  const Index D = divisor, Q = N / D;
  const auto place_points = [&](const auto& places) {
    for (Index i = 0; i <= N; ++i) {
      targets.push_back(target(places, N, i));
      sources.push_back(source(places, kind, N, i));
    }
  };
  if (way.has_butterflies()) {
    rows = FftPlan<T>(Q, row_count);
    place_points(Rows{D, Q, rows.view.numbers / row_count, inverse_modulo(Q, D), inverse_modulo(D, Q),
                      rows.in, rows.out});
    pairs = column_pairs(rows.out);
    return;
  }
  HalfRowsPlan<T> plan(D, Q);
  place_points(HalfRows(D, Q, plan));
  row_count = plan.rows;
  rows = std::move(plan.fft);
  twist = std::move(plan.twist);
  pairs = column_pairs(rows.out);
  odd.resize(static_cast<std::size_t>(rows.view.numbers / row_count));
  for (const PlacePair& pair : pairs) odd[pair.minus] = pair.minus != pair.plus || kind == Transform::dst1;
}

template struct SymmetricPlan<float>;
template struct SymmetricPlan<double>;

}  // namespace asterism::transforms
