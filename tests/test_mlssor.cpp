// Multi-layer SSOR against its definition, node by node on the whole grid; the same bits in any order of the
// subdomains and however the grid is cut.

#include "algorithms/mlssor.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "matrix.hpp"
#include "tiles.hpp"

using namespace asterism;
using namespace asterism::kernels;
using namespace asterism::test;
using relaxation::Problem;

namespace {

constexpr std::array<std::pair<Part, Part>, 4> kinds{{{Part::first, Part::first},
                                                      {Part::first, Part::second},
                                                      {Part::second, Part::first},
                                                      {Part::second, Part::second}}};
constexpr Direction directions[] = {Direction::forward, Direction::backward};

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// A grid with its frame, and g.
template <class T>
struct Grid {
  Index m, n;
  std::vector<T> v, g;  // (m + 2) x (n + 2), node (i, j) at (i + 1, j + 1)

  Grid(Index rows, Index cols) : m(rows), n(cols), v(at((m + 2) * (n + 2))), g(v.size()) {}
  Grid(Index rows, Index cols, unsigned seed) : Grid(rows, cols) {
    std::mt19937_64 engine(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for (T& x : v) x = static_cast<T>(uniform(engine));
    for (T& x : g) x = static_cast<T>(uniform(engine));
  }
  [[nodiscard]] std::size_t place(Index i, Index j) const { return at((i + 1) * (n + 2) + j + 1); }
};

/// Which subdomain the position p along an axis belongs to in a layer, and which part of it: counted cut by
/// cut.
struct Belongs {
  Index subdomain = 0;
  Part part = Part::first;
  Belongs(Index p, Index k, Index extent, Index n) {
    const Index subdomains = (extent + n - 1) / n;
    for (Index s = 1; s < subdomains; ++s)
      if (p >= s * n + k) subdomain = s;
    if (p >= subdomain * n + n - 1 - k) part = Part::second;
  }
  bool operator==(const Belongs&) const = default;
};

/// A sweep by definition. Backward: the positions are counted from the grid's other end, that of its last
/// whole subdomain.
template <class T>
class Twin {
 public:
  Twin(Grid<T>& grid, Index n, Index layers, const FivePoint<T>& a, T omega)
      : grid_(&grid), n_(n), layers_(layers), a_(a), omega_(omega), relaxed_(grid.v.size()) {}

  /// The subdomains of a kind in an order drawn at random.
  void sweep(Direction direction, std::mt19937_64& engine) {
    const Index across = (grid_->m + n_ - 1) / n_, along = (grid_->n + n_ - 1) / n_;
    std::vector<std::pair<Index, Index>> subdomains;
    for (Index s = 0; s < across; ++s)
      for (Index t = 0; t < along; ++t) subdomains.emplace_back(s, t);
    for (const auto& [of_rows, of_columns] : kinds) {
      std::shuffle(subdomains.begin(), subdomains.end(), engine);
      for (const auto& [s, t] : subdomains) tile(direction, of_rows, of_columns, s, t);
    }
  }
  /// How often the nodes were relaxed.
  [[nodiscard]] bool all_relaxed(int times) const {
    for (Index i = 0; i < grid_->m; ++i)
      for (Index j = 0; j < grid_->n; ++j)
        if (relaxed_[grid_->place(i, j)] != times) return false;
    return true;
  }

 private:
  void tile(Direction direction, Part of_rows, Part of_columns, Index s, Index t) {
    const Index m = grid_->m, n = grid_->n;
    const auto belongs = [&](Index p, Index k, Index extent, Index subdomain, Part part) {
      const Belongs b(p, k, extent, n_);
      return b.subdomain == subdomain && b.part == part;
    };
    const auto node = [&](Index p, Index extent) {
      return direction == Direction::forward ? p : (extent + n_ - 1) / n_ * n_ - 1 - p;
    };
    // A subdomain ends with the second part of its last layer.
    const Index last_row = (s + 1) * n_ + layers_, last_column = (t + 1) * n_ + layers_;
    for (Index k = 0; k < layers_; ++k)
      for (Index p = s > 0 ? s * n_ : 0; p < last_row; ++p) {
        const Index i = node(p, m);
        if (i < 0 || i >= m || !belongs(p, k, m, s, of_rows)) continue;
        for (Index q = t > 0 ? t * n_ : 0; q < last_column; ++q) {
          const Index j = node(q, n);
          if (j >= 0 && j < n && belongs(q, k, n, t, of_columns)) relax(i, j);
        }
      }
  }

  void relax(Index i, Index j) {
    const auto& v = grid_->v;
    T& x = grid_->v[grid_->place(i, j)];
    const T sum = balance(a_, v[grid_->place(i - 1, j)], v[grid_->place(i + 1, j)], v[grid_->place(i, j - 1)],
                          v[grid_->place(i, j + 1)]) +
                  grid_->g[grid_->place(i, j)];
    x = relaxed(omega_, x, sum);
    ++relaxed_[grid_->place(i, j)];
  }

  Grid<T>* grid_;
  Index n_, layers_;
  FivePoint<T> a_;
  T omega_;
  std::vector<int> relaxed_;
};

/// K-layer SOR as it is without subdomains.
template <class T>
void sequential_sweep(Grid<T>& grid, Direction direction, Index layers, const FivePoint<T>& a, T omega) {
  for (Index k = 0; k < layers; ++k)
    for (Index p = 0; p < grid.m; ++p)
      for (Index q = 0; q < grid.n; ++q) {
        const Index i = direction == Direction::forward ? p : grid.m - 1 - p;
        const Index j = direction == Direction::forward ? q : grid.n - 1 - q;
        const auto v = [&](Index r, Index c) { return grid.v[grid.place(r, c)]; };
        const T sum =
            balance(a, v(i - 1, j), v(i + 1, j), v(i, j - 1), v(i, j + 1)) + grid.g[grid.place(i, j)];
        grid.v[grid.place(i, j)] = relaxed(omega, v(i, j), sum);
      }
}

constexpr double some_omega = 1.4375;

template <class T>
MultiLayer whole_grid(const Grid<T>& grid, Index n, Index layers, bool has_source = true) {
  return {.stripe = {.rows = grid.m, .nodes = grid.n, .halo = 1},
          .grid_rows = grid.m,
          .subdomain = n,
          .layers = layers,
          .along_y = 0.3125,
          .along_x = 0.1875,
          .omega = some_omega,
          .has_source = has_source};
}

/// A grid's numbers as the tile of its only stripe.
template <class T>
Matrix<T> tile_of(const Grid<T>& grid, const std::vector<T>& numbers) {
  const Stripe stripe = whole_grid(grid, 2, 1).stripe;
  return Matrix<T>(stripe.tile_rows(), stripe.tile_cols()).fill([&](Index r, Index c) {
    return c < grid.n + 2 ? numbers[at(r * (grid.n + 2) + c)] : T{7};
  });
}

struct Case {
  Index m, n, subdomain, layers;
};

std::vector<Case> all_cases() {
  constexpr std::pair<Index, Index> grids[] = {{1, 1},   {1, 7},   {7, 1},   {2, 3},  {5, 5},
                                               {13, 17}, {16, 64}, {31, 29}, {40, 33}};
  std::vector<Case> cases;
  for (const auto& [m, n] : grids)
    for (const Index subdomain : {2, 3, 4, 5, 7, 8, 16, 32, 33})
      for (const Index layers : {Index{1}, (subdomain + 3) / 4, most_layers(subdomain)})
        cases.push_back({m, n, subdomain, layers});
  cases.push_back({70, 150, 4, 2});  // many beside each other
  cases.push_back({37, 259, 16, 8});
  return cases;
}

/// For messages.
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "grid " << c.m << " x " << c.n << ", subdomains of " << c.subdomain << ", " << c.layers
             << " layers";
}

}  // namespace

TEST_CASE_TEMPLATE("sweeps are those of the definition, bit for bit", T, float, double) {
  std::mt19937_64 engine(5);
  for (const Case& c : all_cases())
    for (const bool has_source : {true, false})
      for (const bool alternate : {true, false}) {
        Grid<T> grid(c.m, c.n, 3);
        if (!has_source) std::fill(grid.g.begin(), grid.g.end(), T{0});
        const MultiLayer problem = whole_grid(grid, c.subdomain, c.layers, has_source);
        Matrix<T> u = tile_of(grid, grid.v), none(1, 1);
        const Matrix<T> g = tile_of(grid, grid.g), before = u;
        constexpr Index sweeps = 3;
        cpu::mlssor_sweeps<T>({problem, Direction::forward, alternate, sweeps}, u.inout(),
                              has_source ? g.in() : none.in());
        Twin<T> twin(grid, c.subdomain, c.layers, problem.weights<T>(), static_cast<T>(some_omega));
        for (Index k = 0; k < sweeps; ++k)
          twin.sweep(alternate && k % 2 == 1 ? Direction::backward : Direction::forward, engine);
        INFO(c);
        REQUIRE(twin.all_relaxed(static_cast<int>(sweeps * c.layers)));
        REQUIRE(u == tile_of(grid, grid.v));  // with the frame, what pads the rows and what lies between them
        REQUIRE(!(u == before));
        REQUIRE(g == tile_of(grid, grid.g));
      }
}

TEST_CASE("every node belongs to one part of one subdomain in every layer") {
  for (const Case& c : all_cases())
    for (const Direction direction : directions) {
      const CutAxis axis{c.n, c.subdomain, direction};
      for (Index k = 0; k < c.layers; ++k) {
        std::vector<int> times(at(c.n));
        for (Index s = 0; s < axis.subdomains(); ++s)
          for (const Part part : {Part::first, Part::second}) {
            const Span span = axis.span(part, s, k);
            for (Index p = span.begin; p < span.end; ++p) {
              const Index j = axis.mirrored(p);
              REQUIRE(j >= 0);
              REQUIRE(j < c.n);
              ++times[at(j)];
            }
          }
        REQUIRE(std::all_of(times.begin(), times.end(), [](int t) { return t == 1; }));
      }
    }
}

TEST_CASE("the subdomains of a kind do not depend on each other: any order gives the same bits") {
  std::mt19937_64 engine(11);
  for (const Case& c : {Case{37, 41, 4, 2}, {40, 48, 8, 4}, {33, 50, 5, 2}, {70, 66, 16, 8}, {35, 36, 7, 3}})
    for (const Direction direction : directions)
      for (int attempt = 0; attempt < 5; ++attempt) {
        const Grid<double> grid(c.m, c.n, 8);
        const MultiLayer problem = whole_grid(grid, c.subdomain, c.layers);
        Matrix<double> expected = tile_of(grid, grid.v), u = expected;
        const Matrix<double> g = tile_of(grid, grid.g);
        cpu::mlssor_sweeps<double>({problem, direction, false, 1}, expected.inout(), g.in());
        std::vector<std::pair<Index, Index>> subdomains;
        for (Index s = 0; s < problem.rows(direction).subdomains(); ++s)
          for (Index t = 0; t < problem.columns(direction).subdomains(); ++t) subdomains.emplace_back(s, t);
        for (const auto& [of_rows, of_columns] : kinds) {
          std::shuffle(subdomains.begin(), subdomains.end(), engine);
          for (const auto& [s, t] : subdomains)
            cpu::relax_subdomain<double>(problem, direction, of_rows, of_columns, s, t, u.inout(), g.in());
        }
        INFO(c);
        CHECK(u == expected);
      }
}

TEST_CASE_TEMPLATE("one subdomain that covers the grid is sequential SSOR, with one layer plain SOR", T,
                   float, double) {
  for (const auto& [m, n] : {std::pair<Index, Index>{1, 1}, {9, 14}, {30, 23}})
    for (const Index subdomain : {std::max(m, n), std::max(m, n) + 1, 2 * std::max(m, n) + 5})
      for (const Index layers : {Index{1}, most_layers(subdomain)}) {
        if (subdomain < 2) continue;
        Grid<T> grid(m, n, 4);
        const MultiLayer problem = whole_grid(grid, subdomain, layers);
        Matrix<T> u = tile_of(grid, grid.v);
        const Matrix<T> g = tile_of(grid, grid.g);
        cpu::mlssor_sweeps<T>({problem, Direction::forward, true, 3}, u.inout(), g.in());
        for (const Direction direction : {Direction::forward, Direction::backward, Direction::forward})
          sequential_sweep(grid, direction, layers, problem.weights<T>(), static_cast<T>(some_omega));
        INFO((Case{m, n, subdomain, layers}));
        CHECK(u == tile_of(grid, grid.v));
      }
}

namespace {

template <class T>
struct Run {
  Report report;
  mlssor::Settings settings;
  std::vector<mlssor::Share> shares;
  std::vector<T> u;  ///< of all ranks
};

template <class T>
Run<T> run(Runtime& runtime, const Problem& problem, const mlssor::Settings& settings,
           const std::vector<T>& f, const std::vector<T>& guess) {
  mlssor::Solver<T> solver(runtime, problem, settings);
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
std::vector<T> random_numbers(Index count, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<T> numbers(at(count));
  for (T& number : numbers) number = static_cast<T>(uniform(engine));
  return numbers;
}

template <class U>
std::vector<double> doubles(const std::vector<U>& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// Sides of all sorts.
Problem some_problem(Index m, Index n) {
  Problem p{.shape = {m, n}, .lengths = {1, 1.5}};
  p.y_lower.value = 0.75;
  p.y_upper.values = doubles(random_numbers<float>(n, 21));
  p.x_lower.values = doubles(random_numbers<float>(m, 22));
  p.x_upper.value = -1.25;
  return p;
}

/// The iterate after some sweeps by definition.
template <class T>
std::vector<T> twin_solution(const Problem& p, const mlssor::Settings& s, const std::vector<T>& f,
                             const std::vector<T>& guess) {
  const Index m = p.shape[0], n = p.shape[1];
  const Discretisation a = discretise_five_point(m, n, p.lengths[0], p.lengths[1]);
  Grid<T> grid(m, n);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      grid.v[grid.place(i, j)] = guess[at(i * n + j)];
      if (!f.empty())
        grid.g[grid.place(i, j)] = static_cast<T>(-static_cast<double>(f[at(i * n + j)]) / a.diagonal);
    }
  for (Index j = 0; j < n; ++j) {
    grid.v[grid.place(-1, j)] = static_cast<T>(relaxation::value_at(p.y_lower, j));
    grid.v[grid.place(m, j)] = static_cast<T>(relaxation::value_at(p.y_upper, j));
  }
  for (Index i = 0; i < m; ++i) {
    grid.v[grid.place(i, -1)] = static_cast<T>(relaxation::value_at(p.x_lower, i));
    grid.v[grid.place(i, n)] = static_cast<T>(relaxation::value_at(p.x_upper, i));
  }
  std::mt19937_64 engine(1);
  const Index layers = s.layers > 0 ? s.layers : most_layers(s.subdomain);
  Twin<T> twin(grid, s.subdomain, layers, a.weights<T>(),
               static_cast<T>(s.omega.value_or(a.optimal_omega())));
  for (Index k = 0; k * layers < s.sweeps; ++k)
    twin.sweep(s.alternate && k % 2 == 1 ? Direction::backward : Direction::forward, engine);
  std::vector<T> result;
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) result.push_back(grid.v[grid.place(i, j)]);
  return result;
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

/// By how much GPUs, which round once where CPUs round twice, may differ after some sweeps: numbers are
/// about 1.
template <class T>
double leeway(const Runtime& runtime, Index sweeps) {
  if (runtime.machine().count(WorkerKind::cuda) == 0) return 0;
  return 8.0 * static_cast<double>(sweeps) * (sizeof(T) == 4 ? 0x1p-24 : 0x1p-53);
}

}  // namespace

TEST_CASE_TEMPLATE("the solver's iterates do not depend on stripes, workers and ranks", T, float, double) {
  Runtime runtime;
  struct Shape {
    Index m, n, subdomain, layers;
    std::vector<Index> stripes;
  };
  for (const Shape& c : std::vector<Shape>{{1, 1, 16, 0, {0, 1}},
                                           {3, 40, 4, 0, {0}},
                                           {17, 5, 16, 0, {0, 1}},
                                           {37, 29, 4, 0, {0, 1, 2, 5, 9}},
                                           {37, 29, 4, 1, {3}},
                                           {67, 43, 7, 0, {0, 2, 9}},
                                           {67, 43, 8, 3, {8}},
                                           {2, 9, 2, 0, {1}},
                                           {23, 9, 2, 0, {0, 11}},
                                           {100, 35, 16, 0, {2, 3, 6}}})
    for (const auto& [alternate, has_source] : {std::pair{true, true}, {false, true}, {true, false}}) {
      const Problem problem = some_problem(c.m, c.n);
      const std::vector<T> guess = random_numbers<T>(c.m * c.n, 31);
      std::vector<T> f;
      if (has_source) f = random_numbers<T>(c.m * c.n, 32);
      for (T& number : f) number *= 100;
      mlssor::Settings settings{.subdomain = c.subdomain, .layers = c.layers, .alternate = alternate};
      settings.omega = 1.5;
      const Index layers = c.layers > 0 ? c.layers : most_layers(c.subdomain);
      for (const Index times : {2, 5}) {
        settings.sweeps = times * layers;
        const std::vector<T> expected = twin_solution(problem, settings, f, guess);
        for (const Index stripes : c.stripes) {
          settings.stripes = stripes;
          const Run<T> found = run(runtime, problem, settings, f, guess);
          CAPTURE(stripes);
          CAPTURE(times);
          INFO((Case{c.m, c.n, c.subdomain, layers}));
          CHECK(found.report.reason == Reason::solved);
          CHECK(found.report.iterations == settings.sweeps);
          CHECK(static_cast<Index>(found.shares.size()) == found.settings.stripes);
          REQUIRE(largest_difference(found.u, expected) <= leeway<T>(runtime, settings.sweeps));
        }
      }
    }
}

TEST_CASE("residuals are thesis (4.13), and the tolerance ends the sweeps") {
  Runtime runtime;
  const Index m = 45, n = 38;
  const Problem problem = some_problem(m, n);
  const std::vector<double> f = random_numbers<double>(m * n, 1), guess = random_numbers<double>(m * n, 2);
  for (const Index stripes : {1, 3}) {
    mlssor::Settings settings{.subdomain = 8, .tolerance = 1e-9, .check_every = 8, .stripes = stripes};
    const Run<double> found = run(runtime, problem, settings, f, guess);
    CHECK(found.report.reason == Reason::solved);
    CHECK(found.report.residual_history.back() <= 1e-9);
    CHECK(found.report.iterations == 8 * (static_cast<Index>(found.report.residual_history.size()) - 1));

    // The equations at every node of the result, in the differential equation's own terms.
    const double hy = 1.0 / (m + 1), hx = 1.5 / (n + 1);
    double r2 = 0, u2 = 0, b2 = 0;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        double b = f[at(i * n + j)], a = 0;
        const auto take = [&](Index r, Index c, double weight) {
          if (r < 0 || r >= m || c < 0 || c >= n)
            b -= weight * (r < 0    ? relaxation::value_at(problem.y_lower, c)
                           : r >= m ? relaxation::value_at(problem.y_upper, c)
                           : c < 0  ? relaxation::value_at(problem.x_lower, r)
                                    : relaxation::value_at(problem.x_upper, r));
          else
            a += weight * found.u[at(r * n + c)];
        };
        for (const Index step : {-1, 1}) {
          take(i + step, j, 1 / (hy * hy));
          take(i, j + step, 1 / (hx * hx));
        }
        take(i, j, -2 / (hy * hy) - 2 / (hx * hx));
        r2 += (b - a) * (b - a);
        b2 += b * b;
        u2 += found.u[at(i * n + j)] * found.u[at(i * n + j)];
      }
    const double norm = 4 / (hy * hy) + 4 / (hx * hx);
    const double scaled = std::sqrt(r2) / (norm * std::sqrt(u2) + std::sqrt(b2));
    CHECK(scaled == doctest::Approx(found.report.residual_history.back()).epsilon(1e-3));
  }
}

TEST_CASE("ends other than the tolerance") {
  Runtime runtime;
  const Problem problem{.shape = {40, 40}, .lengths = {1, 1}};
  const std::vector<double> f(1600, 1.0), guess(1600, 0.0);
  mlssor::Settings settings{.subdomain = 8, .sweeps = 10, .tolerance = 1e-10};
  Run<double> found = run(runtime, problem, settings, f, guess);
  CHECK(found.report.reason == Reason::iteration_limit);
  CHECK(found.report.iterations == 12);  // whole sweeps of 4 layers

  std::vector<double> infinite = f;
  infinite[77] = std::numeric_limits<double>::infinity();
  found = run(runtime, problem, settings, infinite, guess);
  CHECK(found.report.reason == Reason::not_finite);

  settings = {.subdomain = 8, .tolerance = 1e-30, .stripes = 1};
  found = run(runtime, {.shape = {20, 20}, .lengths = {1, 1}}, settings, std::vector<double>(400, 1.0),
              std::vector<double>(400, 0.0));
  CHECK(found.report.reason == Reason::stagnation);

  // The solution itself as the first guess.
  found = run(runtime, problem, {.tolerance = 1e-6}, std::vector<double>(1600, 0.0), guess);
  CHECK(found.report.reason == Reason::solved);
  CHECK(found.report.iterations == 0);
}

TEST_CASE("what cannot be is refused") {
  Runtime runtime;
  const Problem problem{.shape = {40, 40}};
  const auto refused = [&](mlssor::Settings settings, const char* message) {
    if (settings.sweeps == 0) settings.sweeps = 10;
    CHECK_THROWS_WITH_AS((mlssor::Solver<double>(runtime, problem, settings)), message, Error);
  };
  refused({.subdomain = 1}, "a subdomain of 1 x 1 nodes: it must have at least 2 x 2");
  refused({.subdomain = 8, .layers = 5}, "5 layers: subdomains of 8 nodes allow 1 to 4");
  refused({.subdomain = 8, .stripes = 6},
          "6 stripes: 40 rows are 5 whole rows of subdomains of 8, and a stripe needs one");
  refused({.omega = 2.0}, "omega is 2: SOR converges for 0 < omega < 2 only");
  CHECK_THROWS_AS((mlssor::Solver<double>(runtime, problem, {})), Error);
  CHECK_THROWS_AS((mlssor::Solver<double>(runtime, {.shape = {0, 4}}, {.sweeps = 1})), Error);
}

// Table II of the paper, on a smaller grid: sweeps with alternating directions, and in one.
TEST_CASE("fewer sweeps with alternation than without, fewer with larger subdomains, fewest without any") {
  Runtime runtime;
  const Index n = 96;
  const Problem problem{.shape = {n, n}, .lengths = {1, 1}};
  const double best = discretise_five_point(n, n, 1, 1).optimal_omega();
  const std::vector<double> f(at(n * n), -1.0), guess(at(n * n), 0.0);
  const auto sweeps = [&](Index subdomain, Index layers, bool alternate) {
    mlssor::Settings settings{.subdomain = subdomain, .layers = layers, .alternate = alternate};
    settings.omega = 2 - 2 * (2 - best);
    settings.tolerance = 1e-6;
    settings.sweeps = 3000;
    settings.check_every = 16;
    settings.stripes = 1;  // few tasks
    const Report report = run(runtime, problem, settings, f, guess).report;
    const auto& history = report.residual_history;
    const auto reached = std::find_if(history.begin(), history.end(), [](double r) { return r <= 1e-6; });
    return 16 * (reached - history.begin());
  };
  const auto ssor = sweeps(2 * n, 16, true);
  std::ptrdiff_t before = 3000;
  for (const Index subdomain : {4, 8, 16, 32}) {
    const auto alternating = sweeps(subdomain, 0, true), forward = sweeps(subdomain, 0, false);
    CAPTURE(subdomain);
    CHECK(alternating < forward);
    CHECK(alternating < before);
    CHECK(alternating > ssor);
    before = alternating;
  }
}

#ifdef ASTERISM_WITH_CUDA

namespace {

template <class T>
using SweepsKernel = void (*)(Stream, const WholeSweeps&, InOut<T>, In<T>);

/// Sweeps on the GPU, by one of its implementations, against those on the CPU.
template <class T>
void compare_sweeps(const std::string& name, SweepsKernel<T> kernel, const std::vector<Case>& cases) {
  const Codelet<WholeSweeps, InOut<T>, In<T>> sweeps{typed_name<T>(name), nullptr, kernel};
  Runtime runtime;
  for (const Case& c : cases)
    for (const bool has_source : {true, false})
      for (const Direction first : directions) {
        const Grid<T> grid(c.m, c.n, 6);
        const MultiLayer problem = whole_grid(grid, c.subdomain, c.layers, has_source);
        Matrix<T> expected = tile_of(grid, grid.v), none(1, 1);
        none(0, 0) = 0;
        const Matrix<T> g = has_source ? tile_of(grid, grid.g) : none;
        const WholeSweeps args{problem, first, true, 3};
        const Tile<T> u = upload(runtime, expected), source = upload(runtime, g);
        sweeps(args, u, source);
        runtime.wait();
        cpu::mlssor_sweeps<T>(args, expected.inout(), g.in());
        const Matrix<T> found = download(u);
        double worst = 0, largest = 0;
        for (Index i = 0; i < found.rows(); ++i)
          for (Index j = 0; j < found.cols(); ++j) {
            const double difference =
                std::abs(static_cast<double>(found(i, j)) - static_cast<double>(expected(i, j)));
            worst = difference <= worst ? worst : difference;
            largest = std::max(largest, std::abs(static_cast<double>(expected(i, j))));
          }
        CAPTURE(name);
        INFO(c);
        REQUIRE(worst <= 64 * static_cast<double>(c.layers) * (sizeof(T) == 4 ? 0x1p-24 : 0x1p-53) * largest);
      }
}

std::vector<Case> gpu_cases() {
  std::vector<Case> cases = all_cases();
  cases.push_back({300, 517, 16, 8});
  cases.push_back({300, 517, 32, 16});
  cases.push_back({301, 512, 8, 4});
  cases.push_back({256, 1030, 4, 2});
  cases.push_back({100, 200, 50, 25});
  cases.push_back({300, 280, 128, 64});
  return cases;
}

}  // namespace

TEST_CASE_TEMPLATE("gpu: sweeps with all layers in shared memory", T, float, double) {
  compare_sweeps<T>("test_mlssor_whole", cuda::mlssor_sweeps_whole<T>, gpu_cases());
}

TEST_CASE_TEMPLATE("gpu: sweeps with three rows in shared memory", T, float, double) {
  compare_sweeps<T>("test_mlssor_rows", cuda::mlssor_sweeps_rows<T>, gpu_cases());
}

#endif
