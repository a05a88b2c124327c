/// \file
/// Lines of an axis to be solved along, and dense matrices in long double: for tests of the tridiagonal
/// kernels.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../support/matrix.hpp"
#include "../support/worst.hpp"
#include "codelets/poisson/tridiagonal.hpp"

namespace asterism::test {

using namespace asterism::poisson;

using Real = long double;
using Column = std::vector<Real>;

constexpr Index columns = 70;  // one strip of the kernel and a part of one; all modes several times
constexpr Index sizes[] = {1, 2, 3, 5, 31, 32, 33, 64, 97, 1000};
constexpr Index gpu_widths[] = {1, 33, 130};  ///< columns on the device
constexpr Index largest_dense = 40;

inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Equal spacings of 1, or spacings that grow and shrink by 1.1 from one to the next.
enum class Spacing { equal, stretched };

/// The rows of an axis, to be solved along.
struct Line {
  std::string name;
  std::vector<grid::AxisRow> rows;
  bool periodic, singular;  ///< for mu = 0

  [[nodiscard]] Index size() const { return static_cast<Index>(rows.size()); }
  [[nodiscard]] Matrix<double> tile() const {
    return Matrix<double>(size(), grid::axis_columns).fill([&](Index i, Index j) {
      const grid::AxisRow& row = rows[at(i)];
      return j == grid::link_before    ? row.before
             : j == grid::link_after   ? row.after
             : j == grid::width_column ? row.width
                                       : row.position;
    });
  }
};

inline Line make_line(Index n, grid::Condition lower, grid::Condition upper, grid::Centering centering,
                      Spacing spacing) {
  grid::Axis axis{n, 1.0, lower, upper, centering};
  const auto name = [](grid::Condition c) {
    return std::string(c == grid::Condition::dirichlet ? "D" : c == grid::Condition::neumann ? "N" : "P");
  };
  Line line{name(lower) + name(upper) + (centering == grid::Centering::node ? " nodes" : " cells"),
            {},
            axis.periodic(),
            axis.periodic() || (lower == grid::Condition::neumann && upper == grid::Condition::neumann)};
  axis.length = static_cast<double>(axis.cells());
  if (spacing == Spacing::equal) {
    line.rows = grid::axis_rows(axis);
  } else {
    std::vector<double> x{0};
    for (Index i = 0; i < axis.cells(); ++i)
      x.push_back(x.back() + std::pow(1.1, static_cast<double>(std::abs(i % 97 - 48))));
    line.rows = grid::axis_rows(axis, x);
    line.name += " stretched";
  }
  return line;
}

inline std::vector<Line> all_lines(Index n) {
  using enum grid::Condition;
  std::vector<Line> lines;
  for (const Spacing spacing : {Spacing::equal, Spacing::stretched})
    for (const grid::Centering centering : {grid::Centering::node, grid::Centering::cell}) {
      lines.push_back(make_line(n, periodic, periodic, centering, spacing));
      for (const grid::Condition lower : {dirichlet, neumann})
        for (const grid::Condition upper : {dirichlet, neumann})
          if (grid::Axis{n, 1.0, lower, upper, centering}.cells() > 0)
            lines.push_back(make_line(n, lower, upper, centering, spacing));
    }
  return lines;
}

inline Matrix<double> mixed_modes(const Line& line, Index n = columns) {
  constexpr double modes[] = {0.0, 4e-9, 1e-3, 4.0, 1e6, 1e12};
  return Matrix<double>(1, n).fill(
      [&](Index, Index k) { return k % 6 == 0 && line.singular ? 1e-12 : modes[k % 6]; });
}

/// One column's system (S1) by definition, and by its elements.
struct System {
  const Line& line;
  Real mu;

  [[nodiscard]] const grid::AxisRow& row(Index i) const { return line.rows[at(i)]; }
  [[nodiscard]] Real diagonal(Index i) const {
    return -(Real{row(i).before} + Real{row(i).after} + Real{row(i).width} * mu);
  }
  /// width scale f, less what lies around the line; or with `absolute` the sum of the sizes of these.
  template <class T>
  [[nodiscard]] Column right_hand_side(const Matrix<T>& f, Index k, double scale, Real before, Real after,
                                       bool absolute = false) const {
    Column rhs;
    const auto take = [&](Real term) { return absolute ? std::abs(term) : term; };
    for (Index i = 0; i < line.size(); ++i)
      rhs.push_back(take(Real{row(i).width} * Real{scale} * static_cast<Real>(f(i, k))));
    if (!line.periodic) {
      rhs.front() += take(-Real{row(0).before} * before);
      rhs.back() += take(-Real{row(line.size() - 1).after} * after);
    }
    return rhs;
  }
  /// (A v)_i, or with `absolute` (|A| |v|)_i.
  [[nodiscard]] Real apply(const Column& v, Index i, bool absolute = false) const {
    const Index n = line.size();
    const auto term = [&](Real a, Index j) {
      const bool inside = j >= 0 && j < n;
      if (!inside && !line.periodic) return Real{0};
      const Real product = a * v[at((j + n) % n)];
      return absolute ? std::abs(product) : product;
    };
    return term(Real{row(i).before}, i - 1) + term(diagonal(i), i) + term(Real{row(i).after}, i + 1);
  }
};

using Dense = std::vector<Column>;

/// The inverse of a system's matrix by Gaussian elimination with pivoting.
inline Dense inverse_of(const System& system) {
  const Index n = system.line.size();
  Dense a(at(n), Column(at(n), 0)), inverse = a;
  for (Index i = 0; i < n; ++i) {
    inverse[at(i)][at(i)] = 1;
    for (Index j = 0; j < n; ++j) {
      Column unit(at(n), 0);
      unit[at(j)] = 1;
      a[at(i)][at(j)] = system.apply(unit, i);
    }
  }
  for (Index i = 0; i < n; ++i) {
    Index pivot = i;
    for (Index j = i + 1; j < n; ++j)
      if (std::abs(a[at(j)][at(i)]) > std::abs(a[at(pivot)][at(i)])) pivot = j;
    std::swap(a[at(i)], a[at(pivot)]);
    std::swap(inverse[at(i)], inverse[at(pivot)]);
    const Real divisor = a[at(i)][at(i)];
    for (Index k = 0; k < n; ++k) {
      a[at(i)][at(k)] /= divisor;
      inverse[at(i)][at(k)] /= divisor;
    }
    for (Index j = 0; j < n; ++j) {
      const Real factor = a[at(j)][at(i)];
      if (j == i || factor == 0) continue;
      for (Index k = 0; k < n; ++k) {
        a[at(j)][at(k)] -= factor * a[at(i)][at(k)];
        inverse[at(j)][at(k)] -= factor * inverse[at(i)][at(k)];
      }
    }
  }
  return inverse;
}

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Checks every column of `solved`: the equations are fulfilled to `rounding` of their terms, and the
/// solution is as near to that of the dense matrix as this implies.
template <class T>
void check_solution(const Matrix<T>& solved, const Line& line, const Matrix<T>& f, const Matrix<double>& mu,
                    double scale, const Matrix<double>& before, const Matrix<double>& after,
                    double rounding = 8 * epsilon) {
  CAPTURE(line.name);
  CAPTURE(line.size());
  if (sizeof(T) == 4) rounding += 0x1.01p-24;
  std::map<double, Dense> inverses;
  for (Index k = 0; k < f.cols(); ++k) {
    CAPTURE(mu(0, k));
    const System system{line, mu(0, k)};
    const Column rhs = system.right_hand_side(f, k, scale, before(0, k), after(0, k));
    const Column terms = system.right_hand_side(f, k, scale, before(0, k), after(0, k), true);
    Column v, allowed;
    for (Index i = 0; i < line.size(); ++i) v.push_back(static_cast<Real>(solved(i, k)));
    Worst residual;
    for (Index i = 0; i < line.size(); ++i) {
      allowed.push_back(Real{rounding} * (system.apply(v, i, true) + terms[at(i)]) + 1e-300L);
      residual.take_in((system.apply(v, i) - rhs[at(i)]) / allowed.back());
    }
    CHECK(residual.value() <= 1.0);

    if (line.size() > largest_dense) continue;
    if (inverses.find(mu(0, k)) == inverses.end()) inverses[mu(0, k)] = inverse_of(system);
    const Dense& inverse = inverses[mu(0, k)];
    Worst error;
    for (Index i = 0; i < line.size(); ++i) {
      Real exact = 0, bound = 0;
      for (Index j = 0; j < line.size(); ++j) {
        exact += inverse[at(i)][at(j)] * rhs[at(j)];
        bound += std::abs(inverse[at(i)][at(j)]) * allowed[at(j)];
      }
      error.take_in((v[at(i)] - exact) / bound);
    }
    CHECK(error.value() <= 1.0);
  }
}

inline Matrix<double> zeros(Index rows, Index n) {
  return Matrix<double>(rows, n).fill([](Index, Index) { return 0; });
}
inline Matrix<double> random(Index rows, Index n, unsigned seed) {
  return Matrix<double>(rows, n).fill_random(seed);
}

/// The systems of some modes on a line: what Solver keeps of them in tiles.
struct Systems {
  const InterfaceRows& rows;
  Matrix<double> mu, before_axis, after_axis, shown_by_none, lower_response, upper_response;
};

/// That of no joined segments, or of a prefix without segments: gamma = 1.
inline Matrix<double> response_of_none(const InterfaceRows& rows, const Line& line, Index n) {
  return Matrix<double>(rows.carried_response(line.periodic), n).fill([&](Index row, Index) {
    return row == gamma_row && !line.periodic ? 1 : 0;
  });
}

inline Systems systems_without_waves(const Line& line, const Matrix<double>& mu) {
  const InterfaceRows& rows = rows_without_waves;
  const Index n = mu.cols();
  const Matrix<double> response = response_of_none(rows, line, n);
  return {rows, mu, zeros(1, n), zeros(1, n), zeros(rows.carried_shown(line.periodic), n), response, response};
}

/// What segments tell, and prefixes.
/// cpu::solve_ring, on a periodic line. @param mu systems of `line`
template <class T>
void solve_as_ring(Matrix<T>& v, const Line& line, const Matrix<double>& mu, double scale) {
  const InterfaceRows rows = rows_with(mu.in());
  const Matrix<double> axis = line.tile();
  Matrix<double> response(rows.response, v.cols()), work(1, Ring::size(v.cols(), rows));
  cpu::respond(axis.in(), mu.in(), response.out());
  cpu::solve_ring<T>(v.inout(), axis.in(), mu.in(), scale, response.in(), work.out().data);
  CHECK(v.guarded());
  CHECK(work.guarded());
}

struct ToldMatrices {
  Matrix<double> shown, response;
  [[nodiscard]] Told in() const { return {shown.in(), response.in()}; }
};

/// Where segments begin (the first at row 0), and how many of them are eliminated from the first one on, the others from
/// the last one on.
struct Cuts {
  std::vector<Index> rows;
  Index forward;
};

/// Solves whole lines from segments.
template <class T>
void solve_in_segments(Matrix<T>& lines, const Line& line, const Systems& systems, double scale, const Cuts& cuts) {
  const Index n = lines.cols(), segments = static_cast<Index>(cuts.rows.size()), forward = cuts.forward;
  const auto first_row = [&](Index c) { return c < segments ? cuts.rows[at(c)] : lines.rows(); };
  const auto rows = [&](Index c) { return first_row(c + 1) - first_row(c); };
  const Matrix<double> axis = line.tile(), &mu = systems.mu;
  const InterfaceRows& tiles = systems.rows;
  std::vector<ToldMatrices> told, prefixes;
  for (Index c = 0; c < segments; ++c) {
    told.push_back({{tiles.state, n}, {tiles.response, n}});
    prefixes.push_back({{tiles.carried_shown(line.periodic), n}, {tiles.carried_response(line.periodic), n}});
    cpu::respond(axis.in(first_row(c), rows(c)), mu.in(), told.back().response.out());
    cpu::reduce<T>(lines.in(first_row(c), rows(c)), axis.in(first_row(c), rows(c)), mu.in(), scale,
                   told.back().shown.inout(), Segment::start);
  }
  const ToldMatrices lower{systems.shown_by_none, systems.lower_response},
      upper{systems.shown_by_none, systems.upper_response};
  const auto from_first = [&](Index c) { return c > 0 ? prefixes[at(c - 1)].in() : lower.in(); };
  const auto from_last = [&](Index c) { return c + 1 < segments ? prefixes[at(c + 1)].in() : upper.in(); };
  const auto eliminate = [&](Direction direction, Index c, const Told& before) {
    ToldMatrices& after = prefixes[at(c)];
    cpu::eliminate(direction, told[at(c)].in(), before, after.shown.out());
    cpu::eliminate_response(direction, told[at(c)].in(), before, after.response.out());
  };
  for (Index c = 0; c < forward; ++c) eliminate(Direction::forward, c, from_first(c));
  for (Index c = segments - 1; c >= forward; --c) eliminate(Direction::backward, c, from_last(c));

  const Told left = from_first(forward), right = from_last(forward - 1);
  Matrix<double> start = systems.before_axis, end = systems.after_axis;
  if (line.periodic) cpu::close(left, right, start.out(), end.out());
  // The unknowns on both sides of every cut, and of the ends.
  std::vector<Matrix<double>> before(at(segments), Matrix<double>(tiles.beside, n)), after = before;
  before.front() = start;
  after.back() = end;
  Matrix<double> ignored(tiles.beside, n);
  const auto outer = [&](std::vector<Matrix<double>>& beside, Index c) -> Matrix<double>& {
    return 0 <= c && c < segments ? beside[at(c)] : ignored;
  };
  if (forward < segments)
    cpu::meet(mu.in(), left, right, start.in(), end.in(), outer(after, forward - 1).out(), before[at(forward)].out());
  // What enters the outermost segments is known, but for waves.
  const Index outermost = tiles.mu == rows_with_waves.mu && !line.periodic ? 0 : 1;
  for (Index c = forward - 1; c >= outermost; --c)
    cpu::substitute(Direction::forward, told[at(c)].in(), from_first(c), start.in(), after[at(c)].in(),
                    outer(after, c - 1).out(), before[at(c)].out());
  for (Index c = forward; c < segments - outermost; ++c)
    cpu::substitute(Direction::backward, told[at(c)].in(), from_last(c), end.in(), before[at(c)].in(),
                    outer(before, c + 1).out(), after[at(c)].out());
  for (Index c = 0; c < segments; ++c)
    cpu::solve<T>(lines.inout(first_row(c), rows(c)), axis.in(first_row(c), rows(c)), mu.in(), scale, before[at(c)].in(),
                  after[at(c)].in());
}

/// The whole; single rows; one row and the rest; at random; the last also in chains that do not meet in the middle.
inline std::vector<Cuts> some_partitions(Index s) {
  static std::mt19937 engine(6);
  std::vector<std::vector<Index>> partitions(4, {0});
  for (Index i = 1; i < s; ++i) {
    partitions[1].push_back(i);
    if (i == 1) partitions[2].push_back(i);
    if (engine() % 4 == 0) partitions[3].push_back(i);
  }
  std::vector<Cuts> cuts;
  for (const std::vector<Index>& rows : partitions) cuts.push_back({rows, (static_cast<Index>(rows.size()) + 1) / 2});
  const std::vector<Index>& at_random = partitions.back();
  cuts.push_back({at_random, 0});
  cuts.push_back({at_random, static_cast<Index>(at_random.size())});
  return cuts;
}

inline void check_near(const Shares& a, const Shares& b, double relative) {
  for (double Shares::*share : {&Shares::before, &Shares::after, &Shares::lost}) {
    const double bound = relative * std::abs(b.*share) + 1e-300;
    CHECK(std::abs(a.*share - b.*share) <= bound);
  }
}
inline void check_near(const Response& a, const Response& b, double relative) {
  check_near(a.first, b.first, relative);
  check_near(a.last, b.last, relative);
}

}  // namespace asterism::test
