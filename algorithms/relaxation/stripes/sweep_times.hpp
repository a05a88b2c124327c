/// \file
/// What a sweep over stripes is predicted to take, and how many of them make a task.
#pragma once

#include <vector>

#include "../../common/partition.hpp"
#include "../problem.hpp"

namespace asterism::relaxation {

/// What a sweep over stripes takes in tasks of so many of them, in seconds: as long as the worker that takes longest.
/// @param speeds of the stripes' workers
double predicted_seconds(const std::vector<Part>& stripes, const std::vector<double>& speeds, Index sweeps,
                         const Problem& problem, const Settings& settings);

/// The fewest sweeps of a task with which a sweep takes as little time as it can; on GPUs nearly as little.
/// @param lowest rows of the lowest stripe
Index choose_sweeps(const std::vector<Part>& stripes, const std::vector<double>& speeds, Index lowest,
                    const Problem& problem, const Settings& settings);

}  // namespace asterism::relaxation
