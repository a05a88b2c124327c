/// \file
/// Looks at an iteration of which nothing but the residual is to be seen.
#pragma once

#include <optional>

#include "../../codelets/decomposition/schwarz.hpp"
#include "../sparse/krylov/looks.hpp"

namespace asterism::decomposition {

class ResidualLooks {
 public:
  explicit ResidualLooks(Runtime& runtime) : looks_(runtime) {}

  /// @param all_rr the parts of (r, r) @param iterations that were submitted before
  void submit(Index number, const TileList<double>& all_rr, Index iterations) {
    looks_.submit(
        number,
        [&](const Tile<double>&, const Tile<double>& shown) {
          codelets::add_up_all(all_rr, shown, {.where = Where::cpu});
        },
        none_, iterations);
  }
  /// Waits for (r, r), with the iterations before it. None, on all ranks: a task has failed.
  /// @tparam Seen what a KrylovSolver sees
  template <class Seen>
  [[nodiscard]] std::optional<Seen> wait_for(Index number) const {
    const std::optional<double> rr = looks_.wait_for(number);
    if (!rr) return {};
    return Seen{*rr, looks_.iterations_before(number), {}};
  }

 private:
  sparse::KrylovLooks<double> looks_;
  Tile<double> none_;  // there is no state of a block's
};

}  // namespace asterism::decomposition
