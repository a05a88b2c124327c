/// \file
/// A problem whose grid is cut in stripes of consecutive rows.
#pragma once

#include <vector>

#include "../../../codelets/sums/scaled.hpp"
#include "../../../runtime/runtime.hpp"
#include "../../../runtime/tile.hpp"
#include "../../common/partition.hpp"
#include "../problem.hpp"

namespace asterism::relaxation {

/// What all methods need that work on stripes: where they lie, and how f, u and the frame come to them.
template <class T>
class StripedProblem {
 public:
  /// @param stripes of the rows
  StripedProblem(Runtime& runtime, const Problem& problem, Partition stripes);

  [[nodiscard]] Index rows() const { return problem_.shape[0]; }
  [[nodiscard]] Index nodes() const { return problem_.shape[1]; }
  [[nodiscard]] const Discretisation& discretisation() const { return grid_; }
  [[nodiscard]] const Partition& stripes() const { return stripes_; }
  /// This rank's rows: [first_row, first_row + row_count); there may be none.
  [[nodiscard]] Index first_row() const { return mine_.first; }
  [[nodiscard]] Index row_count() const { return mine_.count(); }
  [[nodiscard]] Stripe stripe(std::size_t s, Index halo) const;

  /// Tiles for codelets::fill_stripe: 2 x (nodes + 2), the frame's rows, for a rank's stripes; and (rows + 2
  /// halo) x 2, its columns beside a stripe.
  [[nodiscard]] Tile<T> frame_rows(int rank) const;
  [[nodiscard]] Tile<T> frame_columns(std::size_t s, Index halo) const;
  /// A stripe's rows x nodes numbers where the caller has them, borrowed: the caller's memory has to outlive
  /// the tile, whose end waits for its tasks. @param rows this rank's rows, from first_row() on, contiguous
  [[nodiscard]] Tile<T> borrow(T* rows, std::size_t s) const;
  /// That of the rank that works on the stripe.
  [[nodiscard]] const auto& mine(const auto& of_ranks, std::size_t s) const {
    return stripes_.mine(of_ranks, static_cast<Index>(s));
  }

  /// Whether there is an f: on all ranks that have rows, or on none. With several ranks: collective.
  /// @throw Error: on some.
  [[nodiscard]] bool agree_on_source(const T* f) const;
  /// By how much ||b / d||^2 exceeds ||f / d||^2: b is f less what the operator takes from the frame. With
  /// several ranks: collective. @param f this rank's rows; nullptr: 0
  [[nodiscard]] sums::Scaled lifted_squares(const T* f) const;

 private:
  Runtime* runtime_;
  Problem problem_;
  Discretisation grid_;
  Partition stripes_;
  Partition::Range mine_;  // rows
};

}  // namespace asterism::relaxation
