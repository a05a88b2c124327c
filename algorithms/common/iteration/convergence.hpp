/// \file
/// When an iteration has converged, and when it never will.
#pragma once

#include <limits>
#include <optional>

#include "../../../codelets/sums/scaled.hpp"
#include "../../../runtime/report.hpp"

namespace asterism {

/// Euclidean norms of an iterate of A v = b: of r = b - A v, of v, and of b.
struct Norms {
  sums::Scaled residual, solution, source;
  /// Why the method cannot go on with it, if so.
  std::optional<Reason> broken = {};
};

/// What an iteration is to reach, and how long it may take for that.
struct StoppingRule {
  double tolerance = 0;      ///< of the scaled residual; 0: never reached
  double operator_norm = 0;  ///< ||A||_inf; 0: residuals are told relative to ||b|| alone
  /// How many times the ||A||_inf ||v_0|| + ||b|| of the beginning ||r|| may become, or its first value where that is
  /// more, as it may be where no norm of A is known. 1 / sqrt(eps) is for methods that reduce the error in the norm
  /// of A: ||r|| is then at most sqrt(cond(A)) times its first value, and a matrix of cond(A) > 1 / eps is singular
  /// in double precision.
  double growth = 0x1p26;
  /// Of the iteration, where it is known: by how much an iteration reduces the error in the end.
  std::optional<double> spectral_radius = {};
  /// Where it is not known: stagnation takes at least so many residuals without progress.
  Index patience = 100;
};

/// Judges an iteration by the residuals of its iterates.
class Convergence {
 public:
  explicit Convergence(const StoppingRule& rule) : rule_(rule) {}

  /// The norms of the iterate after so many iterations; the first of all before any. @return why there is no
  /// sense in going on
  ///
  /// - solved: ||r|| <= tolerance (||A||_inf ||v|| + ||b||), [Czapinski 2014] (4.13).
  /// - what the method itself says (Norms::broken).
  /// - not_finite: a norm is not.
  /// - divergence: ||r|| exceeds `growth` times what it may begin with. The scaled residual itself is no measure: it
  ///   never exceeds 1, however large v becomes.
  /// - stagnation, with a tolerance: the scaled residual has not fallen by a twentieth, neither at once nor little by
  ///   little, since too long ago. With a spectral radius that is when it ought to have fallen to a millionth.
  ///   Without one it is when as many iterations have gone by as there were before: at this pace another digit would
  ///   take ln 10 / ln (20 / 19) = 45 times all iterations so far. (What is slow from the beginning goes on, as its
  ///   pace is the same in the second half as in the first. How long a method may stand still before it goes on
  ///   depends on the method, [Barrett et al. 1994] 4.2.4; hence `patience`.) If ||r|| is then more than ten times
  ///   what it was at its smallest, that is divergence, too.
  std::optional<Reason> judge(const Norms& norms, Index iterations);

  /// [Czapinski 2014] (4.13), of the last iterate that was judged.
  [[nodiscard]] double scaled_residual() const { return scaled_; }

 private:
  [[nodiscard]] bool has_stagnated(Index iterations) const;

  StoppingRule rule_;
  bool has_begun_ = false;
  double scaled_ = 0;
  sums::Scaled limit_;           // of ||r||, for divergence
  sums::Scaled least_residual_;  // of all so far
  double smallest_ = 0;          // scaled residual that progress is measured from
  Index smallest_at_ = 0;        // iterations
  Index since_smallest_ = 0;     // residuals
};

/// @throw Error: a tolerance that no scaled residual can be compared with; neither sweeps nor a tolerance
void require_end(Index sweeps, double tolerance);

/// Sweeps between two residuals: often enough to notice the tolerance in time, seldom enough to cost little;
/// without a tolerance all of them. @param extent of the grid, which sweeps to a tolerance grow with
Index choose_check_every(Index sweeps, double tolerance, Index extent);

/// StoppingRule::growth of sweeps over a grid: SOR's residual may well grow at first, but the powers of its matrix do
/// not exceed a small multiple of rows + columns. @param extents their sum, along all axes
constexpr double growth_of_sweeps(Index extents) { return 10 * static_cast<double>(extents); }

/// Up to the next multiple: of whole tasks, where a residual comes after them. Down where that one would be
/// no Index any more.
constexpr Index rounded_up(Index number, Index to) {
  const Index rest = number % to;
  if (rest == 0) return number;
  const Index below = number - rest;
  return below <= std::numeric_limits<Index>::max() - to ? below + to : below;
}

}  // namespace asterism
