/// \file
/// Relaxation of Poisson's and Laplace's equation in two dimensions.
///
///     u_yy + u_xx = f on a rectangle, u given on its border (R2)
///
/// The grid is cut in stripes of consecutive rows, each with a worker of its own; several sweeps make a task,
/// and between tasks neighbours exchange the rows next to each other, in small tiles of their own.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "../../codelets/relaxation/sweeps.hpp"
#include "../../runtime/report.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "problem.hpp"
#include "residual_sums.hpp"
#include "stripes/striped_problem.hpp"
#include "stripes/stripes.hpp"

namespace asterism::relaxation {

/// Plans once, solves any number of right-hand sides.
template <class T>
class Solver {
 public:
  /// With several ranks: collective. @throw Error: extents below 1, lengths not positive, a side's values
  /// that do not fit or are not finite, omega outside (0, 2) or given to a method that has none, negative
  /// numbers, more stripes than rows allow, asked for or because of the workers' memory; neither
  /// sweeps nor tolerance. @throw TaskFailure, Stall: as measured_workers.
  Solver(Runtime& runtime, const Problem& problem, const Settings& settings);

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
  /// @return as iterate(), algorithms/common/iteration/iteration.hpp; iterations are sweeps
  ///
  /// With several ranks: collective. @throw Error: f is given on some ranks only; and as iterate().
  Report solve(const T* f, T* u);

 private:
  /// What a stripe consists of. The roles of `u` and `other` change with every odd number of sweeps; `top`
  /// and `bottom` are there twice, so that a task writes the ones while its neighbours' tasks still read the
  /// others.
  struct StripeTiles {
    Tile<T> u, other, g, no_source, frame_columns;
    Tile<T> top[2], bottom[2];
  };

  void make_tiles();
  [[nodiscard]] Stripe stripe(std::size_t s) const;
  [[nodiscard]] Hints hints(std::size_t s, Index sweeps = 0) const;
  [[nodiscard]] bool overlaps() const;
  [[nodiscard]] const Tile<T>& above(std::size_t s, int set) const;
  [[nodiscard]] const Tile<T>& below(std::size_t s, int set) const;
  [[nodiscard]] const Tile<T>& source(std::size_t s) const;

  void load(const T* f, T* u);
  void sweep(Index sweeps);
  void task_step(Index sweeps);
  [[nodiscard]] JacobiArgs all_at_once(std::size_t s, Index sweeps) const;
  [[nodiscard]] ColourArgs red_then_black(std::size_t s, Index sweeps) const;
  void relax_border(std::size_t s, Index sweeps);
  void relax_interior(std::size_t s, Index sweeps);
  void relax_all(std::size_t s, Index sweeps);
  void submit_residual(Index number);
  void store(T* u);

  Runtime* runtime_;
  Settings settings_;
  std::optional<std::size_t> tasks_in_memory_;
  Cut cut_;
  StripedProblem<T> grid_;
  ResidualSums sums_;
  std::vector<StripeTiles> tiles_;             // of each share
  std::vector<Tile<T>> frame_rows_, nothing_;  // of each rank
  PerRank<T> border_work_;
  bool has_source_ = false;
  int set_ = 0;  // which of `top` and `bottom` are those of now
};

}  // namespace asterism::relaxation
