#include "spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace asterism::sparse {
namespace {

/// A symmetric matrix of which only the diagonal and what is beside it is not 0.
struct Tridiagonal {
  std::vector<double> diagonal, beside_squared;

  /// How many eigenvalues are below x: as many as L D L^T of the matrix less x has negative pivots [Barth et al. 1967].
  [[nodiscard]] std::size_t below(double x) const {
    std::size_t count = 0;
    double pivot = 1;
    for (std::size_t k = 0; k < diagonal.size(); ++k) {
      pivot = diagonal[k] - x - (k > 0 ? beside_squared[k - 1] / pivot : 0);
      if (std::abs(pivot) < std::numeric_limits<double>::min()) pivot = -std::numeric_limits<double>::min();
      if (pivot < 0) ++count;
    }
    return count;
  }
  /// The one with so many below it, of a positive definite matrix. @param most that it may be
  [[nodiscard]] double eigenvalue(std::size_t number, double most) const {
    constexpr double accuracy = 1e-10;
    double least = 0;
    while (most - least > accuracy * most) {
      const double middle = least + (most - least) / 2;
      (below(middle) > number ? most : least) = middle;
    }
    return most;
  }
};

}  // namespace

/// Two eigenvalues by bisection: all of them would take as long as some hundreds of iterations on a GPU.
std::optional<SpectrumEstimate> spectrum_of(const CgState& state) {
  const auto steps = static_cast<std::size_t>(std::min<Index>(state.iterations, CgState::kept));
  if (steps < 2) return {};
  Tridiagonal lanczos{std::vector<double>(steps), std::vector<double>(steps - 1)};
  auto& [diagonal, beside] = lanczos;
  for (std::size_t k = 0; k < steps; ++k) {
    diagonal[k] = 1 / state.alpha[k] + (k > 0 ? state.beta[k - 1] / state.alpha[k - 1] : 0);
    if (k + 1 < steps) beside[k] = std::sqrt(state.beta[k]) / state.alpha[k];
  }
  const double scale = *std::ranges::max_element(diagonal);  // so that no square overflows
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (!(scale > 0) || !std::ranges::all_of(diagonal, is_finite) || !std::ranges::all_of(beside, is_finite))
    return {};
  for (double& value : diagonal) value /= scale;
  for (double& value : beside) value = value / scale * (value / scale);
  if (lanczos.below(0) > 0) return {};
  // Of a positive definite matrix no entry is larger than the diagonal's largest.
  constexpr double most = 3;
  return SpectrumEstimate{scale * lanczos.eigenvalue(0, most), scale * lanczos.eigenvalue(steps - 1, most)};
}

}  // namespace asterism::sparse
