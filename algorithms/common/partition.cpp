#include "partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "../../runtime/error.hpp"

namespace asterism {
namespace {

/// The weights, such as can be added up.
std::vector<double> checked(const std::vector<double>& weights) {
  if (weights.empty()) throw Error("something is to be cut into 0 parts: there must be at least 1 weight");
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (!(weights[i] >= 0 && std::isfinite(weights[i])))
      throw Error(fmt::format("weight {} of {} is {}: it must be a finite number, and not negative", i,
                              weights.size(), weights[i]));
  const double largest = *std::max_element(weights.begin(), weights.end());
  if (largest == 0) return std::vector<double>(weights.size(), 1);
  constexpr double large = 1e100;  // sums, and products with sizes, neither overflow nor lose digits below it
  std::vector<double> sound = weights;
  if (largest > large || largest < 1 / large)
    for (double& weight : sound) weight /= largest;
  return sound;
}

/// Equal weights become exactly 1, so that sums of them are exact, and parts dealt by them as equal as can be.
std::vector<double> relative(const std::vector<double>& weights) {
  std::vector<double> sound = checked(weights);
  const double largest = *std::max_element(sound.begin(), sound.end());
  for (double& weight : sound) weight /= largest;
  return sound;
}

Index rounded(double number, Rounding rounding) {
  constexpr double limit = 0x1p63;  // the first number that is no Index any more
  const double error =
      number * 0x1p-48;  // what sums of weights may be off by: a bound at an element stays there
  const double whole = rounding == Rounding::down ? std::floor(number + error)
                       : rounding == Rounding::up ? std::ceil(number - error)
                                                  : std::round(number);
  return whole >= limit ? std::numeric_limits<Index>::max() : static_cast<Index>(whole);
}

void require_one_each(const std::vector<double>& weights, const std::vector<Candidate>& workers) {
  if (weights.size() != workers.size())
    throw Error(
        fmt::format("{} weights for {} workers: each of them has one", weights.size(), workers.size()));
}

Part part_of_worker(const Candidate& worker, Index first, Index size) {
  return {first, size, worker.rank, worker.where, worker.worker, worker.alone};
}

}  // namespace

std::optional<Index> neighbour(Index part, Index step, Index count, Border border) {
  const Index other = part + step;
  if (other >= 0 && other < count) return other;
  if (border == Border::open) return {};
  return other < 0 ? other + count : other - count;
}

Partition::Partition(std::vector<Part> parts) : parts_(std::move(parts)) {
  Index next = 0;
  int rank = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (part.first != next || part.size < 0)
      throw Error(fmt::format(
          "part {} has {} elements from {} on: it has to begin at {}, where the one before it ends, "
          "and to have 0 or more",
          i, part.size, part.first, next));
    if (part.rank < rank)
      throw Error(fmt::format(
          "part {} belongs to rank {} and the one before it to rank {}: parts are in the order of "
          "their ranks",
          i, part.rank, rank));
    next += part.size;
    rank = part.rank;
  }
}

Partition::Range Partition::parts_of(int rank) const {
  const auto [first, end] = std::equal_range(parts_.begin(), parts_.end(), Part{.rank = rank},
                                             [](const Part& a, const Part& b) { return a.rank < b.rank; });
  return {first - parts_.begin(), end - parts_.begin()};
}

Partition::Range Partition::elements_of(int rank) const {
  const Range parts = parts_of(rank);
  const auto bound = [&](Index part) { return part < count() ? (*this)[part].first : extent(); };
  return {bound(parts.first), bound(parts.end)};
}

Index Partition::part_of(Index element) const {
  if (element < 0 || element >= extent())
    throw Error(fmt::format("there is no element {}: {} are in {} parts, counted from 0", element, extent(),
                            count()));
  const auto after = std::upper_bound(parts_.begin(), parts_.end(), element,
                                      [](Index e, const Part& part) { return e < part.first; });
  return after - parts_.begin() - 1;
}

Hints Partition::hints(Index part) const {
  const Part& its = (*this)[part];
  return {.where = its.where, .worker = its.alone ? -1 : its.worker};
}

std::vector<Index> bounds_by_weight(Index n, const std::vector<double>& weights,
                                    const Granularity& granularity) {
  if (n < 0) throw Error(fmt::format("{} elements are to be cut: there must be 0 or more", n));
  const std::vector<double> sound = checked(weights);
  const std::size_t count = sound.size();
  const Index units = n < granularity.unit ? std::min<Index>(n, 1) : n / granularity.unit;
  const Index least = std::min(granularity.least, units / static_cast<Index>(count));
  double total = 0, sum = 0;
  for (const double weight : sound) total += weight;
  std::vector<Index> bound(count + 1, 0);
  for (std::size_t s = 0; s < count; ++s) {
    sum += sound[s];
    bound[s + 1] = std::min(units, rounded(static_cast<double>(units) * sum / total, granularity.rounding));
  }
  bound[count] = units;
  for (std::size_t s = 1; s < count; ++s) bound[s] = std::max(bound[s], bound[s - 1] + least);
  for (std::size_t s = count - 1; s > 0; --s) bound[s] = std::min(bound[s], bound[s + 1] - least);
  for (Index& b : bound) b *= granularity.unit;
  bound[count] = n;
  return bound;
}

std::vector<Index> bounds_by_cost(const std::vector<Index>& cost_before, const std::vector<double>& weights) {
  if (cost_before.empty() || !std::is_sorted(cost_before.begin(), cost_before.end()))
    throw Error(
        "the costs before each element have to begin with what is before the first one, and may not fall");
  const Index n = static_cast<Index>(cost_before.size()) - 1, base = cost_before.front();
  if (cost_before.back() == base) return bounds_by_weight(n, weights);  // nothing costs anything
  std::vector<Index> bound =
      bounds_by_weight(cost_before.back() - base, weights);  // of costs: of elements below
  for (std::size_t s = 1; s + 1 < bound.size(); ++s) {
    const auto above = std::lower_bound(cost_before.begin(), cost_before.end() - 1, base + bound[s]);
    const Index i = above - cost_before.begin();
    const bool below_is_nearer =
        i > 0 && base + bound[s] - cost_before[static_cast<std::size_t>(i - 1)] <= *above - base - bound[s];
    bound[s] = below_is_nearer ? i - 1 : i;
  }
  bound.back() = n;
  return bound;
}

Partition cut_by_weight(Index n, const std::vector<Candidate>& workers, const std::vector<double>& weights,
                        const Granularity& granularity) {
  require_one_each(weights, workers);
  const std::vector<Index> bound = bounds_by_weight(n, weights, granularity);
  std::vector<Part> parts;
  for (std::size_t s = 0; s < workers.size(); ++s)
    parts.push_back(part_of_worker(workers[s], bound[s], bound[s + 1] - bound[s]));
  return Partition(std::move(parts));
}

std::vector<std::size_t> deal(Index count, const std::vector<double>& weights, Dealing dealing) {
  const std::vector<double> sound = relative(weights);
  std::vector<std::size_t> takers;
  if (dealing == Dealing::blocks) {
    const std::vector<Index> bound = bounds_by_weight(count, sound, {.rounding = Rounding::up});
    for (std::size_t w = 0; w < sound.size(); ++w)
      takers.insert(takers.end(), static_cast<std::size_t>(bound[w + 1] - bound[w]), w);
    return takers;
  }
  // Each one to whoever would then have the least work per weight.
  std::vector<double> had(sound.size(), 0);
  for (Index part = 0; part < count; ++part) {
    std::size_t next = 0;
    for (std::size_t w = 1; w < sound.size(); ++w)
      if (sound[w] * (had[next] + 1) > sound[next] * (had[w] + 1)) next = w;
    ++had[next];
    takers.push_back(next);
  }
  return takers;
}

Partition deal_parts(const std::vector<Index>& sizes, const std::vector<Candidate>& workers,
                     const std::vector<double>& weights, Dealing dealing) {
  require_one_each(weights, workers);
  const std::vector<double> sound = relative(weights);
  // Where each rank's workers begin, and in the end how many there are.
  std::vector<std::size_t> bounds{0};
  for (std::size_t w = 1; w < workers.size(); ++w)
    if (workers[w].rank != workers[w - 1].rank) bounds.push_back(w);
  bounds.push_back(workers.size());
  const auto at = [](const auto& list, std::size_t i) {
    return list.begin() + static_cast<std::ptrdiff_t>(i);
  };
  std::vector<double> of_ranks;
  for (std::size_t r = 0; r + 1 < bounds.size(); ++r)
    of_ranks.push_back(std::accumulate(at(sound, bounds[r]), at(sound, bounds[r + 1]), 0.0));

  const std::vector<Index> first_of_rank =
      bounds_by_weight(static_cast<Index>(sizes.size()), of_ranks, {.rounding = Rounding::up});
  std::vector<Part> parts;
  Index next = 0;
  for (std::size_t r = 0; r + 1 < bounds.size(); ++r) {
    const std::vector<double> of_rank(at(sound, bounds[r]), at(sound, bounds[r + 1]));
    for (const std::size_t taker : deal(first_of_rank[r + 1] - first_of_rank[r], of_rank, dealing)) {
      const Index size = sizes[parts.size()];
      parts.push_back(part_of_worker(workers[bounds[r] + taker], next, size));
      next += size;
    }
  }
  return Partition(std::move(parts));
}

}  // namespace asterism
