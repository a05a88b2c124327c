/// \file
/// Which slabs there are, and which rank and GPU gets them.
#pragma once

#include <algorithm>
#include <vector>

#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "../common/one_per_rank.hpp"
#include "layout.hpp"
#include "problem.hpp"

namespace asterism::poisson {

/// One slab among those of the batch.
struct Slab {
  Index number;   ///< among all of the batch
  Index problem;  ///< of the batch
  Index place;    ///< among those of its problem, 0 ... Layout::slabs - 1
};

/// The grids of a batch, cut into slabs of consecutive planes that the ranks own.
class SlabPartition {
 public:
  SlabPartition() = default;
  /// @param grid, layout have to outlive it. @param gpus of this rank
  SlabPartition(Runtime& runtime, const Grid& grid, const Layout& layout, int gpus)
      : runtime_(&runtime), grid_(&grid), layout_(&layout), gpus_(gpus) {}

  /// Slabs of the whole batch.
  [[nodiscard]] Index count() const { return grid_->batch * layout_->slabs; }
  [[nodiscard]] Slab slab(Index problem, Index place) const {
    return {problem * layout_->slabs + place, problem, place};
  }
  [[nodiscard]] Slab operator[](Index number) const {
    return {number, number / layout_->slabs, number % layout_->slabs};
  }
  [[nodiscard]] bool is_first(Slab s) const { return s.place == 0; }
  [[nodiscard]] bool is_last(Slab s) const { return s.place == layout_->slabs - 1; }

  /// How many planes the slabs at a place of the axis have, and where these begin in their problem.
  [[nodiscard]] Index planes_of(Index place) const {
    return std::min(layout_->slab_planes, grid_->planes - first_in_problem(place));
  }
  [[nodiscard]] Index first_in_problem(Index place) const { return place * layout_->slab_planes; }
  /// Where a slab, or the end of all of them, begins among the planes of the whole batch.
  [[nodiscard]] Index first_plane(Index number) const;

  [[nodiscard]] int owner(Index number) const;
  [[nodiscard]] bool is_mine(Slab s) const { return owner(s.number) == runtime_->rank(); }
  /// The slabs of a rank: [first, end). `owner` read the other way.
  struct Range {
    Index first, end;
  };
  [[nodiscard]] Range of_rank(int rank) const;

  /// Where the tasks of a slab run.
  [[nodiscard]] Hints hints(Slab s) const;
  /// The slabs of a problem in the order of their turns: each lane's one by one, all lanes in step, so that all links
  /// are busy at any time.
  [[nodiscard]] std::vector<Slab> turns(Index problem) const;

  /// A tile of rows x cols for every slab.
  template <class U = double>
  [[nodiscard]] Tiles<U> per_slab(Index rows, Index cols) const {
    return Tiles<U>(*runtime_, count() * rows, cols, rows, cols, owners());
  }
  /// A tile for every slab, with a row of `cols` for each of its planes; in the caller's memory, if that is given.
  template <class U = double>
  [[nodiscard]] Tiles<U> per_plane(Index cols, const typename Tiles<U>::Address& address = {}) const {
    std::vector<Index> heights;
    for (Index number = 0; number < count(); ++number) heights.push_back(planes_of((*this)[number].place));
    return Tiles<U>(*runtime_, heights, cols, owners(), address);
  }
  /// That of the rank that works on the slab.
  template <class Value>
  [[nodiscard]] const Value& mine(const std::vector<Value>& one_per_rank, Slab s) const {
    return one_per_rank[static_cast<std::size_t>(owner(s.number))];
  }

 private:
  [[nodiscard]] Tiles<double>::Owner owners() const {
    return [this](Index number, Index) { return owner(number); };
  }
  /// The GPU, counted over all ranks, that works on a slab.
  [[nodiscard]] Index lane(Index number) const;

  Runtime* runtime_ = nullptr;
  const Grid* grid_ = nullptr;
  const Layout* layout_ = nullptr;
  int gpus_ = 0;
};

/// Writes value(row, column) to a tile, where this rank owns it.
template <class T, class Value>
void set(const Runtime& runtime, const Tile<T>& tile, Value value) {
  if (tile.owner() != runtime.rank()) return;
  const HostView<T> view(tile, HostView<T>::Access::write);
  for (Index i = 0; i < view.rows(); ++i)
    for (Index j = 0; j < view.cols(); ++j) view(i, j) = static_cast<T>(value(i, j));
}

}  // namespace asterism::poisson
