#include "fill.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
#include "../graph/rows.hpp"

namespace asterism::sparse {
namespace {

using Segment = Numbering::Segment;

constexpr int unseen = -1;

/// Keeps lists where they are put, while others are added. Every thread has its own.
template <class T>
class Lists {
 public:
  std::span<const T> keep(const std::vector<T>& list) {
    if (block_size < used_ + list.size() || blocks_.empty()) {
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(std::max(block_size, list.size())));
      used_ = 0;
    }
    T* const to = blocks_.back().get() + used_;
    std::ranges::copy(list, to);
    used_ += list.size();
    return {to, list.size()};
  }

 private:
  static constexpr std::size_t block_size = 1 << 16;
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t used_ = 0;  // of the last block
};

/// An entry above the diagonal, by which rows that have one in its row's column get theirs.
struct Step {
  Index column;
  Index level;
};

/// Rows that are done.
struct Rows {
  std::vector<std::span<const Index>> columns;
  std::vector<std::span<const Step>>
      steps;  ///< least level first; only those of levels below p lead to others
};

/// Finds the levels of one row after the other, from the rows of the segments before. Every thread has its own.
class RowLevels {
 public:
  RowLevels(PatternView matrix, int p, Rows& rows)
      : matrix_(matrix), p_(p), rows_(&rows), level_(at(matrix.rows()), unseen) {}

  /// (I1) for a row of the segment. Entries are gone through level by level: what they lead to has a higher level than
  /// they, so that theirs are known when their turn is.
  void find(Index row, const Segment& segment) {
    row_ = row;
    segment_ = segment;
    reach(row, 0);
    for (const Index j : matrix_.row(row)) reach(j, 0);
    for (std::size_t level = 0; level < lower_.size(); ++level) {
      for (std::size_t n = 0; n < lower_[level].size(); ++n)
        if (const Index k = lower_[level][n]; level_[at(k)] == static_cast<int>(level))
          go_on(k, static_cast<Index>(level));
      lower_[level].clear();
    }
    std::ranges::sort(columns_);
    keep();
  }

 private:
  void go_on(Index k, Index level) {
    for (const Step& step : rows_->steps[at(k)]) {
      const Index reached = level + step.level + 1;
      if (reached > p_) return;
      reach(step.column, static_cast<int>(reached));
    }
  }

  void reach(Index j, int level) {
    if (j != row_ && segment_.first <= j && j < segment_.end) return;
    int& known = level_[at(j)];
    if (known == unseen)
      columns_.push_back(j);
    else if (known <= level)
      return;
    known = level;
    if (j >= row_ || level >= p_) return;
    if (lower_.size() <= at(level)) lower_.resize(at(level) + 1);
    lower_[at(level)].push_back(j);
  }

  void keep() {
    for (const Index j : columns_) {
      const int level = std::exchange(level_[at(j)], unseen);
      if (j > row_ && level < p_) steps_.push_back({j, level});
    }
    std::ranges::sort(steps_, {}, &Step::level);
    rows_->columns[at(row_)] = kept_columns_.keep(columns_);
    rows_->steps[at(row_)] = kept_steps_.keep(steps_);
    columns_.clear();
    steps_.clear();
  }

  PatternView matrix_;
  Index p_;
  Rows* rows_;
  Index row_ = 0;
  Segment segment_;
  std::vector<int> level_;      // of the row's entries, by column
  std::vector<Index> columns_;  // of the row's entries so far
  std::vector<std::vector<Index>>
      lower_;  // those before the diagonal by the level that they were reached with
  std::vector<Step> steps_;
  Lists<Index> kept_columns_;
  Lists<Step> kept_steps_;
};

/// A segment for each row: every row depends on those before it.
std::vector<Segment> single_rows(Index rows) {
  std::vector<Segment> segments;
  segments.reserve(at(rows));
  for (Index i = 0; i < rows; ++i) segments.push_back({i, i + 1, 0});
  return segments;
}

void check_segments(std::span<const Segment> segments, Index rows) {
  Index end = 0;
  for (const Segment& segment : segments) {
    if (segment.first != end || segment.end <= segment.first)
      throw Error(fmt::format("segment [{}, {}) follows row {}: segments have all rows, one after the other",
                              segment.first, segment.end, end));
    end = segment.end;
  }
  if (end != rows)
    throw Error(
        fmt::format("the segments have {} rows, the matrix {}: give those of its numbering", end, rows));
}

/// One after the other.
Pattern together(const std::vector<std::span<const Index>>& rows, int threads) {
  Pattern pattern;
  pattern.row_begin = row_begins(static_cast<Index>(rows.size()), threads,
                                 [&](Index i) { return static_cast<Index>(rows[at(i)].size()); });
  pattern.columns.resize(at(pattern.entries()));
  in_parts(pattern.rows(), threads, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i)
      std::ranges::copy(rows[at(i)], pattern.columns.begin() + pattern.row_begin[at(i)]);
  });
  return pattern;
}

}  // namespace

Pattern fill_pattern(PatternView matrix, int p, std::span<const Segment> segments, int threads) {
  if (p < 0) throw Error(fmt::format("fill of level {} is asked for: levels are at least 0", p));
  std::vector<Segment> singles;
  if (segments.empty()) segments = singles = single_rows(matrix.rows());
  check_segments(segments, matrix.rows());

  Index longest = 0;
  for (const Segment& segment : segments) longest = std::max(longest, segment.end - segment.first);
  const int team = threads_for(longest, threads);
  Rows rows{std::vector<std::span<const Index>>(at(matrix.rows())),
            std::vector<std::span<const Step>>(at(matrix.rows()))};
  std::vector<std::optional<RowLevels>> finders(at(team));
  in_steps(team, static_cast<Index>(segments.size()), [&](Index number, int thread) {
    const Segment& segment = segments[at(number)];
    std::optional<RowLevels>& its = finders[at(thread)];
    if (!its) its.emplace(matrix, p, rows);
    const Index size = segment.end - segment.first;
    for (Index i = size * thread / team; i < size * (thread + 1) / team; ++i)
      its->find(segment.first + i, segment);
  });
  return together(rows.columns, threads);
}

}  // namespace asterism::sparse
