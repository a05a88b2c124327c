/// \file
/// Level scheduling: which rows of a triangular system can be solved for at once.
#pragma once

#include <vector>

#include "pattern.hpp"

namespace asterism::sparse {

/// Which entries of a pattern a triangular system has: those on one side of the diagonal. The others are ignored.
enum class Triangle { lower, upper };

/// Rows by levels: a row's level is one more than the highest of the rows that it needs, 0 where it needs none.
struct Levels {
  std::vector<Index> of_rows;            ///< the level of each row
  std::vector<Index> rows;               ///< sorted by level, those of a level by their number
  std::vector<Index> level_begin = {0};  ///< where each level begins in rows; then their number

  [[nodiscard]] Index count() const { return static_cast<Index>(level_begin.size()) - 1; }
};

/// The levels of a triangular system: of a lower one row i needs the rows of its columns j < i, of an upper one j > i.
/// @throw Error: a matrix that is not square, or not whole
Levels levels_of(PatternView pattern, Triangle triangle);

}  // namespace asterism::sparse
