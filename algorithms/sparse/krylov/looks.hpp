/// \file
/// Looks at the state of an iteration that goes on meanwhile.
#pragma once

#include <optional>
#include <vector>

#include "../../../runtime/collectives.hpp"
#include "../../../runtime/error.hpp"
#include "../../../runtime/per_rank.hpp"
#include "../../../runtime/tile.hpp"

namespace asterism::sparse {

/// @tparam State what a tile has a single one of, the same in the tiles of all blocks
template <class State>
class KrylovLooks {
 public:
  KrylovLooks() = default;
  explicit KrylovLooks(Runtime& runtime) : runtime_(&runtime) {
    for (int turn = 0; turn < 3; ++turn) shown_.emplace_back(runtime, 1, 1);
    iterations_.resize(shown_.size());
  }

  /// Submits copies of a state, one for each rank. @param iterations that were submitted before
  template <class Show>
  void submit(Index number, const Show& show, const Tile<State>& state, Index iterations) {
    const std::size_t place = place_of(number);
    iterations_[place] = iterations;
    for (const Tile<State>& shown : shown_[place]) show(state, shown);
  }
  /// Waits for a copy. None, on all ranks: a task has failed.
  [[nodiscard]] std::optional<State> wait_for(Index number) const {
    std::optional<State> state;
    try {
      const HostView<State> view(shown_[place_of(number)].mine(), HostView<State>::Access::read);
      state = view(0, 0);
    } catch (const TaskFailure&) {
    }
    if (any(*runtime_, !state)) return {};
    return state;
  }
  /// That were submitted before a look.
  [[nodiscard]] Index iterations_before(Index number) const { return iterations_[place_of(number)]; }

 private:
  [[nodiscard]] std::size_t place_of(Index number) const { return number % shown_.size(); }

  Runtime* runtime_ = nullptr;
  std::vector<PerRank<State>> shown_;  // in turns
  std::vector<Index> iterations_;
};

}  // namespace asterism::sparse
