/// \file
/// Relaxation of Poisson's and Laplace's equation in two dimensions.
///
///     u_yy + u_xx = f on a rectangle, u given on its border (R2)
///
/// The grid is cut in stripes of consecutive rows, each with a worker of its own; several sweeps make a task,
/// and between tasks neighbours exchange the rows next to each other, in small tiles of their own.
#pragma once

#include <vector>

#include "../codelets/relax.hpp"
#include "../runtime/report.hpp"
#include "../runtime/runtime.hpp"
#include "../runtime/tile.hpp"
#include "relaxation_convergence.hpp"
#include "relaxation_problem.hpp"
#include "relaxation_stripes.hpp"

namespace asterism::relaxation {

/// Plans once, solves any number of right-hand sides.
template <class T>
class Solver {
 public:
  /// With several ranks: collective. @throw Error: extents below 1, lengths not positive, a side's values
  /// that do not fit or are not finite, omega outside (0, 2) or given to a method that has none, negative
  /// numbers, more stripes than rows allow, neither sweeps nor tolerance.
  Solver(Runtime& runtime, const Problem& problem, const Settings& settings);

  /// This rank's rows: [first_row, first_row + row_count); there may be none.
  [[nodiscard]] Index first_row() const;
  [[nodiscard]] Index row_count() const;
  /// What was chosen: nothing in it is 0 any more, but for `sweeps` and `tolerance`.
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const kernels::Discretisation& discretisation() const { return grid_; }
  /// Of all ranks, from the first row to the last.
  [[nodiscard]] const std::vector<Share>& shares() const { return shares_; }

  /// @param f  this rank's rows of f, contiguous; nullptr (on all ranks): Laplace's equation, f = 0
  /// @param u  this rank's rows: the first guess, then the result
  /// @return
  /// - reason: solved (the tolerance was reached, or none was given), iteration_limit, stagnation,
  ///   divergence, not_finite (see Convergence).
  /// - iterations: sweeps. They may be check_every more than the tolerance took, as the sums of a residual
  ///   are looked at while the next sweeps go on.
  /// - residual_history: scaled, one each check_every sweeps and one at the end, the first before any sweep.
  /// - seconds: "load" (to the workers, arranged, and the first residual), "sweeps" (with the residuals
  ///   between them), "residual" (the last one, which all workers begin together), "spread" (how much earlier
  ///   than the last worker of this rank the first one finished it, thesis 3.2.6: what an unequal division
  ///   costs, to be compared with "residual"), "store".
  ///
  /// With several ranks: collective. @throw TaskFailure, Stall.
  Report solve(const T* f, T* u);

 private:
  /// What a stripe consists of. The roles of `u` and `other` change with every odd number of sweeps; `top`
  /// and `bottom` are there twice, so that a task writes the ones while its neighbours' tasks still read the
  /// others.
  struct StripeTiles {
    Tile<T> u, other, g, no_source, frame_columns;
    Tile<T> top[2], bottom[2];
    Tile<double> sums[2];  // of two successive residuals
  };

  [[nodiscard]] Index rows() const { return problem_.shape[0]; }
  [[nodiscard]] Index nodes() const { return problem_.shape[1]; }
  void make_tiles();
  [[nodiscard]] kernels::Stripe stripe(std::size_t s) const;
  [[nodiscard]] Hints hints(std::size_t s, Index sweeps = 0) const;
  [[nodiscard]] bool overlaps() const;
  [[nodiscard]] const Tile<T>& above(std::size_t s, int set) const;
  [[nodiscard]] const Tile<T>& below(std::size_t s, int set) const;
  [[nodiscard]] const Tile<T>& source(std::size_t s) const;
  /// That of the rank that works on the stripe.
  template <class U>
  [[nodiscard]] const Tile<U>& mine(const std::vector<Tile<U>>& one_per_rank, std::size_t s) const {
    return one_per_rank[static_cast<std::size_t>(shares_[s].rank)];
  }
  [[nodiscard]] bool agree_on_source(const T* f) const;
  [[nodiscard]] double lifted_squares(const T* f) const;
  [[nodiscard]] Tile<T> borrow(T* rows, std::size_t s) const;

  void load(const T* f, T* u);
  void sweep(Index sweeps);
  void task_step(Index sweeps);
  void relax_border(std::size_t s, Index sweeps);
  void relax_interior(std::size_t s, Index sweeps);
  void relax_all(std::size_t s, Index sweeps);
  void submit_residual(Index number);
  [[nodiscard]] Norms residual(Index number, double lifted) const;
  [[nodiscard]] double spread_of_finishing(Index number) const;
  void store(T* u);

  Runtime* runtime_;
  Problem problem_;
  Settings settings_;
  kernels::Discretisation grid_;
  int cpus_ = 0, gpus_ = 0;  // of this rank
  std::vector<Share> shares_;
  Index halo_ = 1;
  std::vector<StripeTiles> tiles_;                           // of each share
  std::vector<Tile<T>> frame_rows_, border_work_, nothing_;  // one per rank,
  std::vector<Tile<double>> residual_work_;                  // as this
  bool has_source_ = false;
  int set_ = 0;  // which of `top` and `bottom` are those of now
};

}  // namespace asterism::relaxation
