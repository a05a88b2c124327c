#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "algorithms/relaxation.hpp"

using namespace asterism;
using kernels::Arrangement;
using relaxation::Balance;
using relaxation::Exchange;
using relaxation::Method;
using relaxation::Problem;
using relaxation::Settings;

namespace {

constexpr double pi = std::numbers::pi;
constexpr Method all_methods[] = {Method::jacobi, Method::gauss_seidel, Method::sor, Method::ssor};

template <class T>
constexpr double eps = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

bool shape_is(const std::string& name) {
  const char* shape = std::getenv("ASTERISM_SHAPE");
  return shape != nullptr && std::string(shape).starts_with(name);
}

template <class T>
std::vector<T> random_numbers(Index count, unsigned seed, double from = -1) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(from, 1.0);
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (T& number : numbers) number = static_cast<T>(static_cast<float>(uniform(engine)));
  return numbers;
}

/// value(i, j) at every node.
template <class T, class Value>
std::vector<T> on_grid(const Problem& p, Value value) {
  std::vector<T> numbers;
  for (Index i = 0; i < p.shape[0]; ++i)
    for (Index j = 0; j < p.shape[1]; ++j) numbers.push_back(static_cast<T>(value(i, j)));
  return numbers;
}

/// Where node number i of n on an axis lies.
double position(Index i, Index n, double length = 1) {
  return length * static_cast<double>(i + 1) / static_cast<double>(n + 1);
}

double norm(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = difference <= largest ? largest : difference;  // NaN counts
  }
  return largest;
}

template <class T>
struct Run {
  Report report;
  Settings settings;
  std::vector<relaxation::Share> shares;
  std::vector<T> u;  ///< of all ranks
};

/// Solves with f and a first guess of the whole grid.
template <class T>
Run<T> run(Runtime& runtime, const Problem& problem, const Settings& settings, const std::vector<T>& f,
           const std::vector<T>& guess) {
  relaxation::Solver<T> solver(runtime, problem, settings);
  const auto first = static_cast<std::ptrdiff_t>(solver.first_row() * problem.shape[1]);
  const auto end = first + static_cast<std::ptrdiff_t>(solver.row_count() * problem.shape[1]);
  std::vector<T> u(guess.begin() + first, guess.begin() + end);
  Run<T> result;
  result.report = solver.solve(f.empty() ? nullptr : f.data() + first, u.data());
  result.settings = solver.settings();
  result.shares = solver.shares();
  std::vector<double> all(guess.size());
  std::copy(u.begin(), u.end(), all.begin() + first);
  runtime.sum_over_ranks(all.data(), static_cast<Index>(all.size()));
  result.u.assign(all.begin(), all.end());
  return result;
}

template <class T>
std::vector<T> zeros(const Problem& p) {
  return std::vector<T>(static_cast<std::size_t>(p.shape[0] * p.shape[1]));
}

/// The methods by their definition, one node after the other.
template <class T>
class Twin {
 public:
  Twin(const Problem& p, const std::vector<T>& f, const std::vector<T>& guess)
      : p_(p), m_(p.shape[0]), n_(p.shape[1]), f_(f), v_(guess) {
    const double ly = p.lengths.empty() ? 1 : p.lengths[0], lx = p.lengths.empty() ? 1 : p.lengths[1];
    const double hy = ly / static_cast<double>(m_ + 1), hx = lx / static_cast<double>(n_ + 1);
    y_ = 1 / (hy * hy);
    x_ = 1 / (hx * hx);
  }

  void sweep(Method method, double omega) {
    if (method == Method::jacobi) {
      const std::vector<T> before = v_;
      std::vector<T> after = v_;
      for (Index i = 0; i < m_; ++i)
        for (Index j = 0; j < n_; ++j) after[at(i, j)] = equation(i, j);
      v_ = after;
      return;
    }
    relax(0, omega);
    relax(1, omega);
    if (method != Method::ssor) return;
    relax(1, omega);
    relax(0, omega);
  }

  [[nodiscard]] const std::vector<T>& v() const { return v_; }

 private:
  [[nodiscard]] std::size_t at(Index i, Index j) const { return static_cast<std::size_t>(i * n_ + j); }

  [[nodiscard]] double neighbour(Index i, Index j) const {
    if (i < 0) return static_cast<T>(value_at(p_.y_lower, j));
    if (i == m_) return static_cast<T>(value_at(p_.y_upper, j));
    if (j < 0) return static_cast<T>(value_at(p_.x_lower, i));
    if (j == n_) return static_cast<T>(value_at(p_.x_upper, i));
    return v_[at(i, j)];
  }

  /// What node (i, j) is if all its neighbours are right.
  [[nodiscard]] T equation(Index i, Index j) const {
    const double sum =
        y_ * (neighbour(i - 1, j) + neighbour(i + 1, j)) + x_ * (neighbour(i, j - 1) + neighbour(i, j + 1));
    return static_cast<T>((sum - (f_.empty() ? 0 : static_cast<double>(f_[at(i, j)]))) / (2 * y_ + 2 * x_));
  }

  void relax(Index colour, double omega) {
    for (Index i = 0; i < m_; ++i)
      for (Index j = 0; j < n_; ++j)
        if ((i + j) % 2 == colour) {
          const double v = v_[at(i, j)];
          v_[at(i, j)] = static_cast<T>(v + omega * (static_cast<double>(equation(i, j)) - v));
        }
  }

  const Problem& p_;
  Index m_, n_;
  double y_ = 0, x_ = 0;
  const std::vector<T>& f_;
  std::vector<T> v_;
};

/// Different values on every side.
Problem with_sides(Index rows, Index nodes) {
  Problem p{.shape = {rows, nodes}, .lengths = {1.5, 0.8}};
  p.y_lower.values = random_numbers<double>(nodes, 1);
  p.y_upper.value = -0.75;
  p.x_lower.value = 0.5;
  p.x_upper.values = random_numbers<double>(rows, 2);
  return p;
}

std::string description(const Settings& s) {
  return std::string("method ") + std::to_string(static_cast<int>(s.method)) + ", sweeps per task " +
         std::to_string(s.sweeps_per_task) + ", stripes " + std::to_string(s.stripes) + ", exchange " +
         std::to_string(static_cast<int>(s.exchange)) +
         (s.arrangement == Arrangement::natural ? ", natural" : ", separated");
}

std::string message_of(Runtime& runtime, const Problem& problem, const Settings& settings) {
  try {
    const relaxation::Solver<double> solver(runtime, problem, settings);
  } catch (const Error& error) {
    CHECK(error.blame() == Blame::input);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE_TEMPLATE("any stripes, sweeps per task, exchange and arrangement: the same iterates", T, float,
                   double) {
  Runtime runtime;
  const Problem problem = with_sides(61, 37);
  const std::vector<T> guess = random_numbers<T>(61 * 37, 3), f = random_numbers<T>(61 * 37, 4), no_f;
  constexpr Index sweeps = 7;
  unsigned turn = 0;  // arrangements, exchanges, balances and sources take turns, each at its own pace
  for (const Method method : all_methods) {
    const double omega = method == Method::sor ? 1.7 : method == Method::ssor ? 1.2 : 1;
    Twin<T> twins[] = {{problem, f, guess}, {problem, no_f, guess}};
    for (Twin<T>& twin : twins)
      for (Index k = 0; k < sweeps; ++k) twin.sweep(method, omega);
    std::vector<T> first[2];
    for (const Index stripes : sizeof(T) == 4 ? std::vector<Index>{1, 3} : std::vector<Index>{1, 2, 3, 5})
      for (Index per_task = 1; per_task <= 5; ++per_task, ++turn) {
        const unsigned laplace = turn % 3 == 2;
        const Settings settings{
            .method = method,
            .omega = omega,
            .sweeps = sweeps,
            .sweeps_per_task = per_task,
            .arrangement = turn / 2 % 2 == 0 ? Arrangement::separated : Arrangement::natural,
            .exchange = turn % 2 == 0 ? Exchange::overlapped : Exchange::blocking,
            .stripes = stripes,
            .balance = turn % 7 == 0 ? Balance::measured : Balance::equal};
        CAPTURE(description(settings));
        const Run<T> r = run(runtime, problem, settings, laplace ? no_f : f, guess);
        CHECK(r.report.reason == Reason::solved);
        CHECK(r.report.iterations == sweeps);
        CHECK(static_cast<Index>(r.shares.size()) == stripes);
        CHECK(largest_difference(r.u, twins[laplace].v()) <= 64 * eps<T>);
        if (first[laplace].empty()) first[laplace] = r.u;
        CHECK(r.u == first[laplace]);  // bit for bit
      }
  }
}

TEST_CASE("a solver solves again: another right-hand side, with and without f") {
  Runtime runtime;
  const Problem problem = with_sides(23, 30);
  relaxation::Solver<double> solver(runtime, problem, {.sweeps = 5, .sweeps_per_task = 1, .stripes = 2});
  const auto first = static_cast<std::ptrdiff_t>(solver.first_row() * 30);
  const auto count = static_cast<std::size_t>(solver.row_count() * 30);
  for (const unsigned seed : {1U, 2U, 3U}) {
    const std::vector<double> guess = random_numbers<double>(23 * 30, seed);
    const std::vector<double> f =
        seed == 2 ? std::vector<double>{} : random_numbers<double>(23 * 30, seed + 9);
    std::vector<double> u(guess.begin() + first, guess.begin() + first + static_cast<std::ptrdiff_t>(count));
    const std::vector<double> f_before = f;
    const Report report = solver.solve(f.empty() ? nullptr : f.data() + first, u.data());
    CHECK(f == f_before);
    Twin<double> twin(problem, f, guess);
    for (int k = 0; k < 5; ++k) twin.sweep(Method::sor, *solver.settings().omega);
    for (std::size_t i = 0; i < count; ++i)
      CHECK(std::abs(u[i] - twin.v()[i + static_cast<std::size_t>(first)]) <= 128 * eps<double>);
    for (const char* part : {"load", "sweeps", "residual", "spread", "store"})
      CHECK(report.seconds.at(part) >= 0);
    CHECK(report.seconds.at("spread") <= report.seconds.at("residual"));
  }
}

TEST_CASE("the residuals of the history are those of the iterates") {
  Runtime runtime;
  const Problem problem = with_sides(19, 26);
  const std::vector<double> guess = random_numbers<double>(19 * 26, 3),
                            f = random_numbers<double>(19 * 26, 4);
  const Run<double> r = run(runtime, problem,
                            {.method = Method::gauss_seidel,
                             .sweeps = 10,
                             .check_every = 3,
                             .sweeps_per_task = 3,
                             .exchange = Exchange::blocking,
                             .stripes = 2,
                             .balance = Balance::equal},
                            f, guess);
  REQUIRE(r.report.residual_history.size() == 5);  // before, after 3, 6, 9 and 10 sweeps

  const double y = std::pow(20 / 1.5, 2), x = std::pow(27 / 0.8, 2);
  Twin<double> twin(problem, f, guess);
  for (int k = 0, number = 0; k <= 10; ++k) {
    if (k % 3 == 0 || k == 10) {
      const auto& v = twin.v();
      double residual = 0, source = 0;
      for (Index i = 0; i < 19; ++i)
        for (Index j = 0; j < 26; ++j) {
          const auto at = [&](Index a, Index b) { return v[static_cast<std::size_t>(a * 26 + b)]; };
          double b = f[static_cast<std::size_t>(i * 26 + j)], av = -2 * (y + x) * at(i, j);
          i > 0 ? av += y * at(i - 1, j) : b -= y * value_at(problem.y_lower, j);
          i < 18 ? av += y * at(i + 1, j) : b -= y * value_at(problem.y_upper, j);
          j > 0 ? av += x * at(i, j - 1) : b -= x * value_at(problem.x_lower, i);
          j < 25 ? av += x * at(i, j + 1) : b -= x * value_at(problem.x_upper, i);
          residual += (b - av) * (b - av);
          source += b * b;
        }
      const double scaled = std::sqrt(residual) / (4 * (y + x) * norm(v) + std::sqrt(source));
      CHECK(r.report.residual_history[static_cast<std::size_t>(number++)] ==
            doctest::Approx(scaled).epsilon(1e-10));
    }
    twin.sweep(Method::gauss_seidel, 1);
  }
}

namespace {

/// ||v|| after more and more sweeps where the solution is zero: of the error itself, and without any level of
/// rounding.
class ErrorNorms {
 public:
  ErrorNorms(Runtime& runtime, Index n, Settings settings)
      : runtime_(runtime),
        problem_{.shape = {n, n}},
        settings_(settings),
        v_(random_numbers<double>(n * n, 5, 0)) {}

  double after(Index sweeps) {
    settings_.sweeps = sweeps - done_;
    v_ = run(runtime_, problem_, settings_, {}, v_).u;
    done_ = sweeps;
    return norm(v_);
  }

 private:
  Runtime& runtime_;
  Problem problem_;
  Settings settings_;
  std::vector<double> v_;
  Index done_ = 0;
};

/// What Convergence and the reader want to know: not only the reduction per sweep but its logarithm is within
/// 2 %.
void check_reduction(double observed, double expected) {
  CHECK(observed == doctest::Approx(expected).epsilon(0.02));
  CHECK(std::log(observed) == doctest::Approx(std::log(expected)).epsilon(0.02));
}

}  // namespace

TEST_CASE("n = 128: the error falls by the spectral radius every sweep") {
  if (shape_is("mpi")) return;  // the same iterates as on one rank, but many thousand of them
  Runtime runtime;
  const Index n = 128;
  const double h = 1.0 / static_cast<double>(n + 1), c = std::cos(pi * h);
  const kernels::Discretisation grid = kernels::discretise_five_point(n, n, 1, 1);

  SUBCASE("Jacobi: cos(pi h)") {
    // The slowest mode is left after some thousand sweeps, with its counterpart of eigenvalue -cos(pi h): an
    // even number.
    ErrorNorms error(runtime, n, {.method = Method::jacobi});
    const double before = error.after(10000), after = error.after(11000);
    check_reduction(std::pow(after / before, 1.0 / 1000), c);
    CHECK(relaxation::spectral_radius(Method::jacobi, 1, grid.jacobi_radius) ==
          doctest::Approx(c).epsilon(1e-12));
  }
  SUBCASE("Gauss-Seidel: its square") {
    ErrorNorms error(runtime, n, {.method = Method::gauss_seidel});
    const double before = error.after(5000), after = error.after(5500);
    check_reduction(std::pow(after / before, 1.0 / 500), c * c);
    CHECK(relaxation::spectral_radius(Method::gauss_seidel, 1, grid.jacobi_radius) == doctest::Approx(c * c));
  }
  SUBCASE("SOR with the best omega: omega - 1 = (cos(pi h) / (1 + sin(pi h)))^2") {
    // All eigenvalues have this modulus, and the one of the slowest mode is double with a single eigenvector:
    // its part of the error is (a + b k) lambda^k, and in the end dominates by its factor k, which is divided
    // out here.
    const double lambda = std::pow(c / (1 + std::sin(pi * h)), 2);
    ErrorNorms error(runtime, n, {.method = Method::sor});
    const double before = error.after(400), after = error.after(1600);
    check_reduction(std::pow(after / before * 400 / 1600, 1.0 / 1200), lambda);
    CHECK(relaxation::spectral_radius(Method::sor, grid.optimal_omega(), grid.jacobi_radius) ==
          doctest::Approx(lambda).epsilon(1e-6));
  }
}

TEST_CASE("other omegas: spectral_radius is what is observed, and symmetric SOR has none better than 1") {
  if (shape_is("mpi")) return;
  Runtime runtime;
  const Index n = 32;
  const double radius = kernels::discretise_five_point(n, n, 1, 1).jacobi_radius;
  const auto observed = [&](Method method, double omega) {
    ErrorNorms error(runtime, n, {.method = method, .omega = omega});
    const double before = error.after(1200);
    return std::pow(error.after(1600) / before, 1.0 / 400);
  };
  for (const double omega : {0.7, 1.0, 1.5, 1.95})
    check_reduction(observed(Method::sor, omega), relaxation::spectral_radius(Method::sor, omega, radius));
  for (const double omega : {0.7, 1.0, 1.5})
    check_reduction(observed(Method::ssor, omega), relaxation::spectral_radius(Method::ssor, omega, radius));
  const double natural_order_best = 2 / (1 + std::sqrt(2 * (1 - radius)));
  CHECK(observed(Method::ssor, natural_order_best) > observed(Method::ssor, 1));
  CHECK(relaxation::Solver<float>(runtime, {.shape = {n, n}}, {.method = Method::ssor, .sweeps = 1})
            .settings()
            .omega == 1);
}

TEST_CASE("sweeps to a tolerance grow like n^2 for Gauss-Seidel, like n for SOR") {
  if (shape_is("mpi")) return;
  Runtime runtime;
  for (const Method method : {Method::gauss_seidel, Method::sor}) {
    std::vector<double> sweeps;
    for (const Index n : {32, 64, 128}) {
      const Problem problem{.shape = {n, n}};
      const std::vector<double> f = on_grid<double>(problem, [&](Index i, Index j) {
        return std::sin(pi * position(i, n)) * std::sin(pi * position(j, n));
      });
      const Index every = method == Method::sor ? 4 : 2 * n;
      const Settings settings{.method = method,
                              .tolerance = 1e-12,
                              .check_every = every,
                              .sweeps_per_task = method == Method::sor ? 4 : 32};
      const Run<double> r = run(runtime, problem, settings, f, zeros<double>(problem));
      CHECK(r.report.reason == Reason::solved);
      const std::vector<double>& history = r.report.residual_history;
      const auto reached = std::find_if(history.begin(), history.end(), [](double x) { return x <= 1e-12; });
      sweeps.push_back(static_cast<double>((reached - history.begin()) * every));
      CHECK(static_cast<double>(r.report.iterations) <= sweeps.back() + static_cast<double>(every));
      CHECK(history.back() <= 1e-12);
    }
    const double exponent = method == Method::sor ? 1 : 2;
    for (const std::size_t i : {0U, 1U})
      CHECK(std::abs(std::log2(sweeps[i + 1] / sweeps[i]) - exponent) < 0.15);
  }
}

TEST_CASE("stale halos slow SOR down, or break it (thesis 4.2, figure 4.6)") {
  Runtime runtime;
  const Index n = 48;
  const Problem problem{.shape = {n, n}};
  const std::vector<double> f = random_numbers<double>(n * n, 6);
  const auto solve = [&](Exchange exchange, Index stripes, std::optional<double> omega, double tolerance) {
    return run(runtime, problem,
               {.method = Method::sor,
                .omega = omega,
                .sweeps = tolerance > 0 ? 600 : 150,
                .tolerance = tolerance,
                .check_every = 20,
                .sweeps_per_task = 1,
                .exchange = exchange,
                .stripes = stripes,
                .balance = Balance::equal},
               f, zeros<double>(problem))
        .report;
  };
  // With the best omega two subdomains converge much more slowly, four do not at all,
  const Report good = solve(Exchange::blocking, 2, {}, 1e-10), alone = solve(Exchange::stale, 1, {}, 1e-10);
  CHECK(good.reason == Reason::solved);
  CHECK(alone.iterations == good.iterations);  // a single one has no halos
  const Report two = solve(Exchange::stale, 2, {}, 1e-10);
  CHECK((two.reason != Reason::solved || two.iterations > 5 * good.iterations / 4));
  CHECK(solve(Exchange::stale, 4, {}, 1e-10).reason == Reason::divergence);
  // nor do 16 with a smaller one.
  CHECK(solve(Exchange::stale, 16, 1.8, 1e-10).reason == Reason::divergence);
  // Gauss-Seidel does not mind.
  CHECK(solve(Exchange::stale, 4, 1.0, 0).residual_history.back() ==
        doctest::Approx(solve(Exchange::blocking, 4, 1.0, 0).residual_history.back()).epsilon(0.1));
}

namespace {

/// The Laplace model of thesis (3.2): sin^2(pi y) on the side x = 0, zero on the others. Its solution as a
/// Fourier series: sum over odd k of c_k sin(k pi y) sinh(k pi (1 - x)) / sinh(k pi), c_k = 2 int_0^1
/// sin^2(pi y) sin(k pi y) dy = -8 / (pi k (k^2 - 4)).
double laplace_model(double y, double x) {
  double sum = 0;
  for (int k = 1; k < 400; k += 2) {
    const double decay = (std::exp(-k * pi * x) - std::exp(-k * pi * (2 - x))) / (1 - std::exp(-2 * k * pi));
    sum += -8 / (pi * k * (static_cast<double>(k) * k - 4)) * std::sin(k * pi * y) * decay;
  }
  return sum;
}

/// Orders of convergence from the largest errors on finer and finer grids.
void check_second_order(const std::vector<double>& errors) {
  for (std::size_t i = 0; i + 1 < errors.size(); ++i) {
    CHECK(std::log2(errors[i] / errors[i + 1]) > 1.8);
    CHECK(std::log2(errors[i] / errors[i + 1]) < 2.3);
  }
  CHECK(errors.size() >= 2);
  CHECK(errors.back() < 0.01);
}

}  // namespace

TEST_CASE(
    "Laplace's equation with sin^2(pi y) at x = 0: second order convergence to the series, by every method") {
  Runtime runtime;
  for (const Method method : all_methods) {
    std::vector<double> errors;
    for (const Index n : {7, 15, 31}) {
      if (n == 31 && method != Method::sor) continue;  // it would take thousands of sweeps
      Problem problem{.shape = {n, n}};
      for (Index i = 0; i < n; ++i)
        problem.x_lower.values.push_back(std::pow(std::sin(pi * position(i, n)), 2));
      const Run<double> r =
          run(runtime, problem,
              {.method = method, .tolerance = 1e-9, .check_every = 120, .stripes = n > 7 ? 2 : 1}, {},
              zeros<double>(problem));
      CHECK(r.report.reason == Reason::solved);
      const auto exact = on_grid<double>(
          problem, [&](Index i, Index j) { return laplace_model(position(i, n), position(j, n)); });
      errors.push_back(largest_difference(r.u, exact));
    }
    check_second_order(errors);
  }
}

TEST_CASE("Poisson's equation on rectangles, with values on every side: second order") {
  Runtime runtime;
  const double ly = 1.5, lx = 0.7;
  const auto exact = [&](double y, double x) {
    return std::sin(pi * y / ly) * std::sin(pi * x / lx) + std::exp(y - 2 * x);
  };
  const auto source = [&](double y, double x) {
    return -(pi * pi / (ly * ly) + pi * pi / (lx * lx)) * std::sin(pi * y / ly) * std::sin(pi * x / lx) +
           5 * std::exp(y - 2 * x);
  };
  std::vector<double> errors;
  for (const Index refined : {1, 2, 4}) {
    const Index m = 10 * refined - 1, n = 7 * refined - 1;  // h_y = 0.15, h_x = 0.1
    Problem problem{.shape = {m, n}, .lengths = {ly, lx}};
    for (Index j = 0; j < n; ++j) {
      problem.y_lower.values.push_back(exact(0, position(j, n, lx)));
      problem.y_upper.values.push_back(exact(ly, position(j, n, lx)));
    }
    for (Index i = 0; i < m; ++i) {
      problem.x_lower.values.push_back(exact(position(i, m, ly), 0));
      problem.x_upper.values.push_back(exact(position(i, m, ly), lx));
    }
    const auto at_nodes = [&](const auto& value) {
      return on_grid<double>(problem,
                             [&](Index i, Index j) { return value(position(i, m, ly), position(j, n, lx)); });
    };
    const Run<double> r =
        run(runtime, problem, {.tolerance = 1e-11, .stripes = 2}, at_nodes(source), zeros<double>(problem));
    CHECK(r.report.reason == Reason::solved);
    errors.push_back(largest_difference(r.u, at_nodes(exact)));
  }
  check_second_order(errors);
}

TEST_CASE("why a solve ends") {
  Runtime runtime;
  const Problem problem{.shape = {40, 40}};
  std::vector<double> f = random_numbers<double>(1600, 8);
  const std::vector<double> zero = zeros<double>(problem);
  const auto solve = [&](const Settings& settings, const std::vector<double>& source) {
    return run(runtime, problem, settings, source, zero).report;
  };

  const Report limited = solve({.sweeps = 30, .tolerance = 1e-10, .check_every = 7, .sweeps_per_task = 1}, f);
  CHECK(limited.reason == Reason::iteration_limit);
  CHECK(limited.iterations == 30);
  CHECK(limited.residual_history.size() == 6);   // 0, 7, 14, 21, 28, 30
  CHECK(limited.residual_history.front() == 1);  // v = 0

  const Report no_tolerance = solve({.sweeps = 30}, f);
  CHECK(no_tolerance.reason == Reason::solved);
  CHECK(no_tolerance.residual_history.size() == 2);

  const Report solved = solve({.tolerance = 1e-10}, f);
  CHECK(solved.reason == Reason::solved);
  CHECK(solved.residual_history.back() <= 1e-10);

  const Report at_once =
      solve({.tolerance = 1e-10, .check_every = 4, .sweeps_per_task = 1}, {});  // u = 0 it is
  CHECK(at_once.reason == Reason::solved);
  CHECK(at_once.iterations <= 4);
  CHECK(at_once.residual_history.front() == 0);

  const Report too_much = solve({.tolerance = 1e-30}, f);
  CHECK(too_much.reason == Reason::stagnation);
  CHECK(too_much.residual_history.back() < 1e-15);

  f[777] = std::numeric_limits<double>::quiet_NaN();
  const Report broken = solve({.sweeps = 10000, .tolerance = 1e-10}, f);
  CHECK(broken.reason == Reason::not_finite);
  CHECK(broken.iterations < 100);
  CHECK(solve({.sweeps = 5}, f).reason == Reason::not_finite);
}

TEST_CASE("Convergence: sequences of norms") {
  using relaxation::Convergence;
  using relaxation::Norms;
  const Convergence::Expectation expected{
      .tolerance = 1e-3, .operator_norm = 8, .spectral_radius = 0.9, .extents = 20};
  const auto judged = [&](const std::vector<double>& residuals) {
    Convergence convergence(expected);
    for (std::size_t k = 0; k < residuals.size(); ++k)
      if (const auto reason =
              convergence.judge({residuals[k], k == 0 ? 0.0 : 1.0, 2}, static_cast<Index>(20 * k)))
        return std::to_string(k) + " " + to_string(*reason);
    return std::string("goes on");
  };
  CHECK(judged({2, 1, 0.5, 0.011}) == "goes on");
  CHECK(judged({2, 1, 0.5, 0.0099}) == "3 solved");
  CHECK(judged({2, 390, 100, 30, 10}) == "goes on");  // may grow at first
  CHECK(judged({2, 390, 401}) == "2 divergence");     // 10 * 20 * 2
  // 0.9^140 < 1e-6 <= 0.9^120
  CHECK(judged({2, 2, 2, 2, 2, 2, 2}) == "goes on");
  CHECK(judged({0.2, 2, 2, 2, 2, 2, 2, 2}) == "7 stagnation");
  CHECK(judged({0.2, 2, 2, 2, 2, 2, 2, 2.01}) == "7 divergence");
  CHECK(judged({2, std::numeric_limits<double>::infinity()}) == "1 not finite");
  Convergence nothing(expected);
  CHECK(nothing.judge({0, 0, 0}, 0) == Reason::solved);
  CHECK(nothing.history() == std::vector<double>{0});
}

TEST_CASE("grids of all proportions, also lower than the stripes and tasks asked for") {
  Runtime runtime;
  unsigned turn = 0;
  for (const auto& [rows, nodes] : std::vector<std::pair<Index, Index>>{{1, 1},
                                                                        {1, 2},
                                                                        {2, 1},
                                                                        {1, 23},
                                                                        {23, 1},
                                                                        {2, 2},
                                                                        {3, 3},
                                                                        {5, 16},
                                                                        {7, 17},
                                                                        {13, 15},
                                                                        {4, 31},
                                                                        {29, 3}})
    for (const Method method : all_methods) {
      const Problem problem = with_sides(rows, nodes);
      const std::vector<double> guess = random_numbers<double>(rows * nodes, 1),
                                f = random_numbers<double>(rows * nodes, 2);
      Twin<double> twin(problem, f, guess);
      ++turn;
      // No stripes asked for: as many as make sense, with as many ranks as there are; sweeps per task that do
      // not fit become fewer where stripes were asked for.
      const Index blocking_least = method == Method::jacobi ? 1 : method == Method::ssor ? 3 : 2;
      const Settings settings{.method = method,
                              .sweeps = 9,
                              .sweeps_per_task = turn % 2 == 0 ? 50 : 3,
                              .arrangement = turn % 3 == 0 ? Arrangement::natural : Arrangement::separated,
                              .exchange = turn % 2 == 0 ? Exchange::blocking : Exchange::overlapped,
                              .stripes = turn % 2 == 0 ? std::max<Index>(1, rows / blocking_least) : 0};
      CAPTURE(rows);
      CAPTURE(nodes);
      CAPTURE(description(settings));
      const Run<double> r = run(runtime, problem, settings, f, guess);
      for (int k = 0; k < 9; ++k) twin.sweep(method, *r.settings.omega);
      CHECK(largest_difference(r.u, twin.v()) <= 256 * eps<double>);
      CHECK(r.report.iterations == 9);
      Index next = 0;
      for (const relaxation::Share& share : r.shares) {
        CHECK(share.first_row == next);
        CHECK(share.rows >= 1);
        next += share.rows;
      }
      CHECK(next == rows);
    }
}

TEST_CASE("stripes in proportion to speeds") {
  using relaxation::Candidate;
  const auto heights = [](const std::vector<Candidate>& workers, const Settings& settings) {
    std::vector<Index> rows;
    for (const relaxation::Share& share :
         relaxation::cut_rows<double>(workers, {.shape = {1000, 1000}}, settings).shares)
      rows.push_back(share.rows);
    return rows;
  };
  const std::vector<Candidate> workers{
      {0, Where::cuda, 0, 3e9}, {0, Where::cuda, 1, 1e9}, {1, Where::cuda, 0, 1e9}};
  CHECK(heights(workers, {.sweeps = 1, .stripes = 3}) == std::vector<Index>{600, 200, 200});
  CHECK(heights(workers, {.sweeps = 1, .stripes = 6}) == std::vector<Index>{300, 300, 100, 100, 100, 100});
  CHECK(heights(workers, {.sweeps = 1, .stripes = 4, .balance = Balance::equal}) ==
        std::vector<Index>{250, 250, 250, 250});
  // The slowest get what a stripe cannot do without.
  const std::vector<Candidate> unequal{
      {0, Where::cpu, 0, 1}, {0, Where::cpu, 1, 1e-9}, {0, Where::cpu, 2, 1}};
  CHECK(heights(unequal, {.sweeps = 1, .stripes = 3}) == std::vector<Index>{500, 4, 496});
  const relaxation::Cut cut = relaxation::cut_rows<double>(workers, {.shape = {1000, 1000}},
                                                           {.sweeps = 64, .check_every = 64, .stripes = 3});
  CHECK(cut.halo == 2 * cut.sweeps_per_task);
  CHECK(cut.shares[2].rank == 1);
  CHECK(cut.shares[2].worker == 0);
  CHECK(cut.shares[1].first_row == 600);
  // Left to itself: a stripe for each worker where there are nodes enough, more where its memory asks for it.
  const auto count = [&](const std::vector<Candidate>& all, Index rows) {
    return relaxation::cut_rows<double>(all, {.shape = {rows, 4096}}, {.sweeps = 1}).shares.size();
  };
  CHECK(count({{0, Where::cuda, 0, 1, 141e9}, {0, Where::cuda, 1, 1, 141e9}}, 4096) == 2);
  CHECK(count({{0, Where::cuda, 0, 1, 141e9}, {0, Where::cuda, 1, 1, 141e9}}, 512) == 1);
  CHECK(count({{0, Where::cuda, 0, 1, 1e9}}, 16384) == 3);  // 5 x 16384 x 4096 x 8 bytes = 2.7e9
  CHECK(count({{0, Where::cpu, 0, 1, 0}}, Index{1} << 20) == 2);
  CHECK(count({{0, Where::cpu, 0, 1, 0}, {1, Where::cpu, 0, 1, 0}}, 4) == 1);  // 2 x 2 ghost rows each
  CHECK(count({{0, Where::cpu, 0, 1, 0}, {1, Where::cpu, 0, 1, 0}}, 8) == 2);  // no rank is left out
}

TEST_CASE("bad input is refused, with the value and what to do") {
  Runtime runtime;
  const Problem good{.shape = {8, 8}};
  const auto refuses = [&](const Problem& problem, const Settings& settings, const std::string& part) {
    const std::string message = message_of(runtime, problem, settings);
    CAPTURE(message);
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  refuses({.shape = {0, 5}}, {.sweeps = 1}, "grid is 0 x 5: every extent must be at least 1");
  refuses({.shape = {4, 5, 6}}, {.sweeps = 1}, "the grid has 3 axes");
  refuses({.shape = {8, Index{1} << 40}}, {.sweeps = 1}, "no extent may be above");
  refuses({.shape = {8, 8}, .lengths = {1}}, {.sweeps = 1}, "1 lengths for 2 axes");
  refuses({.shape = {8, 8}, .lengths = {1, -2}}, {.sweeps = 1}, "lengths are 1 x -2: all must be positive");
  refuses({.shape = {8, 8}, .y_lower = {.value = nan}}, {.sweeps = 1}, "lower y side: the value is nan");
  refuses({.shape = {8, 9}, .x_upper = {.values = {1, 2, 3}}}, {.sweeps = 1},
          "upper x side: 3 values are given, the side has 8 nodes");
  refuses({.shape = {8, 2}, .y_upper = {.values = {1, nan}}}, {.sweeps = 1},
          "upper y side: value number 1 is nan");
  for (const double omega : {0.0, 2.0, -1.0, 2.5, nan})
    for (const Method method : {Method::sor, Method::ssor})
      refuses(good, {.method = method, .omega = omega, .sweeps = 1}, "converges for 0 < omega < 2 only");
  refuses(good, {.method = Method::jacobi, .omega = 1.5, .sweeps = 1},
          "Jacobi's method has no omega other than 1");
  refuses(good, {.method = Method::gauss_seidel, .omega = 1.5, .sweeps = 1}, "leave it away, or choose SOR");
  refuses(good, {}, "neither a number of sweeps nor a tolerance");
  refuses(good, {.sweeps = -3}, "-3 sweeps");
  refuses(good, {.sweeps = 3, .check_every = -1}, "-1 sweeps between residuals");
  refuses(good, {.sweeps = 3, .sweeps_per_task = -2}, "-2 sweeps per task");
  refuses(good, {.sweeps = 3, .stripes = -2}, "-2 stripes");
  refuses(good, {.tolerance = -1e-3}, "the tolerance is -0.001");
  refuses(good, {.tolerance = nan}, "the tolerance is nan");
  refuses(good, {.sweeps = 3, .stripes = 3}, "3 stripes of 8 rows");
  refuses(good, {.sweeps = 3, .stripes = 3}, "at most 2 stripes");
  CHECK(message_of(runtime, good, {.omega = 1.5, .sweeps = 3, .stripes = 2}).empty());
}

#ifdef ASTERISM_WITH_CUDA
TEST_CASE_TEMPLATE("gpu: the iterates of the cores, for every method, arrangement and number of stripes", T,
                   float, double) {
  struct Case {
    Problem problem;
    Settings settings;
    bool has_source;
  };
  std::vector<Case> cases;
  for (const auto& [rows, nodes] : {std::pair<Index, Index>{200, 333}, {1031, 512}})
    for (const Method method : all_methods)
      for (const Index stripes : {0, 1, 2, 3}) {
        const auto turn = static_cast<Index>(cases.size());
        cases.push_back({with_sides(rows, nodes),
                         {.method = method,
                          .sweeps = 21,
                          .sweeps_per_task = turn % 3 == 0 ? 0 : turn % 8 + 1,
                          .arrangement = turn % 2 == 0 ? Arrangement::separated : Arrangement::natural,
                          .exchange = turn / 2 % 2 == 0 ? Exchange::overlapped : Exchange::blocking,
                          .stripes = stripes,
                          .balance = turn % 4 == 1 ? Balance::measured : Balance::equal},
                         turn % 5 != 0});
      }
  const auto solve_all = [&](int gpus) {
    Runtime runtime({.gpus = gpus});
    std::vector<Run<T>> runs;
    for (const Case& c : cases) {
      const Index count = c.problem.shape[0] * c.problem.shape[1];
      runs.push_back(run(runtime, c.problem, c.settings,
                         c.has_source ? random_numbers<T>(count, 4) : std::vector<T>{},
                         random_numbers<T>(count, 3)));
    }
    return runs;
  };
  const std::vector<Run<T>> on_cores = solve_all(0), on_gpus = solve_all(-1);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(description(cases[i].settings));
    if (cases[i].settings.balance == Balance::equal)  // cores join where they are fast enough
      CHECK(std::all_of(on_gpus[i].shares.begin(), on_gpus[i].shares.end(),
                        [](const relaxation::Share& share) { return share.where == Where::cuda; }));
    CHECK(largest_difference(on_gpus[i].u, on_cores[i].u) <= 256 * eps<T>);
    CHECK(
        on_gpus[i].report.residual_history.front() ==
        doctest::Approx(on_cores[i].report.residual_history.front()).epsilon(sizeof(T) == 4 ? 1e-3 : 1e-10));
    CHECK(on_gpus[i].report.residual_history.back() ==
          doctest::Approx(on_cores[i].report.residual_history.back()).epsilon(sizeof(T) == 4 ? 1e-3 : 1e-10));
  }
}

TEST_CASE("gpu: all GPUs share the rows, and a tolerance is reached") {
  Runtime runtime;
  const int gpus = runtime.machine().count(WorkerKind::cuda);
  const Problem problem{.shape = {1024, 1024}};
  const auto f = on_grid<double>(problem, [&](Index i, Index j) {
    return std::sin(pi * position(i, 1024)) * std::sin(pi * position(j, 1024));
  });
  const Run<double> r =
      run(runtime, problem, {.tolerance = 1e-12, .stripes = 2 * gpus, .balance = Balance::equal}, f, zeros<double>(problem));
  CHECK(r.report.reason == Reason::solved);
  for (int gpu = 0; gpu < gpus; ++gpu)
    CHECK(std::count_if(r.shares.begin(), r.shares.end(),
                        [&](const relaxation::Share& share) { return share.worker == gpu; }) == 2);
  // The discrete solution: f / -(lambda_y + lambda_x).
  const double h = 1.0 / 1025, lambda = 2 * std::pow(2 / h * std::sin(pi * h / 2), 2);
  std::vector<double> exact = f;
  for (double& value : exact) value /= -lambda;
  CHECK(largest_difference(r.u, exact) < 1e-6 / lambda);
}
#endif
