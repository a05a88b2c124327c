#include "batches.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "../common/partition.hpp"

namespace asterism::qap {
namespace {

/// Walks that a GPU is busy enough with, so that others may be between two generations meanwhile.
constexpr Index walks_for_gpu = 768;

/// The walks of some islands, one after the other.
class WalksInOrder {
 public:
  WalksInOrder(const std::vector<IslandPlan>& islands, std::size_t first, std::size_t end)
      : islands_(islands), island_(first) {
    for (std::size_t i = first; i < end; ++i) count_ += islands[i].walks;
  }

  [[nodiscard]] Index count() const { return count_; }

  /// The next ones.
  std::vector<Share> take(Index walks) {
    std::vector<Share> shares;
    while (walks > 0) {
      const Index some = std::min(walks, islands_[island_].walks - taken_);
      shares.push_back({island_, some});
      walks -= some;
      taken_ += some;
      if (taken_ < islands_[island_].walks) continue;
      ++island_;
      taken_ = 0;
    }
    return shares;
  }

 private:
  const std::vector<IslandPlan>& islands_;
  std::size_t island_;
  Index taken_ = 0;  // of the island
  Index count_ = 0;
};

bool has(const std::vector<Candidate>& workers, Where where) {
  return std::ranges::any_of(workers, [where](const Candidate& worker) { return worker.where == where; });
}

/// Those of a GPU, in as many batches as keep it busy, or as its memory wants.
void add_batches_of_gpu(const Candidate& gpu, const std::vector<Share>& shares, Index bytes,
                        std::vector<Batch>& batches) {
  if (shares.empty()) return;
  Index all = 0, before = 0;
  for (const Share& share : shares) all += share.walks;
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

void add_batches(WalksInOrder walks, const std::vector<Candidate>& workers, Index bytes,
                 std::vector<Batch>& batches) {
  const std::vector<Index> counts = share_walks(walks.count(), workers);
  for (std::size_t k = 0; k < workers.size(); ++k) {
    const std::vector<Share> shares = walks.take(counts[k]);
    if (workers[k].where == Where::cuda)
      add_batches_of_gpu(workers[k], shares, bytes, batches);
    else
      for (const Share& share : shares) batches.push_back({{share}, workers[k].rank, hints_of(workers[k])});
  }
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
    if (has(its_workers, Where::cuda))
      add_batches({islands, first, end}, its_workers, bytes, batches);
    else
      for (std::size_t i = first; i < end; ++i) add_batches({islands, i, i + 1}, its_workers, bytes, batches);
  }
  return batches;
}

}  // namespace asterism::qap
