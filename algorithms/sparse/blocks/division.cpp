#include "division.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "../../../runtime/collectives.hpp"
#include "../../../runtime/error.hpp"

namespace asterism::sparse {
namespace {

/// Entries below which a block is not worth a task of its own: on a core some 50 microseconds of work, on a GPU half
/// of what is divided at all.
constexpr Index least_entries_of_core = 100'000, least_entries_of_gpu = least_divided_entries / 2;

/// Most entries of a block: 32-bit numbers count them, with some padding.
constexpr Index most_entries = std::numeric_limits<std::int32_t>::max() / 2;

/// How many of a rank's workers get a block.
std::size_t workers_with_block(const std::vector<Candidate>& workers, Index entries, Index grains) {
  const Index least = workers.front().where == Where::cuda ? least_entries_of_gpu : least_entries_of_core;
  const Index most = std::min(grains, std::max<Index>(entries / least, 1));
  return static_cast<std::size_t>(std::min<Index>(most, static_cast<Index>(workers.size())));
}

void require_whole_grains(Index n, Index grain, const std::vector<std::pair<Index, Index>>& ranges) {
  Index next = 0;
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    const auto [first, end] = ranges[r];
    if (first != next || (end != n && end % grain != 0))
      throw Error(fmt::format(
          "rank {} has the rows from {} to {} of {}: they must begin at {}, where those of the rank "
          "before end, and end at a multiple of {} or at {}",
          r, first, end, n, next, grain, n));
    next = end;
  }
  if (next != n) throw Error(fmt::format("the ranks have {} of {} rows together", next, n));
}

}  // namespace

std::vector<Candidate> chosen_workers(const std::vector<Candidate>& all, Workers workers) {
  std::vector<Candidate> chosen;
  for (const Candidate& worker : all) {
    const bool has_gpu = std::ranges::any_of(
        all, [&](const Candidate& w) { return w.rank == worker.rank && w.where == Where::cuda; });
    if (workers == Workers::all || !has_gpu || worker.where == Where::cuda) chosen.push_back(worker);
  }
  return chosen;
}

std::pair<Index, Index> rows_of_rank(Index n, int rank, const std::vector<double>& shares) {
  const Index grain = grain_rows(n);
  const std::vector<Index> bounds = bounds_by_weight(units_of(n, grain), shares, {.rounding = Rounding::down});
  const auto bound = [&](int r) { return std::min(n, bounds[static_cast<std::size_t>(r)] * grain); };
  return {bound(rank), bound(rank + 1)};
}

std::pair<Index, Index> rows_of_rank(Index n, int rank, int ranks) {
  return rows_of_rank(n, rank, std::vector<double>(static_cast<std::size_t>(ranks), 1));
}

Partition divide(const Runtime& runtime, Index n, Index first, std::span<const Index> row_begin,
                 Workers workers, Index blocks) {
  struct Range {
    Index first, end;
  };
  const Index grain = grain_rows(n), rows = static_cast<Index>(row_begin.size()) - 1;
  std::vector<std::pair<Index, Index>> ranges;
  for (const Range& range : gather(runtime, Range{first, first + rows}))
    ranges.emplace_back(range.first, range.end);
  require_whole_grains(n, grain, ranges);

  std::vector<Index> mine(static_cast<std::size_t>(units_of(rows, grain)));
  const auto begin_of = [&](Index row) { return row_begin[static_cast<std::size_t>(std::min(row, rows))]; };
  for (Index g = 0; g < units_of(rows, grain); ++g)
    mine[static_cast<std::size_t>(g)] = begin_of((g + 1) * grain) - begin_of(g * grain);
  const std::vector<Index> costs = gather_lists(runtime, mine);

  const std::vector<Candidate> chosen = chosen_workers(all_workers(runtime), workers);
  std::vector<Part> parts;
  auto cost = costs.begin();
  for (int rank = 0; rank < runtime.ranks(); ++rank) {
    const auto [begin, end] = ranges[static_cast<std::size_t>(rank)];
    const Index grains = units_of(end - begin, grain);
    if (grains == 0) continue;
    std::vector<Index> before{0};
    for (Index u = 0; u < grains; ++u) before.push_back(before.back() + *cost++);
    std::vector<Candidate> its;
    std::ranges::copy_if(chosen, std::back_inserter(its), [&](const Candidate& w) { return w.rank == rank; });
    if (blocks == 0) its.resize(workers_with_block(its, before.back(), grains));
    const auto its_workers = static_cast<Index>(its.size());
    // Where 32-bit numbers do not count a block's entries there are several for each worker.
    const Index its_blocks = blocks > 0 ? std::min(blocks, grains)
                                        : its_workers * (before.back() / its_workers / most_entries + 1);
    std::vector<double> weights;
    for (Index b = 0; b < its_blocks; ++b) weights.push_back(speed_of(its[b * its_workers / its_blocks]));
    const std::vector<Index> bounds = bounds_by_cost(before, weights);
    for (Index b = 0; b < its_blocks; ++b) {
      const Index from = begin + bounds[b] * grain, to = std::min(end, begin + bounds[b + 1] * grain);
      const Candidate& worker = its[b * its_workers / its_blocks];
      if (from < to) parts.push_back({from, to - from, rank, worker.where, worker.worker, worker.alone});
    }
  }
  if (static_cast<Index>(parts.size()) > most_blocks)
    throw Error(fmt::format("{} workers would get a block of rows each: at most {} can; use fewer (--cpus)",
                            parts.size(), most_blocks));
  return Partition(std::move(parts));
}

Partition divide_lines(const Runtime& runtime, Index rows, Index line, Workers workers, Index blocks) {
  constexpr Index entries_of_row = 5;  // as far as it is worth a task
  const auto [first, end] = rows_of_rank(rows / line, runtime.rank(), runtime.ranks());
  std::vector<Index> begins;
  for (Index i = 0; i <= end - first; ++i) begins.push_back(i * line * entries_of_row);
  std::vector<Part> parts = divide(runtime, rows / line, first, begins, workers, blocks).parts();
  for (Part& part : parts) {
    part.first *= line;
    part.size *= line;
  }
  return Partition(std::move(parts));
}

}  // namespace asterism::sparse
