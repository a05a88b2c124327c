/// \file
/// What the fast Poisson solvers share: the grids of a batch, cut into slabs that the ranks own, and what belongs to a
/// problem beside its solving: given values (side_values.hpp), means (singular_mean.hpp), models (model_problems.hpp) and
/// the check of a solution (solution_check.hpp).
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "../../runtime/report.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "layout.hpp"
#include "problem/check.hpp"
#include "problem/models.hpp"
#include "problem/problem.hpp"
#include "problem/side_values.hpp"
#include "problem/singular_mean.hpp"
#include "slabs/dealing.hpp"
#include "slabs/partition.hpp"

namespace asterism::poisson {

/// The discrete problems of a batch in slabs of consecutive planes. Solvers are made of it: they turn the
/// tiles of f that `borrow` or `own` make into those of u. In two dimensions a plane is a row of the array.
template <class T>
class SlabbedProblem {
 public:
  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }

  /// The planes that this rank holds: [first, first + count) of all planes of the batch, one problem after
  /// the other.
  [[nodiscard]] Index first_plane() const { return slabs_.my_planes().first; }
  [[nodiscard]] Index plane_count() const { return slabs_.my_planes().count(); }
  /// Slabs of the whole batch, and where they begin among all planes.
  [[nodiscard]] Index slab_count() const { return slabs_.count(); }
  [[nodiscard]] Index first_plane(Index slab) const { return slabs_.first_plane(slab); }

  /// The grid as slabs over memory of the caller: this rank's planes, contiguous.
  [[nodiscard]] Tiles<T> borrow(T* planes) const;
  /// The grid as slabs that the runtime owns, and can evict to a spill folder.
  [[nodiscard]] Tiles<T> own() const;

  using Known = poisson::Known;

  /// Puts a model's right-hand side into the tile of a slab, by a task.
  /// @throw Error: there is no such slab, or the tile is not as `borrow` and `own` make it
  void fill(Index slab, const Tile<T>& f, const Known& known) const;

  /// Puts planes of the right-hand side into the tile of a slab, from the host or by a task.
  using Source = typename SolutionCheck<T>::Source;

  /// Residual of the last solve's u, slab by slab, against a right-hand side made again by `source`, and the
  /// error against a model's known solution. With several ranks: collective.
  /// @throw Error: tiles that are not cut as those of `borrow` and `own`
  Check check(Tiles<T>& u, const Source& source, const std::optional<Known>& known = {});

 protected:
  /// Chooses how the grid is cut, from the memories of one rank.
  using Choice = std::function<Layout(const Machine& machine, const RankedMachine& all, const Grid& grid,
                                      const Settings&)>;
  /// Measures how fast workers are with the slabs of a layout.
  using Measure =
      std::function<void(const Grid& grid, const Layout& layout, std::vector<Candidate>& workers)>;

  /// With several ranks: collective; all must state the same problem and settings, of which rank 0 chooses what the
  /// ranks have to have alike.
  /// @param measure see deal_slabs; called before the solver itself is made
  /// @throw Error: see discretise, deal_slabs; what `choose` and `measure` throw
  SlabbedProblem(Runtime& runtime, const Problem& problem, const Settings& settings, const Choice& choose,
                 const Measure& measure = {});
  ~SlabbedProblem() = default;

  /// When a solve began, and what had crossed links by then.
  struct Begun {
    std::chrono::steady_clock::time_point time;
    Traffic traffic;
  };
  [[nodiscard]] Begun begin() const { return {std::chrono::steady_clock::now(), runtime_->traffic()}; }
  /// Waits until u is there, in main memory where Settings::fetch_result wants it.
  [[nodiscard]] Report finish(const Begun& begun, const Tiles<T>& u);

  /// What a solver does first. @throw Error: tiles that are not cut as those of `borrow` and `own`
  void require_slabs(const Tiles<T>& tiles) const;
  /// Lifts what is given at the ends of axes into f, by tasks.
  void lift(Tiles<T>& f) const;
  /// Where constants solve the homogeneous problem: has a look at the mean of f, and waits for it. With several ranks:
  /// collective. @throw Error: see Solver::solve
  void take_means(const Tiles<T>& f);
  /// Then the means of u in every plane of a problem of the batch, known on every rank; its own mean is zero.
  [[nodiscard]] const double* solution_means(Index problem) { return plane_means_->of_solution(problem); }
  /// Instead of all this, where one task solves the only problem of the batch: whom it asks. When it has ended, its mean is to
  /// be looked at.
  [[nodiscard]] MeanSystem& mean_system() { return *plane_means_; }
  /// Looks at the mean of f where its moments are there. @throw Error: see Solver::solve
  void look_at_mean();

  Runtime* runtime_;
  Grid grid_;
  Settings settings_;
  Layout layout_;
  SlabPartition slabs_;
  Tiles<double> axis_;  // rows of the slowest axis, per slab

 private:
  [[nodiscard]] Hints beside_passes_hints(Slab s) const;
  void require_slab(Index number, const Tile<T>& tile) const;

  int cpus_ = 0;                   // of this rank
  std::vector<double> projected_;  // means that the last solve subtracted, per problem; zero: none
  SideValues side_values_;
  std::optional<PlaneMeans> plane_means_;  // where constants solve the homogeneous problem
  ModelProblems<T> models_;
};

/// The AxisRow of every plane as a tile's rows.
void set_axis_rows(const Runtime& runtime, const Tile<double>& tile, const Grid& grid, Index first_plane);

}  // namespace asterism::poisson
