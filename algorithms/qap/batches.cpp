#include "batches.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>

#include "../common/partition.hpp"
#include "../common/set.hpp"
#include "../common/speeds.hpp"

namespace asterism::qap {
namespace {

/// Walks of identity permutations, by which a worker's speed is measured.
template <class E>
struct TrialWalks {
  Tile<unsigned char> walks, room;
};

void begin_trial(const WalkView& walk, Index n) {
  walk.head() = {0, 0, 0, 0, 0, 0, 0, 2 * n, 0, 0};
  std::iota(walk.permutation(), walk.permutation() + n, 0);
  std::iota(walk.best(), walk.best() + n, 0);
}

/// A GPU is tried with all walks, a core with one.
template <class E>
void measure(Runtime& runtime, const TabuArguments& a, const std::vector<Tile<E>>& matrices, Index walks,
             std::vector<Candidate>& workers) {
  std::deque<TrialWalks<E>> tried;
  std::vector<Trial> trials;
  for (const Candidate& worker : workers) {
    const Index count = worker.where == Where::cuda ? walks : 1;
    tried.push_back({Tile<unsigned char>(runtime, count, WalkView::bytes(a.n, a.capacity), worker.rank),
                     Tile<unsigned char>(runtime, count, room_of_walk<E>(a.n, worker.where), worker.rank)});
    const TrialWalks<E>& its = tried.back();
    trials.push_back(
        {.work = static_cast<double>(count) * 1e6,  // speeds up to 1 count as not measured
         .prepare =
             [&runtime, &its, &a] {
               if (its.walks.owner() != runtime.rank()) return;
               const HostView<unsigned char> view(its.walks, HostView<unsigned char>::Access::write);
               for (Index i = 0; i < view.rows(); ++i) begin_trial({view.row(i), a.n, a.capacity}, a.n);
             },
         .submit =
             [&its, &a, &matrices, worker] {
               codelets::tabu_search<E>()(a, matrices[static_cast<std::size_t>(worker.rank)], its.walks,
                                          its.room, {.where = worker.where, .worker = worker.worker});
             },
         .last = &its.walks});
  }
  measure_speeds(runtime, workers, trials);
}

bool has(const std::vector<Candidate>& workers, Where where) {
  return std::ranges::any_of(workers, [where](const Candidate& worker) { return worker.where == where; });
}

}  // namespace

std::vector<Index> share_walks(Index walks, const std::vector<Candidate>& workers) {
  std::vector<double> weights;
  for (const Candidate& worker : workers) weights.push_back(worker.speed);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<Index> shares(workers.size());
  Index left = walks;
  if (has(workers, Where::cuda))
    for (std::size_t k = 0; k < workers.size(); ++k) {
      if (workers[k].where == Where::cuda) continue;
      shares[k] = static_cast<Index>(static_cast<double>(walks) * weights[k] / all);
      left -= shares[k];
      weights[k] = 0;
    }
  const std::vector<Index> bounds = bounds_by_weight(left, weights);
  for (std::size_t k = 0; k < workers.size(); ++k) shares[k] += bounds[k + 1] - bounds[k];
  return shares;
}

template <class E>
std::vector<Batch> batches_of(Runtime& runtime, const TabuArguments& a, const std::vector<Tile<E>>& matrices,
                              Index walks, int rank, Walkers walkers) {
  std::vector<Candidate> workers = all_workers(runtime);
  std::erase_if(workers, [&](const Candidate& worker) {
    return worker.rank != rank || (walkers == Walkers::gpus && worker.where == Where::cpu);
  });
  if (has(workers, Where::cuda) && has(workers, Where::cpu)) {
    TabuArguments untargeted = a;
    untargeted.target = std::numeric_limits<std::int64_t>::min();
    untargeted.stop = nullptr;
    measure<E>(runtime, untargeted, matrices, walks, workers);
  }
  // Each with its worker: how long a batch takes changes from generation to generation, so StarPU cannot know.
  std::vector<Batch> batches;
  const std::vector<Index> shares = share_walks(walks, workers);
  for (std::size_t k = 0; k < workers.size(); ++k)
    if (shares[k] > 0)
      batches.push_back({shares[k], {.where = workers[k].where, .worker = workers[k].worker}});
  return batches;
}

template std::vector<Batch> batches_of(Runtime&, const TabuArguments&, const std::vector<Tile<std::int16_t>>&,
                                       Index, int, Walkers);
template std::vector<Batch> batches_of(Runtime&, const TabuArguments&, const std::vector<Tile<std::int32_t>>&,
                                       Index, int, Walkers);
template std::vector<Batch> batches_of(Runtime&, const TabuArguments&, const std::vector<Tile<std::int64_t>>&,
                                       Index, int, Walkers);

}  // namespace asterism::qap
