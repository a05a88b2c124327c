#include "slab_partition.hpp"

#include <fmt/format.h>

#include <map>

namespace asterism::poisson {

Index SlabPartition::first_plane(Index number) const {
  const Slab s = (*this)[number];
  return s.problem * grid_->planes + first_in_problem(s.place);
}

int SlabPartition::owner(Index number) const { return static_cast<int>(number * runtime_->ranks() / count()); }

SlabPartition::Range SlabPartition::of_rank(int rank) const {
  const auto first_of = [&](Index r) { return (r * count() + runtime_->ranks() - 1) / runtime_->ranks(); };
  return {first_of(rank), first_of(rank + 1)};
}

Index SlabPartition::lane(Index number) const {
  const int rank = owner(number);
  const auto [first, end] = of_rank(rank);
  return rank * layout_->lanes + (layout_->dealing == Dealing::turns
                                      ? (number - first) % layout_->lanes
                                      : (number - first) * layout_->lanes / (end - first));
}

Hints SlabPartition::hints(Slab s) const {
  Hints hints{.where = layout_->where, .label = fmt::format("slab {}", s.number)};
  if (layout_->where == Where::cuda && gpus_ > 1)
    hints.worker = static_cast<int>(lane(s.number) % layout_->lanes) % gpus_;
  return hints;
}

std::vector<Slab> SlabPartition::turns(Index problem) const {
  std::map<Index, std::vector<Slab>> slabs;  // of each lane
  for (Index place = 0; place < layout_->slabs; ++place) {
    const Slab s = slab(problem, place);
    slabs[lane(s.number)].push_back(s);
  }
  std::vector<Slab> turns;
  for (std::size_t i = 0; turns.size() < static_cast<std::size_t>(layout_->slabs); ++i)
    for (const auto& [lane, of_lane] : slabs)
      if (i < of_lane.size()) turns.push_back(of_lane[i]);
  return turns;
}

}  // namespace asterism::poisson
