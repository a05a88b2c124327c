/// \file
/// When an iteration has converged, and when it never will.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "../../codelets/sums/scaled.hpp"
#include "../../runtime/report.hpp"

namespace asterism::relaxation {

using sums::Scaled;

/// Euclidean norms of an iterate: of r = b - A v, of v, and of b, f with the frame's values lifted into it.
struct Norms {
  Scaled residual, solution, source;
};

/// Judges an iteration by the residuals of its iterates.
class Convergence {
 public:
  struct Expectation {
    double tolerance = 0;        ///< 0: never reached
    double operator_norm = 0;    ///< ||A||_inf
    double spectral_radius = 0;  ///< of the iteration
    Index extents = 2;           ///< rows + columns
  };
  explicit Convergence(const Expectation& expectation) : expected_(expectation) {}

  /// The norms of the iterate after so many sweeps; the first of all before any. @return why there is no
  /// sense in going on
  ///
  /// - solved: ||r|| <= tolerance (||A||_inf ||v|| + ||b||), [Czapinski 2014] (4.13).
  /// - not_finite: a norm is not.
  /// - divergence: ||r|| exceeds 10 (rows + columns) (||A||_inf ||v_0|| + ||b||). SOR's residual may well
  ///   grow at first, but the powers of its matrix do not exceed a small multiple of rows + columns. The
  ///   scaled residual itself is no measure: it never exceeds 1, however large v becomes.
  /// - stagnation, with a tolerance: the scaled residual has not fallen by a twentieth during sweeps in
  ///   which, by the spectral radius, it ought to have fallen to a millionth. If ||r|| is then more than ten
  ///   times what it was at its smallest, that is divergence, too.
  std::optional<Reason> judge(const Norms& norms, Index sweeps);

  /// [Czapinski 2014] (4.13), of every iterate.
  [[nodiscard]] const std::vector<double>& history() const { return history_; }

 private:
  Expectation expected_;
  std::vector<double> history_;
  Scaled limit_;           // of ||r||, for divergence
  Scaled least_residual_;  // of all so far
  double smallest_ = 0;    // scaled residual that progress is measured from
  Index smallest_at_ = 0;  // sweeps
};

/// @throw Error: a tolerance that no scaled residual can be compared with; neither sweeps nor a tolerance
void require_end(Index sweeps, double tolerance);

/// Sweeps between two residuals: often enough to notice the tolerance in time, seldom enough to cost little;
/// without a tolerance all of them. @param extent of the grid, which sweeps to a tolerance grow with
Index choose_check_every(Index sweeps, double tolerance, Index extent);

/// Up to the next multiple: of whole tasks, where a residual comes after them. Down where that one would be
/// no Index any more.
constexpr Index rounded_up(Index number, Index to) {
  const Index rest = number % to;
  if (rest == 0) return number;
  const Index below = number - rest;
  return below <= std::numeric_limits<Index>::max() - to ? below + to : below;
}

}  // namespace asterism::relaxation
