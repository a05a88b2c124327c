/// \file
/// What the fast Poisson solvers share: the grids of a batch, cut into slabs that the ranks own; given
/// values, means, models and the check of a solution, slab by slab.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "../../codelets/grid/laplacian.hpp"
#include "../../runtime/pinned_buffer.hpp"
#include "../../runtime/report.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "layout.hpp"
#include "problem.hpp"
#include "side_values.hpp"
#include "slab_partition.hpp"

namespace asterism::poisson {

/// A backward error, as the scaled residual is, of so many eps is more than rounding does in any solve that went well,
/// however ill-conditioned the problem.
constexpr double most_eps = 64;

/// How good a solution is.
struct Check {
  /// ||f - A u||_2 / (||A|| ||u||_2 + ||f||_2), f with the given values lifted into it
  double scaled_residual = 0;
  /// not_finite; inaccurate: the scaled residual is above most_eps roundings to T; solved
  Reason reason = Reason::solved;
  /// ||u - known||_2 / ||known||_2; where constants solve the homogeneous problem, the mean of a random known
  /// u is taken away first, as solve() does with that of u
  std::optional<double> error;
  double seconds = 0;
};

/// The discrete problems of a batch in slabs of consecutive planes. Solvers are made of it: they turn the
/// tiles of f that `borrow` or `own` make into those of u. In two dimensions a plane is a row of the array.
template <class T>
class SlabbedProblem {
 public:
  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }

  /// The planes that this rank holds: [first, first + count) of all planes of the batch, one problem after
  /// the other.
  [[nodiscard]] Index first_plane() const;
  [[nodiscard]] Index plane_count() const;
  /// Slabs of the whole batch, and where they begin among all planes.
  [[nodiscard]] Index slab_count() const { return slabs_.count(); }
  [[nodiscard]] Index first_plane(Index slab) const { return slabs_.first_plane(slab); }

  /// The grid as slabs over memory of the caller: this rank's planes, contiguous.
  [[nodiscard]] Tiles<T> borrow(T* planes) const;
  /// The grid as slabs that the runtime owns, and can evict to a spill folder.
  [[nodiscard]] Tiles<T> own() const;

  /// A problem whose solution is known: a model, and what its numbers are drawn from.
  struct Known {
    grid::Model model = grid::Model::sine;
    std::uint64_t seed = 1;  ///< of the first problem of the batch; the next ones have the next ones
  };

  /// Puts a model's right-hand side into the tile of a slab, by a task.
  /// @throw Error: there is no such slab, or the tile is not as `borrow` and `own` make it
  void fill(Index slab, const Tile<T>& f, const Known& known) const;

  /// Puts planes of the right-hand side into the tile of a slab, from the host or by a task.
  using Source = std::function<void(Index slab, Tile<T>& f)>;

  /// Residual of the last solve's u, slab by slab, against a right-hand side made again by `source`, and the
  /// error against a model's known solution. With several ranks: collective.
  /// @throw Error: tiles that are not cut as those of `borrow` and `own`
  Check check(Tiles<T>& u, const Source& source, const std::optional<Known>& known = {});

 protected:
  /// Chooses how the grid is cut, from the memories of one rank.
  using Choice = std::function<Layout(const Machine& machine, const Grid& grid, const Settings& settings)>;

  /// With several ranks: collective; all must state the same problem and settings, of which rank 0 chooses what the ranks
  /// have to have alike.
  /// @throw Error: see discretise; what `choose` throws.
  SlabbedProblem(Runtime& runtime, const Problem& problem, const Settings& settings, const Choice& choose);
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
  /// Where constants solve the homogeneous problem: the means of all planes of u, known on every rank, with
  /// mean zero for each problem of the batch. With several ranks: collective. @throw Error: see Solver::solve
  [[nodiscard]] std::vector<double> solution_means(const Tiles<T>& f);

  Runtime* runtime_;
  Grid grid_;
  Settings settings_;
  Layout layout_;
  SlabPartition slabs_;
  Tiles<double> axis_;     // rows of the slowest axis, per slab
  Tiles<T> front_, back_;  // first and last plane of u, per slab: solvers put them there

 private:
  [[nodiscard]] Hints before_passes_hints(Slab s) const;
  [[nodiscard]] grid::ModelProblem model_problem(const Known& known, Index number) const;
  void require_slab(Index number, const Tile<T>& tile) const;
  [[nodiscard]] std::vector<double> means_of(const Known& known) const;

  int cpus_ = 0;
  std::vector<double> projected_;  // means that the last solve subtracted, per problem; zero: none
  std::optional<SideValues> side_values_;
};

/// The AxisRow of every plane as a tile's rows.
void set_axis_rows(const Runtime& runtime, const Tile<double>& tile, const Grid& grid, Index first_plane);

}  // namespace asterism::poisson
