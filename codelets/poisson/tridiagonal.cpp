#include "tridiagonal.hpp"

#include <algorithm>
#include <vector>

#include "wave_columns.hpp"

namespace asterism::poisson::cpu {
namespace {

/// Columns that are eliminated together: their state stays in the first-level cache, and a row of a strip is
/// long enough for the hardware to read ahead.
constexpr Index strip_columns = 64;

/// Calls `body(first, columns)` for every strip of columns, but for waves.
template <class Body>
void for_each_strip(const In<double>& mu, Body body) {
  for_each_strip(mu, Regime::decay, strip_columns, body);
}

/// The responses of a strip, one array per member so that loops over columns vectorise.
struct StripResponses {
  double first_before[strip_columns], first_after[strip_columns], first_lost[strip_columns];
  double last_before[strip_columns], last_after[strip_columns], last_lost[strip_columns];

  void set(Index w, const Response& r) {
    first_before[w] = r.first.before;
    first_after[w] = r.first.after;
    first_lost[w] = r.first.lost;
    last_before[w] = r.last.before;
    last_after[w] = r.last.after;
    last_lost[w] = r.last.lost;
  }
  [[nodiscard]] Response get(Index w) const {
    return {{first_before[w], first_after[w], first_lost[w]}, {last_before[w], last_after[w], last_lost[w]}};
  }
};

/// Calls `body` with the direction as a constant: every step of a stream waits for its loops, which so vectorise.
template <class Body>
void with_constant(Direction direction, Body body) {
  if (direction == Direction::forward)
    body(std::integral_constant<Direction, Direction::forward>());
  else
    body(std::integral_constant<Direction, Direction::backward>());
}

template <Half half>
void eliminate_half(Direction direction, const Told& segment, const Told& before, const Out<double>& after) {
  constexpr HalfConstant<half> which;
  with_constant(direction, [&](auto constant) {
    if (segment.response.rows == wave_response_rows)
      for (Index k = 0; k < after.cols; ++k) eliminate_column(which, constant, segment, before, after, k);
    else
      for (Index k = 0; k < after.cols; ++k) eliminate_decay(which, constant, segment, before, after, k);
  });
}

}  // namespace

void respond(In<double> axis, In<double> mu, Out<double> response) {
  for_each_strip(mu, [&](Index k, Index columns) {
    const double* const modes = mu.data + k;
    StripResponses responses;
    for (Index w = 0; w < columns; ++w) responses.set(w, Response{});
    for (Index i = 0; i < axis.rows; ++i) {
      const Row row = row_at(axis, i);
      for (Index w = 0; w < columns; ++w) {
        Response r = responses.get(w);
        r.append(row, modes[w]);
        responses.set(w, r);
      }
    }
    for (Index w = 0; w < columns; ++w) put(response, k + w, responses.get(w));
    if (response.rows == wave_response_rows)
      std::fill_n(response.row(wave_response_rows - 1) + k, columns, 0.0);
  });
  respond_waves(axis, mu, response);
}

template <class T>
void reduce(In<T> lines, In<double> axis, In<double> mu, double scale, InOut<double> state, Segment segment) {
  for_each_strip(mu, [&](Index k, Index columns) {
    const double* const modes = mu.data + k;
    double* const first_row = state.row(y_first_row) + k;
    double* const last_row = state.row(y_last_row) + k;
    double* const reaches = state.row(reach_row) + k;
    double* const complements = state.row(complement_row) + k;
    double first[strip_columns], last[strip_columns], reach[strip_columns], complement[strip_columns];
    for (Index w = 0; w < columns; ++w) {
      const Reduction r = segment == Segment::append
                              ? Reduction{first_row[w], last_row[w], reaches[w], complements[w]}
                              : Reduction{};
      first[w] = r.y_first;
      last[w] = r.y_last;
      reach[w] = r.reach;
      complement[w] = r.complement;
    }
    for (Index i = 0; i < lines.rows; ++i) {
      const T* const f = lines.row(i) + k;
      const Row row = row_at(axis, i);
      const double weight = scale * row.width;
      for (Index w = 0; w < columns; ++w) {
        Reduction r{first[w], last[w], reach[w], complement[w]};
        r.append(row, modes[w], weight * static_cast<double>(f[w]));
        first[w] = r.y_first;
        last[w] = r.y_last;
        reach[w] = r.reach;
        complement[w] = r.complement;
      }
    }
    std::copy_n(first, columns, first_row);
    std::copy_n(last, columns, last_row);
    std::copy_n(reach, columns, reaches);
    std::copy_n(complement, columns, complements);
  });
  reduce_waves(lines, axis, mu, scale, state, segment);
}

void eliminate(Direction direction, Told segment, Told before, Out<double> shown) {
  eliminate_half<Half::shown>(direction, segment, before, shown);
}
void eliminate_response(Direction direction, Told segment, Told before, Out<double> response) {
  eliminate_half<Half::response>(direction, {{}, segment.response}, {{}, before.response}, response);
}

void close(Told left, Told right, Out<double> before_start, Out<double> after_end) {
  for (Index k = 0; k < before_start.cols; ++k) close_column(left, right, before_start, after_end, k);
}

void meet(In<double> mu, Told left, Told right, In<double> before_start, In<double> after_end,
          Out<double> first, Out<double> last) {
  for (Index k = 0; k < mu.cols; ++k) meet_column(mu, left, right, before_start, after_end, first, last, k);
}

void substitute(Direction direction, Told segment, Told prefix, In<double> start, In<double> after,
                Out<double> first, Out<double> before) {
  with_constant(direction, [&](auto constant) {
    if (segment.response.rows == wave_response_rows)
      for (Index k = 0; k < first.cols; ++k)
        substitute_column(constant, segment, prefix, start, after, first, before, k);
    else
      for (Index k = 0; k < first.cols; ++k)
        substitute_decay(constant, segment, prefix, start, after, first, before, k);
  });
}

template <class T>
void solve(InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
           In<double> after) {
  static thread_local std::vector<double> pivot_rows, unknown_rows;  // m_j and y_j of (S3)
  const auto needed = static_cast<std::size_t>(lines.rows * strip_columns);
  if (pivot_rows.size() < needed) {
    pivot_rows.resize(needed);
    unknown_rows.resize(needed);
  }
  double* const m_rows = pivot_rows.data();
  double* const y_rows = unknown_rows.data();

  for_each_strip(mu, [&](Index k, Index columns) {
    const double* const modes = mu.data + k;
    double complement[strip_columns];
    std::fill_n(complement, columns, Pivot{}.complement);
    const double* y_before = before.data + k;
    for (Index i = 0; i < lines.rows; ++i) {
      const T* const f = lines.row(i) + k;
      const Row row = row_at(axis, i);
      const double weight = scale * row.width;
      double* const m = m_rows + i * strip_columns;
      double* const y = y_rows + i * strip_columns;
      for (Index w = 0; w < columns; ++w) {
        Pivot pivot{complement[w]};
        pivot.advance(row, modes[w]);
        complement[w] = pivot.complement;
        m[w] = pivot.m(row);
        y[w] = pivot.eliminate(row, y_before[w], weight * static_cast<double>(f[w]));
      }
      y_before = y;
    }
    double next[strip_columns];
    std::copy_n(after.data + k, columns, next);
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
  solve_waves(lines, axis, mu, scale, before, after);
}

template <class T>
void solve_ring(InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> response,
                double* work) {
  const Ring ring(work, lines.cols, rows_with(mu));
  reduce(as_in(lines), axis, mu, scale, ring.state, Segment::start);
  close(ring.told(response), {}, ring.before, ring.after);
  solve(lines, axis, mu, scale, as_in(ring.before), as_in(ring.after));
}

template void reduce(In<float>, In<double>, In<double>, double, InOut<double>, Segment);
template void reduce(In<double>, In<double>, In<double>, double, InOut<double>, Segment);
template void solve(InOut<float>, In<double>, In<double>, double, In<double>, In<double>);
template void solve(InOut<double>, In<double>, In<double>, double, In<double>, In<double>);
template void solve_ring(InOut<float>, In<double>, In<double>, double, In<double>, double*);
template void solve_ring(InOut<double>, In<double>, In<double>, double, In<double>, double*);

}  // namespace asterism::poisson::cpu
