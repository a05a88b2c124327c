#include "fill.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
#include "../graph/team.hpp"

namespace asterism::sparse {
namespace {

using Segment = Numbering::Segment;

constexpr int unseen = -1;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Rows of a pattern with the levels of their entries.
struct Levelled {
  Pattern pattern;
  std::vector<int> levels;

  void append(const Levelled& rows) {
    const Index before = pattern.entries();
    for (std::size_t i = 1; i < rows.pattern.row_begin.size(); ++i)
      pattern.row_begin.push_back(before + rows.pattern.row_begin[i]);
    pattern.columns.insert(pattern.columns.end(), rows.pattern.columns.begin(), rows.pattern.columns.end());
    levels.insert(levels.end(), rows.levels.begin(), rows.levels.end());
  }
};

/// Finds the levels of one row after the other, from the rows of the segments before. Every thread has its own.
class RowLevels {
 public:
  RowLevels(PatternView matrix, int p) : matrix_(matrix), p_(p), level_(at(matrix.rows()), unseen) {}

  /// Appends a row of the segment to `to`.
  void append_row(Index i, const Segment& segment, const Levelled& finished, Levelled& to) {
    columns_.clear();
    lower_.clear();
    reach(i, 0, i, segment);
    for (const Index j : matrix_.row(i)) reach(j, 0, i, segment);
    while (!lower_.empty()) {
      std::ranges::pop_heap(lower_, std::greater{});
      const Index k = lower_.back();
      lower_.pop_back();
      eliminate(i, k, segment, finished);
    }
    std::ranges::sort(columns_);
    for (const Index j : columns_) {
      to.pattern.columns.push_back(j);
      to.levels.push_back(level_[at(j)]);
      level_[at(j)] = unseen;
    }
    to.pattern.row_begin.push_back(static_cast<Index>(to.pattern.columns.size()));
  }

 private:
  /// (I1) with k, for all j: the level of (i, k) is known, as those before k are done with.
  void eliminate(Index i, Index k, const Segment& segment, const Levelled& finished) {
    const Index end = finished.pattern.row_begin[at(k + 1)];
    for (Index n = end - 1; finished.pattern.columns[at(n)] > k; --n) {
      const Index level = Index{level_[at(k)]} + finished.levels[at(n)] + 1;
      if (level <= p_) reach(finished.pattern.columns[at(n)], static_cast<int>(level), i, segment);
    }
  }

  void reach(Index j, int level, Index i, const Segment& segment) {
    if (j != i && segment.first <= j && j < segment.end) return;
    int& known = level_[at(j)];
    if (known != unseen) {
      known = std::min(known, level);
      return;
    }
    known = level;
    columns_.push_back(j);
    if (j >= i) return;
    lower_.push_back(j);
    std::ranges::push_heap(lower_, std::greater{});
  }

  PatternView matrix_;
  int p_;
  std::vector<int> level_;      ///< of the row's entries, by column
  std::vector<Index> columns_;  ///< of the row's entries so far
  std::vector<Index>
      lower_;  ///< those of them before the diagonal that are still to be eliminated, as a heap
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

}  // namespace

Pattern fill_pattern(PatternView matrix, int p, std::span<const Segment> segments, int threads) {
  if (p < 0) throw Error(fmt::format("fill of level {} is asked for: levels are at least 0", p));
  std::vector<Segment> singles;
  if (segments.empty()) segments = singles = single_rows(matrix.rows());
  check_segments(segments, matrix.rows());

  threads = team_size(threads);  // asking for the cores takes longer than many a segment
  std::vector<RowLevels> rows(1, RowLevels(matrix, p));
  std::vector<Levelled> parts;
  Levelled finished;
  for (const Segment& segment : segments) {
    const Index size = segment.end - segment.first;
    const int team = threads_for(size, threads);
    while (rows.size() < at(team)) rows.emplace_back(matrix, p);
    parts.assign(at(team), {});
    in_team(team, [&](int part) {
      for (Index i = segment.first + size * part / team; i < segment.first + size * (part + 1) / team; ++i)
        rows[at(part)].append_row(i, segment, finished, parts[at(part)]);
    });
    for (const Levelled& part : parts) finished.append(part);
  }
  return std::move(finished.pattern);
}

}  // namespace asterism::sparse
