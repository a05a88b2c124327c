/// \file
/// Right-hand sides whose solutions are known.
#pragma once

#include <cstdint>
#include <vector>

#include "../../../codelets/grid/laplacian.hpp"
#include "../slabs/partition.hpp"

namespace asterism::poisson {

/// A problem whose solution is known: a model, and what its numbers are drawn from.
struct Known {
  grid::Model model = grid::Model::sine;
  std::uint64_t seed = 1;  ///< of the first problem of the batch; the next ones have the next ones
};

/// A solver's grids with models on them, slab by slab.
template <class T>
class ModelProblems {
 public:
  /// The arguments have to outlive it. @param axis rows of the slowest axis, per slab
  ModelProblems(Runtime& runtime, const Grid& grid, const Layout& layout, const SlabPartition& slabs,
                const Tiles<double>& axis)
      : runtime_(&runtime), grid_(&grid), layout_(&layout), slabs_(&slabs), axis_(&axis) {}

  /// The model on the grid of a slab's problem.
  [[nodiscard]] grid::ModelProblem problem(const Known& known, Slab s) const {
    return {known.model, known.seed + static_cast<std::uint64_t>(s.problem), grid_->slow, grid_->a};
  }
  /// Puts its right-hand side into the tile of a slab, by a task.
  void fill(Slab s, const Tile<T>& f, const Known& known) const;
  /// The mean of its u in every problem of the batch. Collective. @throw TaskFailure, Stall
  [[nodiscard]] std::vector<double> means_of(const Known& known) const;

 private:
  Runtime* runtime_;
  const Grid* grid_;
  const Layout* layout_;
  const SlabPartition* slabs_;
  const Tiles<double>* axis_;
};

}  // namespace asterism::poisson
