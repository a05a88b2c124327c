// Tridiagonal systems, whole and in segments, against dense matrices in long double.

#include "codelets/tridiagonal.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "matrix.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "tiles.hpp"
#endif

using namespace asterism;
using namespace asterism::kernels;
using namespace asterism::test;

namespace {

using Real = long double;
using Column = std::vector<Real>;

constexpr Index columns = 70;  // one strip of the kernel and a part of one; all modes several times
constexpr Index sizes[] = {1, 2, 3, 5, 31, 32, 33, 64, 97, 1000};
constexpr Index largest_dense = 40;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Equal spacings of 1, or spacings that grow and shrink by 1.1 from one to the next.
enum class Spacing { equal, stretched };

/// The rows of an axis, to be solved along.
struct Line {
  std::string name;
  std::vector<AxisRow> rows;
  bool periodic, singular;  ///< for mu = 0

  [[nodiscard]] Index size() const { return static_cast<Index>(rows.size()); }
  [[nodiscard]] Matrix<double> tile() const {
    return Matrix<double>(size(), axis_columns).fill([&](Index i, Index j) {
      const AxisRow& row = rows[at(i)];
      return j == link_before    ? row.before
             : j == link_after   ? row.after
             : j == width_column ? row.width
                                 : row.position;
    });
  }
};

Line make_line(Index n, Condition lower, Condition upper, Centering centering, Spacing spacing) {
  Axis axis{n, 1.0, lower, upper, centering};
  const auto name = [](Condition c) {
    return std::string(c == Condition::dirichlet ? "D" : c == Condition::neumann ? "N" : "P");
  };
  Line line{name(lower) + name(upper) + (centering == Centering::node ? " nodes" : " cells"),
            {},
            axis.periodic(),
            axis.periodic() || (lower == Condition::neumann && upper == Condition::neumann)};
  axis.length = static_cast<double>(axis.cells());
  if (spacing == Spacing::equal) {
    line.rows = axis_rows(axis);
  } else {
    std::vector<double> x{0};
    for (Index i = 0; i < axis.cells(); ++i)
      x.push_back(x.back() + std::pow(1.1, static_cast<double>(std::abs(i % 97 - 48))));
    line.rows = axis_rows(axis, x);
    line.name += " stretched";
  }
  return line;
}

std::vector<Line> all_lines(Index n) {
  using enum Condition;
  std::vector<Line> lines;
  for (const Spacing spacing : {Spacing::equal, Spacing::stretched})
    for (const Centering centering : {Centering::node, Centering::cell}) {
      lines.push_back(make_line(n, periodic, periodic, centering, spacing));
      for (const Condition lower : {dirichlet, neumann})
        for (const Condition upper : {dirichlet, neumann})
          if (Axis{n, 1.0, lower, upper, centering}.cells() > 0)
            lines.push_back(make_line(n, lower, upper, centering, spacing));
    }
  return lines;
}

Matrix<double> mixed_modes(const Line& line, Index n = columns) {
  constexpr double modes[] = {0.0, 4e-9, 1e-3, 4.0, 1e6, 1e12};
  return Matrix<double>(1, n).fill(
      [&](Index, Index k) { return k % 6 == 0 && line.singular ? 1e-12 : modes[k % 6]; });
}

/// One column's system (S1) by definition, and by its elements.
struct System {
  const Line& line;
  Real mu;

  [[nodiscard]] const AxisRow& row(Index i) const { return line.rows[at(i)]; }
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
Dense inverse_of(const System& system) {
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

/// The largest number, or NaN if there is one.
void take_in(double& worst, Real value) {
  const auto v = static_cast<double>(value);
  if (v > worst || std::isnan(v)) worst = v;
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
    double worst = 0;
    for (Index i = 0; i < line.size(); ++i) {
      allowed.push_back(Real{rounding} * (system.apply(v, i, true) + terms[at(i)]) + 1e-300L);
      take_in(worst, std::abs(system.apply(v, i) - rhs[at(i)]) / allowed.back());
    }
    CHECK(worst <= 1.0);

    if (line.size() > largest_dense) continue;
    if (inverses.find(mu(0, k)) == inverses.end()) inverses[mu(0, k)] = inverse_of(system);
    const Dense& inverse = inverses[mu(0, k)];
    worst = 0;
    for (Index i = 0; i < line.size(); ++i) {
      Real exact = 0, bound = 0;
      for (Index j = 0; j < line.size(); ++j) {
        exact += inverse[at(i)][at(j)] * rhs[at(j)];
        bound += std::abs(inverse[at(i)][at(j)]) * allowed[at(j)];
      }
      take_in(worst, std::abs(v[at(i)] - exact) / bound);
    }
    CHECK(worst <= 1.0);
  }
}

Matrix<double> zeros(Index rows, Index n) {
  return Matrix<double>(rows, n).fill([](Index, Index) { return 0; });
}
Matrix<double> random(Index rows, Index n, unsigned seed) {
  return Matrix<double>(rows, n).fill_random(seed);
}

const In<double> nothing{nullptr, 0, 0, 0};

/// Solves whole lines from segments that begin at the rows `cuts` (the first is 0).
template <class T>
void solve_in_segments(Matrix<T>& lines, const Line& line, const Matrix<double>& mu, double scale,
                       const std::vector<Index>& cuts) {
  const Index n = lines.cols();
  const std::size_t segments = cuts.size();
  const auto rows = [&](std::size_t c) { return (c + 1 < segments ? cuts[c + 1] : lines.rows()) - cuts[c]; };
  const Matrix<double> axis = line.tile();
  const Index carried = line.periodic ? Index{joined_rows} : Index{prefix_rows};
  std::vector<Matrix<double>> states(segments, Matrix<double>(state_rows, n)),
      responses(segments, Matrix<double>(response_rows, n)), prefixes(segments, Matrix<double>(carried, n));
  const Matrix<double> none = zeros(carried, n);
  const auto before = [&](std::size_t c) {
    return c > 0 ? prefixes[c - 1].in() : segments % 2 == 0 ? none.in() : nothing;
  };
  for (std::size_t c = 0; c < segments; ++c) {
    cpu::respond(axis.in(cuts[c], rows(c)), mu.in(), responses[c].out());
    cpu::reduce<T>(lines.in(cuts[c], rows(c)), axis.in(cuts[c], rows(c)), mu.in(), scale, states[c].inout(),
                   Segment::start);
    cpu::eliminate(states[c].in(), responses[c].in(), before(c), prefixes[c].out());
  }
  Matrix<double> before_start = zeros(1, n), after_end = zeros(1, n);
  if (line.periodic) cpu::close(prefixes.back().in(), before_start.out(), after_end.out());
  Matrix<double> next(1, n), first(1, n), previous(1, n);
  for (std::size_t c = segments; c-- > 0;) {
    const In<double> after = c + 1 < segments ? next.in() : after_end.in();
    cpu::substitute(states[c].in(0, shown_rows), responses[c].in(), before(c), before_start.in(),
                    after, first.out(), previous.out());
    cpu::solve<T>(lines.inout(cuts[c], rows(c)), axis.in(cuts[c], rows(c)), mu.in(), scale, previous.in(),
                  after);
    std::swap(next, first);
  }
}

/// The whole; single rows; one row and the rest; at random.
std::vector<std::vector<Index>> some_partitions(Index s) {
  static std::mt19937 engine(6);
  std::vector<std::vector<Index>> partitions(4, {0});
  for (Index i = 1; i < s; ++i) {
    partitions[1].push_back(i);
    if (i == 1) partitions[2].push_back(i);
    if (engine() % 4 == 0) partitions[3].push_back(i);
  }
  return partitions;
}

Boundary boundary_of(const Line& line, Index first, Index rows, double mu, const Column& f) {
  Boundary b;
  for (Index i = first; i < first + rows; ++i) {
    const AxisRow& row = line.rows[at(i)];
    b.append({row.before, row.after, row.width}, mu, row.width * static_cast<double>(f[at(i)]));
  }
  return b;
}

void check_near(const Shares& a, const Shares& b, double relative) {
  for (double Shares::*share : {&Shares::before, &Shares::after, &Shares::lost}) {
    const double bound = relative * std::abs(b.*share) + 1e-300;
    CHECK(std::abs(a.*share - b.*share) <= bound);
  }
}
void check_near(const Response& a, const Response& b, double relative) {
  check_near(a.first, b.first, relative);
  check_near(a.last, b.last, relative);
}

}  // namespace

TEST_CASE("pivots keep 1 - m where nothing is lost for 100,000 rows") {
  Pivot pivot;
  Response response;
  const Row row{1, 1, 1};
  for (int j = 1; j <= 100'000; ++j) {
    pivot.advance(row, 0.0);
    response.append(row, 0.0);
  }
  CHECK(pivot.complement == doctest::Approx(1.0 / 100'001).epsilon(1e-12));
  CHECK(response.last.before == doctest::Approx(1.0 / 100'001).epsilon(1e-12));
  CHECK(response.first.after == doctest::Approx(1.0 / 100'001).epsilon(1e-10));
  CHECK(response.first.before == doctest::Approx(100'000.0 / 100'001).epsilon(1e-13));
  CHECK(response.first.lost == 0.0);
}

TEST_CASE("a segment without rows passes on what lies on its other side") {
  const Boundary b{0.5, -0.25, {{0.6, 0.3, 0.1}, {0.2, 0.7, 0.1}}};
  for (const Boundary& joined : {join(Boundary{}, b), join(b, Boundary{})}) {
    CHECK(joined.y_first == doctest::Approx(b.y_first));
    CHECK(joined.y_last == doctest::Approx(b.y_last));
    check_near(joined.response, b.response, 1e-15);
  }
  const Prefix prefix = eliminate({3.0, 0.5, 0.5}, Boundary{});
  CHECK(prefix.alpha == 3.0);
  CHECK(prefix.beta == 0.5);
  CHECK(prefix.gamma == 0.5);
  const Neighbours neighbours =
      substitute({3.0, 0.5, 0.5}, first_after({3.0, 0.5, 0.5}, 0.0, Response{}.first), 2.0);
  CHECK(neighbours.first == 2.0);
  CHECK(neighbours.before == 4.0);
}

TEST_CASE_TEMPLATE("solve by hand: one row, three rows", T, float, double) {
  Matrix<T> one(1, 1);
  one.fill([](Index, Index) { return 6; });
  Matrix<double> axis = zeros(1, axis_columns), mode(1, 1), before(1, 1), after(1, 1);
  axis(0, link_before) = 2;
  axis(0, link_after) = 3;
  axis(0, width_column) = 0.5;
  mode(0, 0) = 4;
  before(0, 0) = 4;
  after(0, 0) = 5;
  cpu::solve<T>(one.inout(), axis.in(), mode.in(), 1.0, before.in(), after.in());
  CHECK(one(0, 0) == doctest::Approx(20.0 / 7));  // 2 (4 - v) + 3 (5 - v) - 2 v = 3

  Matrix<T> three(3, 1);
  three.fill([](Index i, Index) { return i == 1 ? 2 : 0; });
  const Line line = make_line(3, Condition::dirichlet, Condition::dirichlet, Centering::node, Spacing::equal);
  cpu::solve<T>(three.inout(), line.tile().in(), zeros(1, 1).in(), 1.0, zeros(1, 1).in(), zeros(1, 1).in());
  CHECK(three(0, 0) == doctest::Approx(-1.0));
  CHECK(three(1, 0) == doctest::Approx(-2.0));
  CHECK(three(2, 0) == doctest::Approx(-1.0));
}

TEST_CASE_TEMPLATE("solve agrees with the dense matrix", T, float, double) {
  for (const Index s : sizes)
    for (const Line& line : all_lines(s)) {
      if (line.periodic) continue;
      const Matrix<double> mu = mixed_modes(line), mu_before = mu, axis = line.tile(), axis_before = axis;
      const Matrix<T> f = Matrix<T>(s, columns).fill_random(1);
      const Matrix<double> before = random(1, columns, 2), before_before = before;
      const Matrix<double> after = random(1, columns, 3), after_before = after;
      Matrix<T> v = f;
      cpu::solve<T>(v.inout(), axis.in(), mu.in(), 0.37, before.in(), after.in());
      check_solution(v, line, f, mu, 0.37, before, after);
      CHECK(v.guarded());
      CHECK(mu == mu_before);
      CHECK(axis == axis_before);
      CHECK(before == before_before);
      CHECK(after == after_before);
    }
}

TEST_CASE("responses agree with the dense matrix to almost all digits") {
  for (const Index s : {1, 2, 3, 5, 33})
    for (const Line& line : all_lines(s)) {
      if (line.periodic) continue;
      CAPTURE(line.name);
      CAPTURE(s);
      const Matrix<double> mu = mixed_modes(line), mu_before = mu, axis = line.tile(), axis_before = axis;
      Matrix<double> response(response_rows, columns);
      cpu::respond(axis.in(), mu.in(), response.out());
      for (Index k = 0; k < columns; ++k) {
        CAPTURE(mu(0, k));
        const Response r = response_at(response.in(), k);
        if (line.singular) {  // no links to the outside: everything is lost
          check_near(r, {{0, 0, 1}, {0, 0, 1}}, 1e-14);
          continue;
        }
        const Dense inverse = inverse_of({line, mu(0, k)});
        const auto expected = [&](Index i) {
          Real lost = 0;
          for (Index j = 0; j < s; ++j)
            lost -= inverse[at(i)][at(j)] * Real{mu(0, k)} * Real{line.rows[at(j)].width};
          return Shares{static_cast<double>(-inverse[at(i)].front() * Real{line.rows.front().before}),
                        static_cast<double>(-inverse[at(i)].back() * Real{line.rows.back().after}),
                        static_cast<double>(lost)};
        };
        check_near(r, {expected(0), expected(s - 1)}, 2e-14);
      }
      CHECK(response.guarded());
      CHECK(mu == mu_before);
      CHECK(axis == axis_before);
    }
}

TEST_CASE_TEMPLATE("reduce gives the first and last unknown between zeros, in one go or appended", T, float,
                   double) {
  for (const Index s : sizes)
    for (const Line& line : all_lines(s)) {
      if (line.periodic) continue;
      const Matrix<double> mu = mixed_modes(line), mu_before = mu, axis = line.tile(), axis_before = axis;
      const Matrix<T> f = Matrix<T>(s, columns).fill_random(4), f_before = f;
      Matrix<double> state(state_rows, columns);
      cpu::reduce<T>(f.in(), axis.in(), mu.in(), -1.7, state.inout(), Segment::start);
      CHECK(state.guarded());
      CHECK(f == f_before);
      CHECK(mu == mu_before);
      CHECK(axis == axis_before);

      Matrix<double> appended(state_rows, columns);
      for (Index i = 0; i < s; i += 7) {
        const Index rows = std::min<Index>(7, s - i);
        cpu::reduce<T>(f.in(i, rows), axis.in(i, rows), mu.in(), -1.7, appended.inout(),
                       i == 0 ? Segment::start : Segment::append);
      }
      CHECK(appended == state);

      if (s > largest_dense) continue;
      CAPTURE(line.name);
      CAPTURE(s);
      std::map<double, Dense> inverses;
      for (Index k = 0; k < columns; ++k) {
        CAPTURE(mu(0, k));
        const System system{line, mu(0, k)};
        if (inverses.find(mu(0, k)) == inverses.end()) inverses[mu(0, k)] = inverse_of(system);
        const Column rhs = system.right_hand_side(f, k, -1.7, 0, 0);
        const auto check_row = [&](ShownRow row, Index i) {
          Real exact = 0, terms = 0;
          for (Index j = 0; j < s; ++j) {
            exact += inverses[mu(0, k)][at(i)][at(j)] * rhs[at(j)];
            terms += std::abs(inverses[mu(0, k)][at(i)][at(j)] * rhs[at(j)]);
          }
          // Nothing cancels but the right-hand side; the dense matrix itself is right to 1e-19 / mu.
          const Real bound = (2e-14L + (line.singular ? 1e-18L / Real{mu(0, k)} : 0)) * terms;
          CHECK(static_cast<double>(std::abs(static_cast<Real>(state(row, k)) - exact) / bound) <= 1.0);
        };
        check_row(y_first_row, 0);
        check_row(y_last_row, s - 1);
      }
    }
}

TEST_CASE("joining segments is associative and gives the boundary of the whole") {
  for (const Line& line : all_lines(90)) {
    CAPTURE(line.name);
    const Matrix<double> mu = mixed_modes(line, 6);
    std::mt19937_64 engine(5);
    Column f;
    for (Index i = 0; i < 90; ++i) f.push_back(std::uniform_real_distribution<double>(-1, -0.5)(engine));
    for (Index k = 0; k < 6; ++k) {
      CAPTURE(mu(0, k));
      const auto segment = [&](Index first, Index rows) {
        return boundary_of(line, first, rows, mu(0, k), f);
      };
      const Boundary whole = segment(0, 90), a = segment(0, 1), b = segment(1, 40), c = segment(41, 49);
      for (const Boundary& joined : {join(join(a, b), c), join(a, join(b, c))}) {
        CHECK(joined.y_first == doctest::Approx(whole.y_first).epsilon(1e-13));
        CHECK(joined.y_last == doctest::Approx(whole.y_last).epsilon(1e-13));
        check_near(joined.response, whole.response, 1e-13);
      }
    }
  }
}

TEST_CASE_TEMPLATE("any cut into segments gives the solution of the whole", T, float, double) {
  for (const Index s : {1, 2, 3, 5, 33, 97})
    for (const Line& line : all_lines(s)) {
      const Matrix<double> mu = mixed_modes(line);
      const Matrix<T> f = Matrix<T>(s, columns).fill_random(7);
      for (const std::vector<Index>& cuts : some_partitions(s)) {
        CAPTURE(cuts.size());
        Matrix<T> v = f;
        solve_in_segments(v, line, mu, 2.5, cuts);
        check_solution(v, line, f, mu, 2.5, zeros(1, columns), zeros(1, columns), 16 * epsilon);
        CHECK(v.guarded());
      }
    }
}

TEST_CASE("what is constant between Neumann ends, or around a period, is right to almost all digits") {
  for (const Index s : {2, 3, 33, 97})
    for (const Line& line : all_lines(s)) {
      if (!line.singular) continue;
      CAPTURE(line.name);
      CAPTURE(s);
      constexpr double modes[] = {1e-30, 1e-12, 4e-9, 1e-3, 4.0, 1e6};
      const Matrix<double> mu = Matrix<double>(1, 6).fill([&](Index, Index k) { return modes[k]; });
      for (const std::vector<Index>& cuts : some_partitions(s)) {
        CAPTURE(cuts.size());
        Matrix<double> v = Matrix<double>(s, 6).fill([](Index, Index) { return 3; });
        solve_in_segments(v, line, mu, 0.5, cuts);
        for (Index k = 0; k < 6; ++k) {
          CAPTURE(mu(0, k));
          double worst = 0;
          for (Index i = 0; i < s; ++i) take_in(worst, std::abs(v(i, k) * mu(0, k) / 1.5 + 1));
          CHECK(worst <= 1e-13);
        }
      }
    }
}

TEST_CASE("indefinite systems are solved as long as no pivot vanishes") {
  constexpr double modes[] = {-1e-3, -0.11, -0.7, -3.3, -17.0};
  const Matrix<double> mu = Matrix<double>(1, 5).fill([&](Index, Index k) { return modes[k]; });
  for (const Index s : {1, 2, 3, 5, 33})
    for (const Line& line : all_lines(s)) {
      const Matrix<double> f = random(s, 5, 17);
      for (const std::vector<Index>& cuts : some_partitions(s)) {
        CAPTURE(cuts.size());
        Matrix<double> v = f;
        solve_in_segments(v, line, mu, 2.5, cuts);
        check_solution(v, line, f, mu, 2.5, zeros(1, 5), zeros(1, 5), 1e-11);
      }
    }
}

TEST_CASE("the smoothest modes of 49,151 rows of float32 in slabs are solved to float32 accuracy") {
  constexpr Index s = 49'151, slab = 512;
  const Line line = make_line(s, Condition::dirichlet, Condition::dirichlet, Centering::node, Spacing::equal);
  const Matrix<double> mu = Matrix<double>(1, 3).fill([](Index, Index k) { return k == 0 ? 0.0 : 4e-9; });
  Matrix<float> f(s, 3);
  f.fill_random(8);
  for (Index i = 0; i < s; ++i)
    f(i, 0) = f(i, 1) = static_cast<float>(std::sin(3.14159265358979 * static_cast<double>(i + 1) / (s + 1)));
  Matrix<float> v = f;
  std::vector<Index> cuts;
  for (Index i = 0; i < s; i += slab) cuts.push_back(i);
  solve_in_segments(v, line, mu, 1e-3, cuts);
  for (Index k = 0; k < 3; ++k) {
    // The algorithm of Thomas.
    Column exact = System{line, mu(0, k)}.right_hand_side(f, k, 1e-3, 0, 0),
           diagonal(at(s), -2 - Real{mu(0, k)});
    for (std::size_t i = 1; i < at(s); ++i) {
      diagonal[i] -= 1 / diagonal[i - 1];
      exact[i] -= exact[i - 1] / diagonal[i - 1];
    }
    exact.back() /= diagonal.back();
    for (std::size_t i = at(s) - 1; i-- > 0;) exact[i] = (exact[i] - exact[i + 1]) / diagonal[i];
    Real largest = 0;
    for (const Real x : exact) largest = std::max(largest, std::abs(x));
    Index wrong = 0;
    for (Index i = 0; i < s; ++i) {
      const Real x = exact[at(i)];
      if (!(std::abs(static_cast<Real>(v(i, k)) - x) <= 0x1p-24L * std::abs(x) + 1e-9L * largest)) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("a NaN stays in its column", T, float, double) {
  const Line line = make_line(40, Condition::neumann, Condition::dirichlet, Centering::cell, Spacing::equal);
  Matrix<T> v = Matrix<T>(40, columns).fill_random(9);
  v(20, 5) = std::numeric_limits<T>::quiet_NaN();
  Matrix<double> state(state_rows, columns);
  const Matrix<double> mu = mixed_modes(line), axis = line.tile(), zero = zeros(1, columns);
  cpu::reduce<T>(v.in(), axis.in(), mu.in(), 1.0, state.inout(), Segment::start);
  cpu::solve<T>(v.inout(), axis.in(), mu.in(), 1.0, zero.in(), zero.in());
  for (Index k = 0; k < columns; ++k) {
    CHECK(std::isnan(state(y_first_row, k)) == (k == 5));
    CHECK(std::isnan(state(y_last_row, k)) == (k == 5));
    CHECK(std::isnan(v(0, k)) == (k == 5));
  }
}

#ifdef ASTERISM_WITH_CUDA

namespace {

/// Reduces a segment in groups of `group` rows, as a slab's transformed rows come in.
template <class T>
void gpu_reduce(Stream stream, const Index& group, In<T> lines, In<double> axis, In<double> mu,
                Out<double> shown, Scratch<double> work) {
  const cuda::Blocks blocks{work.data, lines.rows, lines.cols};
  for (Index i = 0; i < lines.rows; i += group) {
    const Index rows = std::min(group, lines.rows - i);
    cuda::reduce_blocks<T>(stream, {lines.row(i), rows, lines.cols, lines.ld}, i,
                           {axis.row(i), rows, axis.cols, axis.ld}, mu, -1.7, blocks);
  }
  cuda::join_blocks(stream, blocks, shown);
}

template <class T>
void gpu_solve(Stream stream, const double& scale, InOut<T> lines, In<double> axis, In<double> mu,
               In<double> before, In<double> after, Scratch<double> work) {
  cuda::solve<T>(stream, lines, axis, mu, scale, before, after, work.data);
}

void gpu_respond(Stream stream, const int&, In<double> axis, In<double> mu, Out<double> response) {
  cuda::respond(stream, axis, mu, response);
}

/// Whether there are segments before this one.
enum class Before { none, some };

void gpu_interface(Stream stream, const Before& known, In<double> shown, In<double> response,
                   In<double> prefix_before, In<double> before_start, In<double> after, Out<double> prefix_after,
                   Out<double> first, Out<double> before) {
  if (known == Before::none) prefix_before = nothing;
  cuda::eliminate(stream, shown, response, prefix_before, prefix_after);
  cuda::substitute(stream, shown, response, prefix_before, before_start, after, first, before);
}

void gpu_close(Stream stream, const int&, In<double> joined, Out<double> before_start, Out<double> after_end) {
  cuda::close(stream, joined, before_start, after_end);
}

constexpr Index gpu_widths[] = {1, 33, 130};
// One block and less, several groups of the interface system, of several blocks, and some empty.
constexpr Index gpu_heights[] = {1, 2, 31, 32, 33, 64, 97, 519, 1000, 3000};

std::vector<Line> gpu_lines(Index n) {
  using enum Condition;
  return {make_line(n, dirichlet, dirichlet, Centering::node, Spacing::equal),
          make_line(n, neumann, dirichlet, Centering::cell, Spacing::stretched),
          make_line(n, neumann, neumann, Centering::cell, Spacing::equal)};
}

/// As of a segment between others: a mode that is damped, one that hardly is, one that does not get through.
Matrix<double> some_responses(Index n) {
  constexpr double of_mode[3][response_rows] = {{0.6, 0.3, 0.1, 0.2, 0.7, 0.1},
                                                {0.875, 0.0625, 0.0625, 0.125, 0.8125, 0.0625},
                                                {0.5, 0, 0.5, 0, 0.25, 0.75}};
  return Matrix<double>(response_rows, n).fill([&](Index i, Index k) { return of_mode[k % 3][i]; });
}

/// Prefixes of `rows` rows before such a segment.
Matrix<double> some_prefixes(Index rows, Index n) {
  Matrix<double> prefixes = random(rows, n, 15);
  const Matrix<double> responses = some_responses(n);
  for (Index k = 0; k < n; ++k) {
    if (rows == prefix_rows) {
      prefixes(beta_row, k) = 0.625;
      prefixes(gamma_row, k) = 0.375;
    } else {
      for (Index i = 0; i < response_rows; ++i)
        prefixes(joined_response_row + i, k) = responses(i, (k + 1) % n);
    }
  }
  return prefixes;
}

void check_near(const Matrix<double>& a, const Matrix<double>& b, double bound = 1e-14) {
  double worst = 0;
  for (Index i = 0; i < b.rows(); ++i)
    for (Index k = 0; k < b.cols(); ++k)
      take_in(worst, std::abs(a(i, k) - b(i, k)) / (1 + std::abs(b(i, k))));
  CHECK(worst <= bound);
}

}  // namespace

TEST_CASE_TEMPLATE("gpu: what segments show, in one go and in groups of rows", T, float, double) {
  static const Codelet<Index, In<T>, In<double>, In<double>, Out<double>, Scratch<double>> reduce{
      sizeof(T) == 4 ? "test_reduce_f32" : "test_reduce_f64", nullptr, gpu_reduce<T>};
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const Index s : gpu_heights)
      for (const Line& line : gpu_lines(s)) {
        const Matrix<double> mu = mixed_modes(line, n), axis = line.tile();
        // Of one sign, so that the result is right to almost all digits whatever the order of sums.
        const Matrix<T> f = Matrix<T>(s, n).fill([](Index i, Index k) { return 1 + (i * 7 + k * 5) % 11; });
        Matrix<double> expected(state_rows, n);
        cpu::reduce<T>(f.in(), axis.in(), mu.in(), -1.7, expected.inout(), Segment::start);
        const Tile<T> lines = upload(runtime, f);
        const Tile<double> axis_tile = upload(runtime, axis), modes = upload(runtime, mu);
        for (const Index group : {s, 2 * cuda::block_rows}) {
          const Tile<double> shown(runtime, shown_rows, n), work(runtime, 1, cuda::blocks_scratch(s, n));
          reduce(group, lines, axis_tile, modes, shown, work);
          runtime.wait();
          const Matrix<double> joined = download(shown);
          CAPTURE(line.name);
          CAPTURE(s);
          for (Index k = 0; k < n; ++k) {
            CAPTURE(mu(0, k));
            CHECK(joined(y_first_row, k) == doctest::Approx(expected(y_first_row, k)).epsilon(1e-12));
            CHECK(joined(y_last_row, k) == doctest::Approx(expected(y_last_row, k)).epsilon(1e-12));
          }
        }
      }
}

TEST_CASE_TEMPLATE("gpu: solutions of segments", T, float, double) {
  static const Codelet<double, InOut<T>, In<double>, In<double>, In<double>, In<double>, Scratch<double>>
      solve{sizeof(T) == 4 ? "test_solve_f32" : "test_solve_f64", nullptr, gpu_solve<T>};
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const Index s : gpu_heights)
      for (const Line& line : gpu_lines(s)) {
        const Matrix<double> mu = mixed_modes(line, n), before = random(1, n, 12), after = random(1, n, 13);
        const Matrix<T> f = Matrix<T>(s, n).fill_random(11);
        const Tile<T> lines = upload(runtime, f);
        const Tile<double> axis = upload(runtime, line.tile()), modes = upload(runtime, mu),
                           before_tile = upload(runtime, before), after_tile = upload(runtime, after);
        const Tile<double> work(runtime, 1, cuda::blocks_scratch(s, n));
        solve(0.37, lines, axis, modes, before_tile, after_tile, work);
        runtime.wait();
        check_solution(download(lines), line, f, mu, 0.37, before, after, 16 * epsilon);
      }
}

TEST_CASE_TEMPLATE("gpu: so many columns that one group is enough", T, float, double) {
  static const Codelet<double, InOut<T>, In<double>, In<double>, In<double>, In<double>, Scratch<double>>
      solve{sizeof(T) == 4 ? "test_solve_wide_f32" : "test_solve_wide_f64", nullptr, gpu_solve<T>};
  Runtime runtime;
  constexpr Index n = (Index{1} << 18) + 1, s = 321;  // eleven blocks
  const Line line = gpu_lines(s)[1];
  const Matrix<double> mu = mixed_modes(line, n), before = random(1, n, 12), after = random(1, n, 13);
  const Matrix<T> f =
      Matrix<T>(s, n).fill([](Index i, Index k) { return std::sin(static_cast<double>(i * 3 + k)); });
  Matrix<T> expected = f;
  cpu::solve<T>(expected.inout(), line.tile().in(), mu.in(), 0.37, before.in(), after.in());
  const Tile<T> lines = upload(runtime, f);
  const Tile<double> axis = upload(runtime, line.tile()), modes = upload(runtime, mu),
                     before_tile = upload(runtime, before), after_tile = upload(runtime, after);
  const Tile<double> work(runtime, 1, cuda::blocks_scratch(s, n));
  solve(0.37, lines, axis, modes, before_tile, after_tile, work);
  runtime.wait();
  const Matrix<T> v = download(lines);
  double worst = 0, largest = 0;
  for (Index i = 0; i < s; ++i)
    for (Index k = 0; k < n; ++k) {
      take_in(worst, std::abs(Real{v(i, k)} - Real{expected(i, k)}));
      take_in(largest, std::abs(Real{expected(i, k)}));
    }
  CHECK(largest > 0);
  CHECK(worst <= (sizeof(T) == 4 ? 1e-7 : 1e-11) * largest);
}

TEST_CASE("gpu: responses") {
  static const Codelet<int, In<double>, In<double>, Out<double>> respond{"test_respond", nullptr,
                                                                         gpu_respond};
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const Index s : {1, 2, 33, 1000})
      for (const Line& line : gpu_lines(s)) {
        const Matrix<double> mu = mixed_modes(line, n), axis = line.tile();
        Matrix<double> expected(response_rows, n);
        cpu::respond(axis.in(), mu.in(), expected.out());
        const Tile<double> axis_tile = upload(runtime, axis), modes = upload(runtime, mu),
                           response(runtime, response_rows, n);
        respond(0, axis_tile, modes, response);
        runtime.wait();
        const Matrix<double> found = download(response);
        CAPTURE(line.name);
        CAPTURE(s);
        for (Index k = 0; k < n; ++k)
          check_near(response_at(found.in(), k), response_at(expected.in(), k), 1e-12);
      }
}

TEST_CASE("gpu: the interface system of slabs") {
  static const Codelet<Before, In<double>, In<double>, In<double>, In<double>, In<double>, Out<double>,
                       Out<double>, Out<double>>
      interface {
    "test_interface", nullptr, gpu_interface
  };
  static const Codelet<int, In<double>, Out<double>, Out<double>> close{"test_close", nullptr, gpu_close};
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const Index carried : {Index{prefix_rows}, Index{joined_rows}})
      for (const Before known : {Before::none, Before::some}) {
        CAPTURE(n);
        CAPTURE(carried);
        const Matrix<double> shown = random(shown_rows, n, 14), response = some_responses(n),
                             prefix_before = some_prefixes(carried, n), before_start = random(1, n, 16),
                             after = random(1, n, 17);
        Matrix<double> prefix_after(carried, n), first(1, n), before(1, n);
        const In<double> prefix = known == Before::some ? prefix_before.in() : nothing;
        cpu::eliminate(shown.in(), response.in(), prefix, prefix_after.out());
        cpu::substitute(shown.in(), response.in(), prefix, before_start.in(), after.in(), first.out(), before.out());

        const Tile<double> shown_tile = upload(runtime, shown), response_tile = upload(runtime, response),
                           prefix_tile = upload(runtime, prefix_before), start_tile = upload(runtime, before_start),
                           after_tile = upload(runtime, after);
        const Tile<double> prefix_after_tile(runtime, carried, n), first_tile(runtime, 1, n),
            before_tile(runtime, 1, n);
        interface(known, shown_tile, response_tile, prefix_tile, start_tile, after_tile, prefix_after_tile,
                  first_tile, before_tile);
        runtime.wait();
        check_near(download(prefix_after_tile), prefix_after);
        check_near(download(first_tile), first);
        check_near(download(before_tile), before);
        if (carried != joined_rows) continue;
        Matrix<double> closed_before(1, n), closed_after(1, n);
        cpu::close(prefix_before.in(), closed_before.out(), closed_after.out());
        const Tile<double> before_start_tile(runtime, 1, n), after_end_tile(runtime, 1, n);
        close(0, prefix_tile, before_start_tile, after_end_tile);
        runtime.wait();
        check_near(download(before_start_tile), closed_before);
        check_near(download(after_end_tile), closed_after);
      }
}

#endif
