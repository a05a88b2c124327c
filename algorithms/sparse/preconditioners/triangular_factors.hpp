/// \file
/// What M = (I + L) D (I + U) is (Q3) for incomplete factorisations and symmetric relaxations, and in which order its
/// rows are worked on.
#pragma once

#include "../graph/colouring.hpp"
#include "preconditioner.hpp"

namespace asterism::sparse {

/// L, U and D of a matrix, rows and columns in the matrix' own order.
struct TriangularFactors {
  Csr<double> lower, upper;
  std::vector<double> diagonal;
  Colouring stages;  ///< for each row when its turn is
  double shift = 0;
  std::optional<Breakdown> breakdown = {};
};

/// Of a whole matrix, for the methods ic0, ilu0, mc_ssor and mc_ilu. Where it breaks down there are stages alone.
/// @param threads as colour() has it
TriangularFactors triangular_factors(const Csr<double>& matrix, const PreconditionerChoice& choice,
                                     DiagonalShift shift, int threads = 0);

}  // namespace asterism::sparse
