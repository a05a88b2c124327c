/// \file
/// What conjugate gradients tell of the spectrum.
#pragma once

#include <optional>

#include "../../../codelets/sparse/krylov/conjugate_gradients.hpp"
#include "../linear_solver.hpp"

namespace asterism::sparse {

/// From the coefficients of the first iterations: the eigenvalues of Lanczos' matrix
///
///     t_kk = 1 / alpha_k + beta_(k-1) / alpha_(k-1),  t_k,k+1 = sqrt(beta_k) / alpha_k
///
/// lie within the spectrum of M^-1 A, and reach its ends first. None without two iterations.
std::optional<SpectrumEstimate> spectrum_of(const CgState& state);

}  // namespace asterism::sparse
