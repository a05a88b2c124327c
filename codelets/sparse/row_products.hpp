/// \file
/// Products of consecutive rows on a CPU: (B1), in loops that vectorise as far as the format lets them.
#pragma once

#include <algorithm>

#include "matrix.hpp"

namespace asterism::sparse::cpu {

/// Rows at a time, so that what is done with their products finds them in the first cache.
inline constexpr Index chunk_rows = 1024;

/// y[i - first] = (B1) for the rows [first, end). @param x the block's whole vector
template <class Rows, class T>
void products(const Rows& rows, Index first, Index end, const T* __restrict x, T* __restrict y) {
  for (Index i = first; i < end; ++i) y[i - first] = rows.product(i, x);
}

/// Diagonal by diagonal.
template <class V, class T>
void products(const DiagonalRows<V>& rows, Index first, Index end, const T* __restrict x, T* __restrict y) {
  std::fill_n(y, end - first, T{});
  for (int k = 0; k < rows.count; ++k) {
    const Index shift = rows.own + rows.offsets[k];
    const Index from = std::max(first, -shift), to = std::min(end, rows.cols - shift);
    const V* const values = rows.values + k * rows.rows;
    for (Index i = from; i < to; ++i) y[i - first] += static_cast<T>(values[i]) * x[shift + i];
  }
}

/// Line by line: within a line all nodes have the same neighbours, but for its ends.
template <class V, class T>
void products(const StencilRows<V>& rows, Index first, Index end, const T* __restrict x, T* __restrict y) {
  const Stencil& s = rows.stencil;
  const std::int64_t plane = s.nx * s.ny;
  T c[7];
  for (int k = 0; k < 7; ++k) c[k] = static_cast<T>(static_cast<V>(s.coefficients[k]));
  for (Index i = first; i < end;) {
    const std::int64_t place = s.first_in_plane + i, at = place % s.nx;
    const std::int64_t line = place % plane / s.nx, z = s.first_plane + place / plane;
    const Index line_end = std::min<Index>(end, i - at + s.nx);
    const Index inner = at == 0 ? i + 1 : i, inner_end = line_end - (line_end == i - at + s.nx ? 1 : 0);
    const bool deep = z > 0 && z + 1 < s.nz, flat = s.nz == 1;
    if (line > 0 && line + 1 < s.ny && (deep || flat) && inner < inner_end) {
      if (inner > i) y[i - first] = rows.product(i, x);
      const T* const at_row = x + rows.own;
      T* const to = y - first;
      if (flat)
        for (Index j = inner; j < inner_end; ++j) {
          T sum = c[1] * at_row[j - s.nx];
          sum += c[2] * at_row[j - 1];
          sum += c[3] * at_row[j];
          sum += c[4] * at_row[j + 1];
          to[j] = sum + c[5] * at_row[j + s.nx];
        }
      else
        for (Index j = inner; j < inner_end; ++j) {
          T sum = c[0] * at_row[j - plane];
          sum += c[1] * at_row[j - s.nx];
          sum += c[2] * at_row[j - 1];
          sum += c[3] * at_row[j];
          sum += c[4] * at_row[j + 1];
          sum += c[5] * at_row[j + s.nx];
          to[j] = sum + c[6] * at_row[j + plane];
        }
      for (Index j = inner_end; j < line_end; ++j) y[j - first] = rows.product(j, x);
    } else {
      for (Index j = i; j < line_end; ++j) y[j - first] = rows.product(j, x);
    }
    i = line_end;
  }
}

}  // namespace asterism::sparse::cpu
