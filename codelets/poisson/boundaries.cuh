/// \file
/// Where kernels keep the boundaries of the segments of a column: `at(p, b)` is row p, a JoinedRow, of that of segment b.
#pragma once

#include "interface_tiles.hpp"

namespace asterism::poisson::cuda {

template <class At>
__device__ Response load_response(const At& at, Index b) {
  const auto row = [&](Index p) { return at(joined_response_row + p, b); };
  return {{row(first_before_row), row(first_after_row), row(first_lost_row)},
          {row(last_before_row), row(last_after_row), row(last_lost_row)}};
}
template <class At>
__device__ Boundary load_boundary(const At& at, Index b) {
  return {at(y_first_row, b), at(y_last_row, b), load_response(at, b)};
}
template <class At>
__device__ void store_shown(const At& at, Index b, double y_first, double y_last) {
  at(y_first_row, b) = y_first;
  at(y_last_row, b) = y_last;
}
template <class At>
__device__ void store(const At& at, Index b, const Boundary& boundary) {
  const auto row = [&](Index p) -> double& { return at(joined_response_row + p, b); };
  store_shown(at, b, boundary.y_first, boundary.y_last);
  row(first_before_row) = boundary.response.first.before;
  row(first_after_row) = boundary.response.first.after;
  row(first_lost_row) = boundary.response.first.lost;
  row(last_before_row) = boundary.response.last.before;
  row(last_after_row) = boundary.response.last.after;
  row(last_lost_row) = boundary.response.last.lost;
}

}  // namespace asterism::poisson::cuda
