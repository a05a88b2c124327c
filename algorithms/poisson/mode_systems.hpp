/// \file
/// The tridiagonal systems (S1), codelets/poisson/recurrences.hpp, that are left when the planes of a grid are
/// transformed: one across the planes for every mode.
#pragma once

#include <vector>

#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "problem/problem.hpp"

namespace asterism::poisson {

/// The mu of (S1) of every mode: the eigenvalues within the planes less lambda. Where constants solve the homogeneous
/// problem, mode 0 is solved on its own (singular_mean.hpp): here it gets any system that can be solved.
std::vector<double> mode_eigenvalues(const Grid& grid);

/// What the systems of some modes need, in tiles with a column for each: mu; the values that lie before the slowest axis
/// and after it; and what a prefix tells that has no segment yet (no joined segments, on a periodic axis), seen from the
/// first row and from the last.
struct ModeTiles {
  Tile<double> mu, before_axis, after_axis;
  Tile<double> shown_by_none, lower_response, upper_response;
};
/// Rows of all of these together.
Index mode_rows(const Grid& grid);
/// Those of modes from `first` on, `count` of them, on a rank. @param mu mode_eigenvalues()
ModeTiles mode_tiles(Runtime& runtime, const Grid& grid, int rank, const std::vector<double>& mu, Index first,
                     Index count);

}  // namespace asterism::poisson
