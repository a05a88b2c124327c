#include "batches.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "../common/partition.hpp"

namespace asterism::qap {
namespace {

/// Walks that a GPU is busy enough with, so that others may be between two generations meanwhile.
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

bool has(const std::vector<Candidate>& workers, Where where) {
  return std::ranges::any_of(workers, [where](const Candidate& worker) { return worker.where == where; });
}

/// Those of a GPU, in as many batches as keep it busy, or as its memory wants.
void add_batches_of_gpu(const Candidate& gpu, const std::vector<Share>& shares, Index bytes,
                        std::vector<Batch>& batches) {
  if (shares.empty()) return;
  Index before = 0;
  const Index all = count_walks(shares);
  const Index fitting = fitting_walks(all, bytes, gpu),
              count = std::max({Index{1}, all / walks_for_gpu, (all + fitting - 1) / fitting});
  for (Index last = -1; const Share& share : shares) {
    const Index number = before * count / all;
    if (number != last) batches.push_back({{}, gpu.rank, hints_of(gpu)});
    batches.back().shares.push_back(share);
    last = number;
    before += share.walks;
  }
}

/// Takes the part of the cores from walks, one after the other to the next core that is to have more. Walks of one island may
/// be many times as long as those of another: so the cores together get the same part of each island's, and equally fast ones
/// walks of the same islands. Islands of few walks come first, while all cores are to have more, so that these are spread. @param counts of all workers, 0 for GPUs
/// @return for each worker
std::vector<std::vector<Share>> take_for_cores(std::vector<Share>& walks, std::vector<Index> counts) {
  std::vector<std::vector<Share>> taken(counts.size());
  const Index all = count_walks(walks), of_cores = std::accumulate(counts.begin(), counts.end(), Index{0});
  std::vector<Share*> fewest_first;
  for (Share& share : walks) fewest_first.push_back(&share);
  std::ranges::stable_sort(fewest_first, {}, [](const Share* share) { return share->walks; });
  Index before = 0;
  std::size_t core = 0;
  for (Share* const of_island : fewest_first) {
    Share& share = *of_island;
    const Index first = before * of_cores / all, last = (before + share.walks) * of_cores / all;
    before += share.walks;
    share.walks -= last - first;
    for (Index i = first; i < last; ++i) {
      while (counts[core] == 0) core = (core + 1) % counts.size();
      --counts[core];
      std::vector<Share>& its = taken[core];
      if (its.empty() || its.back().island != share.island) its.push_back({share.island, 0});
      ++its.back().walks;
      core = (core + 1) % counts.size();
    }
  }
  return taken;
}

/// Of a rank with GPUs.
void add_batches_beside_gpus(std::vector<Share> walks, const std::vector<Candidate>& workers, Index bytes,
                             std::vector<Batch>& batches) {
  const std::vector<Index> counts = share_walks(count_walks(walks), workers);
  std::vector<Index> of_cores = counts;
  for (std::size_t k = 0; k < workers.size(); ++k)
    if (workers[k].where == Where::cuda) of_cores[k] = 0;
  const std::vector<std::vector<Share>> taken = take_for_cores(walks, of_cores);
  WalksInOrder rest(std::move(walks));
  for (std::size_t k = 0; k < workers.size(); ++k)
    if (workers[k].where == Where::cuda)
      add_batches_of_gpu(workers[k], rest.take(counts[k]), bytes, batches);
    else
      for (const Share& share : taken[k]) batches.push_back({{share}, workers[k].rank, hints_of(workers[k])});
}

/// Of a rank without GPUs: those of an island.
void add_batches_of_cores(const Share& walks, const std::vector<Candidate>& workers,
                          std::vector<Batch>& batches) {
  const std::vector<Index> counts = share_walks(walks.walks, workers);
  for (std::size_t k = 0; k < workers.size(); ++k)
    if (counts[k] > 0)
      batches.push_back({{{walks.island, counts[k]}}, workers[k].rank, hints_of(workers[k])});
}

}  // namespace

Hints hints_of(const Candidate& worker) { return {.where = worker.where, .worker = worker.worker}; }

std::vector<Index> share_walks(Index walks, const std::vector<Candidate>& workers) {
  constexpr double surely = 0.8;  // a core may have something else to do
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
                             Index bytes) {
  std::vector<Batch> batches;
  for (std::size_t first = 0, end = 0; first < islands.size(); first = end) {
    const int rank = islands[first].rank;
    while (end < islands.size() && islands[end].rank == rank) ++end;
    std::vector<Candidate> its_workers;
    std::ranges::copy_if(workers, std::back_inserter(its_workers),
                         [rank](const Candidate& worker) { return worker.rank == rank; });
    std::vector<Share> walks;
    for (std::size_t i = first; i < end; ++i) walks.push_back({i, islands[i].walks});
    if (has(its_workers, Where::cuda))
      add_batches_beside_gpus(std::move(walks), its_workers, bytes, batches);
    else
      for (const Share& of_island : walks) add_batches_of_cores(of_island, its_workers, batches);
  }
  return batches;
}

}  // namespace asterism::qap
