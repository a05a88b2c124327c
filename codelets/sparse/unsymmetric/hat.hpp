/// \file
/// M^-1 v of a vector v that a step makes: what A is multiplied with next.
#pragma once

#include "../exchange.hpp"

namespace asterism::sparse {

/// Who makes M^-1 v.
enum class Hat {
  by_step,   ///< the step does: v itself, or the inverse diagonal times it
  by_tasks,  ///< tasks of M's own, after it
};

namespace cpu {

/// hat = M^-1 v where the step does it, and what others need of that.
template <class T, class V>
void leave_hat(Hat by, const T* v, Index rows, const Optional<In<V>>& inverse_diagonal, T* hat,
               const Departures<AsPorts, T>& departures) {
  if (by == Hat::by_tasks) return;
  for (Index i = 0; i < rows; ++i)
    hat[i] = inverse_diagonal ? static_cast<T>(inverse_diagonal.data[i]) * v[i] : v[i];
  pack(static_cast<const T*>(hat), departures);
}

}  // namespace cpu
}  // namespace asterism::sparse
