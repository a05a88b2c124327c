// Wavefront-tiled SOR: every way to run the loop against the loop as it is, bit for bit; that one against
// (W1) in long double; the tile-size model's counts against counting. The solver: test_wavefront_solver.cpp.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "../relaxation/sequential_sweeps.hpp"
#include "../support/matrix.hpp"
#include "../support/skip.hpp"
#include "../support/square_sums.hpp"
#include "../support/tiles.hpp"
#include "../support/worst.hpp"
#include "codelets/wavefront/schedule.hpp"
#include "codelets/wavefront/sweeps.hpp"
#include "wavefront_counts.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::wavefront;

namespace {

template <class T>
bool same(const Matrix<T>& a, const Matrix<T>& b) {
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j)
      if (a(i, j) != b(i, j)) return false;
  return a.guarded() && b.guarded();
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
        if (plan_.has_turn(plan_.turns(tile, list_[static_cast<std::size_t>(k)]).packed(), e))
          columns.push_back(k);
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
        CHECK(largest_difference(u, expected) < 40 * std::numeric_limits<T>::epsilon());
      }
}

TEST_CASE_TEMPLATE("tiles in the order of the CUDA kernel's schedule, and the counts of the tile-size model",
                   T, float, double) {
  for (const auto& shape : shapes())
    for (const Index sweeps : {1, 2, 5, 17})
      for (const WavefrontTile& tile : tiles())
        for (const bool odd : {false, true}) {
          if (left_out_when_sanitized(sweeps == 17)) continue;
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
  return largest_difference(a, b) < 1000 * std::numeric_limits<T>::epsilon();
}

template <class T>
Matrix<T> swept_on_gpu(Runtime& runtime, const WavefrontArgs& args, const Data<T>& data) {
  const Tile<T> u = upload(runtime, data.u), g = upload(runtime, data.g);
  const Tile<unsigned> barrier(runtime, 1, cuda::wavefront_scratch);
  Hints hints;
  hints.where = Where::cuda;
  wavefront::codelets::wavefront<T>(args, u, g, barrier, hints);
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
      SquareSums<wavefront_sums> expected;
      cpu::wavefront_residual<T>({args, cpu::wavefront_slices(args), 0}, {}, data.u.in(), {}, data.g.in(),
                                 expected.out());
      const Tile<T> u = upload(runtime, data.u), g = upload(runtime, data.g);
      const Tile<sums::SquareSum> sums(runtime, 1, wavefront_sums),
          work(runtime, 1, cuda::wavefront_residual_scratch);
      Hints hints;
      hints.where = Where::cuda;
      wavefront::codelets::wavefront_residual<T>(args, {.u = u, .g = g, .sums = sums, .work = work}, hints);
      runtime.wait();
      const HostView<sums::SquareSum> made(sums, HostView<sums::SquareSum>::Access::read);
      for (Index k = 0; k < wavefront_sums; ++k)
        CHECK(static_cast<double>(made(0, k).total()) == doctest::Approx(expected[k]).epsilon(1e-12));
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
