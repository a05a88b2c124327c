// The model problems and the residual of the five-point Laplacian against sums taken point by point.

#include "codelets/five_point.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <unordered_set>
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
constexpr Real pi = 3.141592653589793238462643383279502884L;

using Sums = std::array<double, residual_sums>;
using Extents = std::pair<Index, Index>;

ModelProblem problem_on(Model model, Index rows, Index cols) {
  return {model,
          42,
          rows,
          cols,
          -1.0,
          -1.0,
          2.0 / static_cast<double>(cols + 1),
          2.0 / static_cast<double>(rows + 1)};
}

/// The right-hand side of the whole grid, made in slabs.
template <class T>
Matrix<T> rhs_of(const ModelProblem& problem, Index slab) {
  Matrix<T> f(problem.rows, problem.cols);
  for (Index i = 0; i < problem.rows; i += slab)
    cpu::model_rhs<T>(problem, i, f.out(i, std::min(slab, problem.rows - i)));
  CHECK(f.guarded());
  return f;
}

template <class T>
Matrix<T> solution_of(const ModelProblem& problem) {
  return Matrix<T>(problem.rows, problem.cols).fill([&](Index i, Index j) {
    return problem.model == Model::random
               ? random_solution(problem, i, j)
               : sine_factor(problem.y0, problem.hy, i) * sine_factor(problem.x0, problem.hx, j);
  });
}

/// The sums over the rows of a slab.
template <class T>
Sums residual_of(const SlabProblem& slab, const Matrix<T>& u, const Matrix<T>& f, Index rows) {
  const Index first = slab.first_row;
  const Matrix<T> zeros = Matrix<T>(1, u.cols()).fill([](Index, Index) { return 0; });
  const In<T> above = first > 0 ? u.in(first - 1, 1) : zeros.in();
  const In<T> below = first + rows < u.rows() ? u.in(first + rows, 1) : zeros.in();
  Matrix<double> sums(1, residual_sums);
  cpu::residual<T>(slab, u.in(first, rows), above, below, f.in(first, rows), sums.out());
  CHECK(sums.guarded());
  Sums result;
  for (Index s = 0; s < residual_sums; ++s) result[static_cast<std::size_t>(s)] = sums(0, s);
  return result;
}

/// The sums over a whole grid, point by point.
template <class T>
Sums plain_sums(const SlabProblem& slab, const Matrix<T>& u, const Matrix<T>& f) {
  std::array<Real, residual_sums> sums{};
  const auto at = [&](Index i, Index j) {
    return i < 0 || j < 0 || i >= u.rows() || j >= u.cols() ? 0.0L : static_cast<Real>(u(i, j));
  };
  const Matrix<double> known = solution_of<double>(slab.problem);
  for (Index i = 0; i < u.rows(); ++i)
    for (Index j = 0; j < u.cols(); ++j) {
      const Real applied = static_cast<Real>(slab.a.per_hx2) * (at(i, j - 1) - 2 * at(i, j) + at(i, j + 1)) +
                           static_cast<Real>(slab.a.per_hy2) * (at(i - 1, j) - 2 * at(i, j) + at(i + 1, j));
      const Real rhs = f(i, j), r = rhs - applied, exact = known(i, j);
      sums[residual2] += r * r;
      sums[rhs2] += rhs * rhs;
      sums[solution2] += at(i, j) * at(i, j);
      sums[error2] += (at(i, j) - exact) * (at(i, j) - exact);
      sums[known2] += exact * exact;
    }
  Sums result;
  for (std::size_t s = 0; s < result.size(); ++s) result[s] = static_cast<double>(sums[s]);
  return result;
}

SlabProblem slab_of(const ModelProblem& problem, Index first_row = 0) {
  return {five_point(problem.hx, problem.hy), problem, first_row, true};
}

const std::vector<Extents> grids = {{1, 1}, {1, 5}, {5, 1}, {3, 3}, {2, 16}, {7, 33}, {64, 97}, {40, 300}};

}  // namespace

TEST_CASE("sin(pi x) is exact where it can be and accurate elsewhere") {
  for (const double x : {0.0, 1.0, -1.0, 2.0, 1e9, -3.0}) CHECK(sin_pi(x) == 0.0);
  CHECK(sin_pi(0.5) == 1.0);
  CHECK(sin_pi(-0.5) == -1.0);
  CHECK(sin_pi(1.5) == -1.0);
  for (double x = -4.0; x < 4.0; x += 0.0137) {
    const Real exact = std::sin(pi * static_cast<Real>(x));
    CHECK(std::abs(static_cast<Real>(sin_pi(x)) - exact) <= 4e-16L * std::abs(exact) + 2e-18L);
  }
}

TEST_CASE("the random solution is uniform, exact in float32 and different at every node") {
  const ModelProblem problem = problem_on(Model::random, 1000, 1000);
  double sum = 0, square = 0;
  std::array<int, 16> counts{};
  for (Index i = 0; i < 1000; ++i)
    for (Index j = 0; j < 1000; ++j) {
      const double u = random_solution(problem, i, j);
      if (!(std::abs(u) < 1.0) || static_cast<double>(static_cast<float>(u)) != u) FAIL("bad value " << u);
      sum += u;
      square += u * u;
      ++counts[static_cast<std::size_t>((u + 1.0) * 8.0)];
    }
  CHECK(std::abs(sum / 1e6) < 4 * std::sqrt(1.0 / 3.0) / 1e3);
  CHECK(square / 1e6 == doctest::Approx(1.0 / 3.0).epsilon(5e-3));
  for (const int count : counts) CHECK(count == doctest::Approx(62'500).epsilon(0.02));

  for (const auto& [i, j] : std::vector<Extents>{{-1, 0}, {0, -1}, {1000, 0}, {0, 1000}})
    CHECK(random_solution(problem, i, j) == 0.0);
  ModelProblem other = problem;
  other.seed = 43;
  CHECK(random_solution(other, 3, 4) != random_solution(problem, 3, 4));
}

TEST_CASE("the random solution does not repeat beyond 2^31 nodes") {
  // Runs of three values at nodes that are 2^31 or 2^32 apart, or begin a row, are all different.
  const ModelProblem problem = problem_on(Model::random, Index{1} << 20, Index{1} << 20);
  std::unordered_set<double> runs;
  std::size_t count = 0;
  for (Index row = 0; row < (Index{1} << 20); row += 1 << 10)
    for (const Index j : {Index{0}, Index{1}, Index{17}, (Index{1} << 20) - 3}) {
      const double run = random_solution(problem, row, j) + 0x1p-25 * random_solution(problem, row, j + 1);
      runs.insert(run);
      ++count;
    }
  CHECK(runs.size() == count);
}

TEST_CASE("the Laplacian by hand") {
  CHECK(laplacian({4.0, 0.25}, 1.0, 2.0, 3.0, 5.0, 9.0) == 4.0 * 3.0 + 0.25 * 12.0);
}

TEST_CASE_TEMPLATE("right-hand sides agree with their formulas however the grid is cut", T, float, double) {
  constexpr double epsilon = std::numeric_limits<T>::epsilon();
  for (const auto& [rows, cols] : grids) {
    const ModelProblem sine = problem_on(Model::sine, rows, cols),
                       random = problem_on(Model::random, rows, cols);
    const FivePoint a = five_point(random.hx, random.hy);
    const auto u = [&, &problem = random](Index i, Index j) { return random_solution(problem, i, j); };
    for (const Index slab : {Index{1}, Index{3}, rows}) {
      const Matrix<T> f = rhs_of<T>(sine, slab), g = rhs_of<T>(random, slab);
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < cols; ++j) {
          const Real x = -1 + static_cast<Real>(j + 1) * sine.hx, y = -1 + static_cast<Real>(i + 1) * sine.hy;
          const Real exact = -2 * pi * pi * std::sin(pi * x) * std::sin(pi * y);
          CHECK(std::abs(static_cast<Real>(f(i, j)) - exact) <= epsilon * std::abs(exact) + 2e-14L);
          const double applied = laplacian(a, u(i, j), u(i, j - 1), u(i, j + 1), u(i - 1, j), u(i + 1, j));
          CHECK(std::abs(static_cast<double>(g(i, j)) - applied) <=
                epsilon * std::abs(applied) + 1e-15 * (a.per_hx2 + a.per_hy2));
        }
    }
  }
}

TEST_CASE("sums by hand") {
  // One node, u = 2, f = 1: A u = (0 - 4 + 0) / hx^2 + (0 - 4 + 0) / hy^2 with 1 / hx^2 = 1, 1 / hy^2 = 2.
  Matrix<double> u(1, 1), f(1, 1);
  u(0, 0) = 2;
  f(0, 0) = 1;
  SlabProblem slab = slab_of(problem_on(Model::sine, 1, 1));
  slab.a = {1.0, 2.0};
  slab.known = false;
  CHECK(residual_of(slab, u, f, 1) == Sums{169.0, 1.0, 4.0, 0.0, 0.0});

  // u = 1 everywhere, f = 0: A u is minus the number of sides outside.
  slab.a = {1.0, 1.0};
  const auto one = [](Index, Index) { return 1; };
  const auto zero = [](Index, Index) { return 0; };
  const auto uniform = [&](Index rows, Index cols) {
    return residual_of(slab, Matrix<double>(rows, cols).fill(one), Matrix<double>(rows, cols).fill(zero),
                       rows);
  };
  CHECK(uniform(1, 5) == Sums{2 * 9.0 + 3 * 4.0, 0.0, 5.0, 0.0, 0.0});
  CHECK(uniform(5, 1) == Sums{2 * 9.0 + 3 * 4.0, 0.0, 5.0, 0.0, 0.0});
  CHECK(uniform(3, 3) == Sums{4 * 4.0 + 4 * 1.0, 0.0, 9.0, 0.0, 0.0});
}

TEST_CASE_TEMPLATE("sums agree with those taken point by point, and slabs add up to the whole", T, float,
                   double) {
  for (const Model model : {Model::sine, Model::random})
    for (const auto& [rows, cols] : grids) {
      const ModelProblem problem = problem_on(model, rows, cols);
      const Matrix<T> u = Matrix<T>(rows, cols).fill_random(1), u_before = u;
      const Matrix<T> f = Matrix<T>(rows, cols).fill_random(2), f_before = f;
      const Sums expected = plain_sums(slab_of(problem), u, f);
      for (const Index slab : {Index{1}, Index{3}, rows}) {
        Sums total{};
        for (Index i = 0; i < rows; i += slab) {
          const Sums part = residual_of(slab_of(problem, i), u, f, std::min(slab, rows - i));
          for (std::size_t s = 0; s < total.size(); ++s) total[s] += part[s];
        }
        for (std::size_t s = 0; s < total.size(); ++s) {
          CAPTURE(s);
          CHECK(std::abs(total[s] - expected[s]) <= 1e-13 * expected[s] + 1e-28);
        }
      }
      CHECK(u == u_before);
      CHECK(f == f_before);
    }
}

TEST_CASE_TEMPLATE("the known solution solves its problem", T, float, double) {
  const double epsilon = std::numeric_limits<T>::epsilon();
  for (const auto& [rows, cols] : grids) {
    const ModelProblem random = problem_on(Model::random, rows, cols);
    const Sums sums = residual_of(slab_of(random), solution_of<T>(random), rhs_of<T>(random, rows), rows);
    CHECK(sums[residual2] <= epsilon * epsilon * sums[rhs2]);
    CHECK(sums[error2] == 0.0);
    CHECK(sums[known2] == sums[solution2]);
  }
  // Differences are of second order: the residual of the sine model's exact solution is (pi h)^2 / 12 of f.
  const ModelProblem sine = problem_on(Model::sine, 63, 63);
  const Sums sums = residual_of(slab_of(sine), solution_of<T>(sine), rhs_of<T>(sine, 63), 63);
  CHECK(std::sqrt(sums[residual2] / sums[rhs2]) ==
        doctest::Approx(static_cast<double>(pi * pi) / (12 * 32 * 32)).epsilon(2e-3));
  CHECK(sums[error2] <= epsilon * epsilon * sums[known2]);
}

TEST_CASE_TEMPLATE("a NaN anywhere ends in the sums", T, float, double) {
  const ModelProblem problem = problem_on(Model::sine, 5, 37);
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const auto& [i, j] : std::vector<Extents>{{0, 0}, {2, 36}, {4, 20}}) {
    Matrix<T> u = Matrix<T>(5, 37).fill_random(1), f = Matrix<T>(5, 37).fill_random(2);
    const T kept = u(i, j);
    u(i, j) = nan;
    Sums sums = residual_of(slab_of(problem), u, f, 5);
    CHECK(std::isnan(sums[residual2]));
    CHECK(std::isnan(sums[solution2]));
    CHECK(std::isnan(sums[error2]));
    u(i, j) = kept;
    f(i, j) = nan;
    sums = residual_of(slab_of(problem), u, f, 5);
    CHECK(std::isnan(sums[residual2]));
    CHECK(std::isnan(sums[rhs2]));
    CHECK(!std::isnan(sums[solution2]));
  }
}

#ifdef ASTERISM_WITH_CUDA

namespace {

struct RhsArgs {
  ModelProblem problem;
  Index first_row;
};

template <class T>
void gpu_rhs(Stream stream, const RhsArgs& args, Out<T> f) {
  cuda::model_rhs<T>(stream, args.problem, args.first_row, f);
}

const std::vector<Extents> gpu_grids = {{1, 1},    {1, 5},    {5, 1},     {3, 3},
                                        {33, 257}, {1000, 1}, {520, 700}, {9, 40'000}};

}  // namespace

TEST_CASE_TEMPLATE("gpu: right-hand sides", T, float, double) {
  static const Codelet<RhsArgs, Out<T>> rhs{sizeof(T) == 4 ? "test_rhs_f32" : "test_rhs_f64", nullptr,
                                            gpu_rhs<T>};
  Runtime runtime;
  for (const Model model : {Model::sine, Model::random})
    for (const auto& [rows, cols] : gpu_grids) {
      const ModelProblem problem = problem_on(model, rows, cols);
      const Index first = rows / 3;
      const Tile<T> f(runtime, rows - first, cols);
      rhs({problem, first}, f);
      runtime.wait();
      const Matrix<T> made = download(f), expected = rhs_of<T>(problem, rows);
      double worst = 0, largest = 0;
      for (Index i = first; i < rows; ++i)
        for (Index j = 0; j < cols; ++j) {
          const auto value = static_cast<double>(expected(i, j));
          const double error = std::abs(static_cast<double>(made(i - first, j)) - value);
          largest = std::max(largest, std::abs(value));
          worst = error > worst || std::isnan(error) ? error : worst;
        }
      // Two sines of up to 2 ulp each on the device, and their product with the eigenvalue.
      CHECK(worst <= 4.0 * std::numeric_limits<T>::epsilon() * largest);
    }
}

TEST_CASE_TEMPLATE("gpu: residual sums", T, float, double) {
  static const Codelet<SlabProblem, In<T>, In<T>, In<T>, In<T>, Out<double>, Scratch<double>> residual{
      sizeof(T) == 4 ? "test_residual_f32" : "test_residual_f64", nullptr, cuda::residual<T>};
  Runtime runtime;
  for (const Model model : {Model::sine, Model::random})
    for (const auto& [rows, cols] : gpu_grids)
      for (const bool known : {true, false}) {
        SlabProblem slab = slab_of(problem_on(model, rows, cols));
        slab.known = known;
        const Matrix<T> u = Matrix<T>(rows, cols).fill_random(1), f = Matrix<T>(rows, cols).fill_random(2);
        const Matrix<T> zeros = Matrix<T>(1, cols).fill([](Index, Index) { return 0; });
        const Index first = rows / 3,
                    count = rows - first;  // a slab with a neighbour above, where there are rows
        slab.first_row = first;
        const Matrix<T> lower_u =
            Matrix<T>(count, cols).fill([&](Index i, Index j) { return u(first + i, j); });
        const Matrix<T> lower_f =
            Matrix<T>(count, cols).fill([&](Index i, Index j) { return f(first + i, j); });
        const Matrix<T> above =
            Matrix<T>(1, cols).fill([&](Index, Index j) { return first > 0 ? u(first - 1, j) : T{0}; });
        const Tile<T> u_tile = upload(runtime, lower_u), f_tile = upload(runtime, lower_f),
                      above_tile = upload(runtime, above), below_tile = upload(runtime, zeros);
        const Tile<double> sums(runtime, 1, residual_sums), again(runtime, 1, residual_sums),
            work(runtime, 1, cuda::residual_scratch);
        residual(slab, u_tile, above_tile, below_tile, f_tile, sums, work);
        residual(slab, u_tile, above_tile, below_tile, f_tile, again, work);
        runtime.wait();
        const Sums expected = residual_of(slab, u, f, count);
        const Matrix<double> made = download(sums), repeated = download(again);
        for (Index s = 0; s < residual_sums; ++s) {
          CAPTURE(s);
          const double value = expected[static_cast<std::size_t>(s)];
          CHECK(std::abs(made(0, s) - value) <= 1e-12 * value);
          CHECK(made(0, s) == repeated(0, s));
        }
      }
}

#endif
