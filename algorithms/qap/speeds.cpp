#include "speeds.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "../common/speeds.hpp"
#include "batches.hpp"

namespace asterism::qap {
namespace {

/// An island whose walks are copied for trials.
struct Sample {
  Tile<unsigned char> state, walks;
  Tile<Index> own;

  template <class E>
  Sample(Runtime& runtime, const IslandPlan& island, const Givens<E>& givens)
      : state(runtime, 1, IslandView::bytes(island.arguments.n, island.arguments.initials), island.rank),
        walks(runtime, island.walks, WalkView::bytes(island.arguments.n, island.arguments.capacity),
              island.rank),
        own(runtime, 1, record_numbers(island.arguments.n), island.rank) {
    codelets::found_island(island.arguments, givens.costs[island.rank], givens.starts[island.rank], state,
                           {walks}, own);
  }
};

/// Long enough for a speed, and short beside a generation.
Index iterations_of_trial(const SelectionArguments& a) {
  return a.kind == IslandKind::tempering ? a.n * (a.n - 1) : 2 * a.n;
}

/// Walks of a worker's trial.
template <class E>
struct TrialWalks {
  Tile<unsigned char> walks, room;

  TrialWalks(Runtime& runtime, const Candidate& worker, Index count, const TabuArguments& a)
      : walks(runtime, count, WalkView::bytes(a.n, a.capacity), worker.rank),
        room(runtime, count, room_of_walk<E>(a.n, worker.where), worker.rank) {}

  /// Makes them walks of the sample, from all over it.
  void begin(const Sample& sample, const IslandPlan& island) const {
    const HostView<unsigned char> from(sample.walks, HostView<unsigned char>::Access::read),
        to(walks, HostView<unsigned char>::Access::write);
    for (Index i = 0; i < to.rows(); ++i) {
      const Index its = (2 * i + 1) * from.rows() / (2 * to.rows());
      std::copy_n(from.row(its), to.cols(), to.row(i));
      WalkView(to.row(i), island.arguments.n, island.arguments.capacity).head().planned =
          iterations_of_trial(island.arguments);
    }
  }
};

/// The workers of a rank are tried with walks of its first island.
template <class E>
void measure(Runtime& runtime, const Plan& plan, TabuArguments a, const Givens<E>& givens,
             std::vector<Candidate>& workers) {
  a.target = std::numeric_limits<std::int64_t>::min();
  a.stop = nullptr;
  std::deque<Sample> samples;
  std::deque<TrialWalks<E>> tried;
  std::vector<Trial> trials;
  const IslandPlan* island = nullptr;
  for (const Candidate& worker : workers) {
    if (island == nullptr || island->rank != worker.rank) {
      island = &*std::ranges::find(plan.islands, worker.rank, &IslandPlan::rank);
      samples.emplace_back(runtime, *island, givens);
    }
    const Index gpus = std::ranges::count_if(workers, [&](const Candidate& other) {
      return other.rank == worker.rank && other.where == Where::cuda;
    });
    const Index count = worker.where == Where::cpu
                            ? 1
                            : fitting_walks((walks_of_rank(plan, worker.rank) + gpus - 1) / gpus,
                                            bytes_of_walk<E>(a.n, a.capacity), worker);
    const TrialWalks<E>& its = tried.emplace_back(runtime, worker, count, a);
    trials.push_back({.work = static_cast<double>(count) * 1e6,  // speeds up to 1 count as not measured
                      .prepare =
                          [&runtime, &its, &sample = samples.back(), island] {
                            if (its.walks.owner() == runtime.rank()) its.begin(sample, *island);
                          },
                      .submit =
                          [&plan, &its, &a, &givens, worker] {
                            walk_codelet<E>(plan)(a, givens.matrices[worker.rank], {its.walks}, its.room,
                                                  {.where = worker.where, .worker = worker.worker});
                          },
                      .last = &its.walks});
  }
  measure_speeds(runtime, workers, trials);
}

bool has(const std::vector<Candidate>& workers, int rank, Where where) {
  return std::ranges::any_of(
      workers, [=](const Candidate& worker) { return worker.rank == rank && worker.where == where; });
}

}  // namespace

template <class E>
std::vector<Candidate> walking_workers(Runtime& runtime, const Plan& plan, const TabuArguments& a,
                                       const Givens<E>& givens, Walkers walkers) {
  std::vector<Candidate> workers = all_workers(runtime);
  std::erase_if(workers, [&](const Candidate& worker) {
    return walks_of_rank(plan, worker.rank) == 0 || (walkers == Walkers::gpus && worker.where == Where::cpu);
  });
  std::vector<Candidate> beside_others, alike;
  for (const Candidate& worker : workers)
    (has(workers, worker.rank, Where::cuda) && has(workers, worker.rank, Where::cpu) ? beside_others : alike)
        .push_back(worker);
  if (!beside_others.empty()) measure(runtime, plan, a, givens, beside_others);
  beside_others.insert(beside_others.end(), alike.begin(), alike.end());
  return beside_others;
}

template std::vector<Candidate> walking_workers(Runtime&, const Plan&, const TabuArguments&,
                                                const Givens<std::int16_t>&, Walkers);
template std::vector<Candidate> walking_workers(Runtime&, const Plan&, const TabuArguments&,
                                                const Givens<std::int32_t>&, Walkers);
template std::vector<Candidate> walking_workers(Runtime&, const Plan&, const TabuArguments&,
                                                const Givens<std::int64_t>&, Walkers);

}  // namespace asterism::qap
