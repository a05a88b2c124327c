#include "partition.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace asterism::poisson {

std::optional<Slab> SlabPartition::beside(Slab s, Index step, Border border) const {
  const std::optional<Index> place = neighbour(s.place, step, slabs_per_problem_, border);
  return place ? std::optional(slab(s.problem, *place)) : std::nullopt;
}

Hints SlabPartition::hints(Slab s) const {
  Hints hints = slabs_.hints(s.number);
  hints.label = fmt::format("slab {}", s.number);
  return hints;
}

std::vector<Slab> SlabPartition::turns(Index problem) const {
  std::map<std::pair<int, int>, std::vector<Slab>> slabs;  // of each lane
  for (Index i = 0; i < slabs_per_problem_; ++i) {
    const Slab s = slab(problem, i % 2 == 0 ? i / 2 : slabs_per_problem_ - 1 - i / 2);
    const Part& part = slabs_[s.number];
    slabs[{part.rank, part.worker}].push_back(s);
  }
  std::vector<Slab> turns;
  for (std::size_t i = 0; turns.size() < static_cast<std::size_t>(slabs_per_problem_); ++i)
    for (const auto& [lane, of_lane] : slabs)
      if (i < of_lane.size()) turns.push_back(of_lane[i]);
  return turns;
}

}  // namespace asterism::poisson
