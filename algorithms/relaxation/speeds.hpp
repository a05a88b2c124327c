/// \file
/// How fast the workers relax.
#pragma once

#include <vector>

#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "problem.hpp"
#include "stripes.hpp"

namespace asterism::relaxation {

/// All workers of all ranks, rank by rank, GPUs first on each; with the memory of GPUs, and speeds of 1. With
/// several ranks: collective; the same on every rank.
std::vector<Candidate> all_workers(const Runtime& runtime);

/// The same with their speeds where settings.balance asks for them and there is something to compare: GPUs
/// and the cores beside them, or the workers of several ranks. Those of a kind whose speeds are within a
/// tenth of each other count as equal, on all ranks. With several ranks: collective; the same on every rank.
/// @param settings complete (omega) @throw TaskFailure, Stall; std::system_error: as seconds_until_done
template <class T>
std::vector<Candidate> measured_workers(Runtime& runtime, const Problem& problem, const Settings& settings);

/// Seconds from now until the tasks so far of some tiles have ended, by the clock of this rank, which owns
/// them. @param tiles in groups, each of which is waited for by a thread of its own
/// @return for each group: until all of it has ended
/// @throw Stall; std::system_error: a thread could not be started
std::vector<double> seconds_until_done(const std::vector<std::vector<const detail::TileBase*>>& tiles);

}  // namespace asterism::relaxation
