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
#include "../common/iteration/convergence.hpp"
#include "framed_grid.hpp"
#include "layout.hpp"
#include "problem.hpp"

namespace asterism::wavefront {

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
  /// @return as iterate(), algorithms/common/iteration/iteration.hpp, which looks at residuals at once; iterations are sweeps
  /// @throw Error: given tiles that do not fit in a GPU's block beside an f; and as iterate().
  Report solve(const T* f, T* u);

 private:
  /// The order of the nodes in a sweep.
  enum class Order { forward, backward };

  void choose_layout(const Machine& machine);
  void make_tiles();
  void require_room_for_source() const;
  void load(const T* f, const T* u);
  void step(Index sweeps);
  void sweep(Index count, Order order);
  void sweep_on_gpu(WavefrontArgs grid, Index count);
  void sweep_on_cpus(WavefrontArgs grid, Index count);
  void submit_residual();
  [[nodiscard]] Norms norms() const;
  [[nodiscard]] Hints cpu_hints(Index sweeps = 0) const;

  Runtime& runtime_;
  Settings settings_;
  Discretisation discretisation_;
  WavefrontArgs grid_;                 // with layout, omega and most sweeps of a submission
  std::vector<Problem::Sides> sides_;  // of each axis
  bool on_gpu_ = false;
  std::optional<std::size_t> tasks_in_memory_;
  std::array<int, 2> most_blocks_ = {};  // GpuLayout

  Index height_ = 0;  // slices of a block; on a GPU there is one block, the whole grid
  FramedGrid<T> u_, g_;
  Tiles<sums::SquareSum> sums_;
  Tile<unsigned> meeting_;
  Tile<sums::SquareSum> work_;
  std::array<Tile<T>, 5> none_;  // for blocks that do not exist, one for each port
  Index sweeps_done_ = 0;
};

}  // namespace asterism::wavefront
