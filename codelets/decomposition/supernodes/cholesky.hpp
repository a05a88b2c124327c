/// \file
/// The factorisation (F2), on a core.
#pragma once

#include <optional>
#include <span>

#include "nodes.hpp"

namespace asterism::decomposition {

/// The lower triangle of a matrix by columns, with its diagonal.
template <class V>
struct LowerTriangle {
  std::span<const std::int32_t> begins, places;
  std::span<const V> values;
};

/// What stops it: the pivot of a column, as it would be in L D L^T.
struct BadPivot {
  std::int32_t column = 0;
  double pivot = 0;
};

/// The multifrontal method, [Duff, Reid 1983]: a supernode's columns and those of its rows that they change are a dense
/// matrix, into which come the matrix' own entries and what its children have left there.
/// @param panels becomes the factor
/// @return the first pivot that is not positive or not a finite number; the panels are of no use then
template <class V>
std::optional<BadPivot> factorise_supernodes(const Supernodes& supernodes, const LowerTriangle<V>& matrix,
                                             std::span<V> panels);

}  // namespace asterism::decomposition
