#include "convergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../../runtime/error.hpp"

namespace asterism::relaxation {

std::optional<Reason> Convergence::judge(const Norms& norms, Index sweeps) {
  const Scaled scale = expected_.operator_norm * norms.solution + norms.source;
  const double scaled = ratio(norms.residual, scale);
  const bool is_first = history_.empty();
  history_.push_back(scaled);
  if (!norms.residual.is_finite() || !scale.is_finite()) return Reason::not_finite;
  if (expected_.tolerance > 0 && scaled <= expected_.tolerance) return Reason::solved;

  if (is_first) limit_ = 10 * static_cast<double>(expected_.extents) * scale;
  if (norms.residual > limit_) return Reason::divergence;

  least_residual_ = is_first ? norms.residual : std::min(least_residual_, norms.residual);
  if (is_first || scaled < 0.95 * smallest_) {
    smallest_ = scaled;
    smallest_at_ = sweeps;
  }
  const double promised = std::pow(expected_.spectral_radius, static_cast<double>(sweeps - smallest_at_));
  if (expected_.tolerance == 0 || promised >= 1e-6) return {};
  return norms.residual > 10 * least_residual_ ? Reason::divergence : Reason::stagnation;
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

}  // namespace asterism::relaxation
