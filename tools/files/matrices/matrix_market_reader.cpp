#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "../../../runtime/error.hpp"
#include "entry_order.hpp"
#include "matrix_file.hpp"
#include "matrix_market_entries.hpp"

namespace asterism::tools {
namespace {

/// Whether there is an entry: of arrays only where the number is not 0.
bool is_entry(const MatrixMarketHeader& header, LineTokens tokens) {
  return header.format == Format::coordinate || value_of(header, tokens) != 0;
}

/// How many entries are before each row and, last, in all.
std::vector<Index> read_row_begin(TextLines& lines, const MatrixMarketHeader& header) {
  require_memory(lines.path(), static_cast<double>(header.rows) * sizeof(Index),
                 fmt::format("{} rows", header.rows));
  std::vector<Index> row_begin(static_cast<std::size_t>(header.rows) + 1);
  for_entries(lines, header, [&](Index row, Index col, const LineTokens& tokens) {
    if (!is_entry(header, tokens)) return;
    ++row_begin[static_cast<std::size_t>(row) + 1];
    if (has_mirror(header.symmetry, row, col)) ++row_begin[static_cast<std::size_t>(col) + 1];
  });
  std::partial_sum(row_begin.begin(), row_begin.end(), row_begin.begin());
  return row_begin;
}

/// Rows with room for their entries, which come in any order. Where that is a random one, each goes to memory that no cache
/// has; so they wait a while until it has been fetched.
class FilledRows {
 public:
  FilledRows(sparse::Csr<double>& matrix, const TextLines& lines)
      : matrix_(matrix), lines_(lines), next_(matrix.row_begin.begin(), matrix.row_begin.end() - 1) {}

  [[nodiscard]] bool have(Index row) const {
    return row >= matrix_.first_row && row < matrix_.first_row + matrix_.rows();
  }

  void put(Index row, Index col, double value) {
    const auto r = static_cast<std::size_t>(row - matrix_.first_row);
    if (count_ >= most_waiting) store(waiting(count_));
    waiting(count_) = {r, col, value};
    __builtin_prefetch(&next_[r]);
    __builtin_prefetch(&matrix_.row_begin[r + 1]);
    if (count_ >= most_waiting / 2) {
      const auto at = static_cast<std::size_t>(next_[waiting(count_ - most_waiting / 2).row]);
      __builtin_prefetch(matrix_.columns.data() + at, 1);
      __builtin_prefetch(matrix_.values.data() + at, 1);
    }
    ++count_;
  }

  /// After the last entry.
  void finish() {
    for (std::size_t i = count_ - std::min(count_, most_waiting); i < count_; ++i) store(waiting(i));
    for (std::size_t r = 0; r < next_.size(); ++r)
      if (next_[r] != matrix_.row_begin[r + 1]) changed();
  }

 private:
  struct Entry {
    std::size_t row;  ///< of these
    Index col;
    double value;
  };
  static constexpr std::size_t most_waiting = 32;

  [[nodiscard]] Entry& waiting(std::size_t number) { return waiting_[number % most_waiting]; }
  void store(const Entry& entry) {
    if (next_[entry.row] == matrix_.row_begin[entry.row + 1]) changed();
    const auto at = static_cast<std::size_t>(next_[entry.row]++);
    matrix_.columns[at] = entry.col;
    matrix_.values[at] = entry.value;
  }
  [[noreturn]] void changed() const { lines_.fail("the file was changed while it was read"); }

  sparse::Csr<double>& matrix_;
  const TextLines& lines_;
  std::vector<Index> next_;
  std::array<Entry, most_waiting> waiting_ = {};
  std::size_t count_ = 0;
};

void read_entries(TextLines& lines, const MatrixMarketHeader& header, sparse::Csr<double>& matrix) {
  FilledRows rows(matrix, lines);
  for_entries(lines, header, [&](Index row, Index col, LineTokens& tokens) {
    const bool here = rows.have(row), mirror_here = has_mirror(header.symmetry, row, col) && rows.have(col);
    if (!here && !mirror_here) return;
    const double value = value_of(header, tokens);
    if (header.format == Format::array && value == 0) return;
    if (here) rows.put(row, col, value);
    if (mirror_here) rows.put(col, row, mirrored(header.symmetry, value));
  });
  rows.finish();
}

}  // namespace

MatrixFile read_matrix_market(const std::filesystem::path& path, const RowShare& share) {
  TextLines lines(path, "a Matrix Market file");
  const MatrixMarketHeader header = read_matrix_market_header(lines);
  MatrixFile file;
  file.field = header.field;
  file.symmetry = header.symmetry;
  file.matrix = room_for_rows(path, read_row_begin(lines, header), header.cols, share);
  read_entries(lines, header, file.matrix);
  const Duplicates duplicates = order_entries(file.matrix, path);
  // What a symmetric file has below the diagonal is here above it, too.
  file.duplicates = duplicates.lower + (header.symmetry == Symmetry::general ? duplicates.upper : 0);
  return file;
}

}  // namespace asterism::tools
