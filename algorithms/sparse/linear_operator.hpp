/// \file
/// A x = b where nobody stores A: its user's own tasks multiply with it, and precondition.
#pragma once

#include <functional>
#include <utility>

#include "../../runtime/tile.hpp"
#include "../common/partition.hpp"

namespace asterism::sparse {

/// A vector as tasks see it: for each block of consecutive elements a tile of one row. A task may read those of other
/// blocks, too, whichever worker or rank has them.
template <class T>
class BlockVector {
 public:
  using TileOf = std::function<const Tile<T>&(Index block)>;

  /// @param blocks has to live as long
  BlockVector(const Partition& blocks, TileOf tile) : blocks_(&blocks), tile_(std::move(tile)) {}

  [[nodiscard]] Index count() const { return blocks_->count(); }
  [[nodiscard]] const Tile<T>& operator[](Index block) const { return tile_(block); }
  /// Tile `block`, for an optional port: nullptr before the first block and behind the last one.
  [[nodiscard]] const Tile<T>* if_there(Index block) const {
    return block >= 0 && block < count() ? &tile_(block) : nullptr;
  }
  /// Which elements a block has.
  [[nodiscard]] Index first(Index block) const { return (*blocks_)[block].first; }
  [[nodiscard]] Index size(Index block) const { return (*blocks_)[block].size; }
  /// Where a task that writes a block's tile had better run.
  [[nodiscard]] Hints hints(Index block) const { return blocks_->hints(block); }

 private:
  const Partition* blocks_;
  TileOf tile_;
};

/// A, and a preconditioner M. Both submit tasks, without waiting for any: for every block at least one, that writes the
/// whole of its tile in `to` and reads what it needs of `from`. With several ranks each submits the tasks of all
/// blocks, and runs its own.
template <class T>
struct LinearOperator {
  using Apply = std::function<void(const BlockVector<T>& from, const BlockVector<T>& to)>;

  Index rows = 0;
  Index line = 1;  ///< a block has a multiple of so many rows: a line of a grid, say; `rows` is one, too
  Apply multiply;  ///< to = A from
  Apply precondition = {};  ///< to = M^-1 from; none: M = I
};

}  // namespace asterism::sparse
