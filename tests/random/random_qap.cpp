// Random quadratic assignment problems for all methods: costs from scratch, the optimum by looking at all permutations, and
// the same answer twice.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "../qap/least_cost.hpp"
#include "algorithms/qap/search.hpp"
#include "random_problems.hpp"

namespace asterism::test {
namespace {

/// A problem, and how it is to be searched.
struct Assignment {
  qap::Problem problem;
  qap::SearchSettings settings;
  std::string matrices;
};

/// Locations of which all permutations are looked at.
constexpr Index most_enumerated = 7;
/// And of which the best one has to be found.
constexpr Index most_certain = 4;

// --- Drawing
// -------------------------------------------------------------------------------------------------------------

std::vector<qap::Cost> draw_square(Draw& draw, Index n, std::string& words) {
  const bool symmetric = draw.chance(0.5), has_diagonal = draw.chance(0.3), negative = draw.chance(0.3);
  const double filled = draw.pick<double>({1, 1, 0.5, 0.1});
  const qap::Cost largest = draw.chance(0.2) ? (qap::Cost{1} << 30) / std::max<Index>(1, n) : draw.integer(0, 99);
  std::vector<qap::Cost> square(static_cast<std::size_t>(n * n));
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      qap::Cost& entry = square[static_cast<std::size_t>(i * n + j)];
      if (symmetric && j < i) entry = square[static_cast<std::size_t>(j * n + i)];
      if ((symmetric && j < i) || (i == j && !has_diagonal) || !draw.chance(filled)) continue;
      entry = draw.integer(negative ? -largest : 0, largest);
    }
  words += fmt::format("{}{}{} numbers to {}, {:.0f} % of them; ", symmetric ? "symmetric, " : "",
                       has_diagonal ? "with diagonal, " : "", negative ? "signed" : "positive", largest, 100 * filled);
  return square;
}

qap::Permutation identity(Index n) {
  qap::Permutation p(static_cast<std::size_t>(n));
  std::iota(p.begin(), p.end(), 0);
  return p;
}

qap::Permutation draw_permutation(Draw& draw, Index n) {
  qap::Permutation p = identity(n);
  for (Index i = n - 1; i > 0; --i) std::swap(p[static_cast<std::size_t>(i)], p[static_cast<std::size_t>(draw.integer(0, i))]);
  return p;
}

std::shared_ptr<const Assignment> draw_problem_of_assignment(Draw& draw) {
  auto a = std::make_shared<Assignment>();
  const Index n = draw.chance(0.6) ? draw.integer(1, most_enumerated) : draw.integer(1, 40);
  a->problem.n = n;
  a->problem.d = draw_square(draw, n, a->matrices);
  a->problem.f = draw_square(draw, n, a->matrices);
  qap::SearchSettings& its = a->settings;
  its.method = draw.pick<qap::Method>({qap::Method::automatic, qap::Method::multistart, qap::Method::robust,
                                       qap::Method::tempering});
  its.seed = draw.bits();
  its.generations = draw.integer(1, 5);
  its.islands = draw.integer(1, 4);
  if (draw.chance(0.3)) its.start = draw_permutation(draw, n);
  if (draw.chance(0.3)) its.walks = draw.integer(2, 20);
  if (draw.chance(0.3)) its.initials = draw.integer(1, 8);
  if (draw.chance(0.2)) its.target = cost_of(a->problem, draw_permutation(draw, n));
  return a;
}

// --- Searching and judging
// -------------------------------------------------------------------------------------------------

/// C(p) by its definition.
qap::Cost cost_by_definition(const qap::Problem& q, const qap::Permutation& p) {
  qap::Cost cost = 0;
  for (Index i = 0; i < q.n; ++i)
    for (Index j = 0; j < q.n; ++j)
      cost += q.d[static_cast<std::size_t>(i * q.n + j)] *
              q.f[static_cast<std::size_t>(p[static_cast<std::size_t>(i)] * q.n + p[static_cast<std::size_t>(j)])];
  return cost;
}

Findings check(Runtime& runtime, const Assignment& a) {
  const qap::SearchReport found = search(runtime, a.problem, a.settings), again = search(runtime, a.problem, a.settings);
  Findings findings;
  const auto fault_unless = [&](bool well, const char* what) {
    if (!well) findings.faults.push_back(fmt::format("{}: cost {}, {}", what, found.cost, to_string(found.ending)));
  };
  fault_unless(std::ranges::is_permutation(found.permutation, identity(a.problem.n)), "no permutation");
  if (!findings.faults.empty()) return findings;
  fault_unless(found.cost == cost_by_definition(a.problem, found.permutation), "the permutation has another cost");
  fault_unless(found.generations <= a.settings.generations.value_or(0), "too many generations");
  fault_unless(a.settings.start.empty() || found.cost <= cost_by_definition(a.problem, a.settings.start),
               "the start was better");
  fault_unless(found.ending != qap::Ending::target || found.cost <= a.settings.target.value_or(found.cost - 1),
               "not the target");
  fault_unless(found.history.empty() || found.history.back().second == found.cost, "the last of all bests is another");
  fault_unless(std::ranges::is_sorted(found.history, std::ranges::greater_equal{}, [](const auto& best) { return best.second; }),
               "a new best that is none");
  fault_unless(again.cost == found.cost && again.permutation == found.permutation &&
                   again.iterations == found.iterations && again.generations == found.generations,
               "searched a second time it has another answer");
  if (a.problem.n <= most_enumerated) {
    const qap::Cost optimum = least_of_all(a.problem);
    fault_unless(found.cost >= optimum, "better than the best");
    fault_unless(found.ending != qap::Ending::optimal || found.cost == optimum, "said to be optimal");
    fault_unless(found.cost == optimum || found.ending == qap::Ending::target || a.problem.n > most_certain,
                 "the best of a few was not found");
  }
  return findings;
}

std::string words(const Assignment& a) {
  const char* const methods[] = {"automatic", "multistart", "robust", "tempering"};
  const qap::SearchSettings& its = a.settings;
  return fmt::format("n = {}; {}{}, seed {}, {} generations, {} islands, {} walks, {} initials{}{}", a.problem.n, a.matrices,
                     methods[static_cast<int>(its.method)], its.seed, its.generations.value_or(0), its.islands, its.walks,
                     its.initials, its.start.empty() ? "" : ", from a start",
                     its.target ? fmt::format(", target {}", *its.target) : "");
}

}  // namespace

Trial draw_assignment(Draw& draw) {
  const std::shared_ptr<const Assignment> a = draw_problem_of_assignment(draw);
  return {words(*a), [a](Runtime& runtime) { return check(runtime, *a); }};
}

}  // namespace asterism::test
