/// \file
/// Whether numbers are finite.
#pragma once

#include <optional>

#include "../../runtime/ports.hpp"

namespace asterism::tools {

struct Position {
  Index row, col;
};

/// The first number (in row order) of rows x cols, rows ld apart, that is NaN or infinite.
template <class T>
std::optional<Position> first_not_finite(const T* data, Index rows, Index cols, Index ld);

}  // namespace asterism::tools
