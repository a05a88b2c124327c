/// \file
/// Values for a tile, from the host.
#pragma once

#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"

namespace asterism {

/// Writes value(row, column) to a tile, where this rank owns it.
template <class T, class Value>
void set(const Runtime& runtime, const Tile<T>& tile, Value value) {
  if (tile.owner() != runtime.rank()) return;
  const HostView<T> view(tile, HostView<T>::Access::write);
  for (Index i = 0; i < view.rows(); ++i)
    for (Index j = 0; j < view.cols(); ++j) view(i, j) = static_cast<T>(value(i, j));
}

}  // namespace asterism
