#include "tridiagonal.hpp"

#include <algorithm>
#include <vector>

namespace asterism::kernels::cpu {
namespace {

/// Columns that are eliminated together: their state stays in the first-level cache, and a row of a strip is
/// long enough for the hardware to read ahead.
constexpr Index strip_columns = 64;

/// Calls `body(first, columns)` for every strip of n columns.
template <class Body>
void for_each_strip(Index n, Body body) {
  for (Index k = 0; k < n; k += strip_columns) body(k, std::min(strip_columns, n - k));
}

/// The pivots of a strip, one array per member so that loops over columns vectorise.
struct StripPivots {
  double m[strip_columns], complement[strip_columns], product[strip_columns];

  void set(Index w, const Pivot& pivot) {
    m[w] = pivot.m;
    complement[w] = pivot.complement;
    product[w] = pivot.product;
  }
  [[nodiscard]] Pivot get(Index w) const { return {m[w], complement[w], product[w]}; }
};

}  // namespace

template <class T>
void reduce(In<T> lines, In<double> excess, double scale, InOut<double> boundary, Segment segment) {
  for_each_strip(lines.cols, [&](Index k, Index columns) {
    const double* const e = excess.data + k;
    double* const y_first = boundary.row(y_first_row) + k;
    double* const y_last = boundary.row(y_last_row) + k;
    double* const p = boundary.row(p_row) + k;
    double* const q = boundary.row(q_row) + k;
    StripPivots pivots;
    double first[strip_columns], last[strip_columns];
    for (Index w = 0; w < columns; ++w) {
      const Boundary b =
          segment == Segment::append ? Boundary{y_first[w], y_last[w], p[w], q[w]} : Boundary{};
      pivots.set(w, {-b.p, 1.0 + b.p, -b.q});
      first[w] = b.y_first;
      last[w] = b.y_last;
    }
    for (Index i = 0; i < lines.rows; ++i) {
      const T* const f = lines.row(i) + k;
      for (Index w = 0; w < columns; ++w) {
        Pivot pivot = pivots.get(w);
        pivot.advance(e[w]);
        Ends ends{first[w], last[w]};
        ends.advance(scale * static_cast<double>(f[w]), pivot);
        pivots.set(w, pivot);
        first[w] = ends.first;
        last[w] = ends.last;
      }
    }
    for (Index w = 0; w < columns; ++w) {
      y_first[w] = first[w];
      y_last[w] = last[w];
      p[w] = -pivots.m[w];
      q[w] = -pivots.product[w];
    }
  });
}

void eliminate(In<double> boundary, In<double> before, Out<double> after) {
  for (Index k = 0; k < boundary.cols; ++k) {
    const Boundary b{boundary.row(y_first_row)[k], boundary.row(y_last_row)[k], boundary.row(p_row)[k],
                     boundary.row(q_row)[k]};
    const Prefix prefix =
        before.data == nullptr ? Prefix{} : Prefix{before.row(alpha_row)[k], before.row(beta_row)[k]};
    const Prefix next = kernels::eliminate(prefix, b);
    after.row(alpha_row)[k] = next.alpha;
    after.row(beta_row)[k] = next.beta;
  }
}

void substitute(In<double> boundary, In<double> before, In<double> below, Out<double> first,
                Out<double> above) {
  for (Index k = 0; k < boundary.cols; ++k) {
    const Boundary b{boundary.row(y_first_row)[k], boundary.row(y_last_row)[k], boundary.row(p_row)[k],
                     boundary.row(q_row)[k]};
    const Prefix prefix =
        before.data == nullptr ? Prefix{} : Prefix{before.row(alpha_row)[k], before.row(beta_row)[k]};
    const Neighbours neighbours = kernels::substitute(prefix, b, below.data[k]);
    first.data[k] = neighbours.first;
    above.data[k] = neighbours.above;
  }
}

template <class T>
void solve(InOut<T> lines, In<double> excess, double scale, In<double> above, In<double> below) {
  static thread_local std::vector<double> pivot_rows, unknown_rows;  // m_j and y_j of (S3)
  const auto needed = static_cast<std::size_t>(lines.rows * strip_columns);
  if (pivot_rows.size() < needed) {
    pivot_rows.resize(needed);
    unknown_rows.resize(needed);
  }
  double* const m_rows = pivot_rows.data();
  double* const y_rows = unknown_rows.data();

  for_each_strip(lines.cols, [&](Index k, Index columns) {
    const double* const e = excess.data + k;
    StripPivots pivots;
    for (Index w = 0; w < columns; ++w) pivots.set(w, Pivot{});
    const double* before = above.data + k;
    for (Index i = 0; i < lines.rows; ++i) {
      const T* const f = lines.row(i) + k;
      double* const m = m_rows + i * strip_columns;
      double* const y = y_rows + i * strip_columns;
      for (Index w = 0; w < columns; ++w) {
        Pivot pivot = pivots.get(w);
        pivot.advance(e[w]);
        m[w] = pivot.m;
        y[w] = pivot.eliminate(before[w], scale * static_cast<double>(f[w]));
        pivots.complement[w] = pivot.complement;
      }
      before = y;
    }
    double next[strip_columns];
    std::copy_n(below.data + k, columns, next);
    for (Index i = lines.rows - 1; i >= 0; --i) {
      const double* const m = m_rows + i * strip_columns;
      const double* const y = y_rows + i * strip_columns;
      T* const v = lines.row(i) + k;
      for (Index w = 0; w < columns; ++w) {
        next[w] = y[w] + m[w] * next[w];
        v[w] = static_cast<T>(next[w]);
      }
    }
  });
}

template void reduce(In<float>, In<double>, double, InOut<double>, Segment);
template void reduce(In<double>, In<double>, double, InOut<double>, Segment);
template void solve(InOut<float>, In<double>, double, In<double>, In<double>);
template void solve(InOut<double>, In<double>, double, In<double>, In<double>);

}  // namespace asterism::kernels::cpu
