#include "relaxation_stripes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <thread>

#include "../runtime/error.hpp"

namespace asterism::relaxation {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool is_jacobi(const Settings& settings) { return settings.method == Method::jacobi; }

kernels::Sweep sweep_of(Method method) {
  return method == Method::ssor ? kernels::Sweep::symmetric : kernels::Sweep::red_black;
}

template <class T>
void set_zero(const Runtime& runtime, const Tile<T>& tile) {
  if (tile.owner() != runtime.rank()) return;
  const HostView<T> view(tile, HostView<T>::Access::write);
  for (Index i = 0; i < view.rows(); ++i) std::fill_n(view.row(i), view.cols(), T{0});
}

/// All workers of all ranks, GPUs first on each; the same on every rank.
std::vector<Candidate> all_workers(const Runtime& runtime) {
  const Machine machine = runtime.machine();
  const double mine[] = {static_cast<double>(machine.count(WorkerKind::cuda)),
                         static_cast<double>(machine.capacity(MemoryKind::gpu)),
                         static_cast<double>(machine.count(WorkerKind::cpu))};
  std::vector<double> all(static_cast<std::size_t>(3 * runtime.ranks()));
  std::copy_n(mine, 3, all.begin() + 3 * runtime.rank());
  runtime.sum_over_ranks(all.data(), static_cast<Index>(all.size()));
  std::vector<Candidate> workers;
  for (int rank = 0; rank < runtime.ranks(); ++rank) {
    const double* const its = &all[static_cast<std::size_t>(3 * rank)];
    for (int k = 0; k < static_cast<int>(its[0]); ++k)
      workers.push_back({.rank = rank, .where = Where::cuda, .worker = k, .memory = its[1]});
    for (int k = 0; k < static_cast<int>(its[2]); ++k)
      workers.push_back({.rank = rank, .where = Where::cpu, .worker = k});
  }
  return workers;
}

/// A grid of its own for each worker, as large as its stripe may be, to see how fast it is relaxed: cores that share
/// the memory's bandwidth are many times slower on stripes that their caches cannot hold.
template <class T>
class Trial {
 public:
  /// @param beside workers of the same kind, over all ranks
  Trial(Runtime& runtime, const Candidate& worker, Index beside, const Problem& problem, const Settings& settings)
      : worker_(worker), settings_(settings), grid_(discretise(problem)) {
    const Index rows = problem.shape[0], nodes = problem.shape[1];
    // More would take seconds and tell nothing new.
    const Index most = worker.where == Where::cuda ? Index{1} << 25 : Index{1} << 22;
    const Index wanted = std::min(rows * nodes / beside, most);
    stripe_ = {.rows = std::clamp<Index>(wanted / nodes, 1, rows), .nodes = nodes, .halo = 1};
    if (!is_jacobi(settings)) stripe_.arrangement = settings.arrangement;
    const auto tile = [&](Index r, Index c) { return Tile<T>(runtime, r, c, worker.rank); };
    u_ = tile(stripe_.tile_rows(), stripe_.tile_cols());
    other_ = tile(stripe_.tile_rows(), stripe_.tile_cols());
    initial_ = tile(stripe_.rows, nodes);
    g_ = tile(stripe_.tile_rows(), stripe_.tile_cols());
    frame_rows_ = tile(2, nodes + 2);
    frame_columns_ = tile(stripe_.tile_rows(), 2);
    for (Tile<T>* edge : {&above_, &below_, &top_, &bottom_}) *edge = tile(1, stripe_.tile_cols());
    for (const Tile<T>* zero : {&initial_, &frame_rows_, &frame_columns_, &above_, &below_})
      set_zero(runtime, *zero);
  }

  void fill() {
    codelets::fill_stripe<T>({stripe_, grid_.diagonal, true}, initial_, initial_, frame_rows_, frame_columns_, u_,
                             other_, g_, hints());
  }
  void relax() {
    if (is_jacobi(settings_))
      codelets::jacobi<T>(jacobi_args(grid_, stripe_, sweeps, true), u_, other_, g_, above_, below_,
                          top_, bottom_, hints());
    else
      codelets::relax_colours<T>(colour_args(grid_, stripe_, sweeps, true, settings_), u_, other_,
                                 g_, above_, below_, top_, bottom_, hints());
  }
  [[nodiscard]] const Tile<T>& last() const { return bottom_; }
  [[nodiscard]] const Candidate& worker() const { return worker_; }
  [[nodiscard]] double nodes_relaxed() const {
    return static_cast<double>(sweeps * stripe_.rows * stripe_.nodes);
  }

 private:
  static constexpr Index sweeps = 4;  // even: the result is where the next sweeps look for it

  [[nodiscard]] Hints hints() const {
    return {.where = worker_.where, .label = "trial", .worker = worker_.worker};
  }

  Candidate worker_;
  Settings settings_;
  kernels::Discretisation grid_;
  kernels::Stripe stripe_;
  Tile<T> u_, other_, initial_, g_, frame_rows_, frame_columns_, above_, below_, top_, bottom_;
};

/// All workers at the same time, as they will have to share the memory's bandwidth.
template <class T>
void measure(Runtime& runtime, std::vector<Candidate>& workers, const Problem& problem,
             const Settings& settings) {
  std::vector<Trial<T>> trials;
  for (const Candidate& worker : workers) {
    const auto beside = std::count_if(workers.begin(), workers.end(),
                                      [&](const Candidate& other) { return other.where == worker.where; });
    trials.emplace_back(runtime, worker, beside, problem, settings);
  }
  for (Trial<T>& trial : trials) trial.fill();
  std::vector<const detail::TileBase*> mine;
  for (const Trial<T>& trial : trials)
    if (trial.worker().rank == runtime.rank()) mine.push_back(&trial.last());
  std::vector<double> speeds(workers.size());
  for (int repetition = 0; repetition < 3; ++repetition) {  // the first one warms up
    runtime.wait();
    for (Trial<T>& trial : trials) trial.relax();
    const std::vector<double> seconds = seconds_until_done(mine);
    for (std::size_t i = 0, k = 0; i < trials.size(); ++i)
      if (workers[i].rank == runtime.rank())
        speeds[i] = std::max(speeds[i], trials[i].nodes_relaxed() / seconds[k++]);
  }
  runtime.wait();
  runtime.sum_over_ranks(speeds.data(), static_cast<Index>(speeds.size()));
  for (std::size_t i = 0; i < workers.size(); ++i) workers[i].speed = speeds[i];
}

/// Differences below a tenth are noise: such workers of a kind count as equal.
void smooth(std::vector<Candidate>& workers) {
  for (const Where kind : {Where::cuda, Where::cpu}) {
    double least = 0, most = 0;
    for (const Candidate& w : workers)
      if (w.where == kind) {
        least = least == 0 ? w.speed : std::min(least, w.speed);
        most = std::max(most, w.speed);
      }
    if (most > 1.1 * least) continue;
    for (Candidate& w : workers)
      if (w.where == kind) w.speed = least;
  }
}

double speed_of(const std::vector<Candidate>& workers, int rank, Where kind) {
  double speed = 0;
  for (const Candidate& w : workers)
    if (w.rank == rank && w.where == kind) speed += w.speed;
  return speed;
}

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
  const Index worthwhile = workers.front().where == Where::cuda ? Index{1} << 21 : Index{1} << 15;
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

/// The fewest sweeps with which a sweep takes nearly as little time as it can. Several share the cost of a
/// task and of bringing numbers from memory into caches, at the price of work on ghost rows.
Index choose_sweeps(const Cut& cut, const std::vector<double>& speeds, Index lowest, const Problem& problem,
                    const Settings& settings) {
  const bool has_neighbours = cut.shares.size() > 1, crosses_ranks = cut.shares.back().rank > 0;
  const double task_seconds = crosses_ranks ? 100e-6 : 20e-6;
  constexpr double arithmetic = 0.5;  // of the time of a single sweep
  // On average G rows are ghosts; and both borders, of 2 G rows on average, are relaxed twice where exchange
  // is overlapped.
  const double ghosts = !has_neighbours ? 0 : settings.exchange == Exchange::overlapped ? 5 : 1;
  const auto seconds = [&](Index sweeps) {
    double longest = 0;
    for (std::size_t s = 0; s < cut.shares.size(); ++s) {
      const double guess =
          cut.shares[s].where == Where::cuda ? 150e9 : 1e9;  // nodes per second, where nobody has measured
      const double row = static_cast<double>(problem.shape[1]) / (speeds[s] > 1 ? speeds[s] : guess);
      const double rows = static_cast<double>(cut.shares[s].rows) +
                          ghosts * static_cast<double>(ghost_rows(settings.method, sweeps));
      const double shared = (1 - arithmetic) / static_cast<double>(sweeps);
      longest =
          std::max(longest, rows * row * (arithmetic + shared) + task_seconds / static_cast<double>(sweeps));
    }
    return longest;
  };
  constexpr Index most = 64;
  std::vector<Index> possible{1};  // or an even number, which leaves the result where it was
  for (Index k = 2; k <= std::min(most, settings.check_every); k += 2)
    if (!has_neighbours || least_rows(settings, k) <= lowest) possible.push_back(k);
  double best = seconds(1);
  for (const Index k : possible) best = std::min(best, seconds(k));
  return *std::find_if(possible.begin(), possible.end(), [&](Index k) { return seconds(k) <= 1.05 * best; });
}

}  // namespace

Index ghost_rows(Method method, Index sweeps) {
  return method == Method::jacobi ? kernels::jacobi_reach(sweeps) : kernels::reach(sweep_of(method), sweeps);
}

kernels::Discretisation discretise(const Problem& problem) {
  const bool unit = problem.lengths.empty();
  return kernels::discretise_five_point(problem.shape[0], problem.shape[1], unit ? 1 : problem.lengths[0],
                                        unit ? 1 : problem.lengths[1]);
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

std::vector<double> seconds_until_done(const std::vector<const detail::TileBase*>& tiles) {
  const auto start = Clock::now();
  std::vector<double> seconds(tiles.size());
  std::vector<std::exception_ptr> stalls(tiles.size());
  std::vector<std::thread> watchers;
  for (std::size_t i = 0; i < tiles.size(); ++i)
    watchers.emplace_back([&, i] {
      try {
        tiles[i]->wait();
      } catch (...) {
        stalls[i] = std::current_exception();
      }
      seconds[i] = seconds_since(start);
    });
  for (std::thread& watcher : watchers) watcher.join();
  for (const std::exception_ptr& stall : stalls)
    if (stall) std::rethrow_exception(stall);
  return seconds;
}

template <class T>
std::vector<Candidate> choose_workers(Runtime& runtime, const Problem& problem, const Settings& settings) {
  std::vector<Candidate> workers = all_workers(runtime);
  const auto has_gpu = [](const std::vector<Candidate>& all, int rank) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Candidate& w) { return w.rank == rank && w.where == Where::cuda; });
  };
  const bool any_gpu =
      std::any_of(workers.begin(), workers.end(), [](const Candidate& w) { return w.where == Where::cuda; });
  const bool measures =
      settings.balance == Balance::measured && workers.size() > 1 && (any_gpu || runtime.ranks() > 1);
  if (measures) {
    measure<T>(runtime, workers, problem, settings);
    smooth(workers);
  }
  // Cores that would take on but a small part of a GPU's rows are worth less than their exchanges with it
  // cost.
  constexpr double worthwhile = 0.25;
  std::vector<Candidate> chosen;
  for (const Candidate& w : workers) {
    const bool beside_gpu = w.where == Where::cpu && has_gpu(workers, w.rank);
    if (!beside_gpu || (measures && speed_of(workers, w.rank, Where::cpu) >=
                                        worthwhile * speed_of(workers, w.rank, Where::cuda)))
      chosen.push_back(w);
  }
  return chosen;
}

template std::vector<Candidate> choose_workers<float>(Runtime&, const Problem&, const Settings&);
template std::vector<Candidate> choose_workers<double>(Runtime&, const Problem&, const Settings&);

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
  cut.sweeps_per_task = settings.sweeps_per_task > 0 ? settings.sweeps_per_task
                                                     : choose_sweeps(cut, speeds, lowest, problem, settings);
  if (settings.exchange == Exchange::stale) cut.sweeps_per_task = 1;
  if (settings.sweeps > 0) cut.sweeps_per_task = std::min(cut.sweeps_per_task, settings.sweeps);
  if (stripes > 1)
    while (cut.sweeps_per_task > 1 && least_rows(settings, cut.sweeps_per_task) > lowest)
      --cut.sweeps_per_task;
  // Without neighbours a stripe needs no more than a row for the frame, as one whose ghost rows nobody
  // relaxes.
  const bool relaxes_ghosts = stripes > 1 && settings.exchange != Exchange::stale;
  cut.halo = relaxes_ghosts ? ghost_rows(settings.method, cut.sweeps_per_task) : 1;
  return cut;
}

template Cut cut_rows<float>(const std::vector<Candidate>&, const Problem&, const Settings&);
template Cut cut_rows<double>(const std::vector<Candidate>&, const Problem&, const Settings&);

}  // namespace asterism::relaxation
