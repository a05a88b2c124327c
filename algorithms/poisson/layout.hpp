/// \file
/// How a grid is cut into slabs, and where these are worked on.
///
/// Slabs are made for ranks that are equal, and are as high whoever gets how many of them: the bits of u follow from the
/// layout alone. Which rank and GPU gets which slabs is decided after that (slabs/dealing.hpp).
#pragma once

#include <vector>

#include "../../codelets/poisson/slabs.hpp"
#include "../../runtime/hardware/machine.hpp"
#include "../common/partition.hpp"
#include "problem/problem.hpp"

namespace asterism::poisson {

enum class Mode {
  automatic,  ///< in core where the grid fits in the memories of the workers, else streaming
  incore,     ///< slabs stay where they are between the passes, transformed once
  streaming,  ///< slabs pass through; they are transformed in both passes
};

/// What to do about a right-hand side whose mean does not vanish, where constants solve the homogeneous problem.
enum class Mean {
  require,  ///< an Error says so
  project,  ///< it is subtracted
};

struct Settings {
  Mode mode = Mode::automatic;
  Index slab_planes = 0;  ///< planes (in two dimensions: rows) of a slab; 0: chosen from the memories
  bool fetch_result =
      true;  ///< bring the solution to main memory as it is made, rather than when somebody asks
  Mean mean = Mean::require;
  /// To what the numbers of f and of given values were rounded, relatively, where that is coarser than the solver's own
  /// precision: 0x1p-24 of float32, say, for a solver in float64. Their mean can vanish no better. 0: to the solver's.
  double source_rounding = 0;
  /// How slabs are divided among ranks and GPUs (slabs/dealing.hpp). Small grids are divided by the number of workers.
  Balance balance = Balance::measured;
  /// Of the ranks: how many slabs each gets, in proportion, whatever `balance` says; empty: nothing is known of them.
  std::vector<double> weights = {};
};

/// The same on every rank, but for where slabs and interface systems are worked on, whether the latter's tiles are kept there,
/// and how many planes and slabs at once.
struct Layout {
  Mode mode = Mode::incore;
  Where where = Where::cpu;
  Index slab_planes = 0, slabs = 0;  ///< of one problem of the batch
  Index planes_at_once = 0;          ///< planes that are transformed together, see SlabArgs
  Index scratch = 0;                 ///< float64 elements of working memory of a slab's task
  Index slabs_in_flight = 0;         ///< streaming: slabs that may be in the workers' memory at a time
  Index lanes = 1;                   ///< GPUs of this rank; 1 where slabs go to any worker
  /// To a rank's GPUs. In turns the interface systems are eliminated while later slabs still come.
  Dealing dealing = Dealing::blocks;
  Where interface = Where::cpu;  ///< where what the slabs show is worked on
  bool keeps_interface = false;  ///< whether its tiles have room of their own on the GPUs, beside the stream
  /// Whether how prefixes respond is found anew in every solve, as it is given up on the way back of the one before.
  bool repeats_responses = false;

  /// Whether they come to the GPUs and go again as the slabs do.
  [[nodiscard]] bool interface_passes() const {
    return mode == Mode::streaming && interface == Where::cuda && !keeps_interface;
  }
};

/// Whether a grid of so many bytes can stay in a memory, whose rest is for what works on it.
constexpr bool stays_in(Index bytes, Index memory) { return bytes < memory / 10 * 8; }

/// What all ranks together are.
struct RankedMachine {
  Index cores = 0;    ///< that work
  bool equal = true;  ///< whether all have as many GPUs, with as much memory
};

/// For Options. The few tasks of a small grid each have a worker of choice: to foretell how long they will take, as dmdas
/// does, takes 1 to 2.5 us a task, of 45 that a solve of 255 x 255 takes on an H200. Larger grids may come and go, and dmdas
/// has their slabs fetched ahead.
Preferences preferences(const Problem& problem);

/// Sizes and mode from those of grid and memories. `args.planes_at_once` is chosen here.
/// @throw Error: the slabs asked for cannot be, or not even two (one, where there is but one) and their working memory fit.
template <class T>
Layout choose_layout(const Machine& machine, const RankedMachine& all, const Grid& grid,
                     const Settings& settings, SlabArgs args);

}  // namespace asterism::poisson
