/// \file
/// What the kernels of stripes are told.
#pragma once

#include "../problem.hpp"

namespace asterism::relaxation {

/// Ghost rows that a task of so many sweeps consumes.
Index ghost_rows(Method method, Index sweeps);
/// Rows that a stripe cannot do without, where there is more than one.
Index least_rows(const Settings& settings, Index sweeps);

/// `settings` is complete (omega).
JacobiArgs jacobi_args(const Discretisation& grid, const Stripe& stripe, Index sweeps, bool has_source);
ColourArgs colour_args(const Discretisation& grid, const Stripe& stripe, Index sweeps, bool has_source,
                       const Settings& settings);

}  // namespace asterism::relaxation
