#include "speeds.hpp"

#include <algorithm>
#include <exception>
#include <thread>

#include "../../runtime/collectives.hpp"
#include "../common/stopwatch.hpp"
#include "striped_problem.hpp"

namespace asterism::relaxation {
namespace {

/// A grid of its own for each worker, as large as its stripe may be, to see how fast it is relaxed: cores
/// that share the memory's bandwidth are many times slower on stripes that their caches cannot hold.
template <class T>
class Trial {
 public:
  /// @param beside workers of the same kind, over all ranks
  Trial(Runtime& runtime, const Candidate& worker, Index beside, const Problem& problem,
        const Settings& settings)
      : worker_(worker), settings_(settings), grid_(discretise(problem)) {
    const Index rows = problem.shape[0], nodes = problem.shape[1];
    const Index wanted = std::min(rows * nodes / beside, most_nodes(worker.where, beside));
    stripe_ = {.nodes = nodes, .halo = 1};
    if (settings.method != Method::jacobi) stripe_.arrangement = settings.arrangement;
    stripe_.rows =
        std::clamp<Index>(std::min(wanted / nodes, most_rows(worker, stripe_, sizeof(T))), 1, rows);
    sweeps_ = sweeps_of_long_task(worker.where, stripe_.rows * nodes);
    const auto tile = [&](Index r, Index c) { return Tile<T>(runtime, r, c, worker.rank); };
    u_ = tile(stripe_.tile_rows(), stripe_.tile_cols());
    other_ = tile(stripe_.tile_rows(), stripe_.tile_cols());
    initial_ = tile(stripe_.rows, nodes);
    g_ = tile(stripe_.tile_rows(), stripe_.tile_cols());
    frame_rows_ = tile(2, nodes + 2);
    frame_columns_ = tile(stripe_.tile_rows(), 2);
    for (Tile<T>* edge : {&above_, &below_, &top_, &bottom_}) *edge = tile(1, stripe_.tile_cols());
    for (const Tile<T>* tile_of_zeros : {&initial_, &frame_rows_, &frame_columns_, &above_, &below_})
      set(runtime, *tile_of_zeros, [](Index, Index) { return 0; });
  }

  void fill() {
    codelets::fill_stripe<T>({stripe_, grid_.diagonal, true}, initial_, initial_, frame_rows_, frame_columns_,
                             u_, other_, g_, hints());
  }
  void relax() {
    if (settings_.method == Method::jacobi)
      codelets::jacobi<T>(jacobi_args(grid_, stripe_, sweeps_, true), u_, other_, g_, above_, below_, top_,
                          bottom_, hints());
    else
      codelets::relax_colours<T>(colour_args(grid_, stripe_, sweeps_, true, settings_), u_, other_, g_,
                                 above_, below_, top_, bottom_, hints());
  }
  [[nodiscard]] const Tile<T>& last() const { return bottom_; }
  [[nodiscard]] const Candidate& worker() const { return worker_; }
  [[nodiscard]] double nodes_relaxed() const {
    return static_cast<double>(sweeps_ * stripe_.rows * stripe_.nodes);
  }

 private:
  /// More would take seconds and tell nothing new; nor gigabytes for all cores together, but each has more
  /// than its caches hold.
  static Index most_nodes(Where where, Index beside) {
    if (where == Where::cuda) return Index{1} << 25;
    return std::clamp((Index{1} << 24) / beside, Index{1} << 19, Index{1} << 22);
  }

  /// So many that what a task costs, and the waking of whoever waits for it while all cores are busy, does
  /// not count: several milliseconds, but for small grids. An even number: the result is where the next
  /// sweeps look for it.
  static Index sweeps_of_long_task(Where where, Index nodes) {
    const Index relaxations = where == Where::cuda ? Index{1} << 30 : Index{1} << 24;
    return 2 * std::clamp<Index>(relaxations / (2 * nodes), 2, 512);
  }

  [[nodiscard]] Hints hints() const {
    return {.where = worker_.where, .label = "trial", .worker = worker_.worker};
  }

  Candidate worker_;
  Settings settings_;
  Discretisation grid_;
  Stripe stripe_;
  Index sweeps_ = 2;
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
  std::vector<const Trial<T>*> ours;
  std::vector<std::vector<const detail::TileBase*>> last_tiles;
  for (const Trial<T>& trial : trials)
    if (trial.worker().rank == runtime.rank()) {
      ours.push_back(&trial);
      last_tiles.push_back({&trial.last()});
    }
  std::vector<double> our_speeds(ours.size());
  for (int repetition = 0; repetition < 3; ++repetition) {  // the first one warms up
    runtime.wait();
    for (Trial<T>& trial : trials) trial.relax();
    const std::vector<double> seconds = seconds_until_done(last_tiles);
    for (std::size_t k = 0; k < ours.size(); ++k)
      our_speeds[k] = std::max(our_speeds[k], ours[k]->nodes_relaxed() / seconds[k]);
  }
  runtime.wait();
  const std::vector<double> speeds = gather_lists(runtime, our_speeds);  // the workers, too, are in the order of ranks
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

}  // namespace

std::vector<Candidate> all_workers(const Runtime& runtime) {
  const Machine machine = runtime.machine();
  const auto main_memory = static_cast<double>(machine.capacity(MemoryKind::main));
  const std::optional<std::size_t> at_once = tasks_in_memory(machine);
  struct OfRank {
    int gpus, cores;
    std::size_t gpu_memory;
    double memory_of_core, memory;  // where tasks' memory is limited one by one, or all together
  };
  const OfRank mine{machine.count(WorkerKind::cuda), machine.count(WorkerKind::cpu), machine.capacity(MemoryKind::gpu),
                    at_once ? main_memory / static_cast<double>(*at_once) : 0, at_once ? 0 : main_memory};
  std::vector<Candidate> workers;
  int rank = 0;
  for (const OfRank& its : gather(runtime, mine)) {
    for (int k = 0; k < its.gpus; ++k)
      workers.push_back({.rank = rank, .where = Where::cuda, .worker = k, .memory = static_cast<double>(its.gpu_memory)});
    for (int k = 0; k < its.cores; ++k)
      workers.push_back({.rank = rank,
                         .where = Where::cpu,
                         .worker = k,
                         .memory = its.memory_of_core,
                         .rank_memory = its.memory});
    ++rank;
  }
  return workers;
}

std::vector<double> seconds_until_done(const std::vector<std::vector<const detail::TileBase*>>& tiles) {
  const Stopwatch start;
  std::vector<double> seconds(tiles.size());
  std::vector<std::exception_ptr> stalls(tiles.size());
  {
    std::vector<std::jthread> watchers;
    for (std::size_t i = 0; i < tiles.size(); ++i)
      watchers.emplace_back([&, i] {
        try {
          for (const detail::TileBase* tile : tiles[i]) tile->wait();
        } catch (...) {
          stalls[i] = std::current_exception();
        }
        seconds[i] = Stopwatch(start).lap();
      });
  }
  for (const std::exception_ptr& stall : stalls)
    if (stall) std::rethrow_exception(stall);
  return seconds;
}

template <class T>
std::vector<Candidate> measured_workers(Runtime& runtime, const Problem& problem, const Settings& settings) {
  std::vector<Candidate> workers = all_workers(runtime);
  const bool any_gpu =
      std::any_of(workers.begin(), workers.end(), [](const Candidate& w) { return w.where == Where::cuda; });
  if (settings.balance == Balance::measured && workers.size() > 1 && (any_gpu || runtime.ranks() > 1)) {
    measure<T>(runtime, workers, problem, settings);
    smooth(workers);
  }
  return workers;
}

template std::vector<Candidate> measured_workers<float>(Runtime&, const Problem&, const Settings&);
template std::vector<Candidate> measured_workers<double>(Runtime&, const Problem&, const Settings&);

}  // namespace asterism::relaxation
