// Wavefront-tiled SOR: every way to run the loop against the loop as it is, bit for bit; that one against
// (W1) in long double; the tile-size model's counts against counting; the solver against a known solution.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/wavefront.hpp"
#include "codelets/wavefront_schedule.hpp"
#include "matrix.hpp"
#include "tiles.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::kernels;

namespace {

WavefrontArgs problem(const std::vector<Index>& shape, Index sweeps, bool has_source, bool backward) {
  WavefrontArgs args;
  args.dimensions = static_cast<int>(shape.size());
  double diagonal = 0;
  for (std::size_t axis = 3 - shape.size(); axis < 3; ++axis) {
    args.nodes[axis] = shape[axis + shape.size() - 3];
    args.along[axis] = 1.0 + 0.25 * static_cast<double>(axis);
    diagonal += 2 * args.along[axis];
  }
  for (double& a : args.along) a /= diagonal;
  args.omega = 1.7;
  args.sweeps = sweeps;
  args.has_source = has_source;
  args.backward = backward;
  return args;
}

std::string describe(const WavefrontArgs& args) {
  const auto m = tile_extents(args.dimensions, args.layout.tile);
  std::ostringstream text;
  text << args.dimensions << "D, nodes " << args.nodes[0] << ' ' << args.nodes[1] << ' ' << args.nodes[2]
       << ", sweeps " << args.sweeps << ", tile " << m[0] << ' ' << m[1] << ' ' << m[2] << ' ' << m[3]
       << (args.has_source ? ", source" : "") << (args.backward ? ", backward" : "");
  return text.str();
}

template <class T>
struct Data {
  Matrix<T> u, g;
  explicit Data(const WavefrontArgs& args, unsigned seed = 1)
      : u(Matrix<T>(wavefront_rows(args), wavefront_cols(args)).fill_random(seed)),
        g(args.has_source ? Matrix<T>(wavefront_rows(args), wavefront_cols(args)) : Matrix<T>(1, 1)) {
    // g's frame stays NaN.
    if (!args.has_source) return;
    std::mt19937_64 engine(seed + 1);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for_nodes(args, [&](Index row, Index col) { g(row, col) = static_cast<T>(uniform(engine)); });
  }

  /// Calls visit(row, column) for the nodes, in the order of a forward sweep.
  template <class Visit>
  static void for_nodes(const WavefrontArgs& args, Visit visit) {
    const Index planes = args.dimensions > 2 ? args.nodes[0] : 1,
                rows = args.dimensions > 1 ? args.nodes[1] : 1;
    for (Index z = 0; z < planes; ++z)
      for (Index y = 0; y < rows; ++y)
        for (Index x = 0; x < args.nodes[2]; ++x)
          visit(args.dimensions > 2 ? (z + 1) * (rows + 2) + y + 1 : args.dimensions > 1 ? y + 1 : 0, x + 1);
  }
};

template <class T>
bool same(const Matrix<T>& a, const Matrix<T>& b) {
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j)
      if (a(i, j) != b(i, j)) return false;
  return a.guarded() && b.guarded();
}

/// After the sequential loop.
template <class T>
Matrix<T> swept(const WavefrontArgs& args, const Data<T>& data) {
  Matrix<T> u = data.u;
  cpu::wavefront_sequential<T>(args, u.inout(), data.g.in());
  return u;
}

std::vector<std::vector<Index>> shapes() {
  return {{1},       {2},       {3},       {13},       {64},       {101},   {1, 1},
          {1, 2},    {2, 1},    {5, 3},    {16, 16},   {23, 7},    {7, 37}, {1, 1, 1},
          {2, 1, 2}, {3, 4, 5}, {8, 8, 8}, {11, 3, 7}, {5, 13, 11}};
}

/// (W1) by its letters.
template <class T>
Matrix<long double> by_definition(const WavefrontArgs& args, const Data<T>& data) {
  Matrix<long double> v(data.u.rows(), data.u.cols());
  v.fill([&](Index i, Index j) { return static_cast<long double>(data.u(i, j)); });
  std::vector<std::array<Index, 2>> nodes;
  Data<T>::for_nodes(args, [&](Index row, Index col) { nodes.push_back({row, col}); });
  if (args.backward) std::reverse(nodes.begin(), nodes.end());
  const auto a = [&](std::size_t axis) { return static_cast<long double>(args.along[axis]); };
  for (Index t = 0; t < args.sweeps; ++t)
    for (const auto& [row, col] : nodes) {
      long double sum = a(2) * (v(row, col - 1) + v(row, col + 1));
      if (args.dimensions > 1) sum += a(1) * (v(row - 1, col) + v(row + 1, col));
      const Index plane = args.nodes[1] + 2;
      if (args.dimensions > 2) sum += a(0) * (v(row - plane, col) + v(row + plane, col));
      if (args.has_source) sum += static_cast<long double>(data.g(row, col));
      v(row, col) += static_cast<long double>(args.omega) * (sum - v(row, col));
    }
  return v;
}

/// What the CUDA kernel does, by the same schedule: tiles of a wavefront in any order, points of a tile's
/// wavefront too, on a box of its own that is NaN where nothing was loaded.
template <int dims, class T>
class Emulation {
 public:
  Emulation(const WavefrontArgs& args, Matrix<T>& u, const Matrix<T>& g)
      : args_(args), plan_(args), u_(u.inout()), g_(g.in()), list_(static_cast<std::size_t>(plan_.columns)) {
    std::vector<int> taken(list_.size());
    for (int k = 0; k < plan_.columns; ++k) {
      const auto place = static_cast<std::size_t>(plan_.place(plan_.column(k)));
      REQUIRE(place < list_.size());
      ++taken[place];
      list_[place] = plan_.column(k);
    }
    CHECK(std::all_of(taken.begin(), taken.end(), [](int times) { return times == 1; }));
  }

  void run() {
    typename WavefrontPlan<dims>::SweepTiles at;
    Index points = 0;
    for (int w = 0; w < plan_.wavefronts(); ++w) {
      at.advance(plan_, w);
      std::vector<typename WavefrontPlan<dims>::Tile> tiles;
      for (int k = 0; k < plan_.strands(at); ++k) {
        const auto strand = plan_.strand(at, w, k);
        for (int i = 0; i < strand.count; ++i) tiles.push_back(plan_.tile(w, strand, i));
      }
      const TileCount count = tiles_of_wavefront(args_, w);
      CHECK(count.tiles == static_cast<Index>(tiles.size()));
      CHECK(count.full ==
            std::count_if(tiles.begin(), tiles.end(), [](const auto& tile) { return tile.full; }));
      std::shuffle(tiles.begin(), tiles.end(), engine_);
      for (const auto& tile : tiles) points += run_tile(tile);
    }
    CHECK(points ==
          args_.sweeps * args_.nodes[2] * (dims > 1 ? args_.nodes[1] : 1) * (dims > 2 ? args_.nodes[0] : 1));
  }

 private:
  template <class Visit>
  Index for_spans(const typename WavefrontPlan<dims>::Tile& tile, int margin, Visit visit) {
    const SweptGrid at = swept_grid(args_, u_.ld);
    Index count = 0;
    for (int row = 0; row < plan_.rows_of_box(); ++row) {
      const int width = dims > 1 ? plan_.width(dims > 1 ? dims - 2 : 0) : 1, lz = row / width,
                ly = row % width;
      const auto span = plan_.span(tile, lz, ly, margin);
      const int m1 = plan_.sweeps_of_tile;
      for (int l = span.begin; l < span.end; ++l, ++count) {
        Index node = at.origin + (tile.origin[dims - 1] + l - m1) * at.point;
        if constexpr (dims > 1) node += (tile.origin[dims - 2] + ly - m1) * at.row;
        if constexpr (dims > 2) node += (tile.origin[0] + lz - m1) * at.plane;
        if (node < 0 || node >= u_.rows * u_.ld || l < 0 || l >= plan_.row) {
          FAIL("outside of the grid or of the box");
          return count;
        }
        visit(
            static_cast<std::size_t>(lz * (dims > 2 ? plan_.plane : 0) + ly * (dims > 1 ? plan_.row : 0) + l),
            node);
      }
    }
    return count;
  }

  Index run_tile(const typename WavefrontPlan<dims>::Tile& tile) {
    if (tile.empty()) return 0;
    std::vector<T> box(static_cast<std::size_t>(plan_.box), std::numeric_limits<T>::quiet_NaN()),
        source = box;
    const Index loads =
        for_spans(tile, 1, [&](std::size_t place, Index node) { box[place] = u_.data[node]; });
    Index source_loads = 0;
    if (args_.has_source)
      source_loads =
          for_spans(tile, 0, [&](std::size_t place, Index node) { source[place] = g_.data[node]; });
    const WavefrontWeights<T> weights = wavefront_weights<T>(args_);
    Index points = 0;
    for (int e = 0; e < plan_.wavefronts_of_tile(); ++e) {
      std::vector<int> columns;
      const int begin = e < plan_.points[dims - 1] ? 0 : plan_.columns_up_to(e - plan_.points[dims - 1]);
      for (int k = begin; k < plan_.columns_up_to(e); ++k)
        if (plan_.has_turn(plan_.turns(tile, list_[static_cast<std::size_t>(k)]).packed(), e)) columns.push_back(k);
      if (tile.full)
        CHECK(static_cast<Index>(columns.size()) == points_of_wavefront(dims, args_.layout.tile, e));
      if ((e < tile.wavefront_begin || e >= tile.wavefront_end) && !columns.empty())
        FAIL_CHECK("a wavefront left out");
      std::shuffle(columns.begin(), columns.end(), engine_);
      for (const int k : columns) {
        const int at = plan_.offset(list_[static_cast<std::size_t>(k)]) + e;
        T* const v = &box[static_cast<std::size_t>(at)];
        *v = relaxed_at<dims>(weights, v, plan_.plane, plan_.row, 1,
                              args_.has_source ? source[static_cast<std::size_t>(at)] : T{0});
      }
      points += static_cast<Index>(columns.size());
    }
    const Index stores =
        for_spans(tile, 0, [&](std::size_t place, Index node) { u_.data[node] = box[place]; });
    const TileTraffic traffic = traffic_of_tile(dims, args_.layout.tile, args_.has_source);
    if (tile.full) {
      CHECK(loads == traffic.loads);
      CHECK(source_loads == traffic.source_loads);
      CHECK(stores == traffic.stores);
      CHECK(points == points_of_tile(dims, args_.layout.tile));
    } else {
      CHECK(points < points_of_tile(dims, args_.layout.tile));
    }
    return points;
  }

  const WavefrontArgs& args_;
  WavefrontPlan<dims> plan_;
  InOut<T> u_;
  In<T> g_;
  std::vector<typename WavefrontPlan<dims>::Column> list_;
  std::mt19937_64 engine_{5};
};

template <class T>
void emulate(const WavefrontArgs& args, Matrix<T>& u, const Matrix<T>& g) {
  if (args.dimensions == 1) Emulation<1, T>(args, u, g).run();
  if (args.dimensions == 2) Emulation<2, T>(args, u, g).run();
  if (args.dimensions == 3) Emulation<3, T>(args, u, g).run();
}

/// Tiles for every shape of 1 to 3 extents.
std::vector<WavefrontTile> tiles() {
  return {{1, {1, 1, 1}}, {1, {4, 4, 4}},    {3, {2, 5, 4}}, {4, {4, 3, 8}},
          {7, {3, 2, 2}}, {2, {16, 16, 32}}, {5, {1, 6, 9}}};
}

/// A grid cut into blocks of slices, each in memory of its own, between guards.
template <class T>
struct Blocks {
  const WavefrontArgs& args;
  Index height;
  std::vector<Matrix<T>> blocks;

  Blocks(const WavefrontArgs& of, Index slices, const Matrix<T>& whole) : args(of), height(slices) {
    const Index count = cpu::wavefront_blocks(args, height);
    for (Index k = 0; k < count; ++k) {
      const Index slice = std::min(height, cpu::wavefront_slices(args) - k * height);
      if (args.dimensions == 1)
        blocks.push_back(Matrix<T>(1, slice).fill([&](Index, Index j) { return whole(0, k * height + j); }));
      else
        blocks.push_back(Matrix<T>(slice * rows_of_slice(), whole.cols()).fill([&](Index i, Index j) {
          return whole(k * height * rows_of_slice() + i, j);
        }));
    }
  }
  [[nodiscard]] Index rows_of_slice() const { return args.dimensions > 2 ? args.nodes[1] + 2 : 1; }
  [[nodiscard]] Matrix<T> joined(Index rows, Index cols) const {
    return Matrix<T>(rows, cols).fill([&](Index i, Index j) {
      if (args.dimensions == 1) return blocks[static_cast<std::size_t>(j / height)](0, j % height);
      const Index each = height * rows_of_slice();
      return blocks[static_cast<std::size_t>(i / each)](i % each, j);
    });
  }
  [[nodiscard]] bool guarded() const {
    return std::all_of(blocks.begin(), blocks.end(), [](const Matrix<T>& block) { return block.guarded(); });
  }
  /// Block number k as the sweeps see them; a null view where there is none.
  [[nodiscard]] InOut<T> at(Index k) {
    const Index count = static_cast<Index>(blocks.size());
    if (k < 0 || k >= count) return {};
    return blocks[static_cast<std::size_t>(args.backward ? count - 1 - k : k)].inout();
  }
  [[nodiscard]] In<T> in(Index k) {
    const InOut<T> block = at(k);
    return {block.data, block.rows, block.cols, block.ld};
  }
};

}  // namespace

TEST_CASE_TEMPLATE("the sequential loop is (W1)", T, float, double) {
  for (const auto& shape : shapes())
    for (const bool source : {false, true})
      for (const bool backward : {false, true}) {
        const WavefrontArgs args = problem(shape, 3, source, backward);
        CAPTURE(describe(args));
        const Data<T> data(args);
        const Matrix<T> u = swept(args, data);
        const Matrix<long double> expected = by_definition(args, data);
        CHECK(u.guarded());
        double worst = 0;
        for (Index i = 0; i < u.rows(); ++i)
          for (Index j = 0; j < u.cols(); ++j)
            worst = std::max(worst, std::abs(static_cast<double>(u(i, j) - expected(i, j))));
        CHECK(worst < 40 * std::numeric_limits<T>::epsilon());
      }
}

TEST_CASE_TEMPLATE("tiles in the order of the CUDA kernel's schedule, and the counts of the tile-size model",
                   T, float, double) {
  for (const auto& shape : shapes())
    for (const Index sweeps : {1, 2, 5, 17})
      for (const WavefrontTile& tile : tiles())
        for (const bool odd : {false, true}) {
          WavefrontArgs args = problem(shape, sweeps, odd, odd != (sweeps == 5));
          args.layout.tile = tile;
          CAPTURE(describe(args));
          const Data<T> data(args);
          Matrix<T> u = data.u;
          emulate<T>(args, u, data.g);
          CHECK(same(u, swept(args, data)));
        }
}

TEST_CASE_TEMPLATE("slabs, block by block", T, float, double) {
  for (const auto& shape : shapes())
    for (const Index height : {1, 2, 3, 5, 16, 64})
      for (const Index sweeps : {1, 2, 3, 5, 17})
        for (const bool odd : {false, true}) {
          if (sweeps > height) continue;
          const WavefrontArgs args = problem(shape, sweeps, odd, odd != (sweeps == 2));
          CAPTURE(describe(args));
          CAPTURE(height);
          const Data<T> data(args);
          Blocks<T> u(args, height, data.u);
          // Without a source nobody looks at g.
          Blocks<T> g(args, height, args.has_source ? data.g : data.u);
          for (Index number = 0; number <= cpu::wavefront_blocks(args, height); ++number)
            cpu::wavefront_slab<T>({args, height, number}, u.at(number - 1), u.at(number), u.in(number + 1),
                                   g.in(number - 1), g.in(number));
          CHECK(u.guarded());
          CHECK(same(u.joined(data.u.rows(), data.u.cols()), swept(args, data)));
        }
}

namespace {

template <class T>
std::vector<T> random_values(const std::vector<Index>& shape, unsigned seed) {
  Index count = 1;
  for (const Index n : shape) count *= n;
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(uniform(engine));
  return values;
}

/// -(sum of 2 - 2 cos(pi h) over h^2) u, and u = product of sin(pi x): with zero sides the solution of the
/// difference equation.
struct Sine {
  std::vector<double> u, f;
  explicit Sine(const std::vector<Index>& shape) {
    double eigenvalue = 0;
    u.assign(1, 1.0);
    for (const Index n : shape) {
      const double h = 1.0 / static_cast<double>(n + 1);
      eigenvalue -= (2 - 2 * std::cos(std::numbers::pi * h)) / (h * h);
      std::vector<double> longer;
      for (const double value : u)
        for (Index i = 1; i <= n; ++i)
          longer.push_back(value * std::sin(std::numbers::pi * h * static_cast<double>(i)));
      u = longer;
    }
    for (const double value : u) f.push_back(eigenvalue * value);
  }
};

template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  double worst = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double difference = std::abs(static_cast<double>(a[k]) - static_cast<double>(b[k]));
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

/// The same expression on a GPU: the same bits where this processor can round a b + c once too.
#ifdef __FMA__
constexpr bool same_bits = true;
#else
constexpr bool same_bits = false;
#endif

template <class T>
bool agree(const std::vector<T>& a, const std::vector<T>& b, bool on_gpu) {
  if (same_bits || !on_gpu) return a == b;
  return largest_difference(a, b) < 1000 * std::numeric_limits<T>::epsilon();
}

/// The tile of a solver's layout: something on both kinds of worker.
WavefrontLayout small_layout(int dimensions) {
  WavefrontLayout layout;
  layout.tile = {3, {5, dimensions == 2 ? 7 : 4, dimensions == 1 ? 9 : 6}};
  layout.threads = 64;
  layout.blocks = 8;
  return layout;
}

}  // namespace

TEST_CASE_TEMPLATE("the solver's sweeps are those of the sequential loop", T, float, double) {
  Runtime runtime;
  const bool on_gpu = runtime.machine().count(WorkerKind::cuda) > 0;
  for (const auto& shape :
       std::vector<std::vector<Index>>{{1}, {7}, {1000}, {1, 1}, {5, 9}, {64, 33}, {2, 3, 4}, {13, 9, 17}})
    for (const bool source : {false, true})
      for (const bool chosen : {false, true})
        for (const wavefront::Direction direction :
             {wavefront::Direction::forward, wavefront::Direction::symmetric}) {
          wavefront::Problem equation{shape, {}, {}};
          for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            equation.lengths.push_back(1.0 + static_cast<double>(axis));
            equation.sides.push_back({0.5 + static_cast<double>(axis), -1.25 * static_cast<double>(axis)});
          }
          wavefront::Settings settings;
          settings.sweeps = 11;
          settings.omega = 1.5;
          settings.direction = direction;
          settings.check_every = chosen ? 4 : 0;
          if (!chosen) settings.layout = small_layout(static_cast<int>(shape.size()));
          wavefront::Solver<T> solver(runtime, equation, settings);
          const std::vector<T> f = random_values<T>(shape, 3), first = random_values<T>(shape, 4);
          std::vector<T> u = first;
          const Report report = solver.solve(source ? f.data() : nullptr, u.data());
          CHECK(report.reason == Reason::solved);
          CHECK(report.iterations == 11);
          CHECK(report.residual_history.size() == (chosen ? 4 : 2));

          WavefrontArgs args =
              problem(shape, direction == wavefront::Direction::forward ? 11 : 1, source, false);
          args.omega = 1.5;
          double diagonal = 0;
          const std::size_t absent = 3 - shape.size();
          for (std::size_t axis = absent; axis < 3; ++axis) {
            const double h = equation.lengths[axis - absent] / static_cast<double>(shape[axis - absent] + 1);
            args.along[axis] = 1 / (h * h);
            diagonal += 2 / (h * h);
          }
          for (double& a : args.along) a /= diagonal;
          Data<T> data(args);
          data.u.fill([](Index, Index) { return 0; });
          std::size_t k = 0;
          Data<T>::for_nodes(args, [&](Index row, Index col) {
            const Index at[] = {args.dimensions > 2 ? row / (args.nodes[1] + 2) : 1,
                                args.dimensions > 2   ? row % (args.nodes[1] + 2)
                                : args.dimensions > 1 ? row
                                                      : 1,
                                col};
            const Index distance[] = {args.nodes[1] + 2, 1, 1};
            for (std::size_t axis = absent; axis < 3; ++axis) {
              const wavefront::Problem::Sides& sides = equation.sides[axis - absent];
              const Index rows = axis < 2 ? distance[axis] : 0, cols = axis < 2 ? 0 : 1;
              if (at[axis] == 1) data.u(row - rows, col - cols) = static_cast<T>(sides.lower);
              if (at[axis] == args.nodes[axis]) data.u(row + rows, col + cols) = static_cast<T>(sides.upper);
            }
            if (source) data.g(row, col) = static_cast<T>(-1 / diagonal * static_cast<double>(f[k]));
            ++k;
          });
          k = 0;
          Data<T>::for_nodes(args, [&](Index row, Index col) { data.u(row, col) = first[k++]; });
          for (Index t = 0; t < (args.sweeps == 1 ? 11 : 1); ++t) {
            args.backward = t % 2 == 1;
            data.u = swept(args, data);
          }
          std::vector<T> expected;
          Data<T>::for_nodes(args, [&](Index row, Index col) { expected.push_back(data.u(row, col)); });
          CAPTURE(describe(args));
          CHECK(agree(u, expected, on_gpu));
        }
}

TEST_CASE_TEMPLATE("the solver reaches the tolerance, and the solution", T, float, double) {
  Runtime runtime;
  const double tolerance = sizeof(T) == 4 ? 2e-7 : 1e-13;
  for (const auto& shape : std::vector<std::vector<Index>>{{1}, {60}, {40, 31}, {15, 20, 12}})
    for (const wavefront::Direction direction :
         {wavefront::Direction::forward, wavefront::Direction::symmetric}) {
      wavefront::Settings settings;
      settings.tolerance = tolerance;
      settings.sweeps = 5000;
      settings.direction = direction;
      wavefront::Solver<T> solver(runtime, {shape, {}, {}}, settings);
      const Sine sine(shape);
      const std::vector<T> f(sine.f.begin(), sine.f.end()), expected(sine.u.begin(), sine.u.end());
      std::vector<T> u(f.size(), T{0});
      const Report report = solver.solve(f.data(), u.data());
      CAPTURE(shape.size());
      CHECK(report.reason == Reason::solved);
      CHECK(report.residual_history.back() <= tolerance);
      CHECK(report.residual_history.front() == doctest::Approx(1.0));  // u = 0: r = b
      CHECK(largest_difference(u, expected) < 2000 * tolerance);
    }
}

TEST_CASE_TEMPLATE("the scaled residual is thesis (4.13)", T, float, double) {
  // Two nodes on [0, 3], h = 1, and u = 1, 3 between 5 and 7: A = [-2 1; 1 -2], b = f - [5; 7], r = b - A u.
  Runtime runtime;
  wavefront::Settings settings;
  settings.sweeps = 1;
  wavefront::Solver<T> solver(runtime, {{2}, {3.0}, {{5.0, 7.0}}}, settings);
  std::vector<T> f{T{2}, T{-1}}, u{T{1}, T{3}};
  const Report report = solver.solve(f.data(), u.data());
  const double r0 = -3 - (-2 + 3), r1 = -8 - (1 - 6);
  CHECK(report.residual_history[0] ==
        doctest::Approx(std::hypot(r0, r1) / (3 * std::sqrt(10.0) + std::hypot(3.0, 8.0))).epsilon(1e-6));
}

TEST_CASE("optimal omega converges as theory says") {
  Runtime runtime;
  constexpr Index n = 64;
  wavefront::Settings settings;
  settings.sweeps = 400;
  settings.check_every = 20;
  wavefront::Solver<double> solver(runtime, {{n, n}, {}, {}}, settings);
  const double expected = 2 / (1 + std::sin(std::numbers::pi / (n + 1)));
  CHECK(*solver.settings().omega == doctest::Approx(expected).epsilon(1e-12));
  std::vector<double> u = random_values<double>({n, n}, 9);
  const Report report = solver.solve(nullptr, u.data());
  const std::vector<double>& history = report.residual_history;
  REQUIRE(history.size() == 21);
  // b = 0, so (4.13) is scaled by u itself; u is what falls.
  double norm = 0;
  for (const double value : u) norm += value * value;
  norm = std::sqrt(norm);
  // Double eigenvalues at the best omega: t radius^(t - 1), up to a factor.
  const double decay = std::pow(expected - 1, 399) * 400;
  CHECK(norm < 50 * n * decay);
  CHECK(norm > 1e-4 * decay);
}

TEST_CASE("how a solver stops") {
  Runtime runtime;
  wavefront::Settings settings;
  settings.tolerance = 1e-12;
  settings.sweeps = 10;
  std::vector<double> f(400, 1.0), u(400, 0.0);
  CHECK(wavefront::Solver<double>(runtime, {{20, 20}, {}, {}}, settings).solve(f.data(), u.data()).reason ==
        Reason::iteration_limit);
  f[7] = std::numeric_limits<double>::quiet_NaN();
  CHECK(wavefront::Solver<double>(runtime, {{20, 20}, {}, {}}, settings).solve(f.data(), u.data()).reason ==
        Reason::not_finite);
}

TEST_CASE("what a solver refuses") {
  Runtime runtime;
  const auto refuses = [&](const wavefront::Problem& equation, auto change) {
    wavefront::Settings settings;
    settings.sweeps = 3;
    change(settings);
    CHECK_THROWS_AS(wavefront::Solver<float>(runtime, equation, settings), Error);
  };
  const auto as_it_is = [](wavefront::Settings&) {};
  refuses({{}, {}, {}}, as_it_is);
  refuses({{2, 2, 2, 2}, {}, {}}, as_it_is);
  refuses({{4, 0}, {}, {}}, as_it_is);
  refuses({{4}, {1.0, 1.0}, {}}, as_it_is);
  refuses({{4}, {-1.0}, {}}, as_it_is);
  refuses({{4}, {}, {{0.0, std::nan("")}}}, as_it_is);
  refuses({{4, 4}, {}, {{0.0, 0.0}}}, as_it_is);
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.omega = 2.0; });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.omega = 0.0; });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.omega = std::nan(""); });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.sweeps = 0; });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.sweeps = -1; });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.tolerance = 1.0; });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.check_every = -1; });
  refuses({{4, 4}, {}, {}},
          [](wavefront::Settings& s) { s.layout = WavefrontLayout{}, s.layout->tile.sweeps = 0; });
}

#ifdef ASTERISM_WITH_CUDA

namespace {

/// A layout that the GPU can run, of any size that it can; tiles of at least so many points.
template <class T>
WavefrontLayout random_layout(const WavefrontArgs& args, std::mt19937_64& engine, Index fewest = 1) {
  const auto any = [&](Index least, Index most) {
    return std::uniform_int_distribution<Index>(least, most)(engine);
  };
  const auto up_to = [&](double most) {  // small ones as often as large ones
    return static_cast<Index>(std::exp(std::uniform_real_distribution<double>(0.0, std::log(most))(engine)));
  };
  for (;;) {
    WavefrontLayout layout;
    layout.tile = {up_to(64), {up_to(24), up_to(48), up_to(300)}};
    layout.threads = 32 * static_cast<int>(any(1, 32));
    const std::size_t shared = cuda::wavefront_shared_bytes<T>(args.dimensions, layout.tile, args.has_source);
    const int most =
        cuda::wavefront_blocks_per_sm<T>(args.dimensions, layout.threads, shared) * cuda::multiprocessors();
    if (most == 0 || points_of_tile(args.dimensions, layout.tile) < fewest) continue;
    layout.blocks = static_cast<int>(any(0, 2) == 0 ? any(1, most) : most);
    return layout;
  }
}

template <class T>
bool agree(const Matrix<T>& a, const Matrix<T>& b) {
  if (same_bits) return a == b;
  double worst = 0;
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j) {
      const double difference = std::abs(static_cast<double>(a(i, j)) - static_cast<double>(b(i, j)));
      if (!(difference <= worst)) worst = difference;
    }
  return worst < 1000 * std::numeric_limits<T>::epsilon();
}

template <class T>
Matrix<T> swept_on_gpu(Runtime& runtime, const WavefrontArgs& args, const Data<T>& data) {
  const Tile<T> u = upload(runtime, data.u), g = upload(runtime, data.g);
  const Tile<unsigned> barrier(runtime, 1, cuda::wavefront_scratch);
  Hints hints;
  hints.where = Where::cuda;
  codelets::wavefront<T>(args, u, g, barrier, hints);
  runtime.wait();
  return download(u);
}

}  // namespace

TEST_CASE_TEMPLATE("gpu: the kernel of any layout against the sequential loop", T, float, double) {
  Runtime runtime;
  std::mt19937_64 engine(11);
  for (auto shape : shapes())
    for (int k = 0; k < 6; ++k) {
      const Index sweeps = std::uniform_int_distribution<Index>(1, 40)(engine);
      WavefrontArgs args = problem(shape, sweeps, k % 2 == 0, k % 3 == 0);
      args.layout = random_layout<T>(args, engine);
      CAPTURE(describe(args));
      CAPTURE(args.layout.threads);
      CAPTURE(args.layout.blocks);
      const Data<T> data(args);
      CHECK(agree(swept_on_gpu(runtime, args, data), swept(args, data)));
    }
}

TEST_CASE_TEMPLATE("gpu: the kernel on grids with many tiles", T, float, double) {
  Runtime runtime;
  std::mt19937_64 engine(12);
  for (const auto& shape : std::vector<std::vector<Index>>{{100'003}, {1021, 777}, {70, 101, 97}}) {
    const WavefrontArgs base = problem(shape, 67, true, false);
    const Data<T> data(base);
    const Matrix<T> expected = swept(base, data);
    for (int k = 0; k < 40; ++k) {
      WavefrontArgs args = base;
      args.layout = random_layout<T>(args, engine, 200);
      CAPTURE(describe(args));
      CAPTURE(args.layout.threads);
      CAPTURE(args.layout.blocks);
      CHECK(agree(swept_on_gpu(runtime, args, data), expected));
    }
  }
}

TEST_CASE_TEMPLATE("gpu: residuals", T, float, double) {
  Runtime runtime;
  for (const auto& shape :
       std::vector<std::vector<Index>>{{1}, {5003}, {1, 1}, {211, 307}, {1, 2, 3}, {31, 40, 53}})
    for (const bool source : {false, true}) {
      const WavefrontArgs args = problem(shape, 1, source, false);
      CAPTURE(describe(args));
      const Data<T> data(args);
      Matrix<double> expected(1, wavefront_sums);
      cpu::wavefront_residual<T>({args, cpu::wavefront_slices(args), 0}, {}, data.u.in(), {}, data.g.in(),
                                 expected.out());
      const Tile<T> u = upload(runtime, data.u), g = upload(runtime, data.g);
      const Tile<double> sums(runtime, 1, wavefront_sums), work(runtime, 1, cuda::wavefront_residual_scratch);
      Hints hints;
      hints.where = Where::cuda;
      codelets::wavefront_residual<T>(args, u, g, sums, work, hints);
      runtime.wait();
      const Matrix<double> made = download(sums);
      for (Index k = 0; k < wavefront_sums; ++k)
        CHECK(made(0, k) == doctest::Approx(expected(0, k)).epsilon(1e-12));
    }
}

TEST_CASE("gpu: layouts that cannot be") {
  const WavefrontArgs good = [] {
    WavefrontArgs args = problem({50, 50}, 10, false, false);
    args.layout = {{4, {1, 8, 32}}, 128, 16};
    return args;
  }();
  const Data<float> data(good);
  Runtime runtime;
  CHECK(agree(swept_on_gpu(runtime, good, data), swept(good, data)));
  const auto fails = [&](auto change) {
    WavefrontArgs args = good;
    change(args.layout);
    CHECK_THROWS_AS(swept_on_gpu(runtime, args, data), TaskFailure);
  };
  fails([](WavefrontLayout& layout) { layout.blocks = 1'000'000; });
  fails([](WavefrontLayout& layout) { layout.blocks = 0; });
  fails([](WavefrontLayout& layout) { layout.threads = 100; });
  fails([](WavefrontLayout& layout) { layout.threads = 2048; });
  fails([](WavefrontLayout& layout) { layout.tile.points[2] = 100'000; });
  fails([](WavefrontLayout& layout) { layout.tile.sweeps = 0; });
}

#endif
