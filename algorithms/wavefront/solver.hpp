/// \file
/// Poisson's and Laplace's equation in one, two and three dimensions by wavefront-tiled SOR.
///
///     sum over axes of d^2 u / d axis^2 = f on an interval, a rectangle or a box, u given on its border (W2)
///
/// The nodes are relaxed in lexicographic order, as the sequential loop does it, and with its results (W1),
/// whatever the tiles. On a GPU all sweeps up to the next residual are one kernel. On CPUs the slowest axis
/// is cut into blocks, and the tiles, several sweeps of skewed blocks, are tasks: their wavefronts come from
/// the blocks that they read and change.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "../../codelets/wavefront/sweeps.hpp"
#include "../../runtime/report.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "../common/convergence.hpp"

namespace asterism::wavefront {

struct Problem {
  std::vector<Index> shape;          ///< unknowns along the axes, slowest first: 1 to 3 extents
  std::vector<double> lengths = {};  ///< of the axes; empty: 1
  struct Sides {
    double lower = 0, upper = 0;  ///< what u is before the first node, after the last
  };
  std::vector<Sides> sides = {};  ///< of the axes; empty: 0
};

/// The order of the sweeps.
enum class Direction {
  forward,
  /// Forward, backward, forward, ...: symmetric SOR. Its tiles have one sweep each, and on CPUs, where only
  /// the slowest axis is cut, they follow one another.
  symmetric,
};

struct Settings {
  /// None: the best one. With rho, the spectral radius of Jacobi's method: 2 / (1 + sqrt(1 - rho^2)) for
  /// forward sweeps, 2 / (1 + sqrt(2 (1 - rho))) for symmetric ones.
  std::optional<double> omega;
  Index sweeps = 0;      ///< at most so many; 0: no limit but that of the tolerance
  double tolerance = 0;  ///< stop at this scaled residual, [Czapinski 2014] (4.13); 0: never
  /// Sweeps between two residuals; 0: chosen. A residual waits for all tiles.
  Index check_every = 0;
  Direction direction = Direction::forward;
  /// None: chosen from the grid. On CPUs only the sweeps and the points along the slowest axis are meant. On
  /// a GPU threads and blocks that are 0 are chosen.
  std::optional<WavefrontLayout> layout;
};

/// What a solver submits at once on a GPU, all sweeps between two residuals, for whoever chooses a layout:
/// there is none yet, nor a source. @throw Error: a problem or settings that the solver refuses on any
/// machine
WavefrontArgs sweeps_at_once(const Problem& problem, const Settings& settings);

/// Plans once, solves any number of right-hand sides.
template <class T>
class Solver {
 public:
  /// @throw Error: not 1 to 3 extents, one below 1, lengths not positive, sides or omega that cannot be, a
  /// layout that the machine cannot run, neither sweeps nor tolerance, several ranks.
  Solver(Runtime& runtime, const Problem& problem, const Settings& settings);

  /// What was chosen.
  [[nodiscard]] const Settings& settings() const { return settings_; }

  /// @param f  contiguous; nullptr: Laplace's equation, f = 0
  /// @param u  the first guess, then the result
  /// @return reason: solved (the tolerance was reached, or none was given), iteration_limit, stagnation,
  /// divergence, not_finite; iterations: sweeps; residual_history: scaled, one each check_every sweeps, the
  /// first before any sweep; seconds: "load", "sweeps", "store".
  /// @throw Error: given tiles that do not fit in a GPU's block beside an f; TaskFailure, Stall.
  Report solve(const T* f, T* u);

 private:
  void choose_layout(const Machine& machine);
  void choose_blocks();
  void choose_slices(const Machine& machine);
  void make_tiles();
  template <class Visit>
  void for_rows(const Tiles<T>& grid, detail::HostAccess access, const Visit& visit) const;
  void load(const T* f, const T* u);
  void store(T* u) const;
  [[nodiscard]] Hints cpu_hints(Index sweeps = 0) const;
  void sweep(Index count, bool backward);
  [[nodiscard]] relaxation::Norms norms() const;

  Runtime& runtime_;
  Settings settings_;
  WavefrontArgs grid_;
  double diagonal_ = 0, operator_norm_ = 0;
  double radius_ = 0;                  ///< of the iteration
  std::vector<Problem::Sides> sides_;  ///< of each axis
  bool on_gpu_ = false;
  std::optional<std::size_t> tasks_in_memory_;
  std::array<int, 2> most_blocks_ = {};  ///< that a GPU can have at once: without a source, with one

  Index height_ = 0;  ///< slices of a block; on a GPU there is one block, the whole grid
  Tiles<T> u_, g_;
  Tiles<sums::SquareSum> sums_;
  Tile<unsigned> meeting_;
  Tile<sums::SquareSum> work_;
  std::array<Tile<T>, 5> none_;  ///< for blocks that do not exist, one for each port
};

}  // namespace asterism::wavefront
