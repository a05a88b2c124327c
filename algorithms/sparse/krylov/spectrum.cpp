#include "spectrum.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

namespace asterism::sparse {

std::optional<SpectrumEstimate> spectrum_of(const CgState& state) {
  const auto steps = static_cast<Eigen::Index>(std::min<Index>(state.iterations, CgState::kept));
  if (steps < 2) return {};
  Eigen::VectorXd diagonal(steps), beside(steps - 1);
  for (Eigen::Index k = 0; k < steps; ++k) {
    diagonal[k] = 1 / state.alpha[k] + (k > 0 ? state.beta[k - 1] / state.alpha[k - 1] : 0);
    if (k + 1 < steps) beside[k] = std::sqrt(state.beta[k]) / state.alpha[k];
  }
  if (!diagonal.allFinite() || !beside.allFinite()) return {};
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver;
  // The solver takes what is beside the diagonal for zero by its absolute size: of entries above 1 it may never be.
  const double scale = *std::max_element(diagonal.data(), diagonal.data() + steps);
  if (!(scale > 0)) return {};
  for (Eigen::Index k = 0; k < steps; ++k) diagonal[k] /= scale;
  for (Eigen::Index k = 0; k + 1 < steps; ++k) beside[k] /= scale;
  solver.computeFromTridiagonal(diagonal, beside, Eigen::EigenvaluesOnly);
  const SpectrumEstimate estimate{scale * solver.eigenvalues()[0], scale * solver.eigenvalues()[steps - 1]};
  if (solver.info() != Eigen::Success || !(estimate.least > 0)) return {};
  return estimate;
}

}  // namespace asterism::sparse
