/// \file
/// Both halves of (Q3) in one go.
#pragma once

#include "preconditioner.hpp"

namespace asterism::sparse::cuda {

/// ports.z = M^-1 r for a matrix that is a single block. What triangular_stages does in two tasks takes less here:
/// the first stage going forward has nothing to do, and the last one goes backward at once.
template <class T, class V>
void apply_triangular(Stream stream, const PreconditionerShape& shape,
                      const PreconditionerPorts<AsPorts, T, V>& ports, In<T> r);

}  // namespace asterism::sparse::cuda
