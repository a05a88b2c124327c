#include "reduced_system.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <numeric>
#include <ranges>
#include <type_traits>
#include <utility>

#include "../../../codelets/sparse/units.hpp"
#include "../../../runtime/collectives.hpp"
#include "../../common/each_once.hpp"
#include "../../common/stopwatch.hpp"
#include "../../common/team.hpp"
#include "../graph/rows.hpp"
#include "../preconditioners/elimination.hpp"

namespace asterism::sparse {
namespace {

/// S may have so many times A's entries, each of which is the sum of so many terms.
constexpr Index most_growth = 2, most_alike = 4;

/// Of all rows of A, in S, or among red ones.
Array<Index> numbers_of_black(const Colouring& colours) {
  Array<Index> numbers(colours.of_rows.size());
  const auto is_black = [&](Index i) { return colours.of_rows[at(i)] != 0; };
  add_up(
      static_cast<Index>(numbers.size()), 0, [&](Index i) { return is_black(i) ? 1 : 0; },
      [&](Index i, Index number) { numbers[at(i)] = is_black(i) ? number : red_number(i - number); });
  return numbers;
}

/// A rank's rows of S begin where its black rows do, but for whole grains.
std::vector<Index> bounds_of_ranks(const std::vector<Index>& black_of_ranks) {
  const Index all = std::accumulate(black_of_ranks.begin(), black_of_ranks.end(), Index{0});
  const Index grain = grain_rows(all);
  std::vector<Index> bounds{0};
  Index before = 0;
  for (const Index its : black_of_ranks) {
    before += its;
    bounds.push_back(before == all ? all : std::min(all, (before + grain / 2) / grain * grain));
  }
  return bounds;
}

/// This rank's rows that other ranks have entries in.
template <class T>
std::vector<Index> seen_by_others(const Runtime& runtime, const Csr<T>& mine) {
  const auto is_own = [&](Index row) { return mine.first_row <= row && row < mine.first_row + mine.rows(); };
  std::vector<Index> wanted, seen;
  if (runtime.ranks() > 1) std::ranges::remove_copy_if(mine.columns, std::back_inserter(wanted), is_own);
  keep_each_once(wanted);
  std::ranges::copy_if(gather_lists(runtime, wanted), std::back_inserter(seen), is_own);
  keep_each_once(seen);
  return seen;
}

Index sum_of_ranks(const Runtime& runtime, Index mine) {
  sum_over_ranks(runtime, &mine, 1);
  return mine;
}

}  // namespace

template <class T>
std::optional<ReducedSystem<T>> ReducedSystem<T>::of(const Runtime& runtime, const Csr<T>& mine,
                                                     MatrixClass matrix_class, const KeepsSchur& keeps,
                                                     std::map<std::string, double>& seconds) {
  const PreconditionerChoice ilu0{.method = PreconditionerMethod::mc_ilu};
  // A place is less than this rank's rows and those of all that others have entries in.
  if (mine.total_rows > std::numeric_limits<std::int32_t>::max() / 2) return {};
  Stopwatch watch;
  ReducedSystem reduced;
  reduced.runtime_ = &runtime;
  reduced.rows_ = {mine.first_row, mine.first_row + mine.rows()};
  reduced.diagonal_ = usable_diagonal(runtime, mine, ilu0, matrix_class);
  seconds["factorise"] += watch.lap();
  const WholePattern whole(runtime, mine);
  seconds["gather"] += watch.lap();
  const std::optional<Colouring> colours = two_colours(whole.view());
  if (!colours || colours->count < 2) return {};
  const Array<Index> numbers = numbers_of_black(*colours);
  reduced.number(numbers);
  seconds["colour"] += watch.lap();
  const Index entries = sum_of_ranks(runtime, mine.entries());
  if (keeps) reduced.leave_unformed(mine, numbers, keeps);
  if (!reduced.unformed_) {
    reduced.take_entries(mine);
    const RedElimination<T> elimination(mine, reduced.diagonal_, numbers, reduced.neighbours_);
    const Index terms = elimination.terms(reduced.black_rows_);
    if (sum_of_ranks(runtime, terms) > most_alike * most_growth * entries ||
        !reduced.make(elimination, terms, matrix_class) ||
        sum_of_ranks(runtime, reduced.s_.entries()) > most_growth * entries)
      return {};
  }
  const Index black = reduced.s_.total_rows;
  reduced.facts_ = {.choice = ilu0,
                    .stages = 2,
                    .rows_of_colours = {mine.total_rows - black, black},
                    .entries = entries,
                    .reduced_rows = black};
  seconds["factorise"] += watch.lap();
  return reduced;
}

/// If that is possible. Float has too few digits for A to follow from G.
template <class T>
void ReducedSystem<T>::leave_unformed(const Csr<T>& mine, std::span<const Index> numbers,
                                      const KeepsSchur& keeps) {
  if constexpr (std::is_same_v<T, double>)
    unformed_ = UnformedSchur::of(mine, diagonal_, numbers, black_rows_, keeps);
  if (unformed_) neighbours_ = SharedElements(*runtime_, {});
}

/// @param numbers of all rows of A in S
template <class T>
void ReducedSystem<T>::number(std::span<const Index> numbers) {
  numbers_.resize(at(rows_.count()));
  const Index mine = add_up(
      rows_.count(), 0, [&](Index i) { return sparse::is_red(numbers[at(rows_.first + i)]) ? 0 : 1; },
      [&](Index i, Index) { numbers_[at(i)] = numbers[at(rows_.first + i)]; });
  const std::vector<Index> of_ranks = gather(*runtime_, mine);
  const std::vector<Index> bounds = bounds_of_ranks(of_ranks);
  const int rank = runtime_->rank();
  black_.first = std::accumulate(of_ranks.begin(), of_ranks.begin() + rank, Index{0});
  black_.end = black_.first + of_ranks[at(rank)];
  black_rows_.resize(at(black_.count()));
  const auto find = [&](Index first, Index end) {
    for (Index i = first; i < end; ++i)
      if (!is_red(i)) black_rows_[at(numbers_[at(i)] - black_.first)] = i;
  };
  in_parts(rows_.count(), 0, find, least_copied);
  reduced_ = {bounds[at(rank)], bounds[at(rank + 1)]};
  s_.first_row = reduced_.first;
  s_.total_rows = s_.cols = bounds.back();
  to_s_ = Redivision(*runtime_, black_, reduced_);
  from_s_ = Redivision(*runtime_, reduced_, black_);
}

template <class T>
void ReducedSystem<T>::take_entries(const Csr<T>& mine) {
  neighbours_ = SharedElements(*runtime_, seen_by_others(*runtime_, mine));
  row_begin_ = mine.row_begin;
  places_.resize(mine.columns.size());
  values_.resize(mine.values.size());
  const auto take = [&](Index first, Index end) {
    for (Index n = first; n < end; ++n) {
      const Index column = mine.columns[at(n)], own = column - rows_.first;
      const bool is_own = 0 <= own && own < rows_.count();
      places_[at(n)] = static_cast<std::int32_t>(is_own ? own : rows_.count() + neighbours_.place(column));
      values_[at(n)] = mine.values[at(n)];
    }
  };
  in_parts(mine.entries(), 0, take, least_copied);
}

/// S: rows of this rank's black rows first, which are those that S has here but for whole grains.
/// @return whether its diagonal can be divided by, on all ranks
template <class T>
bool ReducedSystem<T>::make(const RedElimination<T>& elimination, Index terms, MatrixClass matrix_class) {
  std::atomic<bool> is_sound = true;
  Csr<T> made;
  make_rows(made, black_.count(), terms, [&](Index first, Index end, RowsInTheMaking<T>& to) {
    const auto rows = std::span(black_rows_).subspan(at(first), at(end - first));
    if (!elimination.append(rows, matrix_class, to)) is_sound = false;
  });
  if (any(*runtime_, !is_sound)) return false;
  if (to_s_.moves_any()) {
    move(made);
    return true;
  }
  s_.row_begin = std::move(made.row_begin);
  s_.columns = std::move(made.columns);
  s_.values = std::move(made.values);
  return true;
}

/// From the ranks that have A's rows to those that have S's.
template <class T>
void ReducedSystem<T>::move(const Csr<T>& made) {
  const auto of_row = [&](Index number, const auto& entries) {
    const Index row = number - black_.first, begin = made.row_begin[at(row)];
    return std::span(entries).subspan(at(begin), at(made.row_begin[at(row + 1)] - begin));
  };
  const auto columns =
      to_s_.template lists<Index>([&](Index number) { return of_row(number, made.columns); });
  const auto values = to_s_.template lists<T>([&](Index number) { return of_row(number, made.values); });
  s_.row_begin = row_begins(reduced_.count(), 0, [&](Index i) {
    return static_cast<Index>(columns.of(reduced_.first + i).size());
  });
  s_.columns.resize(at(s_.entries()));
  s_.values.resize(at(s_.entries()));
  in_parts(reduced_.count(), 0, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) {
      std::ranges::copy(columns.of(reduced_.first + i), s_.columns.begin() + s_.row_begin[at(i)]);
      std::ranges::copy(values.of(reduced_.first + i), s_.values.begin() + s_.row_begin[at(i)]);
    }
  });
}

template <class T>
template <class ValueOf>
typename ReducedSystem<T>::Vector ReducedSystem<T>::vector(const ValueOf& value) const {
  Vector v(at(rows_.count()) + neighbours_.all().size());
  const auto fill = [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) v[at(place(i))] = value(i);
  };
  in_parts(rows_.count(), 0, fill, least_copied);
  tell_neighbours(v);
  return v;
}

template <class T>
Index ReducedSystem<T>::place(Index row) const {
  if (!unformed_) return row;
  const Index number = numbers_[at(row)];
  return sparse::is_red(number) ? reduced_.count() + red_number(number) : number;
}

template <class T>
void ReducedSystem<T>::tell_neighbours(Vector& v) const {
  std::ranges::copy(neighbours_.tell<double>([&](Index element) { return v[at(element - rows_.first)]; }),
                    v.begin() + rows_.count());
}

/// (A v)_row
template <class T>
double ReducedSystem<T>::product(Index row, const Vector& v) const {
  if (unformed_) {
    const double own = diagonal_[at(row)] * v[at(place(row))];
    const Index number = numbers_[at(row)];
    return own + (sparse::is_red(number) ? unformed_->product_of_red(red_number(number), v.data())
                                         : unformed_->product_of_black(number, v.data() + reduced_.count()));
  }
  double sum = 0;
  for (Index n = row_begin_[at(row)]; n < row_begin_[at(row + 1)]; ++n)
    sum += static_cast<double>(values_[at(n)]) * v[at(places_[at(n)])];
  return sum;
}

/// b_b - F D^-1 b_r
template <class T>
Array<T> ReducedSystem<T>::right_hand_side(const T* b, double scale) const {
  const Vector v = vector([&](Index i) { return is_red(i) ? b[i] / scale / diagonal_[at(i)] : 0; });
  Array<T> reduced(at(reduced_.count()));
  to_s_.move(
      [&](Index number) {
        const Index i = black_rows_[at(number - black_.first)];
        return static_cast<T>(residual(i, b, scale, v));
      },
      reduced.data());
  return reduced;
}

template <class T>
Array<T> ReducedSystem<T>::first_guess(const T* x, double scale) const {
  Array<T> reduced(at(reduced_.count()));
  to_s_.move([&](Index number) { return static_cast<T>(x[black_rows_[at(number - black_.first)]] / scale); },
             reduced.data());
  return reduced;
}

/// x_r = D^-1 (b_r - E x_b)
template <class T>
typename ReducedSystem<T>::Vector ReducedSystem<T>::solution(const T* b, const Array<T>& reduced,
                                                             double scale, T* x) const {
  Array<T> black(black_rows_.size());
  from_s_.move([&](Index number) { return reduced[at(number - reduced_.first)]; }, black.data());
  Vector v = vector([&](Index i) {
    return is_red(i) ? 0 : static_cast<double>(black[at(numbers_[at(i)] - black_.first)]);
  });
  const auto fill = [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) {
      double& its = v[at(place(i))];
      if (is_red(i)) its = static_cast<T>(residual(i, b, scale, v) / diagonal_[at(i)]);
      x[i] = static_cast<T>(its * scale);
    }
  };
  in_parts(rows_.count(), 0, fill, least_rows_seen);
  tell_neighbours(v);
  return v;
}

template class ReducedSystem<float>;
template class ReducedSystem<double>;

}  // namespace asterism::sparse
