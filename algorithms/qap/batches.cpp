#include "batches.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "../common/partition.hpp"

namespace asterism::qap {
namespace {

/// Walks that a GPU is busy enough with: where there are more for each batch, others may be between two generations meanwhile.
constexpr Index walks_for_gpu = 768;

Index count_walks(const std::vector<Share>& shares) {
  return std::accumulate(shares.begin(), shares.end(), Index{0},
                         [](Index count, const Share& share) { return count + share.walks; });
}

/// Walks, island by island.
class WalksInOrder {
 public:
  explicit WalksInOrder(std::vector<Share> walks) : left_(std::move(walks)) {}

  /// The next ones.
  std::vector<Share> take(Index walks) {
    std::vector<Share> shares;
    while (walks > 0) {
      Share& next = left_[next_];
      const Index some = std::min(walks, next.walks);
      if (some > 0) shares.push_back({next.island, some});
      walks -= some;
      next.walks -= some;
      if (next.walks == 0) ++next_;
    }
    return shares;
  }

 private:
  std::vector<Share> left_;  // from next_ on
  std::size_t next_ = 0;
};

std::vector<Candidate> of_rank(const std::vector<Candidate>& workers, int rank) {
  std::vector<Candidate> its;
  std::ranges::copy_if(workers, std::back_inserter(its),
                       [rank](const Candidate& worker) { return worker.rank == rank; });
  return its;
}

bool has(const std::vector<Candidate>& workers, Where where) {
  return std::ranges::any_of(workers, [where](const Candidate& worker) { return worker.where == where; });
}

/// Those of a GPU, in as many batches of whole islands' walks as it has at a time, or more if they are large for it.
void add_batches_of_gpu(const Candidate& gpu, const std::vector<Share>& shares, Index bytes,
                        std::vector<Batch>& batches) {
  if (shares.empty()) return;
  Index before = 0;
  const Index all = count_walks(shares);
  const Index fitting = fitting_walks(all, bytes, gpu),
              count = std::max({Index{batches_at_once}, all / walks_for_gpu, parts(all, fitting)});
  for (Index last = -1; const Share& share : shares) {
    const Index number = before * count / all;
    if (number != last) batches.push_back({{}, gpu.rank, hints_of(gpu)});
    batches.back().shares.push_back(share);
    last = number;
    before += share.walks;
  }
}

/// Walks of an island, about equally many in each of `count` batches.
void add_batches_of_cores(const Share& walks, Index count, int rank, Cores& cores,
                          std::vector<Batch>& batches) {
  const std::vector<Candidate> equals(static_cast<std::size_t>(count));
  for (const Index some : share_walks(walks.walks, equals))
    if (some > 0) batches.push_back({{{walks.island, some}}, rank, cores.next(rank)});
}

/// Of a rank with GPUs. Walks of one island may be many times as long as those of another: so the cores together get the same
/// part of each island's, in batches of which each core makes several in a generation.
void add_batches_beside_gpus(std::vector<Share> walks, const std::vector<Candidate>& workers, Index bytes,
                             Cores& cores, std::vector<Batch>& batches) {
  constexpr Index batches_of_core = 12;
  const Index all = count_walks(walks),
              many = batches_of_core * std::ranges::count(workers, Where::cpu, &Candidate::where);
  const std::vector<Index> counts = share_walks(all, workers);
  Index of_cores = 0;
  for (std::size_t k = 0; k < workers.size(); ++k)
    if (workers[k].where == Where::cpu) of_cores += counts[k];
  const Index in_batch = many > 0 ? parts(of_cores, many) : 0;
  std::vector<Batch> beside;
  for (Index before = 0; Share & share : walks) {
    const Index its = (before + share.walks) * of_cores / all - before * of_cores / all;
    before += share.walks;
    share.walks -= its;
    if (its > 0)
      add_batches_of_cores({share.island, its}, parts(its, in_batch), workers.front().rank, cores, beside);
  }
  WalksInOrder rest(std::move(walks));
  for (std::size_t k = 0; k < workers.size(); ++k)
    if (workers[k].where == Where::cuda) add_batches_of_gpu(workers[k], rest.take(counts[k]), bytes, batches);
  std::ranges::move(beside, std::back_inserter(batches));
}

}  // namespace

Cores::Cores(const std::vector<Candidate>& workers, const std::vector<Candidate>& walking, bool chosen_ahead) {
  constexpr std::size_t few = 2;
  for (const Candidate& worker : workers) {
    if (worker.where != Where::cpu) continue;
    const bool walk = has(of_rank(walking, worker.rank), Where::cpu);
    if (walk && !chosen_ahead) continue;  // whoever is free
    std::deque<Candidate>& cores = of_rank_[worker.rank];
    if (walk || cores.size() < few) cores.push_back(worker);
  }
}

Hints Cores::next(int rank) {
  const auto found = of_rank_.find(rank);
  if (found == of_rank_.end()) return {.where = Where::cpu};
  std::deque<Candidate>& cores = found->second;
  cores.push_back(cores.front());
  cores.pop_front();
  return hints_of(cores.back());
}

Hints hints_of(const Candidate& worker) { return {.where = worker.where, .worker = worker.worker}; }

std::vector<Index> share_walks(Index walks, const std::vector<Candidate>& workers) {
  constexpr double surely = 0.95;  // a core may have something else to do
  std::vector<double> weights;
  for (const Candidate& worker : workers) weights.push_back(worker.speed);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<Index> shares(workers.size());
  Index left = walks;
  if (has(workers, Where::cuda))
    for (std::size_t k = 0; k < workers.size(); ++k) {
      if (workers[k].where == Where::cuda) continue;
      shares[k] = static_cast<Index>(surely * static_cast<double>(walks) * weights[k] / all);
      left -= shares[k];
      weights[k] = 0;
    }
  const std::vector<Index> bounds = bounds_by_weight(left, weights);
  for (std::size_t k = 0; k < workers.size(); ++k) shares[k] += bounds[k + 1] - bounds[k];
  return shares;
}

Index fitting_walks(Index walks, Index bytes, const Candidate& worker) {
  if (worker.memory == 0) return walks;
  const double fitting = worker.memory / 2 / static_cast<double>(bytes);
  return fitting < static_cast<double>(walks) ? std::max<Index>(1, static_cast<Index>(fitting)) : walks;
}

std::vector<Batch> cut_walks(const std::vector<IslandPlan>& islands, const std::vector<Candidate>& workers,
                             Index bytes, Cores& cores) {
  std::vector<Batch> batches;
  for (std::size_t first = 0, end = 0; first < islands.size(); first = end) {
    const int rank = islands[first].rank;
    while (end < islands.size() && islands[end].rank == rank) ++end;
    const std::vector<Candidate> its_workers = of_rank(workers, rank);
    std::vector<Share> walks;
    for (std::size_t i = first; i < end; ++i) walks.push_back({i, islands[i].walks});
    if (has(its_workers, Where::cuda))
      add_batches_beside_gpus(std::move(walks), its_workers, bytes, cores, batches);
    else
      for (const Share& of_island : walks)
        add_batches_of_cores(of_island, static_cast<Index>(its_workers.size()), rank, cores, batches);
  }
  return batches;
}

}  // namespace asterism::qap
