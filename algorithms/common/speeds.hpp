/// \file
/// How fast workers are at what an algorithm wants of them.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "workers.hpp"

namespace asterism {

/// Tasks on one worker, by which its speed is measured.
struct Trial {
  double work = 0;                     ///< of them together, in what speeds are to be counted in
  std::function<void()> prepare = {};  ///< called before they are submitted, and not timed; empty: nothing
  std::function<void()> submit = {};   ///< on every rank, whoever runs them
  const detail::TileBase* last = nullptr;  ///< the tile that the last of them writes
};

/// Runs the trials of all workers at the same time, as they will have to share the memory's bandwidth, three times; the
/// best one counts. Workers of a kind whose speeds are within a tenth of each other count as equal. With several ranks:
/// collective; the same speeds on every rank.
/// @param workers in the order of ranks @param trials one for each of them
/// @throw TaskFailure, Stall
void measure_speeds(Runtime& runtime, std::vector<Candidate>& workers, const std::vector<Trial>& trials);

/// Differences below a tenth are noise: such workers of a kind get the speed of the slowest of them.
void even_out(std::vector<Candidate>& workers);

/// Seconds from a time on until the tasks so far of some tiles have ended, by the clock of this rank, which owns
/// them. @param tiles in groups @return for each group: until all of it has ended, 0 for an empty one @throw Stall
std::vector<double> seconds_until_done(
    const std::vector<std::vector<const detail::TileBase*>>& tiles,
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now());

}  // namespace asterism
