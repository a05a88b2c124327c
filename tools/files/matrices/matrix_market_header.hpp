/// \file
/// What a Matrix Market file says before its numbers.
#pragma once

#include <string>

#include "../text/text_lines.hpp"

namespace asterism::tools {

/// coordinate: a line "row column value" an entry. array: a line for each number, column by column.
enum class Format { coordinate, array };

/// What the values are; a pattern has none.
enum class Field { real, integer, pattern };

/// Symmetric and skew-symmetric files hold the lower triangle alone, skew-symmetric ones without the diagonal.
enum class Symmetry { general, symmetric, skew_symmetric };

/// As the first line writes them.
std::string to_string(Format format);
std::string to_string(Field field);
std::string to_string(Symmetry symmetry);

struct MatrixMarketHeader {
  Format format = Format::coordinate;
  Field field = Field::real;
  Symmetry symmetry = Symmetry::general;
  Index rows = 0, cols = 0;
  Index entries = 0;               ///< that the file holds, those of the lower triangle where it is symmetric
  TextLines::Place first_entry{};  ///< where they begin, perhaps with comments
};

/// Reads the first line, in any case of its letters, comments and sizes, and compares the sizes with that of the file,
/// so that what is announced may be allocated.
/// @param lines  of a file of which nothing was read
/// @throw Error with file and line: anything else
MatrixMarketHeader read_matrix_market_header(TextLines& lines);

}  // namespace asterism::tools
