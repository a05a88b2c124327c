/// \file
/// Residuals of a grid in stripes.
#pragma once

#include <optional>
#include <vector>

#include "../../codelets/sums/sums.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "../common/iteration/convergence.hpp"
#include "stripes/stripes.hpp"

namespace asterism::relaxation {

/// The sums over a grid's nodes that residuals are made of, stripe by stripe: those of two successive
/// residuals, so that the one is looked at while the workers are at the next.
class ResidualSums {
 public:
  ResidualSums(Runtime& runtime, const std::vector<Part>& stripes);

  /// What codelets::stripe_residual writes for residual number `number`, and its scratch memory.
  [[nodiscard]] const Tile<sums::SquareSum>& sums(std::size_t s, Index number) const;
  [[nodiscard]] const Tile<sums::SquareSum>& work(std::size_t s) const;

  /// Waits for the sums of a residual. Added in the order of the stripes, so that all ranks decide alike.
  /// @param diagonal d, which the sums are over @param lifted see StripedProblem::lifted_squares
  /// @return none where a task has failed, on any rank. @throw Stall
  [[nodiscard]] std::optional<Norms> norms(Index number, double diagonal, const sums::Scaled& lifted) const;
  /// Waits, too. How much later than the first of this rank's workers the last one has the sums of a residual
  /// that was just submitted, in seconds. @throw as seconds_until_done
  [[nodiscard]] double spread(Index number) const;

 private:
  Runtime* runtime_;
  std::vector<Part> stripes_;
  std::vector<Tile<sums::SquareSum>> sums_[2];  // of each stripe
  PerRank<sums::SquareSum> work_;
};

}  // namespace asterism::relaxation
