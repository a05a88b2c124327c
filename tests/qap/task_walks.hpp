/// \file
/// Walks in tasks of their own: what tests of tabu search and annealing share.
#pragma once

#include <limits>
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

/// Walks in tasks.
template <class E>
class TaskWalks {
 public:
  TaskWalks(Runtime& runtime, const Problem& problem, const Tenures& tenures,
            const std::vector<Permutation>& starts, Where where, double temperature = 0)
      : problem_(problem),
        form_(form_of(problem, facts_of(problem))),
        capacity_(tenures.most + 2),
        where_(where),
        rule_(tenures.rule),
        matrices_values_(matrices_of<E>(problem, facts_of(problem), form_)),
        matrices_(runtime, matrices_values_.data(), MatrixView<E>::rows(problem.n, form_.terms),
                  padded<E>(problem.n), padded<E>(problem.n)),
        walks_(runtime, static_cast<Index>(starts.size()), WalkView::bytes(problem.n, capacity_)),
        room_(runtime, static_cast<Index>(starts.size()), room_of_walk<E>(problem.n)) {
    const HostView<unsigned char> view(walks_, HostView<unsigned char>::Access::write);
    for (std::size_t k = 0; k < starts.size(); ++k) {
      const WalkView walk(view.row(static_cast<Index>(k)), problem.n, capacity_);
      const Cost cost = cost_of(problem, starts[k]);
      walk.head() = {cost, cost, 0, 0, tenures.least, tenures.most, k, 0, 0, temperature};
      std::copy(starts[k].begin(), starts[k].end(), walk.permutation());
      std::copy(starts[k].begin(), starts[k].end(), walk.best());
    }
  }

  using Search = Codelet<TabuArguments, In<E>, InOut<unsigned char>, Scratch<unsigned char>>;

  void go(Index iterations, Cost target = std::numeric_limits<Cost>::min(),
          const Search& codelet = codelets::tabu_search<E>()) {
    {
      const HostView<unsigned char> view(walks_, HostView<unsigned char>::Access::read_write);
      for (Index k = 0; k < view.rows(); ++k)
        WalkView(view.row(k), problem_.n, capacity_).head().planned = iterations;
    }
    codelet({.n = problem_.n,
             .terms = form_.terms,
             .has_diagonals = form_.has_diagonals,
             .unit = form_.unit,
             .rule = rule_,
             .capacity = capacity_,
             .target = target},
            matrices_, walks_, room_, {.where = where_});
  }

  std::vector<Walk> walks() {
    const HostView<unsigned char> view(walks_, HostView<unsigned char>::Access::read);
    std::vector<Walk> all;
    const auto n = static_cast<std::size_t>(problem_.n);
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
    return all;
  }

 private:
  const Problem& problem_;
  const MoveForm form_;
  const Index capacity_;
  const Where where_;
  const TabuRule rule_;
  std::vector<E> matrices_values_;
  Tile<E> matrices_;
  Tile<unsigned char> walks_, room_;
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
