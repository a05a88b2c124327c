/// \file
/// What wavefront-tiled SOR solves, and how it is told to.
#pragma once

#include <optional>
#include <vector>

#include "../../codelets/wavefront/sweeps.hpp"
#include "../common/iteration/observer.hpp"

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
  Observer observer = {};  ///< is told the residuals
};

/// What a solver submits at once on a GPU, all sweeps between two residuals, for whoever chooses a layout:
/// there is none yet, nor a source. @throw Error: a problem or settings that the solver refuses on any
/// machine
WavefrontArgs sweeps_at_once(const Problem& problem, const Settings& settings);

/// (W1) on a grid.
struct Discretisation {
  WavefrontArgs grid;  ///< its nodes and weights
  double diagonal;
  double jacobi_gap;     ///< 1 - rho, rho = sum of 2 a_axis cos(pi / (n_axis + 1)), to full accuracy
  double operator_norm;  ///< ||A||_inf
};
Discretisation discretise(const Problem& problem);

/// The settings with omega and check_every chosen where they and the problem are sound.
/// @throw Error: see Solver's constructor; but the layout is not looked at
Settings completed(const Problem& problem, Settings settings);

/// By how much a sweep reduces the error in the end.
double spectral_radius(const Discretisation& discretisation, double omega, Direction direction);

}  // namespace asterism::wavefront
