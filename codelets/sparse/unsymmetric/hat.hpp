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

/// to = D^-1 v, or v. @param d nullptr: D is 1
template <class T, class V>
void scale(const T* v, const V* d, T* to, Index first, Index end) {
  for (Index i = first; i < end; ++i) to[i] = d != nullptr ? static_cast<T>(d[i]) * v[i] : v[i];
}

/// hat = M^-1 v where the step does it, and what others need of that.
template <class T, class V>
void leave_hat(Hat by, const T* v, Index rows, const Optional<In<V>>& inverse_diagonal, T* hat,
               const Departures<AsPorts, T>& departures) {
  if (by == Hat::by_tasks) return;
  scale<T, V>(v, inverse_diagonal.data, hat, 0, rows);
  pack(static_cast<const T*>(hat), departures);
}

}  // namespace cpu
}  // namespace asterism::sparse
