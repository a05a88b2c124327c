#include "relaxation_stripes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "../runtime/error.hpp"

namespace asterism::relaxation {
namespace {

kernels::Sweep sweep_of(Method method) {
  return method == Method::ssor ? kernels::Sweep::symmetric : kernels::Sweep::red_black;
}

/// 1 is what a Candidate is given before.
bool is_measured(double speed) { return speed > 1; }

/// Rows that a stripe cannot do without, where there is more than one.
Index least_rows(const Settings& settings, Index sweeps) {
  if (settings.exchange == Exchange::stale) return 1;
  return (settings.exchange == Exchange::overlapped ? 2 : 1) * ghost_rows(settings.method, sweeps);
}

/// A stripe for each worker, but for those that would have next to nothing to do.
Index choose_stripes(const std::vector<Candidate>& workers, const Problem& problem, const Settings& settings,
                     std::size_t element_bytes) {
  const Index rows = problem.shape[0], nodes = problem.shape[1];
  const auto count = static_cast<Index>(workers.size());
  const Index possible =
      std::max<Index>(1, rows / least_rows(settings, std::max<Index>(1, settings.sweeps_per_task)));
  // So many nodes that a few sweeps over them take longer than a task costs.
  const bool only_gpus =
      std::all_of(workers.begin(), workers.end(), [](const Candidate& w) { return w.where == Where::cuda; });
  const Index worthwhile = only_gpus ? Index{1} << 21 : Index{1} << 15;
  const Index ranks = workers.back().rank + 1;
  const Index stripes = std::min({std::max(rows * nodes / worthwhile, ranks), count, possible});
  // StarPU counts the elements of a tile in 32 bits; and what loads a stripe has five such tiles, in a
  // worker's memory.
  double most = 0x1p31;
  for (const Candidate& w : workers)
    if (w.memory > 0) most = std::min(most, 0.9 * w.memory / static_cast<double>(5 * element_bytes));
  return std::max(
      stripes, static_cast<Index>(std::ceil(static_cast<double>(rows) * static_cast<double>(nodes) / most)));
}

/// The bounds of stripes whose heights are in proportion to weights, but not below `least`.
std::vector<Index> bounds(const std::vector<double>& weights, Index rows, Index least) {
  const std::size_t count = weights.size();
  double total = 0, sum = 0;
  for (const double weight : weights) total += weight;
  std::vector<Index> bound(count + 1, 0);
  for (std::size_t s = 0; s < count; ++s) {
    sum += weights[s];
    bound[s + 1] = std::llround(static_cast<double>(rows) * sum / total);
  }
  bound[count] = rows;
  for (std::size_t s = 1; s < count; ++s) bound[s] = std::max(bound[s], bound[s - 1] + least);
  for (std::size_t s = count - 1; s > 0; --s) bound[s] = std::min(bound[s], bound[s + 1] - least);
  return bound;
}

bool same_worker(const Share& a, const Share& b) {
  return a.rank == b.rank && a.where == b.where && a.worker == b.worker;
}

/// From the end of a task to the start of the next one that depends on it, in seconds: StarPU's reaction (40
/// to 60 us with a GPU), and where stripes exchange rows through a link or a network what a message takes to
/// get going.
double task_seconds(const std::vector<Share>& shares) {
  const bool any_gpu =
      std::any_of(shares.begin(), shares.end(), [](const Share& s) { return s.where == Where::cuda; });
  const bool crosses_ranks = shares.front().rank != shares.back().rank;
  const bool crosses_link = any_gpu && !same_worker(shares.front(), shares.back());
  return crosses_ranks || crosses_link ? 100e-6 : any_gpu ? 50e-6 : 20e-6;
}

/// What a sweep over stripes takes in tasks of so many of them: as long as the worker that takes longest.
/// @param speeds of the shares' workers
double predicted_seconds(const std::vector<Share>& shares, const std::vector<double>& speeds, Index sweeps,
                         const Problem& problem, const Settings& settings) {
  // On average G rows are ghosts; and both borders, of 2 G rows on average, are relaxed twice where exchange
  // is overlapped.
  const double ghosts = shares.size() == 1 ? 0 : settings.exchange == Exchange::overlapped ? 5 : 1;
  const double ghost_work = ghosts * static_cast<double>(ghost_rows(settings.method, sweeps));
  // The sweeps of a task share the bringing of numbers from memory into caches, which takes as long as the
  // arithmetic of a sweep; and what a task costs.
  const double shared = 1 / static_cast<double>(sweeps), task = shared * task_seconds(shares);
  double longest = 0, busy = 0;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const double guess = shares[s].where == Where::cuda ? 200e9 : 1e9;  // where nobody has measured
    const double row = static_cast<double>(problem.shape[1]) / (is_measured(speeds[s]) ? speeds[s] : guess);
    if (s > 0 && !same_worker(shares[s - 1], shares[s])) busy = 0;
    busy += (static_cast<double>(shares[s].rows) + ghost_work) * row * (1 + shared) + task;
    longest = std::max(longest, busy);
  }
  return longest;
}

/// The fewest sweeps with which a sweep takes nearly as little time as it can.
Index choose_sweeps(const std::vector<Share>& shares, const std::vector<double>& speeds, Index lowest,
                    const Problem& problem, const Settings& settings) {
  const auto seconds = [&](Index sweeps) {
    return predicted_seconds(shares, speeds, sweeps, problem, settings);
  };
  constexpr Index most = 256;
  std::vector<Index> possible{1};  // or an even number, which leaves the result where it was
  for (Index k = 2; k <= std::min(most, settings.check_every); k += 2)
    if (shares.size() == 1 || least_rows(settings, k) <= lowest) possible.push_back(k);
  double best = seconds(1);
  for (const Index k : possible) best = std::min(best, seconds(k));
  return *std::find_if(possible.begin(), possible.end(), [&](Index k) { return seconds(k) <= 1.05 * best; });
}

}  // namespace

Index ghost_rows(Method method, Index sweeps) {
  return method == Method::jacobi ? kernels::jacobi_reach(sweeps) : kernels::reach(sweep_of(method), sweeps);
}

kernels::JacobiArgs jacobi_args(const kernels::Discretisation& grid, const kernels::Stripe& stripe,
                                Index sweeps, bool has_source) {
  return {stripe, grid.along_y, grid.along_x, sweeps, has_source};
}

kernels::ColourArgs colour_args(const kernels::Discretisation& grid, const kernels::Stripe& stripe,
                                Index sweeps, bool has_source, const Settings& settings) {
  return {.stripe = stripe,
          .along_y = grid.along_y,
          .along_x = grid.along_x,
          .omega = *settings.omega,
          .sweeps = sweeps,
          .sweep = sweep_of(settings.method),
          .has_source = has_source,
          .stale_ghosts = settings.exchange == Exchange::stale};
}

template <class T>
Cut cut_rows(const std::vector<Candidate>& workers, const Problem& problem, const Settings& settings) {
  const Index rows = problem.shape[0], count = static_cast<Index>(workers.size());
  const Index stripes =
      settings.stripes > 0 ? settings.stripes : choose_stripes(workers, problem, settings, sizeof(T));
  const Index least = stripes == 1 ? 1 : least_rows(settings, 1);
  if (stripes > rows / least)
    throw Error(fmt::format(
        "{} stripes of {} rows: so that neighbours can exchange theirs, a stripe needs at least {}; "
        "ask for at most {} stripe{}",
        stripes, rows, least, std::max<Index>(1, rows / least), rows / least > 1 ? "s" : ""));

  const auto worker_of = [&](Index s) { return static_cast<std::size_t>(s * count / stripes); };
  std::vector<double> stripes_of(workers.size(), 0), weights, speeds;
  for (Index s = 0; s < stripes; ++s) ++stripes_of[worker_of(s)];
  for (Index s = 0; s < stripes; ++s) {
    const double speed = workers[worker_of(s)].speed;
    weights.push_back(settings.balance == Balance::measured ? speed / stripes_of[worker_of(s)] : 1);
    speeds.push_back(speed);
  }
  const std::vector<Index> bound = bounds(weights, rows, least);

  Cut cut;
  Index lowest = rows;
  for (Index s = 0; s < stripes; ++s) {
    const Candidate& w = workers[worker_of(s)];
    const Index first = bound[static_cast<std::size_t>(s)], end = bound[static_cast<std::size_t>(s) + 1];
    cut.shares.push_back({first, end - first, w.rank, w.where, w.worker});
    lowest = std::min(lowest, end - first);
  }
  cut.sweeps_per_task = settings.sweeps_per_task > 0
                            ? settings.sweeps_per_task
                            : choose_sweeps(cut.shares, speeds, lowest, problem, settings);
  if (settings.exchange == Exchange::stale) cut.sweeps_per_task = 1;
  if (settings.sweeps > 0) cut.sweeps_per_task = std::min(cut.sweeps_per_task, settings.sweeps);
  if (stripes > 1)
    while (cut.sweeps_per_task > 1 && least_rows(settings, cut.sweeps_per_task) > lowest)
      --cut.sweeps_per_task;
  // Without neighbours a stripe needs no more than a row for the frame, as one whose ghost rows nobody
  // relaxes.
  const bool relaxes_ghosts = stripes > 1 && settings.exchange != Exchange::stale;
  cut.halo = relaxes_ghosts ? ghost_rows(settings.method, cut.sweeps_per_task) : 1;
  cut.seconds_per_sweep = predicted_seconds(cut.shares, speeds, cut.sweeps_per_task, problem, settings);
  return cut;
}

template Cut cut_rows<float>(const std::vector<Candidate>&, const Problem&, const Settings&);
template Cut cut_rows<double>(const std::vector<Candidate>&, const Problem&, const Settings&);

template <class T>
std::vector<Candidate> choose_workers(const std::vector<Candidate>& all, const Problem& problem,
                                      const Settings& settings) {
  const auto is_beside_gpu = [&](const Candidate& w) {
    return w.where == Where::cpu && std::any_of(all.begin(), all.end(), [&](const Candidate& other) {
             return other.rank == w.rank && other.where == Where::cuda;
           });
  };
  std::vector<Candidate> fastest;  // kind of every rank
  std::remove_copy_if(all.begin(), all.end(), std::back_inserter(fastest), is_beside_gpu);
  const bool all_measured =
      std::all_of(all.begin(), all.end(), [](const Candidate& w) { return is_measured(w.speed); });
  if (fastest.size() == all.size() || !all_measured) return fastest;
  constexpr double worthwhile = 0.9;  // of the time, which is but a prediction
  const double alone = cut_rows<T>(fastest, problem, settings).seconds_per_sweep,
               joined = cut_rows<T>(all, problem, settings).seconds_per_sweep;
  return joined < worthwhile * alone ? all : fastest;
}

template std::vector<Candidate> choose_workers<float>(const std::vector<Candidate>&, const Problem&,
                                                      const Settings&);
template std::vector<Candidate> choose_workers<double>(const std::vector<Candidate>&, const Problem&,
                                                       const Settings&);

}  // namespace asterism::relaxation
