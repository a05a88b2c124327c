#include "triangular_factors.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "../../../runtime/collectives.hpp"
#include "../graph/rows.hpp"

namespace asterism::sparse {
namespace {

/// The number in `to` of each row of `from`; empty: as it is.
std::vector<Index> from_to(const Numbering& from, const Numbering& to, Partition::Range rows, int threads) {
  std::vector<Index> numbers(at(rows.count()));
  in_parts(rows.count(), threads, [&](Index first, Index end) {
    for (Index n = first; n < end; ++n) {
      const Index row = rows.first + n, natural = from.rows() == 0 ? row : from.old_of_new[at(row)];
      numbers[at(n)] = to.rows() == 0 ? natural : to.new_of_old[at(natural)];
    }
  });
  return numbers;
}

/// Where the diagonal is among the entries of a row.
Index diagonal_place(const Csr<double>& matrix, Index row) {
  const auto begin = matrix.columns.begin() + matrix.row_begin[at(row)],
             end = matrix.columns.begin() + matrix.row_begin[at(row + 1)];
  return std::lower_bound(begin, end, row) - matrix.columns.begin();
}

}  // namespace

template <class T>
TriangularPlan::TriangularPlan(const Runtime& runtime, const Partition& blocks, const Csr<T>& mine,
                               const PreconditionerChoice& choice, int threads,
                               std::map<std::string, double>& seconds)
    : choice_(choice), threads_(threads), mine_(blocks.elements_of(runtime.rank())) {
  Stopwatch watch;
  const WholePattern whole(runtime, mine);
  seconds["gather"] += watch.lap();
  order_ = stage_order(whole.view(), choice, blocks, threads);
  seconds["colour"] += watch.lap();
  if (choice.method == PreconditionerMethod::mc_ssor) return;
  elimination_.emplace(whole.view(), order_, mine_, choice, threads, seconds);
  watch.lap();
  const Partition::Range all{0, whole.view().rows()};
  eliminated_of_mine_ = from_to(order_.numbering, elimination_->numbering(), mine_, threads);
  final_of_eliminated_ = from_to(elimination_->numbering(), order_.numbering, all, threads);
  seconds["colour"] += watch.lap();
}

template <class T>
TriangularFactors<T> TriangularPlan::factors(const Runtime& runtime, const Csr<T>& mine, DiagonalShift shift,
                                             std::map<std::string, double>& seconds) {
  Stopwatch watch;
  TriangularFactors<T> factors;
  if (choice_.method == PreconditionerMethod::mc_ssor) {
    factors = relaxation(runtime, mine);
    seconds["factorise"] += watch.lap();
    return factors;
  }
  elimination_->load(runtime, mine);
  seconds["gather"] += watch.lap();
  const Factorisation found = elimination_->factorise(runtime, shift);
  seconds["factorise"] += watch.lap();
  factors.shift = found.shift;
  factors.breakdown = found.breakdown;
  if (found.breakdown) return factors;
  if (choice_.method == PreconditionerMethod::ic0)
    split_cholesky(found.factor, factors);
  else
    split_lu(found.factor, factors);
  seconds["split"] += watch.lap();
  return factors;
}

/// @param count count(i): entries of this rank's i-th row
/// @param fill fill(i, columns, values): them, in any order
template <class T, class Count, class Fill>
Csr<T> TriangularPlan::rows_of_rank(const Count& count, const Fill& fill) const {
  Csr<T> rows;
  rows.first_row = mine_.first;
  rows.total_rows = rows.cols = static_cast<Index>(order_.stage_of_row.size());
  rows.row_begin = row_begins(mine_.count(), threads_, count);
  rows.columns.resize(at(rows.entries()));
  rows.values.resize(at(rows.entries()));
  in_parts(mine_.count(), threads_, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) {
      const Index begin = rows.row_begin[at(i)];
      Index* const columns = rows.columns.data() + begin;
      T* const values = rows.values.data() + begin;
      fill(i, columns, values);
      sort_row(columns, values, rows.row_begin[at(i + 1)] - begin);
    }
  });
  return rows;
}

/// [Weiss 2011]: L = omega L_A D_A^-1, U = omega D_A^-1 R_A, D = D_A / (omega (2 - omega)), where L_A has the entries
/// whose columns are of earlier colours and R_A the others.
template <class T>
TriangularFactors<T> TriangularPlan::relaxation(const Runtime& runtime, const Csr<T>& mine) const {
  const double omega = choice_.omega;
  Array<double> d(at(mine.rows()), 0);
  const auto for_row = [&](Index i, const auto& body) {
    for (Index n = mine.row_begin[at(i)]; n < mine.row_begin[at(i + 1)]; ++n)
      body(mine.columns[at(n)], static_cast<double>(mine.values[at(n)]));
  };
  in_parts(mine.rows(), threads_, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i)
      for_row(i, [&](Index j, double value) {
        if (j == mine.first_row + i) d[at(i)] = value;
      });
  });
  const Array<double> all = gather_lists(runtime, d);
  const auto stage = [&](Index row) { return order_.stage_of_row[at(row)]; };
  const auto part = [&](const auto& keep, const auto& scaled) {
    return rows_of_rank<T>(
        [&](Index i) {
          Index count = 0;
          for_row(i, [&](Index j, double) { count += keep(stage(j), stage(mine.first_row + i)); });
          return count;
        },
        [&](Index i, Index* columns, T* values) {
          for_row(i, [&](Index j, double value) {
            if (!keep(stage(j), stage(mine.first_row + i))) return;
            *columns++ = j;
            *values++ = static_cast<T>(scaled(i, j, value));
          });
        });
  };
  TriangularFactors<T> factors;
  factors.lower = part(std::less<>{}, [&](Index, Index j, double a) { return omega * a / all[at(j)]; });
  factors.upper = part(std::greater<>{}, [&](Index i, Index, double a) { return omega * a / d[at(i)]; });
  factors.diagonal = std::move(d);
  for (double& value : factors.diagonal) value /= omega * (2 - omega);
  return factors;
}

/// From L' + U with L' = I + L: D = diag(U), and D^-1 U = I + U of (Q3).
template <class T>
void TriangularPlan::split_lu(const Csr<double>& lu, TriangularFactors<T>& factors) const {
  std::vector<Index> places(at(mine_.count()));  // of the diagonal
  factors.diagonal.resize(places.size());
  in_parts(mine_.count(), threads_, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) {
      places[at(i)] = diagonal_place(lu, eliminated_of_mine_[at(i)]);
      factors.diagonal[at(i)] = lu.values[at(places[at(i)])];
    }
  });
  const auto begin = [&](Index i) { return lu.row_begin[at(eliminated_of_mine_[at(i)])]; };
  const auto end = [&](Index i) { return lu.row_begin[at(eliminated_of_mine_[at(i)] + 1)]; };
  factors.lower = rows_of_rank<T>([&](Index i) { return places[at(i)] - begin(i); },
                                  [&](Index i, Index* columns, T* values) {
                                    for (Index n = begin(i); n < places[at(i)]; ++n) {
                                      *columns++ = final_of_eliminated_[at(lu.columns[at(n)])];
                                      *values++ = static_cast<T>(lu.values[at(n)]);
                                    }
                                  });
  factors.upper = rows_of_rank<T>([&](Index i) { return end(i) - places[at(i)] - 1; },
                                  [&](Index i, Index* columns, T* values) {
                                    for (Index n = places[at(i)] + 1; n < end(i); ++n) {
                                      *columns++ = final_of_eliminated_[at(lu.columns[at(n)])];
                                      *values++ = static_cast<T>(lu.values[at(n)] / factors.diagonal[at(i)]);
                                    }
                                  });
}

/// From C with A ~ C C^T: D = diag(C)^2, I + L = C diag(C)^-1, U = L^T.
template <class T>
void TriangularPlan::split_cholesky(const Csr<double>& c, TriangularFactors<T>& factors) const {
  const auto diagonal = [&](Index row) { return c.values[at(c.row_begin[at(row + 1)] - 1)]; };
  const auto begin = [&](Index i) { return c.row_begin[at(eliminated_of_mine_[at(i)])]; };
  const auto end = [&](Index i) { return c.row_begin[at(eliminated_of_mine_[at(i)] + 1)] - 1; };
  factors.diagonal.resize(at(mine_.count()));
  factors.lower = rows_of_rank<T>([&](Index i) { return end(i) - begin(i); },
                                  [&](Index i, Index* columns, T* values) {
                                    const double own = diagonal(eliminated_of_mine_[at(i)]);
                                    factors.diagonal[at(i)] = own * own;
                                    for (Index n = begin(i); n < end(i); ++n) {
                                      const Index k = c.columns[at(n)];
                                      *columns++ = final_of_eliminated_[at(k)];
                                      *values++ = static_cast<T>(c.values[at(n)] / diagonal(k));
                                    }
                                  });
  // The entries of a column are put in its row as threads come to them, and sorted afterwards.
  const auto for_columns = [&](const auto& body) {
    in_parts(c.rows(), threads_, [&](Index first, Index last) {
      for (Index j = first; j < last; ++j)
        for (Index n = c.row_begin[at(j)]; n < c.row_begin[at(j + 1)] - 1; ++n)
          if (const Index i = final_of_eliminated_[at(c.columns[at(n)])] - mine_.first;
              0 <= i && i < mine_.count())
            body(i, j, n);
    });
  };
  std::vector<Index> counts(at(mine_.count()));
  for_columns([&](Index i, Index, Index) { ++std::atomic_ref(counts[at(i)]); });
  Csr<T>& upper = factors.upper;
  upper = rows_of_rank<T>([&](Index i) { return counts[at(i)]; }, [](Index, Index*, T*) {});
  for_columns([&](Index i, Index j, Index n) {
    const Index to = upper.row_begin[at(i)] + --std::atomic_ref(counts[at(i)]);
    upper.columns[at(to)] = final_of_eliminated_[at(j)];
    upper.values[at(to)] = static_cast<T>(c.values[at(n)] / diagonal(c.columns[at(n)]));
  });
  in_parts(mine_.count(), threads_, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      const Index from = upper.row_begin[at(i)];
      sort_row(upper.columns.data() + from, upper.values.data() + from, upper.row_begin[at(i + 1)] - from);
    }
  });
}

#define ASTERISM_INSTANTIATE(T)                                                                              \
  template TriangularPlan::TriangularPlan(const Runtime&, const Partition&, const Csr<T>&,                   \
                                          const PreconditionerChoice&, int, std::map<std::string, double>&); \
  template TriangularFactors<T> TriangularPlan::factors(const Runtime&, const Csr<T>&, DiagonalShift,        \
                                                        std::map<std::string, double>&)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse
