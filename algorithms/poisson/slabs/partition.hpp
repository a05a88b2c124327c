/// \file
/// Which slabs there are, and which rank and GPU gets them.
#pragma once

#include <optional>
#include <vector>

#include "../../../runtime/per_rank.hpp"
#include "../../../runtime/runtime.hpp"
#include "../../../runtime/tile.hpp"
#include "../../common/partition.hpp"
#include "../layout.hpp"

namespace asterism::poisson {

/// One slab among those of the batch.
struct Slab {
  Index number;   ///< among all of the batch
  Index problem;  ///< of the batch
  Index place;    ///< among those of its problem, 0 ... Layout::slabs - 1
};

/// The grids of a batch, cut into slabs of consecutive planes that the ranks own: a partition of the planes of the
/// whole batch, one problem's after the other's, in which slab s is part s.number.
class SlabPartition {
 public:
  SlabPartition() = default;
  /// @param slabs see deal_slabs
  SlabPartition(Runtime& runtime, const Layout& layout, Partition slabs)
      : runtime_(&runtime), slabs_per_problem_(layout.slabs), slabs_(std::move(slabs)) {}

  /// Slabs of the whole batch.
  [[nodiscard]] Index count() const { return slabs_.count(); }
  [[nodiscard]] Slab slab(Index problem, Index place) const {
    return {problem * slabs_per_problem_ + place, problem, place};
  }
  [[nodiscard]] Slab operator[](Index number) const {
    return {number, number / slabs_per_problem_, number % slabs_per_problem_};
  }
  [[nodiscard]] bool is_first(Slab s) const { return s.place == 0; }
  [[nodiscard]] bool is_last(Slab s) const { return s.place == slabs_per_problem_ - 1; }
  /// The slab so many steps (-1 or 1) along the axis, where there is one.
  [[nodiscard]] std::optional<Slab> beside(Slab s, Index step, Border border) const;

  /// How many planes the slabs at a place of the axis have, and where these begin in their problem.
  [[nodiscard]] Index planes_of(Index place) const { return slabs_[place].size; }
  [[nodiscard]] Index first_in_problem(Index place) const { return slabs_[place].first; }
  /// Where a slab, or the end of all of them, begins among the planes of the whole batch.
  [[nodiscard]] Index first_plane(Index number) const {
    return number < count() ? slabs_[number].first : slabs_.extent();
  }

  [[nodiscard]] int owner(Index number) const { return slabs_.owner(number); }
  [[nodiscard]] bool is_mine(Slab s) const { return owner(s.number) == runtime_->rank(); }
  /// The planes of this rank.
  [[nodiscard]] Partition::Range my_planes() const { return slabs_.elements_of(runtime_->rank()); }

  /// Where the tasks of a slab run.
  [[nodiscard]] Hints hints(Slab s) const;
  /// The slabs of a problem in the order of their turns: from both ends of the axis to the middle, as the elimination goes;
  /// each lane's one by one, all lanes in step, so that all links are busy at any time.
  [[nodiscard]] std::vector<Slab> turns(Index problem) const;

  /// A tile of rows x cols for every slab.
  template <class U = double>
  [[nodiscard]] Tiles<U> per_slab(Index rows, Index cols) const {
    return slabs_.equal_tiles<U>(*runtime_, rows, cols);
  }
  /// A tile for every slab, with a row of `cols` for each of its planes; in the caller's memory, if that is given.
  template <class U = double>
  [[nodiscard]] Tiles<U> per_plane(Index cols, const typename Tiles<U>::Address& address = {}) const {
    return slabs_.tiles<U>(*runtime_, cols, address);
  }
  /// That of the rank that works on the slab.
  [[nodiscard]] const auto& mine(const auto& of_ranks, Slab s) const {
    return slabs_.mine(of_ranks, s.number);
  }

 private:
  Runtime* runtime_ = nullptr;
  Index slabs_per_problem_ = 0;
  Partition slabs_;
};

}  // namespace asterism::poisson
