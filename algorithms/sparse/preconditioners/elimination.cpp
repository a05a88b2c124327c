#include "elimination.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "../../../runtime/collectives.hpp"
#include "../../common/each_once.hpp"
#include "../../common/team.hpp"
#include "../graph/rows.hpp"
#include "fill.hpp"

namespace asterism::sparse {
namespace {

template <class Number>
Array<Index> gathered_columns(const Runtime& runtime, const Array<Index>& columns) {
  const std::vector<Number> all = gather_lists(runtime, std::vector<Number>(columns.begin(), columns.end()));
  return {all.begin(), all.end()};
}

/// The breakdown of the lowest row on any rank.
void agree_on_breakdown(const Runtime& runtime, std::optional<Breakdown>& breakdown) {
  constexpr Index none = std::numeric_limits<Index>::max();
  const std::vector<Breakdown> all = gather(runtime, breakdown.value_or(Breakdown{none, 0}));
  const Breakdown first = *std::ranges::min_element(all, {}, &Breakdown::row);
  breakdown = first.row == none ? std::nullopt : std::optional(first);
}

}  // namespace

Pattern WholePattern::gathered(const Runtime& runtime, const Array<Index>& row_begin,
                               const Array<Index>& columns, Index cols) {
  Pattern all;
  std::vector<Index> counts(row_begin.size());
  std::adjacent_difference(row_begin.begin(), row_begin.end(), counts.begin());
  counts.erase(counts.begin());
  const std::vector<Index> all_counts = gather_lists(runtime, counts);
  all.row_begin.resize(all_counts.size() + 1);
  std::partial_sum(all_counts.begin(), all_counts.end(), all.row_begin.begin() + 1);
  const bool fits = cols <= std::numeric_limits<std::int32_t>::max();
  all.columns = fits ? gathered_columns<std::int32_t>(runtime, columns) : gather_lists(runtime, columns);
  return all;
}

Elimination::Elimination(PatternView whole, const StageOrder& order, Partition::Range mine,
                         const PreconditionerChoice& choice, int threads,
                         std::map<std::string, double>& seconds)
    : choice_(choice), threads_(threads) {
  Stopwatch watch;
  const bool coloured = choice.method == PreconditionerMethod::mc_ilu;
  if (!coloured) choice_.p = 0;
  const bool by_number = !coloured && !order.grains_in_order;
  Numbering by_stage = number_by_colour(order.stages, std::max<Index>(whole.rows(), 1));
  Pattern pattern = by_number ? copied(whole, threads) : permuted(whole, by_stage, threads);
  matrix_.total_rows = matrix_.cols = whole.rows();
  matrix_.row_begin = std::move(pattern.row_begin);
  matrix_.columns = std::move(pattern.columns);
  matrix_.values.resize(matrix_.columns.size());
  seconds["permute"] += watch.lap();
  if (choice_.p > 0) fill_ = fill_pattern(matrix_, choice.p, by_stage.segments, threads);
  seconds["symbolic"] += watch.lap();
  if (!by_number) numbering_ = by_stage;
  mark_needed(mine, whole);
  if (order.grains_in_order)
    make_turns(number_by_colour(by_level(matrix_), std::max<Index>(whole.rows(), 1)), false);
  else
    make_turns(by_stage, coloured);
  seconds["colour"] += watch.lap();
}

/// The rows of this rank, for Cholesky those that have entries in its columns, too, and all that they need before them.
void Elimination::mark_needed(Partition::Range mine, PatternView whole) {
  if (mine.count() == whole.rows()) return;
  needed_.assign(at(whole.rows()), 0);
  const auto place = [&](Index row) { return numbering_.rows() == 0 ? row : numbering_.new_of_old[at(row)]; };
  for (Index i = mine.first; i < mine.end; ++i) needed_[at(place(i))] = 1;
  if (choice_.method == PreconditionerMethod::ic0)
    for (Index i = 0; i < whole.rows(); ++i) {
      const auto found = std::ranges::lower_bound(whole.row(i), mine.first);
      if (found != whole.row(i).end() && *found < mine.end) needed_[at(place(i))] = 1;
    }
  for (Index i = whole.rows(); i-- > 0;)
    if (needed_[at(i)] != 0)
      for (const Index k : pattern().row(i)) {
        if (k >= i) break;
        needed_[at(k)] = 1;
      }
}

/// @param by_turn rows in the order of elimination, by their turns @param in_order whether that is the same order
void Elimination::make_turns(const Numbering& by_turn, bool in_order) {
  for (const Numbering::Segment& segment : by_turn.segments) {
    for (Index n = segment.first; n < segment.end; ++n) {
      const Index row = in_order ? n : by_turn.old_of_new[at(n)];
      if (needed_.empty() || needed_[at(row)] != 0) turns_.rows.push_back(row);
    }
    turns_.begins.push_back(static_cast<Index>(turns_.rows.size()));
  }
}

/// @param row in its natural order, as are the columns
template <class T>
void Elimination::set_row(Index row, const Index* columns, const T* values, Index count) {
  const bool natural = numbering_.rows() == 0;
  const Index to = natural ? row : numbering_.new_of_old[at(row)], begin = matrix_.row_begin[at(to)];
  if (natural) {
    std::copy_n(values, count, matrix_.values.begin() + begin);
    return;
  }
  const std::span<const Index> places(matrix_.columns.data() + begin, at(count));
  for (Index n = 0; n < count; ++n) {
    const Index column = numbering_.new_of_old[at(columns[n])];
    matrix_.values[at(begin + (std::ranges::lower_bound(places, column) - places.begin()))] =
        static_cast<double>(values[n]);
  }
}

template <class T>
void Elimination::load(const Runtime& runtime, const Csr<T>& mine) {
  const auto begin = [&](Index i) { return mine.row_begin[at(i)]; };
  in_parts(mine.rows(), threads_, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i)
      set_row(mine.first_row + i, mine.columns.data() + begin(i), mine.values.data() + begin(i),
              begin(i + 1) - begin(i));
  });
  if (runtime.ranks() > 1) load_from_others(runtime, mine);
}

/// Of those that any rank needs of another, as every rank is told of all.
template <class T>
void Elimination::load_from_others(const Runtime& runtime, const Csr<T>& mine) {
  const auto begin = [&](Index i) { return mine.row_begin[at(i)]; };
  std::vector<Index> wanted;
  for (Index n = 0; n < matrix_.rows() && !needed_.empty(); ++n) {
    const Index row = numbering_.rows() == 0 ? n : numbering_.old_of_new[at(n)];
    const bool own = mine.first_row <= row && row < mine.first_row + mine.rows();
    if (needed_[at(n)] != 0 && !own) wanted.push_back(row);
  }
  std::vector<Index> travelling = gather_lists(runtime, wanted);
  keep_each_once(travelling);
  std::vector<Index> columns;
  std::vector<T> values;
  for (const Index row : travelling) {
    const Index i = row - mine.first_row;
    if (i < 0 || i >= mine.rows()) continue;
    columns.insert(columns.end(), mine.columns.begin() + begin(i), mine.columns.begin() + begin(i + 1));
    values.insert(values.end(), mine.values.begin() + begin(i), mine.values.begin() + begin(i + 1));
  }
  columns = gather_lists(runtime, columns);
  values = gather_lists(runtime, values);
  Index next = 0;
  for (const Index row : travelling) {
    const Index n = numbering_.rows() == 0 ? row : numbering_.new_of_old[at(row)];
    const Index count = matrix_.row_begin[at(n + 1)] - matrix_.row_begin[at(n)];
    set_row(row, columns.data() + next, values.data() + next, count);
    next += count;
  }
}

Factorisation Elimination::factorise(const Runtime& runtime, DiagonalShift shift) const {
  const auto once = [&](double share) {
    Factorisation result = choice_.method == PreconditionerMethod::ic0
                               ? incomplete_cholesky(matrix_, pattern(), turns_, share, threads_)
                               : incomplete_lu(matrix_, pattern(), turns_, share, threads_);
    agree_on_breakdown(runtime, result.breakdown);
    return result;
  };
  Factorisation result = shift == DiagonalShift::automatic ? with_growing_shift(once) : once(0);
  if (result.breakdown && numbering_.rows() > 0)
    result.breakdown->row = numbering_.old_of_new[at(result.breakdown->row)];
  return result;
}

template void Elimination::load(const Runtime&, const Csr<float>&);
template void Elimination::load(const Runtime&, const Csr<double>&);

}  // namespace asterism::sparse
