#include "radices.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace asterism::transforms {
namespace {

/// What a pass costs, by its traffic, and what a number of it costs in arithmetic, all in units of multiplications and
/// additions of real numbers; roughly. Index: the radix.
constexpr double pass_cost = 10, butterfly_costs[largest_radix + 1] = {0, 0, 2,  4, 4,  7,  6,  10,  6,
                                                                       8, 9, 19, 8, 23, 12, 11, 8.5, 40};

struct Choice {
  double cost;
  std::vector<int> radices;
};

/// The cheapest product of radices up to `most`, in descending order.
Choice cheapest(Index N, int most) {
  if (N == 1) return {0, {}};
  Choice best{HUGE_VAL, {}};
  for (int radix = static_cast<int>(std::min<Index>(most, N)); radix >= 2; --radix) {
    if (N % radix != 0) continue;
    Choice rest = cheapest(N / radix, radix);
    rest.cost += pass_cost + butterfly_costs[radix];
    if (rest.cost >= best.cost) continue;
    rest.radices.insert(rest.radices.begin(), radix);
    best = std::move(rest);
  }
  return best;
}

/// Radices with a common divisor go along one direction.
std::vector<Direction> grouped(const std::vector<int>& radices) {
  std::vector<Direction> groups;
  for (const int radix : radices) {
    Direction joined{.length = radix, .radices = {radix}};
    std::erase_if(groups, [&](const Direction& group) {
      if (std::gcd(group.length, joined.length) == 1) return false;
      joined.length *= group.length;
      joined.radices.insert(joined.radices.end(), group.radices.begin(), group.radices.end());
      return true;
    });
    groups.push_back(std::move(joined));
  }
  return groups;
}

}  // namespace

Index inverse_modulo(Index a, Index n) {
  Index inverse = 1 % n;
  while (a % n * inverse % n != 1 % n) ++inverse;
  return inverse;
}

std::vector<Index> powers_of_generator(Index p) {
  for (Index g = 2;; ++g) {
    std::vector<Index> powers{1};
    for (Index power = g; power != 1; power = power * g % p) powers.push_back(power);
    if (static_cast<Index>(powers.size()) == p - 1) return powers;
  }
}

bool has_radices(Index N) {
  for (const int p : {2, 3, 5, 7, 11, 13, 17})
    while (N % p == 0) N /= p;
  return N == 1;
}

std::vector<Direction> directions(Index N) {
  std::vector<Direction> all = grouped(cheapest(N, largest_radix).radices);
  // Even ones first: the last passes, whose numbers are closest to each other, go in odd steps, in which
  // threads side by side meet in no bank of shared memory.
  const auto even_first = [](auto a, auto b) { return a % 2 == 0 && b % 2 != 0; };
  std::ranges::stable_sort(all, even_first, &Direction::length);
  for (Direction& direction : all) {
    std::ranges::stable_sort(direction.radices, even_first);
    direction.inverse = inverse_modulo(N / direction.length, direction.length);
  }
  return all;
}

std::vector<Index> large_primes(Index N) {
  std::vector<Index> primes;
  for (Index p = 2; p * p <= N; ++p)
    for (; N % p == 0; N /= p)
      if (p > largest_radix) primes.push_back(p);
  if (N > largest_radix) primes.push_back(N);
  return primes;
}

Index smooth_convolution_length(Index n, Index most) {
  if (has_radices(n)) return n;
  Index best = 0;
  double least = HUGE_VAL;
  for (Index length = 2 * n - 1; length < 2 * n + n / 4 + 2; ++length) {
    if (!has_radices(length)) continue;
    if (best > 0 && best <= most && length > most) break;
    const double cost = static_cast<double>(length) * cheapest(length, largest_radix).cost;
    if (cost >= least) continue;
    least = cost;
    best = length;
  }
  return best;
}

}  // namespace asterism::transforms
