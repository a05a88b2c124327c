#include "division.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace asterism::relaxation {

Index Division::count() const { return std::accumulate(stripes.begin(), stripes.end(), Index{0}); }

Index worthwhile_stripes(const std::vector<Candidate>& workers, Index rows, Index columns, Index possible) {
  const bool only_gpus =
      std::all_of(workers.begin(), workers.end(), [](const Candidate& w) { return w.where == Where::cuda; });
  const Index nodes = rows * columns;
  // So many nodes each that a few sweeps over them take longer than a task costs. On GPUs also that they come and go sooner
  // through a link each, which a short run gains by as much as a long one loses. On cores fewer do where the rows that
  // neighbours exchange, and relax twice, are few beside a stripe's own.
  const Index worthwhile =
      only_gpus ? nodes >> 20 : std::max(nodes >> 15, std::min(nodes / 7000, rows / 60));
  Index ranks = 0;
  for (std::size_t i = 0; i < workers.size(); ++i)
    if (i == 0 || workers[i].rank != workers[i - 1].rank) ++ranks;
  return std::min({std::max(worthwhile, ranks), static_cast<Index>(workers.size()), possible});
}

Division divide(const std::vector<Candidate>& workers, Index stripes) {
  Division division;
  const auto count = static_cast<Index>(workers.size());
  if (stripes >= count) {
    division = {workers, std::vector<Index>(workers.size(), 0)};
    for (Index s = 0; s < stripes; ++s) ++division.stripes[static_cast<std::size_t>(s * count / stripes)];
    return division;
  }
  std::vector<double> speeds;
  for (const Candidate& w : workers) speeds.push_back(speed_of(w));
  std::sort(speeds.begin(), speeds.end(), std::greater<>());
  // All that are faster than the last one that is needed; and of its equals some from all ranks.
  const double last = speeds[static_cast<std::size_t>(stripes - 1)];
  const auto equals = static_cast<Index>(std::count(speeds.begin(), speeds.end(), last));
  const Index needed = stripes - (std::find(speeds.begin(), speeds.end(), last) - speeds.begin());
  const auto needed_before = [&](Index equal) { return (equal * needed + equals - 1) / equals; };
  Index equal = 0;
  for (const Candidate& w : workers) {
    const bool is_equal = speed_of(w) == last;
    if (speed_of(w) > last || (is_equal && needed_before(equal + 1) > needed_before(equal)))
      division.workers.push_back(w);
    if (is_equal) ++equal;
  }
  division.stripes.assign(division.workers.size(), 1);
  return division;
}

Partition cut_stripes(const Division& division, const std::vector<double>& weights, Index rows,
                      const Granularity& granularity) {
  std::vector<Candidate> worker_of_stripe;
  std::vector<double> weight_of_stripe;
  for (std::size_t w = 0; w < division.workers.size(); ++w)
    for (Index k = 0; k < division.stripes[w]; ++k) {
      worker_of_stripe.push_back(division.workers[w]);
      weight_of_stripe.push_back(weights[w] / static_cast<double>(division.stripes[w]));
    }
  return cut_by_weight(rows, worker_of_stripe, weight_of_stripe, granularity);
}

}  // namespace asterism::relaxation
