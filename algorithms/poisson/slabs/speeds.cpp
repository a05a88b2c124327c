#include "speeds.hpp"

#include <algorithm>

#include "../../../runtime/per_rank.hpp"
#include "../../common/set.hpp"
#include "../../common/speeds.hpp"
#include "partition.hpp"

namespace asterism::poisson {
namespace {

/// What is the same for all workers of a rank, per rank.
struct Shared {
  std::vector<Tile<double>> axis, mu;
  PerRank<double> work;
};

struct TrialSize {
  Index planes, slabs, tasks;
};
/// A slab no larger than it takes to see how fast a worker is, and several tasks on it where one would be over before
/// anybody looked. Where it is the way to the GPU that takes the time, as many slabs in turns as fit at
/// least: all of it takes many times as long as a GPU may have to wait for another's first slab.
TrialSize trial_size(Where where, const Layout& layout, Index plane_bytes) {
  const bool on_gpu = where == Where::cuda;
  const auto planes_in = [&](Index bytes) { return std::clamp<Index>(bytes / plane_bytes, 1, layout.slab_planes); };
  if (on_gpu && layout.mode == Mode::streaming) return {planes_in(Index{1} << 24), 3, 16};
  const Index planes = planes_in(Index{1} << (on_gpu ? 26 : 22)), work_bytes = Index{1} << (on_gpu ? 30 : 22);
  return {planes, 1, std::clamp<Index>(work_bytes / (planes * plane_bytes), 1, 32)};
}

/// Slabs of zeros on a worker.
template <class T>
class TrialSlabs {
 public:
  TrialSlabs(Runtime& runtime, const Candidate& worker, const Grid& grid, const Layout& layout,
             const SlabArgs& args, const Shared& shared)
      : worker_(worker), args_(args), shared_(&shared) {
    const TrialSize size = trial_size(worker.where, layout, grid.columns() * static_cast<Index>(sizeof(T)));
    tasks_ = size.tasks;
    unknowns_ = size.planes * grid.columns();
    for (Index slab = 0; slab < size.slabs; ++slab) {
      set(runtime, f_.emplace_back(runtime, size.planes, grid.columns(), worker.rank),
          [](Index, Index) { return 0; });
      shown_.emplace_back(runtime, grid.interface().shown, grid.columns(), worker.rank);
    }
  }

  [[nodiscard]] Trial trial() const {
    return {.work = static_cast<double>(tasks_ * unknowns_),
            .submit = [this] { submit(); },
            .last = &shown_[static_cast<std::size_t>(tasks_ - 1) % shown_.size()]};
  }

 private:
  void submit() const {
    const auto rank = static_cast<std::size_t>(worker_.rank);
    const Hints hints{.where = worker_.where, .label = "trial", .worker = worker_.worker};
    for (std::size_t task = 0; task < static_cast<std::size_t>(tasks_); ++task) {
      const Tile<T>& f = f_[task % f_.size()];
      codelets::reduce_slab<T>(args_,
                               {.f = f,
                                .axis = shared_->axis[rank],
                                .mu = shared_->mu[rank],
                                .shown = shown_[task % shown_.size()],
                                .work = shared_->work[worker_.rank]},
                               hints);
      if (f_.size() > 1) f.send_home();
    }
  }

  Candidate worker_;
  SlabArgs args_;
  const Shared* shared_;
  Index tasks_ = 1, unknowns_ = 0;
  std::vector<Tile<T>> f_;
  std::vector<Tile<double>> shown_;
};

}  // namespace

template <class T>
void measure_slabs(Runtime& runtime, const Grid& grid, const Layout& layout, const SlabArgs& args,
                   std::vector<Candidate>& workers) {
  const Index plane = grid.columns() * static_cast<Index>(sizeof(T));
  Shared shared;
  for (int rank = 0; rank < runtime.ranks(); ++rank) {
    const auto its =
        std::find_if(workers.begin(), workers.end(), [&](const Candidate& w) { return w.rank == rank; });
    const Index planes = trial_size(its->where, layout, plane).planes;
    // Equations with which zeros stay zeros.
    set(runtime, shared.axis.emplace_back(runtime, planes, grid::axis_columns, rank),
        [](Index, Index) { return 1; });
    set(runtime, shared.mu.emplace_back(runtime, grid.interface().mu, grid.columns(), rank),
        [](Index, Index) { return 1; });
  }
  shared.work = {runtime, 1, layout.scratch};

  std::vector<TrialSlabs<T>> slabs;
  slabs.reserve(workers.size());
  for (const Candidate& worker : workers) slabs.emplace_back(runtime, worker, grid, layout, args, shared);
  std::vector<Trial> trials;
  trials.reserve(slabs.size());
  for (const TrialSlabs<T>& slab : slabs) trials.push_back(slab.trial());
  measure_speeds(runtime, workers, trials);
}

template void measure_slabs<float>(Runtime&, const Grid&, const Layout&, const SlabArgs&,
                                   std::vector<Candidate>&);
template void measure_slabs<double>(Runtime&, const Grid&, const Layout&, const SlabArgs&,
                                    std::vector<Candidate>&);

}  // namespace asterism::poisson
