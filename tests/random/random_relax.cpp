// Random problems for all relaxations, against the sequential loops that define them, in long double.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>

#include "../relaxation/mlssor_twin.hpp"
#include "../support/worst.hpp"
#include "algorithms/relaxation/mlssor.hpp"
#include "algorithms/relaxation/solver.hpp"
#include "algorithms/relaxation/stripes/arguments.hpp"
#include "algorithms/wavefront/solver.hpp"
#include "random_problems.hpp"
#include "runtime/collectives.hpp"

namespace asterism::test {
namespace {

using Real = long double;
using relaxation::Side;

enum class Method { jacobi, gauss_seidel, sor, ssor, mlssor, wavefront };
constexpr const char* names[] = {"jacobi", "gauss-seidel", "sor", "ssor", "mlssor", "wavefront"};

/// A problem, and how it is to be relaxed.
struct Relaxation {
  Method method = Method::jacobi;
  std::vector<Index> shape;  // 2 axes; of wavefronts 1 to 3
  std::vector<double> lengths;
  std::vector<std::pair<Side, Side>> sides;  // of every axis; constants for wavefronts
  bool f32 = false, has_source = false;
  relaxation::Settings stripes;
  relaxation::mlssor::Settings layers;
  wavefront::Settings tiles;
  std::vector<double> f, guess;  // numbers that the precision holds

  [[nodiscard]] double rounded(double value) const { return f32 ? static_cast<float>(value) : value; }
  [[nodiscard]] Index sweeps() const {
    return method == Method::mlssor      ? layers.sweeps
           : method == Method::wavefront ? tiles.sweeps
                                         : stripes.sweeps;
  }
  [[nodiscard]] double tolerance() const {
    return method == Method::mlssor      ? layers.tolerance
           : method == Method::wavefront ? tiles.tolerance
                                         : stripes.tolerance;
  }
};

// --- Drawing
// -------------------------------------------------------------------------------------------------------------

std::optional<double> draw_omega(Draw& draw) {
  if (draw.chance(0.3)) return {};
  return draw.uniform(0.1, 1.95);
}

void draw_geometry(Draw& draw, Relaxation& r) {
  const bool waves = r.method == Method::wavefront;
  const Index axes = waves ? draw.integer(1, 3) : 2;
  for (Index a = 0; a < axes; ++a) {
    r.shape.push_back(draw.chance(0.2) ? draw.pick<Index>({1, 1, 2, 3, 5, 31, 37})
                                       : draw.integer(1, axes == 3 ? 16 : 60));
    r.lengths.push_back(draw.chance(0.4) ? 1.0 : draw.logarithmic(0.3, 3));
  }
  const bool given = draw.chance(0.7);
  for (std::size_t a = 0; a < r.shape.size(); ++a) {
    auto& [lower, upper] = r.sides.emplace_back();
    for (Side* side : {&lower, &upper}) {
      if (given) side->value = draw.uniform(-1, 1);
      if (waves || !given || draw.chance(0.5)) continue;
      for (Index i = 0; i < r.shape[1 - a]; ++i) side->values.push_back(draw.uniform(-1, 1));
    }
  }
}

void draw_settings(Draw& draw, Relaxation& r) {
  const Index sweeps = draw.integer(1, 60), check_every = draw.chance(0.7) ? 0 : draw.integer(1, 20),
              rows = r.shape[0];
  const double tolerance = draw.chance(0.8) ? 0 : draw.logarithmic(r.f32 ? 1e-4 : 1e-6, 1e-2);
  if (r.method == Method::mlssor) {
    r.layers = {.subdomain = draw.integer(2, 20),
                .alternate = draw.chance(0.7),
                .omega = draw_omega(draw),
                .sweeps = sweeps,
                .tolerance = tolerance,
                .check_every = check_every};
    r.layers.layers = draw.integer(0, r.layers.subdomain / 2);
    if (draw.chance(0.7)) r.layers.stripes = draw.integer(1, std::max<Index>(1, rows / r.layers.subdomain));
    return;
  }
  if (r.method == Method::wavefront) {
    r.tiles.omega = draw_omega(draw);
    r.tiles.sweeps = sweeps;
    r.tiles.tolerance = tolerance;
    r.tiles.check_every = check_every;
    if (draw.chance(0.3)) r.tiles.direction = wavefront::Direction::symmetric;
    if (draw.chance(0.5)) {
      wavefront::WavefrontTile& tile = r.tiles.layout.emplace().tile;
      tile.sweeps = draw.integer(1, 8);
      tile.points[3 - r.shape.size()] = tile.sweeps + draw.integer(0, 20);
    }
    return;
  }
  r.stripes = {.method = static_cast<relaxation::Method>(r.method),
               .sweeps = sweeps,
               .tolerance = tolerance,
               .check_every = check_every,
               .sweeps_per_task = draw.chance(0.3) ? 0 : draw.integer(1, 12),
               .arrangement = draw.pick<relaxation::Arrangement>(
                   {relaxation::Arrangement::natural, relaxation::Arrangement::separated}),
               .exchange = draw.pick<relaxation::Exchange>(
                   {relaxation::Exchange::overlapped, relaxation::Exchange::blocking}),
               .balance = Balance::equal};
  if (r.method == Method::sor || r.method == Method::ssor) r.stripes.omega = draw_omega(draw);
  const Index least = 2 * relaxation::ghost_rows(r.stripes.method, 1);
  if (draw.chance(0.7)) r.stripes.stripes = draw.integer(1, std::max<Index>(1, rows / least));
}

std::shared_ptr<const Relaxation> draw_relaxation(Draw& draw) {
  auto r = std::make_shared<Relaxation>();
  r->method = static_cast<Method>(draw.integer(0, 5));
  r->f32 = draw.chance(0.4);
  r->has_source = draw.chance(0.7);
  draw_geometry(draw, *r);
  draw_settings(draw, *r);
  Index nodes = 1;
  for (const Index n : r->shape) nodes *= n;
  const double curvature = draw.logarithmic(0.1, 1000);  // in the size of f, beside u's
  for (Index i = 0; i < nodes; ++i) {
    if (r->has_source) r->f.push_back(r->rounded(curvature * draw.uniform(-1, 1)));
    r->guess.push_back(r->rounded(draw.uniform(-1, 1)));
  }
  return r;
}

std::string words(const Relaxation& r) {
  std::string settings;
  const auto omega = [](const std::optional<double>& value) {
    return value ? fmt::format("omega {}, ", *value) : "";
  };
  if (r.method == Method::mlssor)
    settings =
        fmt::format("{}subdomains of {}, {} layers, {}, {} stripes, a residual every {}",
                    omega(r.layers.omega), r.layers.subdomain, r.layers.layers,
                    r.layers.alternate ? "alternating" : "forward", r.layers.stripes, r.layers.check_every);
  else if (r.method == Method::wavefront)
    settings = fmt::format("{}{}, {}a residual every {}", omega(r.tiles.omega),
                           r.tiles.direction == wavefront::Direction::symmetric ? "symmetric" : "forward",
                           r.tiles.layout ? fmt::format("on cores tiles of {} sweeps of {} slices, ",
                                                        r.tiles.layout->tile.sweeps,
                                                        r.tiles.layout->tile.points[3 - r.shape.size()])
                                          : "",
                           r.tiles.check_every);
  else
    settings =
        fmt::format("{}{} sweeps a task, {}, {}, {} stripes, a residual every {}", omega(r.stripes.omega),
                    r.stripes.sweeps_per_task,
                    r.stripes.arrangement == relaxation::Arrangement::natural ? "natural" : "separated",
                    r.stripes.exchange == relaxation::Exchange::overlapped ? "overlapped" : "blocking",
                    r.stripes.stripes, r.stripes.check_every);
  return fmt::format("{}, {} on {}, {}, {}{} sweeps, tolerance {}; {} (0: chosen)",
                     names[static_cast<int>(r.method)], fmt::join(r.shape, " x "),
                     fmt::join(r.lengths, " x "), r.f32 ? "f32" : "f64", r.has_source ? "" : "f = 0, ",
                     r.sweeps(), r.tolerance(), settings);
}

// --- The oracle
// ----------------------------------------------------------------------------------------------------------

/// A grid of up to three axes in a frame of given values, relaxed node by node.
class SlowGrid {
 public:
  explicit SlowGrid(const Relaxation& r);

  /// A sweep of the method; `number` counts them from 0.
  void sweep(const Relaxation& r, Real omega, Index number);

  [[nodiscard]] std::vector<Real> values() const;
  /// The largest number that was ever there.
  [[nodiscard]] Real largest() const { return largest_.value(); }
  /// ||b - A v|| / (||A||_inf ||v|| + ||b||), [Czapinski 2014] (4.13), of some values.
  [[nodiscard]] Real scaled_residual(const std::vector<Real>& values) const;

 private:
  [[nodiscard]] std::size_t place(Index z, Index y, Index x) const {
    return static_cast<std::size_t>(((z + 1) * (n_[1] + 2) + y + 1) * (n_[2] + 2) + x + 1);
  }
  [[nodiscard]] std::size_t stride(std::size_t a) const {
    return a == 2 ? 1
                  : static_cast<std::size_t>(n_[2] + 2) * (a == 1 ? 1 : static_cast<std::size_t>(n_[1] + 2));
  }
  /// visit(place, colour), in lexicographic order.
  template <class Visit>
  void for_nodes(Visit visit) const {
    for (Index z = 0; z < n_[0]; ++z)
      for (Index y = 0; y < n_[1]; ++y)
        for (Index x = 0; x < n_[2]; ++x) visit(place(z, y, x), (z + y + x) % 2);
  }
  [[nodiscard]] Real neighbours(const std::vector<Real>& v, std::size_t i) const {
    Real sum = 0;
    for (std::size_t a = 0; a < 3; ++a) sum += weight_[a] * (v[i - stride(a)] + v[i + stride(a)]);
    return sum;
  }
  void relax(std::size_t i, Real omega) {
    v_[i] += omega * ((neighbours(v_, i) - f_[i]) / diagonal_ - v_[i]);
  }
  void sweep_layers(const relaxation::mlssor::Settings& settings, Real omega,
                    relaxation::Direction direction);

  std::array<Index, 3> n_{1, 1, 1};
  std::array<Real, 3> weight_{};  // 1 / h^2; 0 where there is no axis
  Real diagonal_ = 0;
  Worst largest_;
  std::vector<Real> v_, f_;  // with the frame
};

SlowGrid::SlowGrid(const Relaxation& r) {
  const std::size_t first = 3 - r.shape.size();
  for (std::size_t a = first; a < 3; ++a) {
    n_[a] = r.shape[a - first];
    const Real h = r.lengths[a - first] / static_cast<Real>(n_[a] + 1);
    weight_[a] = 1 / (h * h);
    diagonal_ += 2 * weight_[a];
  }
  v_.resize(static_cast<std::size_t>((n_[0] + 2) * (n_[1] + 2) * (n_[2] + 2)));
  f_ = v_;
  std::size_t node = 0;
  for_nodes([&](std::size_t i, Index) {
    v_[i] = r.guess[node];
    if (r.has_source) f_[i] = r.f[node];
    ++node;
  });
  for (std::size_t a = first; a < 3; ++a)
    for (const bool upper : {false, true}) {
      const Side& side = upper ? r.sides[a - first].second : r.sides[a - first].first;
      std::array<Index, 3> begin{0, 0, 0}, end = n_;
      begin[a] = upper ? n_[a] : -1;
      end[a] = begin[a] + 1;
      std::size_t along = 0;
      for (Index z = begin[0]; z < end[0]; ++z)
        for (Index y = begin[1]; y < end[1]; ++y)
          for (Index x = begin[2]; x < end[2]; ++x)
            v_[place(z, y, x)] = r.rounded(side.values.empty() ? side.value : side.values[along++]);
    }
  for (const Real v : v_) largest_.take_in(v);
  for (const Real f : f_) largest_.take_in(f / diagonal_);
}

void SlowGrid::sweep_layers(const relaxation::mlssor::Settings& settings, Real omega,
                            relaxation::Direction direction) {
  Grid<Real> grid(n_[1], n_[2]);
  const auto offset = static_cast<std::ptrdiff_t>(stride(0));  // the plane of the two axes
  std::copy_n(v_.begin() + offset, offset, grid.v.begin());
  std::transform(f_.begin() + offset, f_.begin() + 2 * offset, grid.g.begin(),
                 [&](Real f) { return -f / diagonal_; });
  MultiLayerTwin<Real> twin(grid, settings.subdomain, settings.layers,
                            {weight_[1] / diagonal_, weight_[2] / diagonal_}, omega);
  std::mt19937_64 engine(1);
  twin.sweep(direction, engine);
  std::copy(grid.v.begin(), grid.v.end(), v_.begin() + offset);
}

void SlowGrid::sweep(const Relaxation& r, Real omega, Index number) {
  const auto colour = [&](Index which) {
    for_nodes([&](std::size_t i, Index c) {
      if (c == which) relax(i, omega);
    });
  };
  switch (r.method) {
    case Method::jacobi: {
      const std::vector<Real> before = v_;
      for_nodes([&](std::size_t i, Index) { v_[i] = (neighbours(before, i) - f_[i]) / diagonal_; });
      break;
    }
    case Method::gauss_seidel:
    case Method::sor:
      for (const Index which : {0, 1}) colour(which);
      break;
    case Method::ssor:
      for (const Index which : {0, 1, 1, 0}) colour(which);
      break;
    case Method::mlssor:
      sweep_layers(r.layers, omega,
                   r.layers.alternate && number % 2 == 1 ? relaxation::Direction::backward
                                                         : relaxation::Direction::forward);
      break;
    case Method::wavefront: {
      std::vector<std::size_t> nodes;
      for_nodes([&](std::size_t i, Index) { nodes.push_back(i); });
      if (r.tiles.direction == wavefront::Direction::symmetric && number % 2 == 1)
        std::reverse(nodes.begin(), nodes.end());
      for (const std::size_t i : nodes) relax(i, omega);
      break;
    }
  }
  for (const Real v : v_) largest_.take_in(v);
}

std::vector<Real> SlowGrid::values() const {
  std::vector<Real> values;
  for_nodes([&](std::size_t i, Index) { values.push_back(v_[i]); });
  return values;
}

Real SlowGrid::scaled_residual(const std::vector<Real>& values) const {
  std::vector<Real> inside(v_.size()), frame = v_;
  std::size_t node = 0;
  for_nodes([&](std::size_t i, Index) {
    inside[i] = values[node++];
    frame[i] = 0;
  });
  Real r2 = 0, v2 = 0, b2 = 0, norm = diagonal_;
  for_nodes([&](std::size_t i, Index) {
    const Real b = f_[i] - neighbours(frame, i), r = b - (neighbours(inside, i) - diagonal_ * inside[i]);
    r2 += r * r;
    v2 += inside[i] * inside[i];
    b2 += b * b;
  });
  for (std::size_t a = 0; a < 3; ++a) norm += weight_[a] * static_cast<Real>(std::min<Index>(2, n_[a] - 1));
  return r2 == 0 ? 0 : std::sqrt(r2) / (norm * std::sqrt(v2) + std::sqrt(b2));
}

// --- Solving and judging
// -------------------------------------------------------------------------------------------------

struct Result {
  Report report;
  double omega = 1;
  std::vector<Real> u;  ///< of all ranks
};

template <class T>
Result relax_rows(Runtime& runtime, const Relaxation& r, auto& solver, Index first, Index count) {
  const auto converted = [&](const std::vector<double>& all) {
    const auto begin = all.begin() + first;
    std::vector<T> part;
    if (!all.empty())
      std::transform(begin, begin + count, std::back_inserter(part),
                     [](double x) { return static_cast<T>(x); });
    return part;
  };
  const std::vector<T> f = converted(r.f);
  std::vector<T> u = converted(r.guess);
  Result result;
  result.omega = solver.settings().omega.value_or(1);
  result.report = solver.solve(r.has_source ? f.data() : nullptr, u.data());
  std::vector<double> all(r.guess.size());
  std::copy(u.begin(), u.end(), all.begin() + first);
  sum_over_ranks(runtime, all.data(), static_cast<Index>(all.size()));
  result.u.assign(all.begin(), all.end());
  return result;
}

template <class T>
Result relax_by(Runtime& runtime, const Relaxation& r) {
  if (r.method == Method::wavefront) {
    wavefront::Problem problem{r.shape, r.lengths, {}};
    for (const auto& [lower, upper] : r.sides) problem.sides.push_back({lower.value, upper.value});
    wavefront::Solver<T> solver(runtime, problem, r.tiles);
    return relax_rows<T>(runtime, r, solver, 0, static_cast<Index>(r.guess.size()));
  }
  const relaxation::Problem problem{r.shape,           r.lengths,        r.sides[0].first,
                                    r.sides[0].second, r.sides[1].first, r.sides[1].second};
  const auto run = [&](auto&& solver) {
    return relax_rows<T>(runtime, r, solver, solver.first_row() * r.shape[1],
                         solver.row_count() * r.shape[1]);
  };
  if (r.method == Method::mlssor) return run(relaxation::mlssor::Solver<T>(runtime, problem, r.layers));
  return run(relaxation::Solver<T>(runtime, problem, r.stripes));
}

Findings check(Runtime& runtime, Relaxation r) {
  if (r.method == Method::wavefront && runtime.ranks() > 1) return {};        // they are for one rank
  if (runtime.machine().count(WorkerKind::cuda) > 0) r.tiles.layout.reset();  // drawn for cores
  const Result result = r.f32 ? relax_by<float>(runtime, r) : relax_by<double>(runtime, r);
  if (r.method == Method::mlssor && r.layers.layers == 0) r.layers.layers = r.layers.subdomain / 2;
  const Index unit = r.method == Method::mlssor ? r.layers.layers : 1;
  const Index most = (r.sweeps() + unit - 1) / unit * unit, iterations = result.report.iterations;

  Findings findings;
  const auto complain = [&](const std::string& fault) { findings.faults.push_back(fault); };
  if (r.tolerance() == 0 ? iterations != most : iterations > most || iterations % unit != 0)
    complain(fmt::format("{} sweeps were made", iterations));
  SlowGrid grid(r);
  for (Index k = 0; k < iterations / unit; ++k) grid.sweep(r, result.omega, k);

  const double eps = r.f32 ? 0x1p-24 : 0x1p-53;
  const std::vector<Real> expected = grid.values();
  Worst worst;
  for (std::size_t i = 0; i < expected.size(); ++i) worst.take_in(result.u[i] - expected[i]);
  findings.expect(
      "difference / (eps size sweeps)",
      static_cast<double>(worst.value() / (eps * grid.largest())) / static_cast<double>(iterations + 1), 16);

  const auto residual = static_cast<double>(grid.scaled_residual(result.u));
  const double told = result.report.residual_history.empty() ? NAN : result.report.residual_history.back();
  findings.expect("told residual's error / (residual or 4 eps)",
                  std::abs(told - residual) / std::max(4 * eps, std::min(told, residual)), 1);
  const bool reached = r.tolerance() == 0 || told <= r.tolerance();
  const Reason right = reached ? Reason::solved : Reason::iteration_limit;
  // Where u itself tends to zero (f = 0, nothing given) its scaled residual does not, and that may be told instead.
  const std::vector<double>& history = result.report.residual_history;
  const bool falls = history.size() < 2 || told < 0.95 * *std::min_element(history.begin(), history.end() - 1);
  if (result.report.reason != right && (reached || falls || result.report.reason != Reason::stagnation))
    complain(fmt::format("it says {}, the residual is {:.3g}", to_string(result.report.reason), told));
  return findings;
}

}  // namespace

Trial draw_relax(Draw& draw) {
  const std::shared_ptr<const Relaxation> r = draw_relaxation(draw);
  return {words(*r), [r](Runtime& runtime) { return check(runtime, *r); }};
}

}  // namespace asterism::test
