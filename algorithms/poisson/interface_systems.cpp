#include "interface_systems.hpp"

#include <algorithm>
#include <utility>

#include "../../codelets/poisson/slabs.hpp"

namespace asterism::poisson {

InterfaceSystems::InterfaceSystems(Runtime& runtime, const Grid& grid, const Layout& layout,
                                   const SlabPartition& slabs, Spacing spacing, const Tiles<double>& axis,
                                   const std::vector<ModeTiles>& modes)
    : runtime_(&runtime),
      slabs_(&slabs),
      modes_(&modes),
      layout_(layout),
      columns_(grid.columns()),
      rows_(grid.interface()),
      periodic_(grid.slow.periodic()),
      spacing_(spacing),
      // On GPUs with slabs that pass through there is no room to spare: interface tiles that have no room of their own
      // are given up one by one as pass 2 goes back.
      forgets_(layout.mode == Mode::streaming && layout.interface == Where::cuda && !layout.keeps_interface),
      crosses_gpus_(layout.interface == Where::cuda && layout.lanes * runtime.ranks() > 1) {
  shown_ = tiles(rows_.shown);
  prefix_ = tiles(periodic_ ? rows_.joined : rows_.prefix);
  first_ = tiles(rows_.beside);
  before_ = tiles(rows_.beside);
  if (periodic_) {
    const auto owner_of_last = [&](Index problem, Index) {
      return slabs.owner(slabs.slab(problem, layout.slabs - 1).number);
    };
    const auto per_problem = [&](Index rows) {
      return Tiles<double>(runtime, grid.batch * rows, columns_, rows, columns_, owner_of_last);
    };
    before_start_ = per_problem(rows_.beside);
    after_end_ = per_problem(rows_.beside);
  }
  if (exist()) make_responses(axis);
}

Tiles<double> InterfaceSystems::tiles(Index rows) const {
  if (!layout_.keeps_interface) return slabs_->per_slab(rows, columns_);
  std::vector<Tile<double>> tiles;
  for (Index number = 0; number < slabs_->count(); ++number) {
    const int gpu = std::max(0, slabs_->hints((*slabs_)[number]).worker);  // -1 where there is but one
    tiles.push_back(Tile<double>::kept_on_gpu(*runtime_, rows, columns_, gpu, slabs_->owner(number)));
  }
  return Tiles<double>(std::move(tiles));
}

/// Slabs of equal rows respond equally: with equal spacings those inside, and those at the ends of the axis.
std::tuple<int, Index> InterfaceSystems::kind_of(Slab s) const {
  const Index end = (slabs_->is_first(s) ? 1 : 0) + (slabs_->is_last(s) ? 2 : 0);
  return {slabs_->owner(s.number), spacing_ == Spacing::equal ? end : s.place};
}

void InterfaceSystems::make_responses(const Tiles<double>& axis) {
  for (Index number = 0; number < slabs_->count(); ++number) {
    const Slab s = (*slabs_)[number];
    const auto [found, is_new] = responses_.try_emplace(kind_of(s));
    if (!is_new) continue;
    found->second = Tile<double>(*runtime_, rows_.response, columns_, slabs_->owner(number));
    codelets::respond({.axis = axis[number], .mu = modes(s).mu, .response = found->second}, slabs_->hints(s));
  }
}

Hints InterfaceSystems::hints(Slab s) const {
  Hints hints = layout_.interface == Where::cuda ? slabs_->hints(s) : Hints{.where = layout_.interface};
  hints.streams = false;
  hints.priority = 1;  // short tasks that everything waits for: before the slabs that are queued already
  return hints;
}

const Tile<double>& InterfaceSystems::prefix_before(Slab s) const {
  return slabs_->is_first(s) ? modes(s).before_axis : prefix_[s.number - 1];
}

const Tile<double>& InterfaceSystems::before_start(Slab s) const {
  return periodic_ ? before_start_[s.problem] : modes(s).after_axis;
}

const Tile<double>& InterfaceSystems::before(Slab s) const {
  return exist() ? before_[s.number] : modes(s).before_axis;
}

const Tile<double>& InterfaceSystems::after(Slab s) const {
  if (!slabs_->is_last(s)) return first_[s.number + 1];
  return periodic_ ? after_end_[s.problem] : modes(s).after_axis;
}

void InterfaceSystems::begin(Index problem) {
  problem_ = problem;
  is_shown_.assign(static_cast<std::size_t>(layout_.slabs), false);
  next_ = 0;
}

void InterfaceSystems::eliminate(Slab s) {
  is_shown_[static_cast<std::size_t>(s.place)] = true;
  for (; next_ < layout_.slabs && is_shown_[static_cast<std::size_t>(next_)]; ++next_) {
    const Slab e = slabs_->slab(problem_, next_);
    if (!slabs_->is_last(e) || periodic_)
      codelets::eliminate({.shown = shown_[e.number],
                           .response = response(e),
                           .before = prefix_before(e),
                           .after = prefix_[e.number]},
                          hints(e));
  }
}

void InterfaceSystems::close() {
  next_ = layout_.slabs - 1;
  const Slab last = slabs_->slab(problem_, next_);
  if (periodic_)
    codelets::close({.joined = prefix_[last.number],
                     .before_start = before_start_[problem_],
                     .after_end = after_end_[problem_]},
                    hints(last));
  // A step of the chain waits in line behind the slabs that its GPU has begun, and all other GPUs wait with it: so the
  // way back goes first, all of it.
  if (!crosses_gpus_) return;
  substitute_down_to(slabs_->slab(problem_, 0));
  for (Index place = 0; place < layout_.slabs; ++place) before_[slabs_->slab(problem_, place).number].wait();
}

void InterfaceSystems::substitute_down_to(Slab s) {
  if (!exist()) return;
  for (; next_ >= s.place; --next_) {
    const Slab e = slabs_->slab(problem_, next_);
    codelets::substitute({.shown = shown_[e.number],
                          .response = response(e),
                          .prefix = prefix_before(e),
                          .before_start = before_start(e),
                          .after = after(e),
                          .first = first_[e.number],
                          .before = before_[e.number]},
                         hints(e));
    if (!forgets_) continue;
    shown_[e.number].forget();
    if (!slabs_->is_first(e)) prefix_[e.number - 1].forget();
  }
}

void InterfaceSystems::forget_around(Slab s) {
  if (!forgets_ || !exist()) return;
  before_[s.number].forget();
  if (!slabs_->is_last(s)) first_[s.number + 1].forget();
}

}  // namespace asterism::poisson
