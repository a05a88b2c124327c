#include "residual_history.hpp"

#include <fmt/format.h>

#include "../../../runtime/error.hpp"

namespace asterism {

ResidualHistory::ResidualHistory(std::size_t most) : most_(most) {
  if (most < 2)
    throw Error(fmt::format(
        "a history of {} residuals at most: the first and the last need room, so give 2 or more", most));
}

void ResidualHistory::add(Index iteration, double residual) {
  const bool last_is_between = added_ > 0 && (added_ - 1) % stride_ != 0;
  if (last_is_between) {
    residuals_.pop_back();
    iterations_.pop_back();
  }
  while (residuals_.size() >= most_) thin_out();
  residuals_.push_back(residual);
  iterations_.push_back(iteration);
  ++added_;
}

/// Keeps the entries with even places: those whose numbers are multiples of twice the stride.
void ResidualHistory::thin_out() {
  std::size_t kept = 0;
  for (std::size_t place = 0; place < residuals_.size(); place += 2, ++kept) {
    residuals_[kept] = residuals_[place];
    iterations_[kept] = iterations_[place];
  }
  residuals_.resize(kept);
  iterations_.resize(kept);
  stride_ *= 2;
}

}  // namespace asterism
