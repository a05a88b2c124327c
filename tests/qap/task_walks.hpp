/// \file
/// Walks in tasks of their own: what tests of tabu search and annealing share.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <vector>

#include "algorithms/qap/move_form.hpp"
#include "codelets/qap/tabu_search.hpp"
#include "random_instances.hpp"
#include "runtime/tile.hpp"

namespace asterism::test {

using namespace asterism::qap;

struct Tenures {
  TabuRule rule;
  Cost least, most;
};

/// What a walk comes to.
struct Walk {
  Permutation p, best;
  Cost cost = 0, best_cost = 0;
  Index iterations = 0, best_iteration = 0;
  bool operator==(const Walk&) const = default;
};

/// Walks in tasks of two tiles.
template <class E>
class TaskWalks {
 public:
  TaskWalks(Runtime& runtime, const Problem& problem, const Tenures& tenures,
            const std::vector<Permutation>& starts, Where where, double temperature = 0)
      : problem_(problem),
        form_(form_of(problem, facts_of(problem))),
        capacity_(tenures.most + 2),
        where_(where),
        matrices_values_(matrices_of<E>(problem, facts_of(problem), form_)),
        matrices_(runtime, matrices_values_.data(), MatrixView<E>::rows(problem.n, form_.terms),
                  padded<E>(problem.n), padded<E>(problem.n)),
        room_(runtime, static_cast<Index>(starts.size()), room_of_walk<E>(problem.n)) {
    std::uint64_t stream = 0;
    for (const Index count : {Index{1}, static_cast<Index>(starts.size()) - 1}) {
      if (count == 0) continue;
      tiles_.emplace_back(runtime, count, WalkView::bytes(problem.n, capacity_));
      const HostView<unsigned char> view(tiles_.back(), HostView<unsigned char>::Access::write);
      for (Index k = 0; k < count; ++k, ++stream) {
        const WalkView walk(view.row(k), problem.n, capacity_);
        const Permutation& start = starts[stream];
        const Cost cost = cost_of(problem, start);
        walk.head() = {cost,   cost, 0, 0,           tenures.least, tenures.most,
                       stream, 0,    0, temperature, tenures.rule};
        std::copy(start.begin(), start.end(), walk.permutation());
        std::copy(start.begin(), start.end(), walk.best());
      }
    }
  }

  void go(Index iterations, Cost target = std::numeric_limits<Cost>::min(),
          const WalkCodelet<E>& codelet = codelets::tabu_search<E>()) {
    for (const Tile<unsigned char>& tile : tiles_) {
      const HostView<unsigned char> view(tile, HostView<unsigned char>::Access::read_write);
      for (Index k = 0; k < view.rows(); ++k)
        WalkView(view.row(k), problem_.n, capacity_).head().planned = iterations;
    }
    codelet({.n = problem_.n,
             .terms = form_.terms,
             .has_diagonals = form_.has_diagonals,
             .unit = form_.unit,
             .capacity = capacity_,
             .target = target,
             .stop = stop},
            matrices_, tiles_, room_, {.where = where_});
  }

  const std::shared_ptr<std::atomic<bool>> stop = std::make_shared<std::atomic<bool>>(false);

  std::vector<Walk> walks() {
    std::vector<Walk> all;
    const auto n = static_cast<std::size_t>(problem_.n);
    for (const Tile<unsigned char>& tile : tiles_) {
      const HostView<unsigned char> view(tile, HostView<unsigned char>::Access::read);
      for (Index k = 0; k < view.rows(); ++k) {
        const WalkView walk(view.row(k), problem_.n, capacity_);
        const WalkHead& head = walk.head();
        all.push_back({{walk.permutation(), walk.permutation() + n},
                       {walk.best(), walk.best() + n},
                       head.cost,
                       head.best_cost,
                       head.iterations,
                       head.best_iteration});
      }
    }
    return all;
  }

 private:
  const Problem& problem_;
  const MoveForm form_;
  const Index capacity_;
  const Where where_;
  std::vector<E> matrices_values_;
  Tile<E> matrices_;
  Tile<unsigned char> room_;
  std::vector<Tile<unsigned char>> tiles_;  // the first walk, and the others
};

inline std::vector<Permutation> some_starts(Index n, unsigned count) {
  std::vector<Permutation> starts;
  for (unsigned k = 0; k < count; ++k) starts.push_back(random_permutation(n, k));
  return starts;
}

inline Options one_core() {
  Options options;
  options.cpus = 1;
  options.gpus = 0;
  return options;
}

}  // namespace asterism::test
