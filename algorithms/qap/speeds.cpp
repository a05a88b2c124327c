#include "speeds.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <map>

#include "../common/speeds.hpp"
#include "batches.hpp"

namespace asterism::qap {
namespace {

/// What speeds are counted in: those up to 1 count as not measured.
constexpr double per_walk = 1e6;

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

/// Of a walk: some milliseconds on a core, beside which its waking counts little, and what a walk begins with no more than in
/// a search: a core takes longer for that than a GPU.
Index iterations_of_trial(const SelectionArguments& a) {
  constexpr Index steps = 10'000, most = 1000, moves = 2'000'000;
  const Index pairs = a.n * (a.n - 1) / 2;
  return a.kind == IslandKind::tempering ? std::max(steps, 2 * pairs)
                                         : std::max(std::min(most, moves / pairs), 2 * a.n);
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

/// The workers of a rank are tried with walks of its first island. @param turns in the order of ranks
template <class E>
void measure(Runtime& runtime, const Plan& plan, TabuArguments a, const Givens<E>& givens,
             std::vector<Turn>& turns) {
  a.target = std::numeric_limits<std::int64_t>::min();
  a.stop = nullptr;
  std::deque<Sample> samples;
  std::deque<TrialWalks<E>> tried;
  std::vector<Trial> trials;
  std::vector<Candidate> workers;
  const IslandPlan* island = nullptr;
  for (const Turn& turn : turns) {
    const Candidate& worker = workers.emplace_back(turn.worker);
    if (island == nullptr || island->rank != worker.rank) {
      island = &*std::ranges::find(plan.islands, worker.rank, &IslandPlan::rank);
      samples.emplace_back(runtime, *island, givens);
    }
    const Index count = fitting_walks(turn.walks, bytes_of_walk<E>(a.n, a.capacity), worker);
    const TrialWalks<E>& its = tried.emplace_back(runtime, worker, count, a);
    trials.push_back({.work = static_cast<double>(count) * per_walk,
                      .prepare =
                          [&runtime, &its, &sample = samples.back(), island] {
                            if (its.walks.owner() == runtime.rank()) its.begin(sample, *island);
                          },
                      .submit =
                          [&plan, &its, &a, &givens, at = hints_of(worker), rank = worker.rank] {
                            walk_codelet<E>(plan)(a, givens.matrices[rank], {its.walks}, its.room, at);
                          },
                      .last = &its.walks});
  }
  measure_speeds(runtime, workers, trials);
  for (std::size_t k = 0; k < turns.size(); ++k) turns[k].worker.speed = workers[k].speed;
}

/// Of a rank.
std::vector<Turn> turns_of(int rank, const std::vector<Turn>& turns) {
  std::vector<Turn> its;
  std::ranges::copy_if(turns, std::back_inserter(its),
                       [=](const Turn& turn) { return turn.worker.rank == rank; });
  return its;
}

double seconds_of_gpus(const std::vector<Turn>& turns) {
  double seconds = 0;
  for (const auto& [worker, walks] : turns)
    if (worker.where == Where::cuda)
      seconds = std::max(seconds, static_cast<double>(walks) * per_walk / worker.speed);
  return seconds;
}

}  // namespace

std::vector<Turn> turns_of_gpus(const std::vector<Candidate>& workers, Index walks) {
  const Index gpus = std::ranges::count(workers, Where::cuda, &Candidate::where);
  std::vector<Turn> turns;
  for (Index k = 0; k <= gpus; ++k)  // GPUs come first
    turns.push_back({workers[static_cast<std::size_t>(k)], k < gpus ? parts(walks, gpus) : 1});
  return turns;
}

std::vector<Turn> turns_of_all(std::vector<Candidate> workers, Index walks,
                               const std::vector<Turn>& of_gpus) {
  constexpr double task = 20e-6;  // seconds that one more task of a generation takes those who wait for it
  const auto cores = std::ranges::count(workers, Where::cpu, &Candidate::where);
  if (seconds_of_gpus(of_gpus) < task * static_cast<double>(cores)) return {};
  for (std::size_t k = 0; k < workers.size(); ++k)
    workers[k].speed = of_gpus[std::min(k, of_gpus.size() - 1)].worker.speed;
  const std::vector<Index> shares = share_walks(walks, workers);
  if (shares.back() == 0) return {};
  std::vector<Turn> turns;
  for (std::size_t k = 0; k < workers.size(); ++k)
    turns.push_back({workers[k], std::max<Index>(shares[k], 1)});
  return turns;
}

std::vector<Candidate> quicker_of(const std::vector<Turn>& of_gpus, const std::vector<Turn>& of_all) {
  constexpr double clearly = 0.95;
  std::vector<Candidate> gpus, all;
  for (const auto& [worker, walks] : of_gpus)
    if (worker.where == Where::cuda) gpus.push_back(worker);
  if (of_all.empty()) return gpus;
  Index walks_of_all = 0;
  for (const auto& [worker, walks] : of_all) {
    all.push_back(worker);
    walks_of_all += walks;
  }
  const std::vector<Index> shares = share_walks(walks_of_all, all);
  // With shares by what was measured. A GPU need not be quicker with fewer walks than it had; cores share theirs.
  double together = 0, speed_of_cores = 0;  // seconds, of all
  Index walks_of_cores = 0;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].where == Where::cuda) {
      const Index walks = std::max(shares[k], of_all[k].walks);
      together = std::max(together, static_cast<double>(walks) * per_walk / all[k].speed);
    } else {
      walks_of_cores += shares[k];
      speed_of_cores += all[k].speed;
    }
  together = std::max(together, static_cast<double>(walks_of_cores) * per_walk / speed_of_cores);
  return together < clearly * seconds_of_gpus(of_gpus) ? all : gpus;
}

template <class E>
std::vector<Candidate> walking_workers(Runtime& runtime, const std::vector<Candidate>& all, const Plan& plan,
                                       const TabuArguments& a, const Givens<E>& givens,
                                       const SearchSettings& settings) {
  const bool is_short =
      settings.generations.value_or(std::numeric_limits<Index>::max()) < generations_worth_a_trial;
  std::map<int, std::vector<Candidate>> of_rank;
  for (const Candidate& worker : all) {  // of a rank its GPUs first
    const auto before = of_rank.find(worker.rank);
    const bool beside_gpus = before != of_rank.end() && before->second.front().where == Where::cuda;
    const bool may =
        worker.where == Where::cuda || (settings.walkers == Walkers::all && !(is_short && beside_gpus));
    if (may && walks_of_rank(plan, worker.rank) > 0) of_rank[worker.rank].push_back(worker);
  }
  std::vector<Candidate> chosen;
  std::vector<Turn> of_gpus, of_all;
  for (const auto& [rank, workers] : of_rank)
    if (workers.front().where == workers.back().where)
      chosen.insert(chosen.end(), workers.begin(), workers.end());
    else
      std::ranges::move(turns_of_gpus(workers, walks_of_rank(plan, rank)), std::back_inserter(of_gpus));
  if (of_gpus.empty()) return chosen;
  measure(runtime, plan, a, givens, of_gpus);
  for (const auto& [rank, workers] : of_rank)
    if (const std::vector<Turn> its = turns_of(rank, of_gpus); !its.empty())
      std::ranges::move(turns_of_all(workers, walks_of_rank(plan, rank), its), std::back_inserter(of_all));
  if (!of_all.empty()) measure(runtime, plan, a, givens, of_all);
  for (const auto& [rank, workers] : of_rank)
    std::ranges::move(quicker_of(turns_of(rank, of_gpus), turns_of(rank, of_all)),
                      std::back_inserter(chosen));
  return chosen;
}

template std::vector<Candidate> walking_workers(Runtime&, const std::vector<Candidate>&, const Plan&,
                                                const TabuArguments&, const Givens<std::int16_t>&,
                                                const SearchSettings&);
template std::vector<Candidate> walking_workers(Runtime&, const std::vector<Candidate>&, const Plan&,
                                                const TabuArguments&, const Givens<std::int32_t>&,
                                                const SearchSettings&);
template std::vector<Candidate> walking_workers(Runtime&, const std::vector<Candidate>&, const Plan&,
                                                const TabuArguments&, const Givens<std::int64_t>&,
                                                const SearchSettings&);

}  // namespace asterism::qap
