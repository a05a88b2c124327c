/// \file
/// Poisson's and Laplace's equation in two dimensions by multi-layer symmetric SOR in drifting subdomains
/// (codelets/relaxation/mlssor.hpp).
///
/// Rows are cut into stripes of whole subdomains, each with a worker of its own. Neighbours exchange K rows
/// next to the cut, in small tiles of their own, after T12 and after T22 of a sweep; every node is relaxed by
/// one worker at a time and from the same values however the grid is cut, so that the iterates do not depend
/// on that.
#pragma once

#include <optional>
#include <vector>

#include "../../codelets/relaxation/mlssor.hpp"
#include "../../runtime/report.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "problem.hpp"
#include "residual_sums.hpp"
#include "stripes/striped_problem.hpp"

namespace asterism::relaxation::mlssor {

struct Settings {
  Index subdomain = 16;   ///< n, at least 2: a subdomain has n x n nodes
  Index layers = 0;       ///< K; 0: as many as can be, n / 2
  bool alternate = true;  ///< forward and backward sweeps take turns; else all are forward
  /// None: that of SOR (Discretisation::optimal_omega). The best one is larger the larger the
  /// subdomains are, below it for small ones.
  std::optional<double> omega = {};
  // All counts of sweeps are relaxations of every node, which is what makes them comparable with those of
  // other methods: a sweep of K layers is K of them. They are rounded up to whole sweeps of K layers.
  Index sweeps = 0;        ///< at most so many; 0: no limit but that of the tolerance
  double tolerance = 0;    ///< stop at this scaled residual, [Czapinski 2014] (4.13); 0: never
  Index check_every = 0;   ///< between two residuals; 0: chosen, with a tolerance; else once, at the end
  Index stripes = 0;       ///< 0: one for each worker that takes part
  Observer observer = {};  ///< is told the residuals, with relaxations for iterations; each rank's own
};

/// Those workers that take part, of all those of all ranks: each rank's GPUs, or its cores where it has none
/// or subdomains are too large for them. @throw Error: a rank has no worker that can.
std::vector<Candidate> choose_workers(const std::vector<Candidate>& all, int ranks, Index subdomain);

/// Stripes of whole rows of subdomains, but for what is left over, which goes to the last one. A GPU has as
/// many rows as 200 cores (speed_of), where a rank without GPUs takes part beside ranks with
/// some. Where settings.stripes is 0: a stripe for each worker that has enough to do, more where its memory
/// asks for it. @param settings complete (layers)
/// @throw Error: more stripes than there are whole rows of subdomains.
template <class T>
Partition cut_rows(const std::vector<Candidate>& workers, const relaxation::Problem& problem,
                   const Settings& settings);

/// Plans once, solves any number of right-hand sides.
template <class T>
class Solver {
 public:
  /// With several ranks: collective. @throw Error: extents below 1, lengths not positive, a side's values
  /// that do not fit or are not finite, omega outside (0, 2), a subdomain below 2 or too large for GPUs where
  /// a rank has nothing else, more layers than half of it, negative numbers, more stripes than the grid has
  /// whole rows of subdomains, or the workers' memory asks for, neither sweeps nor tolerance.
  Solver(Runtime& runtime, const relaxation::Problem& problem, const Settings& settings);

  /// This rank's rows: [first_row, first_row + row_count); there may be none.
  [[nodiscard]] Index first_row() const { return grid_.first_row(); }
  [[nodiscard]] Index row_count() const { return grid_.row_count(); }
  /// What was chosen: nothing in it is 0 any more, but for `sweeps` and `tolerance`.
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const Discretisation& discretisation() const { return grid_.discretisation(); }
  /// Of all ranks, from the first row to the last.
  [[nodiscard]] const std::vector<Part>& stripes() const { return grid_.stripes().parts(); }

  /// @param f  this rank's rows of f, contiguous; nullptr (on all ranks): Laplace's equation, f = 0
  /// @param u  this rank's rows: the first guess, then the result
  /// @return as iterate(), algorithms/common/iteration/iteration.hpp; iterations are relaxations of every node
  ///
  /// With several ranks: collective. @throw Error: f is given on some ranks only; and as iterate().
  Report solve(const T* f, T* u);

 private:
  struct StripeTiles {
    Tile<T> u, g, no_source, frame_columns;
    Tile<T> top, bottom;  // edges of u, for residuals
    Tile<T> lead, trail;  // what goes to the neighbours
  };

  void make_tiles();
  [[nodiscard]] MultiLayer stripe(std::size_t s) const;
  [[nodiscard]] HalfSweep half(std::size_t s) const;
  [[nodiscard]] Hints hints(std::size_t s, Index sweeps = 0) const;
  /// The stripe before s in a direction, and after it; s itself at an end of the grid, where nobody looks.
  [[nodiscard]] std::size_t previous(std::size_t s, Direction direction) const;
  [[nodiscard]] std::size_t next(std::size_t s, Direction direction) const;
  [[nodiscard]] const Tile<T>& source(std::size_t s) const;

  void load(const T* f, T* u);
  void sweep(Index sweeps);
  void sweep_alone(Index sweeps);
  void receive();
  void submit_residual(Index number);
  void store(T* u);

  Runtime* runtime_;
  Settings settings_;
  std::optional<std::size_t> tasks_in_memory_;
  relaxation::StripedProblem<T> grid_;
  relaxation::ResidualSums sums_;
  std::vector<StripeTiles> tiles_;   // of each share
  std::vector<Tile<T>> frame_rows_;  // one per rank
  bool has_source_ = false;
  Direction direction_ = Direction::forward;  // of the next sweep
  std::optional<Direction> last_;             // of the last one, if any
};

}  // namespace asterism::relaxation::mlssor
