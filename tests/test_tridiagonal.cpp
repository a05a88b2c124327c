// Tridiagonal systems, whole and in segments, against elimination in long double.

#include "codelets/tridiagonal.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
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

constexpr double excesses[] = {0.0, 4e-9, 1e-3, 4.0, 1e6, 1e12};
constexpr Index columns = 70;  // one strip of the kernel and a part of one; all excesses several times
constexpr Index sizes[] = {1, 2, 3, 5, 31, 32, 33, 64, 97, 1000};

Matrix<double> mixed_excess(Index n = columns) {
  return Matrix<double>(1, n).fill([](Index, Index k) { return excesses[k % 6]; });
}

/// T^-1 f by Gaussian elimination on the dense matrix.
Column dense_solve(Column f, Real excess) {
  const std::size_t s = f.size();
  std::vector<Column> a(s, Column(s, 0));
  for (std::size_t i = 0; i < s; ++i) {
    a[i][i] = -2 - excess;
    if (i > 0) a[i][i - 1] = a[i - 1][i] = 1;
  }
  for (std::size_t i = 0; i < s; ++i)
    for (std::size_t j = i + 1; j < s; ++j) {
      const Real factor = a[j][i] / a[i][i];
      for (std::size_t k = i; k < s; ++k) a[j][k] -= factor * a[i][k];
      f[j] -= factor * f[i];
    }
  for (std::size_t i = s; i-- > 0;) {
    for (std::size_t k = i + 1; k < s; ++k) f[i] -= a[i][k] * f[k];
    f[i] /= a[i][i];
  }
  return f;
}

/// T^-1 f by the algorithm of Thomas.
Column thomas_solve(Column f, Real excess) {
  const std::size_t s = f.size();
  Column diagonal(s, -2 - excess);
  for (std::size_t i = 1; i < s; ++i) {
    diagonal[i] -= 1 / diagonal[i - 1];
    f[i] -= f[i - 1] / diagonal[i - 1];
  }
  f[s - 1] /= diagonal[s - 1];
  for (std::size_t i = s - 1; i-- > 0;) f[i] = (f[i] - f[i + 1]) / diagonal[i];
  return f;
}

Column exact_solve(const Column& f, Real excess) {
  return f.size() <= 97 ? dense_solve(f, excess) : thomas_solve(f, excess);
}

template <class T>
Column column_of(const Matrix<T>& lines, Index k, double scale) {
  Column f;
  for (Index i = 0; i < lines.rows(); ++i) f.push_back(Real{scale} * static_cast<Real>(lines(i, k)));
  return f;
}

/// What rounding to float64 in the elimination of s rows may do to a solution, relative to its largest
/// element.
double elimination_error(Index s, double excess) {
  const double smallest = excess + 9.0 / static_cast<double>((s + 1) * (s + 1));
  return 4 * std::numeric_limits<double>::epsilon() * (2 + 4 / smallest);
}

Real largest(const Column& v) {
  Real result = 0;
  for (const Real x : v) result = std::max(result, std::abs(x));
  return result;
}

/// Checks every column of `solved` against T v = scale * f - above e_1 - below e_s.
template <class T>
void check_solution(const Matrix<T>& solved, const Matrix<T>& f, const Matrix<double>& excess, double scale,
                    const Matrix<double>& above, const Matrix<double>& below) {
  for (Index k = 0; k < f.cols(); ++k) {
    Column rhs = column_of(f, k, scale);
    rhs.front() -= static_cast<Real>(above(0, k));
    rhs.back() -= static_cast<Real>(below(0, k));
    const Column v = exact_solve(rhs, static_cast<Real>(excess(0, k)));
    const Real bound = largest(v) * static_cast<Real>(elimination_error(f.rows(), excess(0, k)) +
                                                      static_cast<double>(std::numeric_limits<T>::epsilon()));
    Real worst = 0;
    for (Index i = 0; i < f.rows(); ++i) {
      const Real error = std::abs(static_cast<Real>(solved(i, k)) - v[static_cast<std::size_t>(i)]);
      worst = error > worst || std::isnan(error) ? error : worst;
    }
    CAPTURE(f.rows());
    CAPTURE(excess(0, k));
    CHECK(static_cast<double>(worst) <= static_cast<double>(bound));
  }
}

/// Checks the boundaries (4 x n) of T v = scale * f.
template <class T>
void check_boundary(const Matrix<double>& boundary, const Matrix<T>& f, const Matrix<double>& excess,
                    double scale) {
  for (Index k = 0; k < f.cols(); ++k) {
    const auto e = static_cast<Real>(excess(0, k));
    const Column v = exact_solve(column_of(f, k, scale), e);
    Column unit(static_cast<std::size_t>(f.rows()), 0);
    unit.front() = 1;
    const Column inverse = exact_solve(unit, e);
    const double error = elimination_error(f.rows(), excess(0, k));
    CAPTURE(f.rows());
    CAPTURE(excess(0, k));
    const auto near = [&](BoundaryRow row, Real value, double bound) {
      CHECK(std::abs(boundary(row, k) - static_cast<double>(value)) <= bound);
    };
    near(y_first_row, v.front(), error * static_cast<double>(largest(v)));
    near(y_last_row, v.back(), error * static_cast<double>(largest(v)));
    near(p_row, inverse.front(), 1e-15 * static_cast<double>(std::abs(inverse.front())));
    near(q_row, inverse.back(), 1e-15 * static_cast<double>(f.rows() * std::abs(inverse.back())) + 1e-300);
  }
}

/// Solves the whole columns from segments that begin at the rows `cuts` (the first is 0).
template <class T>
void solve_in_segments(Matrix<T>& lines, const Matrix<double>& excess, double scale,
                       const std::vector<Index>& cuts) {
  const Index n = lines.cols();
  const std::size_t segments = cuts.size();
  const auto rows = [&](std::size_t c) { return (c + 1 < segments ? cuts[c + 1] : lines.rows()) - cuts[c]; };
  std::vector<Matrix<double>> boundaries(segments, Matrix<double>(boundary_rows, n)),
      prefixes(segments, Matrix<double>(prefix_rows, n));
  const auto before = [&](std::size_t c) {
    return c == 0 ? In<double>{nullptr, 0, 0, 0} : prefixes[c - 1].in();
  };
  for (std::size_t c = 0; c < segments; ++c) {
    cpu::reduce<T>(lines.in(cuts[c], rows(c)), excess.in(), scale, boundaries[c].inout(), Segment::start);
    cpu::eliminate(boundaries[c].in(), before(c), prefixes[c].out());
  }
  Matrix<double> below(1, n), first(1, n), above(1, n);
  below.fill([](Index, Index) { return 0; });
  for (std::size_t c = segments; c-- > 0;) {
    cpu::substitute(boundaries[c].in(), before(c), below.in(), first.out(), above.out());
    cpu::solve<T>(lines.inout(cuts[c], rows(c)), excess.in(), scale, above.in(), below.in());
    std::swap(below, first);
  }
}

Matrix<double> zeros(Index n) {
  return Matrix<double>(1, n).fill([](Index, Index) { return 0; });
}

}  // namespace

TEST_CASE("pivots keep 1 - m where the diagonal is close to 2") {
  Pivot pivot;
  for (int j = 1; j <= 100'000; ++j) pivot.advance(0.0);
  CHECK(pivot.complement == doctest::Approx(1.0 / 100'001).epsilon(1e-12));
  CHECK(pivot.product == doctest::Approx(1.0 / 100'001).epsilon(1e-10));
}

TEST_CASE("a segment without rows passes on what lies on its other side") {
  const Boundary b{0.5, -0.25, -0.7, -0.2};
  for (const Boundary& joined : {join(Boundary{}, b), join(b, Boundary{})}) {
    CHECK(joined.y_first == b.y_first);
    CHECK(joined.y_last == b.y_last);
    CHECK(joined.p == b.p);
    CHECK(joined.q == b.q);
  }
  const Prefix prefix = eliminate({3.0, -0.5}, Boundary{});
  CHECK(prefix.alpha == 3.0);
  CHECK(prefix.beta == -0.5);
  CHECK(substitute({3.0, -0.5}, Boundary{}, 2.0).first == 2.0);
  CHECK(substitute({3.0, -0.5}, Boundary{}, 2.0).above == 4.0);
}

TEST_CASE_TEMPLATE("solve by hand: one row, three rows", T, float, double) {
  Matrix<T> one(1, 1);
  one.fill([](Index, Index) { return 6; });
  const Matrix<double> excess = Matrix<double>(1, 1).fill([](Index, Index) { return 1; });
  const Matrix<double> above = Matrix<double>(1, 1).fill([](Index, Index) { return 4; });
  const Matrix<double> below = Matrix<double>(1, 1).fill([](Index, Index) { return 5; });
  cpu::solve<T>(one.inout(), excess.in(), 0.5, above.in(), below.in());
  CHECK(one(0, 0) == doctest::Approx(2.0));  // 4 - 3 v + 5 = 3

  Matrix<T> three(3, 1);
  three.fill([](Index i, Index) { return i == 1 ? 2 : 0; });
  cpu::solve<T>(three.inout(), zeros(1).in(), 1.0, zeros(1).in(), zeros(1).in());
  CHECK(three(0, 0) == doctest::Approx(-1.0));
  CHECK(three(1, 0) == doctest::Approx(-2.0));
  CHECK(three(2, 0) == doctest::Approx(-1.0));
}

TEST_CASE_TEMPLATE("solve agrees with elimination in long double", T, float, double) {
  const Matrix<double> excess = mixed_excess(), excess_before = excess;
  for (const Index s : sizes) {
    const Matrix<T> f = Matrix<T>(s, columns).fill_random(1);
    const Matrix<double> above = Matrix<double>(1, columns).fill_random(2), above_before = above;
    const Matrix<double> below = Matrix<double>(1, columns).fill_random(3), below_before = below;
    Matrix<T> v = f;
    cpu::solve<T>(v.inout(), excess.in(), 0.37, above.in(), below.in());
    check_solution(v, f, excess, 0.37, above, below);
    CHECK(v.guarded());
    CHECK(excess == excess_before);
    CHECK(above == above_before);
    CHECK(below == below_before);
  }
}

TEST_CASE_TEMPLATE("reduce agrees with elimination in long double", T, float, double) {
  const Matrix<double> excess = mixed_excess(), excess_before = excess;
  for (const Index s : sizes) {
    const Matrix<T> f = Matrix<T>(s, columns).fill_random(4), f_before = f;
    Matrix<double> boundary(boundary_rows, columns);
    cpu::reduce<T>(f.in(), excess.in(), -1.7, boundary.inout(), Segment::start);
    check_boundary(boundary, f, excess, -1.7);
    CHECK(boundary.guarded());
    CHECK(f == f_before);
    CHECK(excess == excess_before);

    Matrix<double> appended(boundary_rows, columns);
    for (Index i = 0; i < s; i += 7)
      cpu::reduce<T>(f.in(i, std::min<Index>(7, s - i)), excess.in(), -1.7, appended.inout(),
                     i == 0 ? Segment::start : Segment::append);
    for (Index k = 0; k < columns; ++k) {
      CAPTURE(s);
      CAPTURE(excess(0, k));
      const Real size = largest(exact_solve(column_of(f, k, -1.7), static_cast<Real>(excess(0, k))));
      const double bound = elimination_error(s, excess(0, k)) * static_cast<double>(size);
      CHECK(std::abs(appended(y_first_row, k) - boundary(y_first_row, k)) <= bound);
      CHECK(std::abs(appended(y_last_row, k) - boundary(y_last_row, k)) <= bound);
      CHECK(std::abs(appended(p_row, k) - boundary(p_row, k)) <= 1e-15 * static_cast<double>(s));
      CHECK(std::abs(appended(q_row, k) - boundary(q_row, k)) <= 1e-15 * static_cast<double>(s));
    }
  }
}

TEST_CASE("joining segments is associative and gives the boundary of the whole") {
  const Matrix<double> excess = mixed_excess();
  const Matrix<double> f = Matrix<double>(90, columns).fill_random(5);
  const auto reduce = [&](Index first, Index rows) {
    Matrix<double> b(boundary_rows, columns);
    cpu::reduce<double>(f.in(first, rows), excess.in(), 1.0, b.inout(), Segment::start);
    return b;
  };
  const auto at = [](const Matrix<double>& b, Index k) {
    return Boundary{b(y_first_row, k), b(y_last_row, k), b(p_row, k), b(q_row, k)};
  };
  const Matrix<double> whole = reduce(0, 90), a = reduce(0, 1), b = reduce(1, 40), c = reduce(41, 49);
  for (Index k = 0; k < columns; ++k) {
    const Boundary expected = at(whole, k);
    for (const Boundary& joined :
         {join(join(at(a, k), at(b, k)), at(c, k)), join(at(a, k), join(at(b, k), at(c, k)))}) {
      CHECK(joined.y_first == doctest::Approx(expected.y_first).epsilon(1e-10));
      CHECK(joined.y_last == doctest::Approx(expected.y_last).epsilon(1e-10));
      CHECK(joined.p == doctest::Approx(expected.p).epsilon(1e-13));
      CHECK(std::abs(joined.q - expected.q) <= 1e-13 * std::abs(expected.q) + 1e-300);
    }
  }
}

TEST_CASE_TEMPLATE("any cut into segments gives the solution of the whole", T, float, double) {
  const Matrix<double> excess = mixed_excess();
  std::mt19937 engine(6);
  for (const Index s : {Index{1}, Index{2}, Index{3}, Index{5}, Index{33}, Index{97}}) {
    const Matrix<T> f = Matrix<T>(s, columns).fill_random(7);
    std::vector<std::vector<Index>> partitions(
        4, {0});  // one piece; single rows; one row and the rest; at random
    for (Index i = 1; i < s; ++i) {
      partitions[1].push_back(i);
      if (i == 1) partitions[2].push_back(i);
      if (engine() % 4 == 0) partitions[3].push_back(i);
    }
    for (const std::vector<Index>& cuts : partitions) {
      CAPTURE(cuts.size());
      Matrix<T> v = f;
      solve_in_segments(v, excess, 2.5, cuts);
      check_solution(v, f, excess, 2.5, zeros(columns), zeros(columns));
      CHECK(v.guarded());
    }
  }
}

TEST_CASE("the smoothest modes of 49,151 rows of float32 in slabs are solved to float32 accuracy") {
  constexpr Index s = 49'151, slab = 512;
  const Matrix<double> excess = Matrix<double>(1, 3).fill([](Index, Index k) { return k == 0 ? 0.0 : 4e-9; });
  Matrix<float> f(s, 3);
  f.fill_random(8);
  for (Index i = 0; i < s; ++i)
    f(i, 0) = f(i, 1) = static_cast<float>(std::sin(3.14159265358979 * static_cast<double>(i + 1) / (s + 1)));
  Matrix<float> v = f;
  std::vector<Index> cuts;
  for (Index i = 0; i < s; i += slab) cuts.push_back(i);
  solve_in_segments(v, excess, 1e-3, cuts);
  for (Index k = 0; k < 3; ++k) {
    const Column exact = thomas_solve(column_of(f, k, 1e-3), static_cast<Real>(excess(0, k)));
    const Real allowed = 1e-9L * largest(exact);
    Index wrong = 0;
    for (Index i = 0; i < s; ++i) {
      const Real x = exact[static_cast<std::size_t>(i)];
      if (!(std::abs(static_cast<Real>(v(i, k)) - x) <= 0x1p-24L * std::abs(x) + allowed)) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("a NaN stays in its column", T, float, double) {
  Matrix<T> v = Matrix<T>(40, columns).fill_random(9);
  v(20, 5) = std::numeric_limits<T>::quiet_NaN();
  Matrix<double> boundary(boundary_rows, columns);
  const Matrix<double> excess = mixed_excess();
  cpu::reduce<T>(v.in(), excess.in(), 1.0, boundary.inout(), Segment::start);
  cpu::solve<T>(v.inout(), excess.in(), 1.0, zeros(columns).in(), zeros(columns).in());
  for (Index k = 0; k < columns; ++k) {
    CHECK(std::isnan(boundary(y_first_row, k)) == (k == 5));
    CHECK(std::isnan(boundary(y_last_row, k)) == (k == 5));
    CHECK(std::isnan(v(0, k)) == (k == 5));
  }
}

#ifdef ASTERISM_WITH_CUDA

namespace {

template <class T>
void gpu_reduce(Stream stream, const double& scale, In<T> lines, In<double> excess, Out<double> boundary,
                Scratch<double> work) {
  double* const y_last = work.data + cuda::blocks_of(lines.rows) * lines.cols;
  cuda::reduce_blocks<T>(stream, lines, excess, scale, work.data, y_last);
  cuda::join_blocks(stream, lines.rows, excess, work.data, y_last, boundary);
}

template <class T>
void gpu_solve(Stream stream, const double& scale, InOut<T> lines, In<double> excess, In<double> above,
               In<double> below, Scratch<double> work) {
  cuda::solve<T>(stream, lines, excess, scale, above, below, work.data);
}

/// Whether there is something above.
enum class Above { zero, known };

void gpu_interface(Stream stream, const Above& which, In<double> boundary, In<double> before,
                   In<double> below, Out<double> after, Out<double> first, Out<double> above) {
  if (which == Above::zero) before.data = nullptr;
  cuda::eliminate(stream, boundary, before, after);
  cuda::substitute(stream, boundary, before, below, first, above);
}

constexpr Index gpu_widths[] = {1, 33, 130};
// One block and less, several groups of the interface system with some empty, and groups of several blocks.
constexpr Index gpu_heights[] = {1, 2, 31, 32, 33, 64, 97, 519, 1000, 3000};

}  // namespace

TEST_CASE_TEMPLATE("gpu: boundaries of segments", T, float, double) {
  static const Codelet<double, In<T>, In<double>, Out<double>, Scratch<double>> reduce{
      sizeof(T) == 4 ? "test_reduce_f32" : "test_reduce_f64", nullptr, gpu_reduce<T>};
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const Index s : gpu_heights) {
      const Matrix<double> excess = mixed_excess(n);
      const Matrix<T> f = Matrix<T>(s, n).fill_random(10);
      const Tile<T> lines = upload(runtime, f);
      const Tile<double> modes = upload(runtime, excess);
      const Tile<double> boundary(runtime, boundary_rows, n), work(runtime, 1, cuda::blocks_scratch(s, n));
      reduce(-1.7, lines, modes, boundary, work);
      runtime.wait();
      const Matrix<double> joined = download(boundary);
      Matrix<double> expected(boundary_rows, n);
      cpu::reduce<T>(f.in(), excess.in(), -1.7, expected.inout(), Segment::start);
      for (Index k = 0; k < n; ++k) {
        CAPTURE(s);
        CAPTURE(excess(0, k));
        const Real size = largest(thomas_solve(column_of(f, k, -1.7), static_cast<Real>(excess(0, k))));
        const double bound = elimination_error(s, excess(0, k)) * static_cast<double>(size);
        CHECK(std::abs(joined(y_first_row, k) - expected(y_first_row, k)) <= bound);
        CHECK(std::abs(joined(y_last_row, k) - expected(y_last_row, k)) <= bound);
        CHECK(std::abs(joined(p_row, k) - expected(p_row, k)) <= 1e-14);
        CHECK(std::abs(joined(q_row, k) - expected(q_row, k)) <= 1e-14);
      }
    }
}

TEST_CASE_TEMPLATE("gpu: solutions of segments", T, float, double) {
  static const Codelet<double, InOut<T>, In<double>, In<double>, In<double>, Scratch<double>> solve{
      sizeof(T) == 4 ? "test_solve_f32" : "test_solve_f64", nullptr, gpu_solve<T>};
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const Index s : gpu_heights) {
      const Matrix<double> excess = mixed_excess(n);
      const Matrix<T> f = Matrix<T>(s, n).fill_random(11);
      const Matrix<double> above = Matrix<double>(1, n).fill_random(12),
                           below = Matrix<double>(1, n).fill_random(13);
      const Tile<T> lines = upload(runtime, f);
      const Tile<double> modes = upload(runtime, excess), above_tile = upload(runtime, above),
                         below_tile = upload(runtime, below);
      const Tile<double> work(runtime, 1, cuda::blocks_scratch(s, n));
      solve(0.37, lines, modes, above_tile, below_tile, work);
      runtime.wait();
      check_solution(download(lines), f, excess, 0.37, above, below);
    }
}

TEST_CASE("gpu: the interface system of slabs") {
  static const Codelet<Above, In<double>, In<double>, In<double>, Out<double>, Out<double>, Out<double>>
      interface {
    "test_interface", nullptr, gpu_interface
  };
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const Above which : {Above::zero, Above::known}) {
      Matrix<double> boundary = Matrix<double>(boundary_rows, n).fill_random(14);
      for (Index k = 0; k < n; ++k) {  // as of a segment: p and q negative, together above -1
        boundary(p_row, k) = -0.75;
        boundary(q_row, k) = -0.2;
      }
      Matrix<double> before = Matrix<double>(prefix_rows, n).fill_random(15);
      for (Index k = 0; k < n; ++k) before(beta_row, k) = -0.6;
      const Matrix<double> below = Matrix<double>(1, n).fill_random(16);
      Matrix<double> after(prefix_rows, n), first(1, n), above(1, n);
      const In<double> given = which == Above::zero ? In<double>{nullptr, 0, 0, 0} : before.in();
      cpu::eliminate(boundary.in(), given, after.out());
      cpu::substitute(boundary.in(), given, below.in(), first.out(), above.out());

      const Tile<double> boundary_tile = upload(runtime, boundary), before_tile = upload(runtime, before),
                         below_tile = upload(runtime, below);
      const Tile<double> after_tile(runtime, prefix_rows, n), first_tile(runtime, 1, n),
          above_tile(runtime, 1, n);
      interface(which, boundary_tile, before_tile, below_tile, after_tile, first_tile, above_tile);
      runtime.wait();
      const Matrix<double> gpu_after = download(after_tile), gpu_first = download(first_tile),
                           gpu_above = download(above_tile);
      for (Index k = 0; k < n; ++k) {
        CHECK(std::abs(gpu_after(alpha_row, k) - after(alpha_row, k)) <= 1e-14);
        CHECK(std::abs(gpu_after(beta_row, k) - after(beta_row, k)) <= 1e-14);
        CHECK(std::abs(gpu_first(0, k) - first(0, k)) <= 1e-14);
        CHECK(std::abs(gpu_above(0, k) - above(0, k)) <= 1e-14);
      }
    }
}

#endif
