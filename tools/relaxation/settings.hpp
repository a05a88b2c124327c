/// \file
/// What the command line asks for, in the words of each solver of relaxations.
#pragma once

#include "../../algorithms/relaxation/mlssor.hpp"
#include "../../algorithms/relaxation/solver.hpp"
#include "../../algorithms/wavefront/solver.hpp"
#include "stated_problem.hpp"

namespace asterism::tools {

relaxation::Problem plane_problem(const StatedRelaxation& stated);
relaxation::Settings stripe_settings(const RelaxOptions& options, const StatedRelaxation& stated);

/// Multi-layer SSOR's.
relaxation::mlssor::Settings layered_settings(const RelaxOptions& options, const StatedRelaxation& stated);

/// In any number of dimensions; sides of which an array is given are zero: lift_sides() has put it into f.
wavefront::Problem wavefront_problem(const StatedRelaxation& stated);
wavefront::Settings wavefront_settings(const RelaxOptions& options, const StatedRelaxation& stated);

/// --tile and --threads, meant for the workers that there are. @throw Error
wavefront::WavefrontLayout given_layout(const RelaxOptions& options, const StatedRelaxation& stated,
                                        bool on_gpu);

/// Whether some side's values are an array that the method's solver cannot take.
bool lifts_sides(const RelaxOptions& options, const StatedRelaxation& stated);

/// Arrays of given values move into f, for a solver that takes a number for each side: with zero there, the
/// node next to a side of value v has f - v / h^2.
template <class T>
void lift_sides(const StatedRelaxation& stated, T* f);

}  // namespace asterism::tools
