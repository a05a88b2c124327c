#include "factorise.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
#include "../graph/rows.hpp"

namespace asterism::sparse {
namespace {

using Place = std::int32_t;  // among the entries of a row

constexpr Place nowhere = -1;

enum class Kept { lower, whole };

void check(PatternView matrix, PatternView pattern, double shift) {
  if (!(shift >= 0) || !std::isfinite(shift))
    throw Error(fmt::format(
        "the diagonal is to be shifted by {} of itself: give a finite share of at least 0", shift));
  if (matrix.rows() != pattern.rows())
    throw Error(fmt::format("the matrix has {} rows, the pattern {}: give one of the same size",
                            matrix.rows(), pattern.rows()));
}

/// Where the diagonal is among the entries of each row. @throw Error: a row lacks it
std::vector<Index> diagonals_of(PatternView pattern, int threads) {
  std::vector<Index> diagonals(at(pattern.rows()));
  in_parts(pattern.rows(), threads, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) {
      const std::span<const Index> row = pattern.row(i);
      const auto found = std::ranges::lower_bound(row, i);
      if (found == row.end() || *found != i)
        throw Error(fmt::format("the pattern has no diagonal entry in row {}: add it", i));
      diagonals[at(i)] = pattern.begin(i) + (found - row.begin());
    }
  });
  return diagonals;
}

/// The pattern, or its lower triangle, without values.
Csr<double> room_for(PatternView pattern, const std::vector<Index>& diagonals, Kept kept, int threads) {
  const auto count = [&](Index i) {
    return (kept == Kept::lower ? diagonals[at(i)] + 1 : pattern.begin(i + 1)) - pattern.begin(i);
  };
  Csr<double> result;
  result.total_rows = result.cols = pattern.rows();
  result.row_begin = row_begins(pattern.rows(), threads, count);
  result.columns.resize(at(result.entries()));
  result.values.resize(at(result.entries()));
  in_parts(pattern.rows(), threads, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i)
      std::ranges::copy(pattern.row(i).first(at(count(i))), result.columns.begin() + result.row_begin[at(i)]);
  });
  return result;
}

/// A row while it is worked on, and where its columns are in it. Every thread has its own.
class Row {
 public:
  Row(const Csr<double>& matrix, double shift, Csr<double>& factor)
      : matrix_(&matrix), factor_(&factor), shift_(shift), place_(at(matrix.rows()), nowhere) {}

  /// Fills it with the values of A + shift diag(A).
  void enter(Index row) {
    row_ = row;
    begin_ = factor_->row_begin[at(row)];
    end_ = factor_->row_begin[at(row + 1)];
    for (Index n = begin_; n < end_; ++n) {
      place_[at(factor_->columns[at(n)])] = static_cast<Place>(n - begin_);
      factor_->values[at(n)] = 0;
    }
    for (Index n = matrix_->row_begin[at(row)]; n < matrix_->row_begin[at(row + 1)]; ++n) {
      const Index j = matrix_->columns[at(n)];
      const double value = matrix_->values[at(n)];
      if (place_[at(j)] != nowhere) (*this)[place_[at(j)]] = j == row ? value + shift_ * value : value;
    }
  }
  void leave() {
    for (Index n = begin_; n < end_; ++n) place_[at(factor_->columns[at(n)])] = nowhere;
  }

  [[nodiscard]] Place place(Index column) const { return place_[at(column)]; }
  [[nodiscard]] double& operator[](Place place) { return factor_->values[at(begin_ + place)]; }

  /// The rows before it are taken off the row. @param diagonal where their diagonals are
  void eliminate(const std::vector<Index>& diagonal) {
    Csr<double>& lu = *factor_;
    for (Index n = begin_; n < diagonal[at(row_)]; ++n) {
      const Index k = lu.columns[at(n)];
      const double multiplier = lu.values[at(n)] /= lu.values[at(diagonal[at(k)])];
      for (Index u = diagonal[at(k)] + 1; u < lu.row_begin[at(k + 1)]; ++u)
        if (const Place to = place(lu.columns[at(u)]); to != nowhere)
          (*this)[to] -= multiplier * lu.values[at(u)];
    }
  }

  /// The row of L but its diagonal's root. @return the pivot
  double reduce() {
    Csr<double>& lower = *factor_;
    double pivot = lower.values[at(end_ - 1)];
    for (Index n = begin_; n < end_ - 1; ++n) {
      const Index k = lower.columns[at(n)], end = lower.row_begin[at(k + 1)] - 1;
      double value = lower.values[at(n)];
      for (Index m = lower.row_begin[at(k)]; m < end; ++m)
        if (const Place from = place(lower.columns[at(m)]); from != nowhere)
          value -= (*this)[from] * lower.values[at(m)];
      value /= lower.values[at(end)];
      lower.values[at(n)] = value;
      pivot -= value * value;
    }
    return pivot;
  }

  /// The largest entry of A's row, to which the pivot is compared.
  [[nodiscard]] double largest_of_matrix() const {
    double result = 0;
    for (Index n = matrix_->row_begin[at(row_)]; n < matrix_->row_begin[at(row_ + 1)]; ++n)
      result = std::max(result, std::abs(matrix_->values[at(n)]));
    return result;
  }

 private:
  const Csr<double>* matrix_;
  Csr<double>* factor_;
  double shift_;
  std::vector<Place> place_;
  Index row_ = 0, begin_ = 0, end_ = 0;
};

/// Turns that follow each other without a wait, as they are so short that one thread works on them.
struct Round {
  Index first, end;
};

std::vector<Round> rounds_of(const Turns& turns) {
  constexpr Index short_turn = 256;
  std::vector<Round> rounds;
  bool last_was_short = false;
  for (Index t = 0; t < turns.count(); ++t) {
    const bool is_short = turns.begins[at(t + 1)] - turns.begins[at(t)] < short_turn;
    if (is_short && last_was_short)
      rounds.back().end = t + 1;
    else
      rounds.push_back({t, t + 1});
    last_was_short = is_short;
  }
  return rounds;
}

/// The lowest row that breaks down. Rows after it need not be factorised.
class LowestBreakdown {
 public:
  [[nodiscard]] bool is_before(Index row) const { return row_.load(std::memory_order_relaxed) < row; }
  void add(Breakdown found) {
    const std::lock_guard lock(mutex_);
    if (is_before(found.row)) return;
    breakdown_ = found;
    row_ = found.row;
  }
  [[nodiscard]] const std::optional<Breakdown>& get() const { return breakdown_; }

 private:
  std::atomic<Index> row_ = std::numeric_limits<Index>::max();
  std::mutex mutex_;
  std::optional<Breakdown> breakdown_;
};

/// Goes through the turns. @param factorise factorise(row, number): a row that was entered; a breakdown or none
template <class Factorise>
std::optional<Breakdown> factorise_in_turns(const Csr<double>& matrix, double shift, const Turns& turns,
                                            int threads, Csr<double>& factor, const Factorise& factorise) {
  Index longest = 0;
  for (Index t = 0; t < turns.count(); ++t)
    longest = std::max(longest, turns.begins[at(t + 1)] - turns.begins[at(t)]);
  const int team = threads_for(longest, threads, 128);
  const std::vector<Round> rounds = rounds_of(turns);
  std::vector<std::optional<Row>> rows(at(team));
  LowestBreakdown lowest;
  in_steps(team, static_cast<Index>(rounds.size()), [&](Index number, int thread) {
    const Round& round = rounds[at(number)];
    std::optional<Row>& row = rows[at(thread)];
    if (!row) row.emplace(matrix, shift, factor);
    const Index first = turns.begins[at(round.first)], size = turns.begins[at(round.end)] - first;
    const bool together = round.end - round.first > 1;  // in order, by one thread
    const Index from = together ? 0 : size * thread / team, to = together ? size : size * (thread + 1) / team;
    if (together && thread > 0) return;
    for (Index n = first + from; n < first + to; ++n) {
      const Index i = turns.rows[at(n)];
      if (lowest.is_before(i)) continue;
      row->enter(i);
      const std::optional<Breakdown> breakdown = factorise(*row, i);
      row->leave();
      if (breakdown) lowest.add(*breakdown);
    }
  });
  return lowest.get();
}

}  // namespace

Turns one_by_one(Index rows) {
  Turns turns;
  turns.rows.resize(at(rows));
  std::iota(turns.rows.begin(), turns.rows.end(), Index{0});
  for (Index i = 0; i < rows; ++i) turns.begins.push_back(i + 1);
  return turns;
}

Factorisation incomplete_lu(const Csr<double>& matrix, PatternView pattern, const Turns& turns, double shift,
                            int threads) {
  check(matrix, pattern, shift);
  const std::vector<Index> diagonals = diagonals_of(pattern, threads);
  Factorisation result{room_for(pattern, diagonals, Kept::whole, threads), shift, std::nullopt};
  Csr<double>& lu = result.factor;
  result.breakdown = factorise_in_turns(
      matrix, shift, turns, threads, lu, [&](Row& row, Index i) -> std::optional<Breakdown> {
        row.eliminate(diagonals);
        const double pivot = lu.values[at(diagonals[at(i)])];
        const double least = std::numeric_limits<double>::epsilon() * row.largest_of_matrix();
        if (std::abs(pivot) > least && std::isfinite(pivot)) return {};
        return Breakdown{i, pivot};
      });
  return result;
}

Factorisation incomplete_cholesky(const Csr<double>& matrix, PatternView pattern, const Turns& turns,
                                  double shift, int threads) {
  check(matrix, pattern, shift);
  Factorisation result{room_for(pattern, diagonals_of(pattern, threads), Kept::lower, threads), shift,
                       std::nullopt};
  Csr<double>& lower = result.factor;
  result.breakdown = factorise_in_turns(matrix, shift, turns, threads, lower,
                                        [&](Row& row, Index i) -> std::optional<Breakdown> {
                                          const double pivot = row.reduce();
                                          if (!(pivot > 0) || !std::isfinite(pivot))
                                            return Breakdown{i, pivot};
                                          lower.values[at(lower.row_begin[at(i + 1)] - 1)] = std::sqrt(pivot);
                                          return {};
                                        });
  return result;
}

Factorisation with_growing_shift(const std::function<Factorisation(double shift)>& factorise) {
  constexpr double first_shift = 1e-3, largest_shift = 1000;
  Factorisation result = factorise(0);
  for (double shift = first_shift; result.breakdown && result.shift <= largest_shift; shift *= 2)
    result = factorise(shift);
  return result;
}

}  // namespace asterism::sparse
