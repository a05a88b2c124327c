#include "convergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../../../runtime/error.hpp"

namespace asterism {

using sums::Scaled;

std::optional<Reason> Convergence::judge(const Norms& norms, Index iterations) {
  const Scaled scale = rule_.operator_norm * norms.solution + norms.source;
  const bool is_first = !has_begun_;
  has_begun_ = true;
  scaled_ = ratio(norms.residual, scale);
  if (!norms.residual.is_finite() || !scale.is_finite()) return Reason::not_finite;
  if (rule_.tolerance > 0 && scaled_ <= rule_.tolerance) return Reason::solved;

  if (norms.broken) return norms.broken;
  if (is_first) limit_ = rule_.growth * std::max(scale, norms.residual);
  if (norms.residual > limit_) return Reason::divergence;

  least_residual_ = is_first ? norms.residual : std::min(least_residual_, norms.residual);
  ++since_smallest_;
  if (is_first || scaled_ < 0.95 * smallest_) {
    smallest_ = scaled_;
    smallest_at_ = iterations;
    since_smallest_ = 0;
  }
  if (!has_stagnated(iterations)) return {};
  return norms.residual > 10 * least_residual_ ? Reason::divergence : Reason::stagnation;
}

bool Convergence::has_stagnated(Index iterations) const {
  if (rule_.tolerance == 0) return false;
  const Index without_progress = iterations - smallest_at_;
  if (rule_.spectral_radius)
    return std::pow(*rule_.spectral_radius, static_cast<double>(without_progress)) < 1e-6;
  return without_progress >= smallest_at_ && since_smallest_ >= rule_.patience;
}

void require_end(Index sweeps, double tolerance) {
  if (!(tolerance >= 0 && tolerance < 1))
    throw Error(fmt::format(
        "the tolerance is {}: it must be at least 0 and below 1, which no scaled residual exceeds",
        tolerance));
  if (sweeps == 0 && tolerance == 0)
    throw Error("neither a number of sweeps nor a tolerance is given: there would be no end; give one");
}

Index choose_check_every(Index sweeps, double tolerance, Index extent) {
  return tolerance == 0 ? sweeps : std::clamp<Index>(extent / 4, 20, 1000);
}

}  // namespace asterism
