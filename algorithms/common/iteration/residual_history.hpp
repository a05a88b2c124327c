/// \file
/// The residuals of an iteration, however long it is, in bounded memory.
#pragma once

#include <cstddef>
#include <vector>

#include "../../../runtime/ports.hpp"

namespace asterism {

/// Keeps all residuals while they are few. When there is no room for more, every second one is dropped, and from then
/// on every second one is kept, every fourth, and so on. The first and the last one are always there.
class ResidualHistory {
 public:
  /// @param most entries that are kept, at least 2. @throw Error: fewer
  explicit ResidualHistory(std::size_t most = 4096);

  void add(Index iteration, double residual);

  /// The residuals that are kept, in order,
  [[nodiscard]] const std::vector<double>& residuals() const { return residuals_; }
  /// and the iterations before each of them.
  [[nodiscard]] const std::vector<Index>& iterations() const { return iterations_; }

 private:
  void thin_out();

  std::size_t most_;
  std::size_t added_ = 0;   // so far,
  std::size_t stride_ = 1;  // of which those with multiples of this number are kept, and the last one
  std::vector<double> residuals_;
  std::vector<Index> iterations_;
};

}  // namespace asterism
