#include "speeds.hpp"

#include <algorithm>

#include "../../common/set.hpp"
#include "../../common/speeds.hpp"
#include "arguments.hpp"
#include "room.hpp"
#include "striped_problem.hpp"

namespace asterism::relaxation {
namespace {

/// A grid of its own for each worker, as large as its stripe may be, to see how fast it is relaxed: cores
/// that share the memory's bandwidth are many times slower on stripes that their caches cannot hold.
template <class T>
class TrialGrid {
 public:
  /// @param beside workers of the same kind, over all ranks
  TrialGrid(Runtime& runtime, const Candidate& worker, Index beside, const Problem& problem,
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
    codelets::fill_stripe<T>({stripe_, grid_.diagonal, true},
                             {.f = initial_,
                              .initial = initial_,
                              .frame_rows = frame_rows_,
                              .frame_columns = frame_columns_,
                              .u = u_,
                              .other = other_,
                              .g = g_},
                             hints());
  }
  void relax() {
    const SweepPorts<AsTiles, T> ports{
        .u = u_, .other = other_, .g = g_, .above = above_, .below = below_, .top = top_, .bottom = bottom_};
    if (settings_.method == Method::jacobi)
      codelets::jacobi<T>(jacobi_args(grid_, stripe_, sweeps_, true), ports, hints());
    else
      codelets::relax_colours<T>(colour_args(grid_, stripe_, sweeps_, true, settings_), ports, hints());
  }
  [[nodiscard]] const Tile<T>& last() const { return bottom_; }
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

template <class T>
void measure(Runtime& runtime, std::vector<Candidate>& workers, const Problem& problem,
             const Settings& settings) {
  std::vector<TrialGrid<T>> grids;
  for (const Candidate& worker : workers) {
    const auto beside = std::count_if(workers.begin(), workers.end(),
                                      [&](const Candidate& other) { return other.where == worker.where; });
    grids.emplace_back(runtime, worker, beside, problem, settings);
  }
  std::vector<Trial> trials;
  for (TrialGrid<T>& grid : grids) {
    grid.fill();
    trials.push_back(
        {.work = grid.nodes_relaxed(), .submit = [&grid] { grid.relax(); }, .last = &grid.last()});
  }
  measure_speeds(runtime, workers, trials);
}

/// Of ranks that share their GPUs the first one has these, if its part of their memory is enough for the whole grid: sweeps
/// and borders of several would wait for each other's turns.
template <class T>
void share_no_gpus(const Runtime& runtime, std::vector<Candidate>& workers, const Problem& problem) {
  const std::vector<int> gpus_of = first_with_gpus(runtime);
  const Stripe whole{.nodes = problem.shape[1], .halo = 1};
  std::erase_if(workers, [&](const Candidate& worker) {
    const int first = gpus_of[static_cast<std::size_t>(worker.rank)];
    return worker.where == Where::cuda && worker.rank != first &&
           most_rows(worker, whole, sizeof(T)) >= problem.shape[0];
  });
}

}  // namespace

template <class T>
std::vector<Candidate> measured_workers(Runtime& runtime, const Problem& problem, const Settings& settings) {
  std::vector<Candidate> workers = all_workers(runtime);
  if (runtime.ranks() > 1) share_no_gpus<T>(runtime, workers, problem);
  const bool any_gpu =
      std::any_of(workers.begin(), workers.end(), [](const Candidate& w) { return w.where == Where::cuda; });
  if (settings.balance == Balance::measured && workers.size() > 1 && (any_gpu || runtime.ranks() > 1))
    measure<T>(runtime, workers, problem, settings);
  return workers;
}

template std::vector<Candidate> measured_workers<float>(Runtime&, const Problem&, const Settings&);
template std::vector<Candidate> measured_workers<double>(Runtime&, const Problem&, const Settings&);

}  // namespace asterism::relaxation
