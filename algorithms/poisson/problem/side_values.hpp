/// \file
/// Values and derivatives given at the ends of axes.
#pragma once

#include <vector>

#include "../slabs/partition.hpp"

namespace asterism::poisson {

/// What is given, lifted into the right-hand side: the problem that is left has zeros at its ends.
class SideValues {
 public:
  /// @param problem see with_planes_to_cut. @param grid that of the problem; it and slabs have to outlive this
  SideValues(Runtime& runtime, const Problem& problem, const Grid& grid, const SlabPartition& slabs);

  /// Whether anything but zero is given.
  [[nodiscard]] bool any() const { return z_sides_.size() > 0; }
  /// Lifts it into a slab of f, by a task. @param axis rows of the slowest axis, of this slab
  template <class T>
  void lift(Slab s, const Tile<T>& f, const Tile<double>& axis, const Hints& hints) const;

 private:
  const Grid* grid_;
  const SlabPartition* slabs_;
  // Where there is any: per slab, and per rank.
  Tiles<double> x_sides_, y_sides_;
  PerRank<double> z_sides_;
};

}  // namespace asterism::poisson
