/// \file
/// A grid with its frame, in blocks of slices, as wavefront sweeps have it.
#pragma once

#include <vector>

#include "../../codelets/wavefront/sweeps.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "problem.hpp"

namespace asterism::wavefront {

/// Values at the nodes and on the frame around them. Slices, which are points, rows or planes of the slowest axis,
/// with those of the frame, are cut into blocks of `height`; each block is a tile.
template <class T>
class FramedGrid {
 public:
  FramedGrid() = default;
  FramedGrid(Runtime& runtime, const WavefrontArgs& grid, Index height);

  [[nodiscard]] Index blocks() const { return tiles_.count(); }  ///< none, if it was made without a Runtime
  [[nodiscard]] const Tile<T>& operator[](Index block) const { return tiles_[block]; }

  /// Iterates: u at the nodes, contiguous, and on the frame what is given on the sides, one pair for each axis.
  void fill(const T* u, const std::vector<Problem::Sides>& sides) const;
  /// Right-hand sides: g = -f / diagonal at the nodes, and 0 on the frame, which nobody reads.
  void fill_source(const T* f, double diagonal) const;
  /// The nodes' values, to where the caller wants them.
  void store(T* u) const;

 private:
  /// Part of a row of a block: which numbers of its nx + 2 values it holds, and the numbers of its framed plane and
  /// row, 1 along an axis that there is not.
  struct Row {
    T* values;
    Index first, count, z, y;
  };
  template <class Visit>
  void for_rows(detail::HostAccess access, const Visit& visit) const;
  [[nodiscard]] bool is_framed(const Row& row) const;
  [[nodiscard]] Index first_node(const Row& row) const;

  WavefrontArgs grid_;
  Index height_ = 0;
  Tiles<T> tiles_;
};

}  // namespace asterism::wavefront
