/// \file
/// The entries of a Matrix Market file, one after the other, checked.
#pragma once

#include <fmt/format.h>

#include "../text/line_tokens.hpp"
#include "matrix_market_header.hpp"

namespace asterism::tools {

/// Whether an entry off the diagonal stands for its mirror image, too.
inline bool has_mirror(Symmetry symmetry, Index row, Index col) {
  return symmetry != Symmetry::general && row != col;
}

/// The mirror image's value.
inline double mirrored(Symmetry symmetry, double value) {
  return symmetry == Symmetry::skew_symmetric ? -value : value;
}

/// The value of an entry, of which row and column were read; that of a pattern is 1.
inline double value_of(const MatrixMarketHeader& header, LineTokens& tokens) {
  const double value = header.field == Field::real      ? tokens.real()
                       : header.field == Field::integer ? tokens.integer()
                                                        : 1.0;
  tokens.expect_end(header.format == Format::array   ? "value"
                    : header.field == Field::pattern ? "row column"
                                                     : "row column value");
  return value;
}

/// Where the entries of a file are: of coordinates, what their lines say; of an array, as they follow each other.
class EntryPlaces {
 public:
  explicit EntryPlaces(const MatrixMarketHeader& header)
      : header_(header), row_(first_row(0) - 1) {}  // before the first

  /// Sets row and column, beginning at 0, of the entry on the next line. @throw Error
  void next(LineTokens& tokens, Index& row, Index& col) {
    if (header_.format == Format::array) {
      if (++row_ == header_.rows) row_ = first_row(++col_);
      row = row_, col = col_;
      return;
    }
    row = tokens.whole("row", 1, header_.rows) - 1;
    col = tokens.whole("column", 1, header_.cols) - 1;
    if (header_.symmetry != Symmetry::general && row < first_row(col)) refuse(tokens, row, col);
  }

 private:
  /// Of the column that a file holds.
  [[nodiscard]] Index first_row(Index col) const {
    return header_.symmetry == Symmetry::general     ? 0
           : header_.symmetry == Symmetry::symmetric ? col
                                                     : col + 1;
  }

  [[noreturn]] void refuse(const LineTokens& tokens, Index row, Index col) const {
    tokens.fail(
        fmt::format("the entry '{} {}' lies {} the diagonal, where a {} file has none: it holds the lower "
                    "triangle alone",
                    row + 1, col + 1, row == col ? "on" : "above", to_string(header_.symmetry)));
  }

  const MatrixMarketHeader& header_;
  Index row_, col_ = 0;
};

/// Calls entry(row, col, tokens) for all entries, indices beginning at 0; `tokens` stand before the value, which need
/// not be read.
/// @throw Error: indices that the matrix has not, too few entries, too many
template <class Entry>
void for_entries(TextLines& lines, const MatrixMarketHeader& header, const Entry& entry) {
  lines.go_to(header.first_entry);
  std::string_view line;
  EntryPlaces places(header);
  Index row = 0, col = 0;
  for (Index i = 0; i < header.entries; ++i) {
    if (!next_content(lines, line))
      lines.fail(fmt::format("the file ends here, after {} of the {} entries announced", i, header.entries));
    LineTokens tokens(lines, line);
    places.next(tokens, row, col);
    entry(row, col, tokens);
  }
  if (next_content(lines, line))
    lines.fail(
        fmt::format("{} follows the {} entries announced", LineTokens(lines, line).told(), header.entries));
}

}  // namespace asterism::tools
