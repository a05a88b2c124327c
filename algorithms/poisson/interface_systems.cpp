#include "interface_systems.hpp"

#include <algorithm>
#include <utility>

#include "../../codelets/poisson/slabs.hpp"

namespace asterism::poisson {

InterfaceSystems::InterfaceSystems(Runtime& runtime, const Grid& grid, const Layout& layout,
                                   const SlabPartition& slabs, const Tiles<double>& axis,
                                   const std::vector<ModeTiles>& modes)
    : runtime_(&runtime),
      slabs_(&slabs),
      axis_(&axis),
      modes_(&modes),
      layout_(layout),
      columns_(grid.columns()),
      rows_(grid.interface()),
      periodic_(grid.slow.periodic()),
      is_equally_spaced_(grid.is_equally_spaced),
      passes_(layout.interface_passes()),
      crosses_gpus_(layout.interface == Where::cuda && layout.lanes * runtime.ranks() > 1),
      outermost_(grid.has_waves() && !periodic_ ? 0 : 1),
      chains_{{{Direction::forward, (layout.slabs + 1) / 2}, {Direction::backward, layout.slabs / 2}}} {
  if (!exist()) {
    for (Index number = 0; periodic_ && number < slabs.count(); ++number)
      static_cast<void>(response(slabs[number]));
    return;
  }
  shown_ = tiles(rows_.shown, Recalled::yes);
  prefix_shown_ = tiles(rows_.carried_shown(periodic_), Recalled::yes);
  prefix_response_ = tiles(rows_.carried_response(periodic_), Recalled::yes);
  first_ = tiles(rows_.beside, Recalled::no);
  before_ = tiles(rows_.beside, Recalled::no);
  for (problem_ = 0; problem_ < grid.batch; ++problem_) {
    for (const Chain& chain : chains_)
      for (Index i = 0; i < chain.length && !layout_.repeats_responses; ++i) eliminate_response(chain, i);
    meetings_.push_back(meetings(grid.has_waves()));
  }
}

Tile<double> InterfaceSystems::tile(Index rows, Slab s, Recalled recalled) const {
  const int owner = slabs_->owner(s.number);
  if (passes_ && recalled == Recalled::yes)
    return Tile<double>::kept_at_home(*runtime_, rows, columns_, owner);
  if (!layout_.keeps_interface) return {*runtime_, rows, columns_, owner};
  const int gpu = std::max(0, slabs_->hints(s).worker);  // -1 where there is but one
  return Tile<double>::kept_on_gpu(*runtime_, rows, columns_, gpu, owner);
}

Tiles<double> InterfaceSystems::tiles(Index rows, Recalled recalled) const {
  std::vector<Tile<double>> tiles;
  for (Index number = 0; number < slabs_->count(); ++number)
    tiles.push_back(tile(rows, (*slabs_)[number], recalled));
  return Tiles<double>(std::move(tiles));
}

/// Slabs of equal rows respond equally: with equal spacings those inside, and those at the ends of the axis.
std::tuple<int, Index> InterfaceSystems::kind_of(Slab s) const {
  const Index end = (slabs_->is_first(s) ? 1 : 0) + (slabs_->is_last(s) ? 2 : 0);
  return {slabs_->owner(s.number), is_equally_spaced_ ? end : s.place};
}

const Tile<double>& InterfaceSystems::response(Slab s) {
  const auto [found, is_new] = responses_.try_emplace(kind_of(s));
  auto& [response, is_there] = found->second;
  if (is_new) response = Tile<double>(*runtime_, rows_.response, columns_, slabs_->owner(s.number));
  if (!is_there)
    codelets::respond({.axis = (*axis_)[s.number], .mu = modes(s).mu, .response = response},
                      slabs_->hints(s));
  is_there = true;
  return response;
}

/// Making it again is quicker than having it come again, and until then it takes no room.
void InterfaceSystems::give_up_response(const Chain& chain, Index i, Index next) {
  if (!layout_.repeats_responses || next == chain.length) return;
  const auto kind = kind_of(nth(chain, i));
  if (kind == kind_of(nth(chain, next))) return;
  Responding& its = responses_.at(kind);
  forget(its.response);
  its.is_there = false;
}

/// Each side works out for itself where the chains meet, as that costs no message from one side to the other. But only
/// meet(Prefix, Prefix) gives both the same on machines of different kinds.
std::vector<InterfaceSystems::Meeting> InterfaceSystems::meetings(bool has_waves) const {
  const auto make = [&](Slab middle) {
    const auto value = [&] { return tile(rows_.beside, middle, Recalled::no); };
    return periodic_ ? Meeting{value(), value(), value(), value()} : Meeting{value(), value(), {}, {}};
  };
  std::vector<Meeting> its;
  const Slab a = last(chains_[0]);
  its.push_back(make(a));
  if (periodic_ || has_waves) return its;
  const Slab b = last(chains_[1]);
  // By what all ranks know: one without GPUs has as many tiles as the one whose GPUs these are.
  const Hints of_a = slabs_->hints(a), of_b = slabs_->hints(b);
  const bool on_two_gpus = of_a.where == Where::cuda && of_a.worker != of_b.worker;
  if (slabs_->owner(a.number) != slabs_->owner(b.number) || on_two_gpus) its.push_back(make(b));
  return its;
}

Hints InterfaceSystems::hints(Slab s) const {
  Hints hints = layout_.interface == Where::cuda ? slabs_->hints(s) : Hints{.where = layout_.interface};
  hints.streams = false;
  hints.priority = 1;  // short tasks that everything waits for: before the slabs that are queued already
  return hints;
}

Slab InterfaceSystems::nth(const Chain& chain, Index i) const {
  return slabs_->slab(problem_, chain.direction == Direction::forward ? i : layout_.slabs - 1 - i);
}

std::size_t InterfaceSystems::chain_of(Slab s) const { return s.place < chains_[0].length ? 0 : 1; }

Index InterfaceSystems::number_in(const Chain& chain, Slab s) const {
  return chain.direction == Direction::forward ? s.place : layout_.slabs - 1 - s.place;
}

Slab InterfaceSystems::last(const Chain& chain) const { return nth(chain, chain.length - 1); }

const InterfaceSystems::Meeting& InterfaceSystems::meeting(const Chain& chain) const {
  const std::vector<Meeting>& its = meetings_[static_cast<std::size_t>(problem_)];
  return chain.direction == Direction::forward ? its.front() : its.back();
}

const Tile<double>& InterfaceSystems::prefix_shown(const Chain& chain, Index i, Slab user) const {
  return i == 0 ? modes(user).shown_by_none : prefix_shown_[nth(chain, i - 1).number];
}

const Tile<double>& InterfaceSystems::prefix_response(const Chain& chain, Index i, Slab user) const {
  if (i > 0) return prefix_response_[nth(chain, i - 1).number];
  return chain.direction == Direction::forward ? modes(user).lower_response : modes(user).upper_response;
}

const Tile<double>& InterfaceSystems::start(const Chain& chain, Slab user) const {
  const bool forward = chain.direction == Direction::forward;
  if (!periodic_) return forward ? modes(user).before_axis : modes(user).after_axis;
  return forward ? meeting(chain).before_start : meeting(chain).after_end;
}

const Tile<double>& InterfaceSystems::outward(const Chain& chain, Slab s) const {
  return number_in(chain, s) < outermost_ ? start(chain, s) : before_[s.number];
}

const Tile<double>& InterfaceSystems::inward(const Chain& chain, Slab s) const {
  const Index i = number_in(chain, s);
  if (i + 1 < chain.length) return first_[nth(chain, i + 1).number];
  return chain.direction == Direction::forward ? meeting(chain).first : meeting(chain).last;
}

const Tile<double>& InterfaceSystems::before(Slab s) const {
  if (!exist()) return modes(s).before_axis;
  const Chain& chain = chains_[chain_of(s)];
  return chain.direction == Direction::forward ? outward(chain, s) : inward(chain, s);
}

const Tile<double>& InterfaceSystems::after(Slab s) const {
  if (!exist()) return modes(s).after_axis;
  const Chain& chain = chains_[chain_of(s)];
  return chain.direction == Direction::forward ? inward(chain, s) : outward(chain, s);
}

void InterfaceSystems::begin(Index problem) {
  problem_ = problem;
  is_shown_.assign(static_cast<std::size_t>(layout_.slabs), false);
  for (Chain& chain : chains_) chain.next = 0;
}

void InterfaceSystems::eliminate_response(const Chain& chain, Index i) {
  const Slab e = nth(chain, i);
  codelets::eliminate_response(
      chain.direction,
      {.response = response(e), .before = prefix_response(chain, i, e), .after = prefix_response_[e.number]},
      hints(e));
}

void InterfaceSystems::eliminate(Slab s) {
  is_shown_[static_cast<std::size_t>(s.place)] = true;
  for (Chain& chain : chains_)
    for (Index& i = chain.next; i < chain.length; ++i) {
      const Slab e = nth(chain, i);
      if (!is_shown_[static_cast<std::size_t>(e.place)]) break;
      if (layout_.repeats_responses) eliminate_response(chain, i);
      codelets::eliminate(chain.direction,
                          {.shown = shown_[e.number],
                           .response = response(e),
                           .before_shown = prefix_shown(chain, i, e),
                           .before_response = prefix_response(chain, i, e),
                           .after = prefix_shown_[e.number]},
                          hints(e));
      if (passes_) send_home(chain, i);
      give_up_response(chain, i, i + 1);
    }
}

/// What pass 2 will read again when slab i of a chain has been eliminated: from main memory then, as it comes. StarPU would
/// wait with it until there is no room left, and the GPU with StarPU; and again for the room to have it back.
void InterfaceSystems::send_home(const Chain& chain, Index i) const {
  const Slab e = nth(chain, i);
  shown_[e.number].send_home();
  if (i == 0) return;
  const Slab before = nth(chain, i - 1);
  prefix_shown_[before.number].send_home();
  prefix_response_[before.number].send_home();
}

void InterfaceSystems::meet(const Meeting& meeting, Slab user) {
  const auto& [left, right] = chains_;
  const Tile<double>&left_shown = prefix_shown(left, left.length, user),
        &left_response = prefix_response(left, left.length, user),
        &right_shown = prefix_shown(right, right.length, user),
        &right_response = prefix_response(right, right.length, user);
  if (periodic_)
    codelets::close({.left_shown = left_shown,
                     .left_response = left_response,
                     .right_shown = right_shown,
                     .right_response = right_response,
                     .before_start = meeting.before_start,
                     .after_end = meeting.after_end},
                    hints(user));
  codelets::meet({.mu = modes(user).mu,
                  .left_shown = left_shown,
                  .left_response = left_response,
                  .right_shown = right_shown,
                  .right_response = right_response,
                  .before_start = start(left, user),
                  .after_end = start(right, user),
                  .first = meeting.first,
                  .last = meeting.last},
                 hints(user));
}

void InterfaceSystems::close() {
  for (std::size_t k = 0; const Meeting& meeting : meetings_[static_cast<std::size_t>(problem_)])
    meet(meeting, last(chains_[k++]));
  for (Chain& chain : chains_) {
    chain.next = chain.length;
    forget(prefix_shown_[last(chain).number]);
    forget(prefix_response_[last(chain).number]);
  }
  // A step of a chain waits in line behind the slabs that its GPU has begun, and all other GPUs wait with it: so the
  // way back goes first, all of it.
  if (!crosses_gpus_) return;
  for (Index i = chains_[0].length; i > 0; --i)
    for (Chain& chain : chains_)
      if (chain.next == i) substitute_next(chain);
  for (const Chain& chain : chains_) {
    const Index steps = chain.length - outermost_;
    for (Index i = outermost_; steps > 1 && i < chain.length; ++i)  // a single step is the first that is ready
      before_[nth(chain, i).number].wait();
  }
}

void InterfaceSystems::substitute_next(Chain& chain) {
  const Index i = --chain.next;
  const Slab e = nth(chain, i);
  if (i >= outermost_) {
    const Tile<double>&shown = prefix_shown(chain, i, e), &response_before = prefix_response(chain, i, e);
    codelets::substitute(chain.direction,
                         {.shown = shown_[e.number],
                          .response = response(e),
                          .before_shown = shown,
                          .before_response = response_before,
                          .start = start(chain, e),
                          .after = inward(chain, e),
                          .first = first_[e.number],
                          .before = before_[e.number]},
                         hints(e));
    if (i > 0) {
      forget(shown);
      forget(response_before);
    } else {
      forget(first_[e.number]);
    }
    if (i > outermost_) give_up_response(chain, i, i - 1);
  }
  forget(shown_[e.number]);
}

void InterfaceSystems::substitute_down_to(Slab s) {
  if (!exist()) return;
  Chain& chain = chains_[chain_of(s)];
  while (chain.next > number_in(chain, s)) substitute_next(chain);
}

void InterfaceSystems::forget_around(Slab s) {
  if (!exist()) return;
  const Chain& chain = chains_[chain_of(s)];
  const Index i = number_in(chain, s);
  if (i >= outermost_) forget(before_[s.number]);
  if (i + 1 < chain.length) forget(first_[nth(chain, i + 1).number]);
}

void InterfaceSystems::forget(const Tile<double>& tile) const {
  if (passes_) tile.forget();
}

}  // namespace asterism::poisson
