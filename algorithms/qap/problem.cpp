#include "problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "../../codelets/qap/moves.hpp"
#include "../../runtime/error.hpp"

namespace asterism::qap {
namespace {

__extension__ typedef unsigned __int128 Sum;

using Magnitudes = std::vector<std::uint64_t>;

std::uint64_t magnitude(Cost value) {
  return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

/// a - b; both may be anything.
std::uint64_t difference(Cost a, Cost b) {
  return static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
}

Cost entry(const std::vector<Cost>& a, Index n, Index i, Index j) {
  return a[static_cast<std::size_t>(i * n + j)];
}

/// The largest sum of products of numbers of both, each used once; at most `most`. They are sorted.
Sum largest_sum(Magnitudes a, Magnitudes b, Sum most) {
  std::ranges::sort(a, std::greater());
  std::ranges::sort(b, std::greater());
  Sum sum = 0;
  for (std::size_t i = 0; i < a.size() && sum < most; ++i) sum += static_cast<Sum>(a[i]) * b[i];
  return std::min(sum, most);
}

/// The least sum of products of numbers of both off the diagonals, and on them; what largest_sum() allows fits.
Cost least_sum(const Problem& problem) {
  const Index n = problem.n;
  std::vector<Cost> d, f, of_d, of_f;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      (i == j ? of_d : d).push_back(entry(problem.d, n, i, j));
      (i == j ? of_f : f).push_back(entry(problem.f, n, i, j));
    }
  Cost sum = 0;
  for (const auto& [a, b] : {std::pair(&d, &f), std::pair(&of_d, &of_f)}) {
    std::ranges::sort(*a);
    std::ranges::sort(*b, std::greater());
    for (std::size_t i = 0; i < a->size(); ++i) sum += (*a)[i] * (*b)[i];
  }
  return sum;
}

Magnitudes off_diagonal(const std::vector<Cost>& a, Index n) {
  Magnitudes all;
  all.reserve(a.size());
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      if (i != j) all.push_back(magnitude(entry(a, n, i, j)));
  return all;
}

Magnitudes diagonal(const std::vector<Cost>& a, Index n) {
  Magnitudes all;
  for (Index i = 0; i < n; ++i) all.push_back(magnitude(entry(a, n, i, i)));
  return all;
}

/// Between the least and the largest entry of each row off the diagonal, or of each column.
enum class Lines { rows, columns };
Magnitudes spreads(const std::vector<Cost>& a, Index n, Lines lines) {
  Magnitudes all;
  for (Index k = 0; k < n; ++k) {
    Cost least = std::numeric_limits<Cost>::max(), most = std::numeric_limits<Cost>::min();
    for (Index i = 0; i < n; ++i) {
      if (i == k) continue;
      const Cost value = lines == Lines::rows ? entry(a, n, k, i) : entry(a, n, i, k);
      least = std::min(least, value);
      most = std::max(most, value);
    }
    all.push_back(n > 1 ? difference(most, least) : 0);
  }
  return all;
}

std::uint64_t spread_of_diagonal(const std::vector<Cost>& a, Index n) {
  Cost least = std::numeric_limits<Cost>::max(), most = std::numeric_limits<Cost>::min();
  for (Index i = 0; i < n; ++i) {
    least = std::min(least, entry(a, n, i, i));
    most = std::max(most, entry(a, n, i, i));
  }
  return n > 0 ? difference(most, least) : 0;
}

/// The largest |a_rs - a_sr|.
std::uint64_t largest_asymmetry(const std::vector<Cost>& a, Index n) {
  std::uint64_t largest = 0;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < i; ++j) {
      const Cost low = std::min(entry(a, n, i, j), entry(a, n, j, i)),
                 high = std::max(entry(a, n, i, j), entry(a, n, j, i));
      largest = std::max(largest, difference(high, low));
    }
  return largest;
}

void require_sizes(const Problem& problem) {
  if (problem.n < 0 || problem.n > most_locations)
    throw Error(fmt::format("a quadratic assignment problem of {} locations: there may be 0 to {}", problem.n,
                            most_locations));
  const auto expected = static_cast<std::size_t>(problem.n * problem.n);
  for (const auto& [name, size] : {std::pair("d", problem.d.size()), std::pair("f", problem.f.size())})
    if (size != expected)
      throw Error(fmt::format("the matrix {} has {} numbers; {} locations need {} x {} = {}", name, size,
                              problem.n, problem.n, problem.n, expected));
}

/// Bounds |Delta(r, s)| by the terms of (M1).
Cost bound_of_deltas(const Problem& problem) {
  const Index n = problem.n;
  constexpr Cost largest = std::numeric_limits<Cost>::max();
  constexpr Sum most = static_cast<Sum>(largest);
  Sum sum = 0;
  for (const Lines lines : {Lines::rows, Lines::columns})
    sum += largest_sum(spreads(problem.d, n, lines), spreads(problem.f, n, lines), most);
  sum +=
      std::min(most, static_cast<Sum>(spread_of_diagonal(problem.d, n)) * spread_of_diagonal(problem.f, n));
  sum += std::min(most, static_cast<Sum>(largest_asymmetry(problem.d, n)) * largest_asymmetry(problem.f, n));
  return sum < most ? static_cast<Cost>(sum) : largest;
}

}  // namespace

ProblemFacts facts_of(const Problem& problem) {
  require_sizes(problem);
  const Index n = problem.n;
  constexpr Sum most = static_cast<Sum>(most_cost);
  const Sum largest = largest_sum(off_diagonal(problem.d, n), off_diagonal(problem.f, n), most) +
                      largest_sum(diagonal(problem.d, n), diagonal(problem.f, n), most);
  if (largest >= most)
    throw Error(
        fmt::format("a permutation's cost may reach 2^62 in magnitude, and costs are kept in 64 bits; "
                    "divide the {} x {} matrices by a common factor, or use smaller units",
                    n, n));
  ProblemFacts facts;
  const bool d_symmetric = largest_asymmetry(problem.d, n) == 0,
             f_symmetric = largest_asymmetry(problem.f, n) == 0;
  facts.symmetry = d_symmetric && f_symmetric   ? Symmetry::both
                   : d_symmetric || f_symmetric ? Symmetry::one
                                                : Symmetry::none;
  facts.has_diagonals = spread_of_diagonal(problem.d, n) > 0 && spread_of_diagonal(problem.f, n) > 0;
  facts.largest_cost = static_cast<Cost>(largest);
  facts.least_cost = least_sum(problem);
  facts.largest_delta = bound_of_deltas(problem);
  // Costs lie between -largest and largest, too.
  facts.largest_delta = std::min(facts.largest_delta, static_cast<Cost>(2 * largest));
  return facts;
}

void require_permutation(std::span<const std::int32_t> p, Index n, const char* what) {
  if (static_cast<Index>(p.size()) != n)
    throw Error(fmt::format("{} has {} numbers; the problem has {} locations", what, p.size(), n));
  std::vector<bool> there(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] < 0 || p[i] >= n)
      throw Error(fmt::format("{}: number {} is {}; facilities are 0 to {}", what, i, p[i], n - 1));
    if (there[static_cast<std::size_t>(p[i])])
      throw Error(fmt::format("{}: number {} is {} again: no permutation", what, i, p[i]));
    there[static_cast<std::size_t>(p[i])] = true;
  }
}

Cost cost_of(const Problem& problem, std::span<const std::int32_t> p) {
  require_permutation(p, problem.n, "the permutation");
  return cost_from_scratch(problem.n, problem.d.data(), problem.f.data(),
                           p.data());  // does not overflow: facts_of()
}

Permutation inverse_of(std::span<const std::int32_t> p) {
  Permutation inverse(p.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    inverse[static_cast<std::size_t>(p[i])] = static_cast<std::int32_t>(i);
  return inverse;
}

}  // namespace asterism::qap
