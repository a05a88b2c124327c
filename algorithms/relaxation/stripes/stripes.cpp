#include "stripes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "../../../runtime/error.hpp"
#include "division.hpp"
#include "arguments.hpp"
#include "room.hpp"
#include "sweep_times.hpp"

namespace asterism::relaxation {
namespace {

/// As many stripes as so many rows can be cut into.
Index most_stripes(Index rows, Index least) { return std::max<Index>(1, rows / least); }

void require_rows(Index stripes, Index rows, const Settings& settings) {
  const Index least = stripes == 1 ? 1 : least_rows(settings, 1);
  if (stripes > rows / least)
    throw Error(
        fmt::format("{} stripes of {} rows: so that neighbours can exchange theirs, a stripe needs at "
                    "least {}; ask for at most {} stripe{} (--stripes)",
                    stripes, rows, least, most_stripes(rows, least), rows / least > 1 ? "s" : ""));
}

/// Of a task: as many as were asked for, or are best, and the lowest stripe allows.
Index sweeps_per_task(const Cut& cut, const std::vector<double>& speeds, const Problem& problem,
                      const Settings& settings) {
  if (settings.exchange == Exchange::stale) return 1;
  Index lowest = problem.shape[0];
  for (const Part& stripe : cut.stripes.parts()) lowest = std::min(lowest, stripe.size);
  Index sweeps = settings.sweeps_per_task > 0
                     ? settings.sweeps_per_task
                     : choose_sweeps(cut.stripes.parts(), speeds, lowest, problem, settings);
  if (settings.sweeps > 0) sweeps = std::min(sweeps, settings.sweeps);
  if (cut.stripes.count() > 1)
    while (sweeps > 1 && least_rows(settings, sweeps) > lowest) --sweeps;
  return sweeps;
}

/// The cut into the stripes of a division.
Cut cut_into(const Division& division, const Problem& problem, const Settings& settings) {
  const Index stripes = division.count();
  const Index least = stripes == 1 ? 1 : least_rows(settings, 1);
  std::vector<double> weights, speeds;
  for (std::size_t w = 0; w < division.workers.size(); ++w) {
    // Where so many stripes were asked for, the stripes are equal; else the workers are.
    const double equal = settings.stripes > 0 ? static_cast<double>(division.stripes[w]) : 1;
    weights.push_back(settings.balance == Balance::measured ? division.workers[w].speed : equal);
    for (Index k = 0; k < division.stripes[w]; ++k) speeds.push_back(speed_of(division.workers[w]));
  }

  Cut cut{.stripes = cut_stripes(division, weights, problem.shape[0], {.least = least})};
  cut.sweeps_per_task = sweeps_per_task(cut, speeds, problem, settings);
  // Without neighbours a stripe needs no more than a row for the frame, as one whose ghost rows nobody
  // relaxes.
  const bool relaxes_ghosts = stripes > 1 && settings.exchange != Exchange::stale;
  cut.halo = relaxes_ghosts ? ghost_rows(settings.method, cut.sweeps_per_task) : 1;
  cut.seconds_per_sweep =
      predicted_seconds(cut.stripes.parts(), speeds, cut.sweeps_per_task, problem, settings);
  return cut;
}

/// What workers exchange rows by, of whichever of them get stripes. To relax borders twice so that rows go to neighbours
/// meanwhile costs more than rows take between GPUs of a node, of one rank (two H200s: 2047 x 2047 25 us a sweep overlapped
/// and 13 blocking, 16,383 x 16,383 476 and 458) or of two (25 and 22; 482 and 474), or between cores of one rank.
Exchange exchange_of(const std::vector<Candidate>& workers, Exchange wanted) {
  if (wanted != Exchange::automatic) return wanted;
  const Candidate& first = workers.front();
  const bool close = std::all_of(workers.begin(), workers.end(), [&](const Candidate& w) {
    return w.where == first.where &&
           (w.where == Where::cuda ? w.node == first.node : w.rank == first.rank && w.memory == 0);
  });
  return close ? Exchange::blocking : Exchange::overlapped;
}

/// Those workers of which something is true.
template <class Property>
std::vector<Candidate> those(const std::vector<Candidate>& all, Property property) {
  std::vector<Candidate> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), property);
  return some;
}

/// The rank whose workers are the fastest, taken together.
int fastest_rank(const std::vector<Candidate>& workers) {
  std::map<int, double> speeds;
  for (const Candidate& w : workers) speeds[w.rank] += speed_of(w);
  return std::max_element(speeds.begin(), speeds.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

template <class T>
Cut cut_rows(const std::vector<Candidate>& workers, const Problem& problem, const Settings& wanted) {
  Settings settings = wanted;
  settings.exchange = exchange_of(workers, wanted.exchange);
  const Index rows = problem.shape[0], nodes = problem.shape[1];
  if (settings.stripes > 0) require_rows(settings.stripes, rows, settings);  // before they are made
  const Index possible = most_stripes(rows, least_rows(settings, 1));
  const Index as_wanted =
      most_stripes(rows, least_rows(settings, std::max<Index>(1, settings.sweeps_per_task)));
  Division division =
      divide(workers,
             settings.stripes > 0 ? settings.stripes : worthwhile_stripes(workers, rows, nodes, as_wanted));
  for (;;) {
    Cut cut = cut_into(division, problem, settings);
    cut.exchange = settings.exchange;
    const Stripe stripe{.nodes = nodes, .halo = cut.halo, .arrangement = settings.arrangement};
    if (settings.stripes == 0 && split_too_high(division, cut.stripes.parts(), stripe, sizeof(T), possible))
      continue;
    require_room(division, cut.stripes.parts(), stripe, sizeof(T), possible);
    return cut;
  }
}

template Cut cut_rows<float>(const std::vector<Candidate>&, const Problem&, const Settings&);
template Cut cut_rows<double>(const std::vector<Candidate>&, const Problem&, const Settings&);

template <class T>
std::vector<Candidate> choose_workers(const std::vector<Candidate>& all, const Problem& problem,
                                      const Settings& settings) {
  const auto has_gpu = [&](int rank) {
    return std::any_of(all.begin(), all.end(), [&](const Candidate& other) {
      return other.rank == rank && other.where == Where::cuda;
    });
  };
  std::vector<Candidate> best =  // each rank's fastest kind
      those(all, [&](const Candidate& w) { return w.where == Where::cuda || !has_gpu(w.rank); });
  if (!std::all_of(all.begin(), all.end(), [](const Candidate& w) { return is_measured(w); })) return best;
  std::vector<std::vector<Candidate>> others;
  if (settings.stripes == 0) {
    const int fastest = fastest_rank(best);
    others.push_back(those(best, [](const Candidate& w) { return w.where == Where::cuda; }));
    others.push_back(those(best, [&](const Candidate& w) { return w.rank == fastest; }));
  }
  others.push_back(all);
  const std::size_t of_every_rank = best.size();
  double seconds = cut_rows<T>(best, problem, settings).seconds_per_sweep;
  for (const std::vector<Candidate>& workers : others) {
    if (workers.empty() || workers.size() == of_every_rank) continue;
    constexpr double worthwhile = 0.9;  // of the time, which is but a prediction
    const double others_seconds = cut_rows<T>(workers, problem, settings).seconds_per_sweep;
    if (others_seconds >= worthwhile * seconds) continue;
    seconds = others_seconds;
    best = workers;
  }
  return best;
}

template std::vector<Candidate> choose_workers<float>(const std::vector<Candidate>&, const Problem&,
                                                      const Settings&);
template std::vector<Candidate> choose_workers<double>(const std::vector<Candidate>&, const Problem&,
                                                       const Settings&);

}  // namespace asterism::relaxation
