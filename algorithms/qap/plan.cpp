#include "plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../../codelets/qap/starts.hpp"
#include "../../runtime/error.hpp"

namespace asterism::qap {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw Error(message);
}

void check(const SearchSettings& s) {
  constexpr Index most = 1'000'000;
  const auto in_range = [&](const char* what, Index value, Index least) {
    require(value >= least && value <= most,
            fmt::format("{} {}: there may be {} to {}", value, what, least, most));
  };
  in_range("islands", s.islands, 1);
  in_range("initial solutions", s.initials, 0);
  in_range("offsets", s.max_offset, 0);
  in_range("walks", s.walks, 0);
  require(s.first_iterations >= 0 && s.most_iterations >= 0,
          fmt::format("walks of {} to {} iterations: neither may be negative", s.first_iterations,
                      s.most_iterations));
  require(!s.seconds || *s.seconds >= 0,
          fmt::format("a search of {} seconds: 0 at least", s.seconds.value_or(0)));
  require(!s.generations || *s.generations >= 1,
          fmt::format("a search of {} generations: 1 at least", s.generations.value_or(0)));
  for (const Index tenure : s.tenures)
    require(tenure >= 0 && tenure <= most, fmt::format("a tenure of {}: 0 to {}", tenure, most));
  if (s.tenure)
    require(s.tenure->least >= 0 && s.tenure->least <= s.tenure->most && s.tenure->most <= most,
            fmt::format("tenures of {} to {}: the first may not be more than the second, nor negative",
                        s.tenure->least, s.tenure->most));
}

/// Five lengths that did well on problems of some forty locations and more, shorter ones for smaller problems.
std::vector<Index> tenures_from_literature(Index n) {
  std::vector<Index> lengths;
  for (const Index length : {18, 21, 24, 29, 32}) lengths.push_back(n < 36 ? length * n / 36 : length);
  return lengths;
}

TenureRange within(const TenureRange& range, Index n) {
  return {std::min(range.least, longest_tenure(n)), std::min(range.most, longest_tenure(n))};
}

std::vector<TenureRange> multistart_tenures(const SearchSettings& s, Index n) {
  if (s.tenures.empty() && s.tenure) return {within(*s.tenure, n)};
  std::vector<TenureRange> tenures;
  for (const Index length : s.tenures.empty() ? tenures_from_literature(n) : s.tenures)
    tenures.push_back(within({length, length}, n));
  return tenures;
}

/// Iterations of a walk in a generation, at least.
constexpr Index few_in_generation(Index n) { return std::max<Index>(250, 5 * n / 2); }
/// So many that the tasks' beginnings and ends take little of the time (5e6 moves or more, but for small n), and so few that
/// islands do not wait long for walks of others.
constexpr Index in_generation(Index n) {
  return std::max(few_in_generation(n), std::min<Index>(1000, 5'000'000 / std::max<Index>(1, n * n)));
}

IslandPlan multistart_island(const SearchSettings& s, Index n) {
  IslandPlan island;
  SelectionArguments& a = island.arguments;
  a.kind = IslandKind::multistart;
  a.initials = s.initials > 0 ? s.initials : 5;
  a.offsets = std::min(n, s.max_offset > 0 ? s.max_offset : 5);
  a.tenures = multistart_tenures(s, n);
  a.first_iterations = s.first_iterations > 0 ? s.first_iterations : n;
  a.most_iterations = std::max(a.first_iterations, s.most_iterations > 0 ? s.most_iterations : n * n);
  a.in_generation = in_generation(n);
  island.walks = a.initials * a.offsets * static_cast<Index>(a.tenures.size());
  return island;
}

IslandPlan robust_island(const SearchSettings& s, Index n) {
  IslandPlan island;
  SelectionArguments& a = island.arguments;
  a.kind = IslandKind::robust;
  a.rule = TabuRule::assignment;
  a.initials = s.walks > 0 ? s.walks : 16;
  a.tenures = {within(s.tenure.value_or(TenureRange{9 * n / 10, (11 * n + 9) / 10}), n)};
  // Beside an island of multistart, whose many walks begin with n iterations, all would wait for these few.
  a.first_iterations = a.most_iterations = a.in_generation =
      s.method == Method::automatic ? few_in_generation(n) : in_generation(n);
  a.patience = std::max<Index>(2000, 5 * n * n);
  island.walks = a.initials;
  return island;
}

IslandPlan tempering_island(const SearchSettings& s, Index n) {
  IslandPlan island;
  SelectionArguments& a = island.arguments;
  a.kind = IslandKind::tempering;
  a.initials = s.walks > 0 ? s.walks : 24;
  a.tenures = {TenureRange{}};
  constexpr Index sweeps = 10;  // between two exchanges: a task also fills its tables
  a.first_iterations = a.most_iterations = a.in_generation = sweeps * n * (n - 1) / 2;
  island.walks = a.initials;
  return island;
}

IslandPlan island_of(const SearchSettings& s, Index n, Index number) {
  switch (s.method) {
    case Method::automatic:
      return number % 2 == 0 ? multistart_island(s, n) : robust_island(s, n);
    case Method::multistart:
      return multistart_island(s, n);
    case Method::robust:
      return robust_island(s, n);
    case Method::tempering:
      return tempering_island(s, n);
  }
  return {};
}

}  // namespace

Index longest_tenure(Index n) { return n * (n - 1) / 4; }

Index walks_of_rank(const Plan& plan, int rank) {
  Index walks = 0;
  for (const IslandPlan& island : plan.islands)
    if (island.rank == rank) walks += island.walks;
  return walks;
}

Plan plan_of(const SearchSettings& s, Index n, int ranks) {
  check(s);
  Plan plan;
  for (Index k = 0; k < s.islands; ++k) {
    IslandPlan island = island_of(s, n, k);
    SelectionArguments& a = island.arguments;
    a.n = n;
    a.island = k;
    a.stream = random_bits(s.seed, static_cast<std::uint64_t>(k));
    for (const TenureRange& range : a.tenures) plan.capacity = std::max(plan.capacity, range.most);
    island.rank = static_cast<int>(k * ranks / s.islands);
    plan.islands.push_back(std::move(island));
  }
  for (IslandPlan& island : plan.islands) island.arguments.capacity = plan.capacity;
  return plan;
}

}  // namespace asterism::qap
