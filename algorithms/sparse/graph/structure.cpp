#include "structure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "../../../runtime/error.hpp"

namespace asterism::sparse {
namespace {

template <class T>
void require_whole(const Csr<T>& matrix) {
  if (matrix.first_row != 0 || matrix.rows() != matrix.total_rows)
    throw Error(fmt::format("rows {} to {} of a matrix of {} are here: its structure is that of all",
                            matrix.first_row, matrix.first_row + matrix.rows(), matrix.total_rows));
}

template <class T>
Index row_begin(const Csr<T>& matrix, Index row) {
  return matrix.row_begin[static_cast<std::size_t>(row)];
}

template <class T>
Entry<T> entry(const Csr<T>& matrix, Index row, Index at) {
  const auto i = static_cast<std::size_t>(at);
  return {row, matrix.columns[i], matrix.values[i]};
}

void found(FoundRows& rows, Index row) {
  if (rows.count++ == 0) rows.first = row;
}

/// Which of its diagonals a matrix has.
class Diagonals {
 public:
  Diagonals(Index rows, Index cols) : last_row_(rows - 1), seen_(static_cast<std::size_t>(rows + cols)) {}
  void see(Index row, Index col) { seen_[static_cast<std::size_t>(col - row + last_row_)] = true; }
  [[nodiscard]] Index count() const { return std::ranges::count(seen_, true); }

 private:
  Index last_row_;
  std::vector<bool> seen_;
};

/// What row `row` has on its diagonal and beside it.
template <class T>
void look_at_diagonal(const Csr<T>& matrix, Index row, Structure& structure) {
  double others = 0, diagonal = 0;
  bool there = false;
  for (Index at = row_begin(matrix, row); at < row_begin(matrix, row + 1); ++at) {
    const auto [i, col, value] = entry(matrix, row, at);
    if (col == i) {
      there = true;
      diagonal = value;
    } else {
      others += std::abs(static_cast<double>(value));
    }
  }
  if (!there) found(structure.without_diagonal, row);
  if (there && !(diagonal > 0)) found(structure.nonpositive_diagonal, row);
  structure.dominant += std::abs(diagonal) >= others;
  structure.strictly_dominant += std::abs(diagonal) > others;
}

/// Walks through the entries above the diagonal in the order in which their mirror images come row by row, and keeps
/// what does not match.
template <class T>
class MirrorWalk {
 public:
  MirrorWalk(const Csr<T>& matrix, double tolerance)
      : matrix_(matrix), tolerance_(tolerance), next_(static_cast<std::size_t>(matrix.rows())) {
    for (Index row = 0; row < matrix.rows(); ++row) {
      const auto begin = matrix.columns.begin() + row_begin(matrix, row);
      const auto end = matrix.columns.begin() + row_begin(matrix, row + 1);
      next(row) = std::upper_bound(begin, end, row) - matrix.columns.begin();
    }
  }

  SymmetryCheck<T> check() && {
    for (Index row = 0; row < matrix_.rows(); ++row)
      for (Index at = row_begin(matrix_, row); at < row_begin(matrix_, row + 1); ++at) {
        const Entry<T> lower = entry(matrix_, row, at);
        if (lower.col >= row) break;
        match(lower);
      }
    for (Index row = 0; row < matrix_.rows(); ++row) skip_upper(row, matrix_.cols);
    return check_;
  }

 private:
  Index& next(Index row) { return next_[static_cast<std::size_t>(row)]; }

  /// Entries above the diagonal in `row`, in columns before `col`, whose mirror images have not come.
  void skip_upper(Index row, Index col) {
    for (; next(row) < row_begin(matrix_, row + 1); ++next(row)) {
      const Entry<T> upper = entry(matrix_, row, next(row));
      if (upper.col >= col) return;
      unpaired({row, upper.col, upper.value, T(0)});
    }
  }

  void match(const Entry<T>& lower) {
    const Index row = lower.col, col = lower.row;  // of its mirror image
    skip_upper(row, col);
    if (next(row) < row_begin(matrix_, row + 1)) {
      const Entry<T> upper = entry(matrix_, row, next(row));
      if (upper.col == col) {
        ++next(row);
        compare({row, col, upper.value, lower.value});
        return;
      }
    }
    unpaired({row, col, T(0), lower.value});
  }

  void unpaired(const MirroredPair<T>& pair) {
    ++check_.unpaired;
    keep_first(check_.first_unpaired, pair);
    compare(pair);
  }

  void compare(const MirroredPair<T>& pair) {
    const double upper = static_cast<double>(pair.upper), lower = static_cast<double>(pair.lower);
    const double larger = std::max(std::abs(upper), std::abs(lower));
    if (std::abs(upper - lower) <= tolerance_ * larger) return;  // false of NaNs
    ++check_.unequal;
    keep_first(check_.first_unequal, pair);
  }

  static void keep_first(std::optional<MirroredPair<T>>& first, const MirroredPair<T>& pair) {
    if (!first || std::tie(pair.row, pair.col) < std::tie(first->row, first->col)) first = pair;
  }

  const Csr<T>& matrix_;
  double tolerance_;
  std::vector<Index> next_;  // entry above the diagonal of each row
  SymmetryCheck<T> check_;
};

}  // namespace

template <class T>
Structure structure_of(const Csr<T>& matrix) {
  require_whole(matrix);
  Structure structure;
  if (matrix.rows() == 0) return structure;
  Diagonals diagonals(matrix.rows(), matrix.cols);
  structure.fewest = std::numeric_limits<Index>::max();
  structure.mean = static_cast<double>(matrix.entries()) / static_cast<double>(matrix.rows());
  for (Index row = 0; row < matrix.rows(); ++row) {
    const Index begin = row_begin(matrix, row), end = row_begin(matrix, row + 1);
    structure.fewest = std::min(structure.fewest, end - begin);
    structure.most = std::max(structure.most, end - begin);
    for (Index at = begin; at < end; ++at) diagonals.see(row, matrix.columns[static_cast<std::size_t>(at)]);
    if (row < matrix.cols) look_at_diagonal(matrix, row, structure);
    if (begin == end) {
      found(structure.empty, row);
      continue;
    }
    structure.lower_bandwidth = std::max(structure.lower_bandwidth, row - entry(matrix, row, begin).col);
    structure.upper_bandwidth = std::max(structure.upper_bandwidth, entry(matrix, row, end - 1).col - row);
  }
  structure.diagonals = diagonals.count();
  return structure;
}

template <class T>
std::optional<Entry<T>> first_not_finite(const Csr<T>& matrix) {
  require_whole(matrix);
  const auto bad = std::ranges::find_if(matrix.values, [](T value) { return !std::isfinite(value); });
  if (bad == matrix.values.end()) return std::nullopt;
  const Index at = bad - matrix.values.begin();
  const Index row = std::ranges::upper_bound(matrix.row_begin, at) - matrix.row_begin.begin() - 1;
  return entry(matrix, row, at);
}

template <class T>
SymmetryCheck<T> check_symmetry(const Csr<T>& matrix, double tolerance) {
  require_whole(matrix);
  if (!is_square(matrix))
    throw Error(fmt::format("a matrix of {} x {} is not square, so that nothing mirrors its entries",
                            matrix.total_rows, matrix.cols));
  return MirrorWalk<T>(matrix, tolerance).check();
}

template Structure structure_of(const Csr<float>&);
template Structure structure_of(const Csr<double>&);
template std::optional<Entry<float>> first_not_finite(const Csr<float>&);
template std::optional<Entry<double>> first_not_finite(const Csr<double>&);
template SymmetryCheck<float> check_symmetry(const Csr<float>&, double);
template SymmetryCheck<double> check_symmetry(const Csr<double>&, double);

}  // namespace asterism::sparse
