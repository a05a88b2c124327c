/// \file
/// How fast the workers relax.
#pragma once

#include <vector>

#include "../runtime/runtime.hpp"
#include "../runtime/tile.hpp"
#include "relaxation_problem.hpp"
#include "relaxation_stripes.hpp"

namespace asterism::relaxation {

/// All workers of all ranks, rank by rank, GPUs first, with their speeds where settings.balance asks for
/// them. What is measured: GPUs and the cores beside them, and the ranks of several; the cores of one machine
/// count as equal. With several ranks: collective; the same on every rank. @param settings complete (omega)
template <class T>
std::vector<Candidate> measured_workers(Runtime& runtime, const Problem& problem, const Settings& settings);

/// Seconds from now until the tasks so far of each of these tiles have ended, by the clock of this rank,
/// which owns them.
std::vector<double> seconds_until_done(const std::vector<const detail::TileBase*>& tiles);

}  // namespace asterism::relaxation
