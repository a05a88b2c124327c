/// \file
/// How good a solution is: its residual, and its error where the solution is known.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "../../../codelets/sums/sums.hpp"
#include "../../../runtime/hardware/pinned_buffer.hpp"
#include "../../../runtime/report.hpp"
#include "../../common/stopwatch.hpp"
#include "models.hpp"
#include "side_values.hpp"

namespace asterism::poisson {

/// Half a unit in the last place of 1.
template <class T>
constexpr double rounding = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

/// A backward error, as the scaled residual is, of so many eps is more than rounding does in any solve that went well,
/// however ill-conditioned the problem.
constexpr double most_eps = 64;

/// How good a solution is.
struct Check {
  /// ||f - A u||_2 / (||A|| ||u||_2 + ||f||_2), f with the given values lifted into it
  double scaled_residual = 0;
  /// not_finite; inaccurate: the scaled residual is above most_eps roundings to T; solved
  Reason reason = Reason::solved;
  /// ||u - known||_2 / ||known||_2; where constants solve the homogeneous problem, the mean of a random known
  /// u is taken away first, as solve() does with that of u
  std::optional<double> error;
  double seconds = 0;
};

/// What a check looks at beside u. All of it has to outlive the check.
template <class T>
struct CheckedProblem {
  const Grid& grid;
  const Layout& layout;
  const SlabPartition& slabs;
  const Tiles<double>& axis;             ///< rows of the slowest axis, per slab
  const Tiles<T>&front, &back;           ///< first and last plane of u, per slab
  const SideValues& side_values;         ///< which were lifted into f
  const std::vector<double>& projected;  ///< means that were taken off f, per problem; empty: none
};

/// The check of one solution, slab by slab: no more than two slabs are there at a time beside it.
template <class T>
class SolutionCheck {
 public:
  /// Puts planes of the right-hand side into the tile of a slab, from the host or by a task.
  using Source = std::function<void(Index slab, Tile<T>& f)>;

  /// @param known the model that the right-hand side is of, if it is
  SolutionCheck(Runtime& runtime, const CheckedProblem<T>& problem, const ModelProblems<T>& models,
                const std::optional<Known>& known);

  /// With several ranks: collective. @param u tiles of the slabs @throw TaskFailure, Stall
  Check operator()(const Tiles<T>& u, const Source& source);

 private:
  [[nodiscard]] const Tile<T>& plane_beside(Slab s, Index step, const Tiles<T>& edges) const;
  [[nodiscard]] const Tile<T>& right_hand_side(Slab s, const Source& source);
  void submit(Slab s, const Tile<T>& u, const Tile<T>& f) const;
  [[nodiscard]] std::vector<sums::SquareSum> total() const;

  Stopwatch watch_;
  Runtime* runtime_;
  CheckedProblem<T> problem_;
  const ModelProblems<T>* models_;
  std::optional<Known> known_;
  std::vector<double> means_;  // of the known solutions, where those are taken away
  Tiles<sums::SquareSum> sums_;
  PerRank<T> zeros_;
  PerRank<sums::SquareSum> work_;
  // Two take turns for f: one is filled while the other is being looked at. Replacing a tile waits for its tasks.
  PinnedBuffer buffers_[2];
  Tile<T> f_[2];
};

}  // namespace asterism::poisson
