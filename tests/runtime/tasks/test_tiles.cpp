// Tiles: extents, ownership of memory, views from the host, matrices cut into tiles.

#include "runtime/tile.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "../../support/matrix.hpp"
#include "../../support/tiles.hpp"
#include "runtime/codelet.hpp"
#include "runtime/hardware/pinned_buffer.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

using Access = HostView<double>::Access;

constexpr Index most = 4'294'967'295;  // 2^32 - 1

void cpu_scale(const double& factor, InOut<double> x) {
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.cols; ++j) x.row(i)[j] *= factor;
}
const Codelet<double, InOut<double>> scale{"test_scale_f64", cpu_scale};

void cpu_fill(const double& value, Out<double> x) {
  for (Index i = 0; i < x.rows; ++i) std::fill_n(x.row(i), x.cols, value);
}
const Codelet<double, Out<double>> fill{"test_fill_f64", cpu_fill};

/// Slow enough that a host that does not wait would see the old value.
void cpu_add_later(const double& value, InOut<double> x) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  *x.data += value;
}
const Codelet<double, InOut<double>> add_later{"test_add_later_f64", cpu_add_later};

}  // namespace

TEST_CASE("tiles: extents that cannot be are refused") {
  Runtime runtime;
  const auto owned = [&](Index rows, Index cols) { return Tile<double>(runtime, rows, cols); };
  double memory = 0;
  const auto borrowed = [&](Index rows, Index cols, Index ld) {
    return Tile<double>(runtime, &memory, rows, cols, ld);
  };
  CHECK_THROWS_WITH_AS(owned(0, 5), "tile is 0 x 5: every extent must be at least 1", Error);
  CHECK_THROWS_WITH_AS(owned(5, -1), "tile is 5 x -1: every extent must be at least 1", Error);
  CHECK_THROWS_WITH_AS(owned(most + 1, 1),
                       "tile is 4294967296 x 1 (rows 1 apart): no extent may pass 4294967295", Error);
  CHECK_THROWS_WITH_AS(owned(1, most + 1),
                       "tile is 1 x 4294967296 (rows 4294967296 apart): no extent may pass 4294967295",
                       Error);
  CHECK_THROWS_WITH_AS(borrowed(2, 2, most + 1),
                       "tile is 2 x 2 (rows 4294967296 apart): no extent may pass 4294967295", Error);
  CHECK_THROWS_WITH_AS(borrowed(2, 5, 3),
                       "tile has rows of 5 elements 3 apart: the distance must be at least the length",
                       Error);
  // More elements than 32 bits count: StarPU would allocate what is left after the overflow.
  CHECK_THROWS_WITH_AS(owned(65'536, 65'536),
                       "tile is 65536 x 65536: it may have 4294967295 elements at most; use smaller tiles",
                       Error);
  CHECK_THROWS_AS(owned(most, most), Error);
  CHECK_THROWS_WITH_AS(Tile<double>(runtime, 1, 1, 1), "tile of rank 1: there are ranks 0 to 0", Error);
  CHECK_THROWS_WITH_AS(Tile<double>(runtime, 1, 1, -1), "tile of rank -1: there are ranks 0 to 0", Error);
  CHECK(owned(most, 1).rows() == most);
  CHECK(owned(65'535, 65'537).cols() == 65'537);
}

TEST_CASE("tiles: reading what nobody wrote is refused") {
  Runtime runtime;
  const Tile<double> tile(runtime, 3, 4);
  CHECK_THROWS_WITH_AS(HostView<double>(tile, Access::read),
                       "a 3 x 4 tile is read from the host before anything was written to it", Error);
  CHECK_THROWS_AS(HostView<double>(tile, Access::read_write), Error);
  CHECK_THROWS_WITH_AS(scale(2, tile),
                       "task test_scale_f64 reads a 3 x 4 tile (port 0) before anything was written to it",
                       Error);
  fill(1, tile);
  scale(2, tile);
  CHECK(HostView<double>(tile, Access::read)(2, 3) == 2);
}

TEST_CASE("tiles: empty ones and those that were moved from are refused wherever they are used") {
  Runtime runtime;
  Tile<double> tile(runtime, 2, 3);
  const Tile<double> moved(std::move(tile)), empty;
  const char* const message =
      "this is an empty tile (default-constructed, or moved from): assign one of a Runtime to it first";
  for (const Tile<double>* none : {&std::as_const(tile), &empty}) {
    CHECK_THROWS_WITH_AS(static_cast<void>(none->rows()), message, Error);
    CHECK_THROWS_AS(static_cast<void>(none->cols()), Error);
    CHECK_THROWS_AS(static_cast<void>(none->owner()), Error);
    CHECK_THROWS_AS(none->wait(), Error);
    CHECK_THROWS_AS(none->fetch(), Error);
    CHECK_THROWS_AS(none->send_home(), Error);
    CHECK_THROWS_AS(none->forget(), Error);
    CHECK_THROWS_AS(none->wont_use(), Error);
    CHECK_THROWS_AS(none->return_home(), Error);
    CHECK_THROWS_AS(none->write_through(), Error);
    CHECK_THROWS_WITH_AS(HostView<double>(*none, Access::write), message, Error);
    CHECK_THROWS_WITH_AS(
        fill(1, *none, {.label = "slab 3"}),
        "task test_fill_f64 (slab 3): port 0 is an empty tile (default-constructed, or moved "
        "from): assign one of a Runtime to it first",
        Error);
  }
  fill(1, moved);
  CHECK(HostView<double>(moved, Access::read)(1, 2) == 1);
  Tiles<double> some(runtime, 4, 6, 2, 3);
  const Tiles<double> moved_all = std::move(some);
  CHECK(moved_all.count() == 4);
  CHECK(some.count() == 0);  // NOLINT: what is left of it
  CHECK(some.count_cols() == 0);
  CHECK(some.begin() == some.end());
  CHECK_THROWS_WITH_AS(Tiles<double>(std::vector<Tile<double>>{}),
                       "a column of 0 tiles: there must be at least 1", Error);
}

TEST_CASE("tiles: a Runtime that ends before them leaves borrowed memory complete and the tiles of no use") {
  auto runtime = std::make_unique<Runtime>();
  const PinnedBuffer buffer(*runtime, 6 * sizeof(double));
  auto* const memory = buffer.as<double>();
  Tile<double> borrowed(*runtime, memory, 2, 3, 3), owned(*runtime, 2, 3), never(*runtime, 2, 3);
  for (int k = 0; k < 3; ++k) add_later(1, borrowed);
  fill(1, owned);
  auto view = std::make_unique<HostView<double>>(owned, Access::read);
  runtime.reset();
  CHECK(memory[0] == 3);
  view.reset();
  for (const Tile<double>* tile : {&borrowed, &owned, &never}) {
    CHECK_THROWS_WITH_AS(HostView<double>(*tile, Access::write),
                         "this is a tile of a Runtime that has ended: make it anew", Error);
    CHECK_THROWS_AS(tile->wait(), Error);
  }
  Runtime next;
  CHECK_THROWS_WITH_AS(fill(1, owned),
                       "task test_fill_f64: port 0 is a tile of a Runtime that has ended: make it anew",
                       Error);
  owned = Tile<double>(next, 2, 3);
  fill(2, owned);
  CHECK(HostView<double>(owned, Access::read)(1, 2) == 2);
}

TEST_CASE("tiles: waiting for what nobody wrote, or bringing it, does nothing") {
  Runtime runtime;
  const Tile<double> tile(runtime, 2, 3);
  tile.wait();
  tile.fetch();
  tile.send_home();
  tile.wont_use();
  tile.forget();
  fill(1, tile);
  tile.forget();
  tile.wait();
  tile.fetch();
  runtime.wait();
}

TEST_CASE("tiles: a view outlives the move of its tile") {
  Runtime runtime;
  std::vector<Tile<double>> tiles;
  fill(3, tiles.emplace_back(runtime, 1, 1));
  {
    const HostView<double> view(tiles[0], Access::read_write);
    for (int k = 0; k < 100; ++k) tiles.emplace_back();
    CHECK(view.rows() == 1);
    view(0, 0) += 1;
  }
  CHECK(HostView<double>(tiles[0], Access::read)(0, 0) == 4);
}

TEST_CASE("tiles: views wait for the tasks before, tasks for the views before") {
  Runtime runtime;
  const Tile<double> tile(runtime, 1, 1);
  { HostView<double>(tile, Access::write)(0, 0) = 1; }
  for (int i = 0; i < 3; ++i) {
    add_later(1, tile);
    CHECK(HostView<double>(tile, Access::read)(0, 0) == 2 + 11 * i);
    {
      const HostView<double> view(tile, Access::read_write);
      add_later(9, tile);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      CHECK(view(0, 0) == 2 + 11 * i);
      view(0, 0) += 1;
    }
  }
  add_later(1, tile);
  { HostView<double>(tile, Access::write)(0, 0) = 100; }  // does not overtake the task
  CHECK(HostView<double>(tile, Access::read)(0, 0) == 100);
}

TEST_CASE("tiles: waiting for one is waiting for its tasks") {
  Runtime runtime;
  double number = 0;
  const Tile<double> tile(runtime, &number, 1, 1, 1);
  for (int k = 0; k < 3; ++k) add_later(1, tile);
  tile.wait();
  CHECK(number == 3);
  add_later(1, tile);
  CHECK(HostView<double>(tile, Access::read)(0, 0) == 4);
}

TEST_CASE("tiles: only tasks of a stream are counted for its room") {
  Runtime runtime;
  double numbers[2] = {0, 0};
  const Tile<double> stream(runtime, &numbers[0], 1, 1, 1), beside(runtime, &numbers[1], 1, 1, 1);
  for (int k = 0; k < 5; ++k) add_later(1, beside, {.streams = false});
  runtime.wait_for_room(1);  // for nothing: none of them counts
  add_later(1, stream);
  runtime.wait_for_room(1);
  CHECK(numbers[0] == 1);
  runtime.wait();
  CHECK(numbers[1] == 5);
}

TEST_CASE("tiles: no GPU keeps what there is no GPU for") {
  Runtime runtime({.gpus = 0});
  CHECK_THROWS_WITH_AS(Tile<double>::kept_on_gpu(runtime, 2, 2, 0),
                       "tile for GPU 0: there are 0, counted from 0", Error);
}

TEST_CASE("tiles: one that is kept at home is as any other without GPUs") {
  Runtime runtime({.gpus = 0});
  const Tile<double> tile = Tile<double>::kept_at_home(runtime, 1, 1);
  fill(5, tile);
  tile.send_home();
  add_later(1, tile);
  CHECK(HostView<double>(tile, Access::read)(0, 0) == 6);
  tile.forget();
  fill(7, tile);
  CHECK(HostView<double>(tile, Access::read)(0, 0) == 7);
}

TEST_CASE("tiles: two may read at once") {
  Runtime runtime;
  const Tile<double> tile(runtime, 1, 1);
  fill(5, tile);
  const HostView<double> one(tile, Access::read), other(tile, Access::read);
  CHECK(one(0, 0) == other(0, 0));
}

TEST_CASE("tiles: borrowed memory is up to date when the tile has ended, and its padding untouched") {
  Runtime runtime;
  Matrix<double> matrix(5, 7);
  matrix.fill([](Index i, Index j) { return 10 * i + j; });
  {
    const Tile<double> tile(runtime, &matrix(0, 0), 5, 7, 10);
    for (int i = 0; i < 3; ++i) scale(2, tile);
    add_later(1, tile);
    CHECK(tile.rows() == 5);
    CHECK(tile.cols() == 7);
    CHECK(tile.owner() == 0);
  }
  CHECK(matrix(0, 0) == 1);
  CHECK(matrix(4, 6) == 8 * 46);
  CHECK(matrix.guarded());
}

TEST_CASE("tiles: a view of a borrowed tile has the caller's rows") {
  Runtime runtime;
  Matrix<double> matrix(3, 4);
  matrix.fill([](Index i, Index j) { return 10 * i + j; });
  const Tile<double> tile(runtime, &matrix(0, 0), 3, 4, 7);
  const HostView<double> view(tile, Access::read_write);
  CHECK(view.row(2) == &matrix(2, 0));
  CHECK(view.ld() == 7);
  CHECK(view.rows() == 3);
  CHECK(view.cols() == 4);
}

TEST_CASE("tiles: moved, assigned over, ended while their tasks wait") {
  Runtime runtime;
  Tile<double> empty;
  Tile<double> first(runtime, 2, 2);
  fill(1, first);
  Tile<double> second = std::move(first);
  scale(3, second);
  empty = std::move(second);
  CHECK(HostView<double>(empty, Access::read)(1, 1) == 3);
  Tile<double> third(runtime, 1, 1);
  fill(7, third);
  empty = std::move(third);
  CHECK(empty.rows() == 1);
  CHECK(HostView<double>(empty, Access::read)(0, 0) == 7);

  for (int i = 0; i < 20; ++i) {
    const Tile<double> brief(runtime, 1, 1);
    fill(i, brief);
    add_later(1, brief);
  }
  runtime.wait();
}

TEST_CASE("tiles: hints change nothing that can be seen") {
  Runtime runtime;
  double value = 1;
  {
    const Tile<double> owned(runtime, 4, 4), borrowed(runtime, &value, 1, 1, 1);
    fill(1, owned);
    for (const Tile<double>* tile : {&owned, &borrowed}) {
      tile->write_through();
      for (int i = 0; i < 5; ++i) {
        scale(2, *tile);
        tile->fetch();
        scale(2, *tile);
        tile->wont_use();
      }
      CHECK(HostView<double>(*tile, Access::read)(0, 0) == 1024);
    }
  }
  CHECK(value == 1024);
}

TEST_CASE("tiles: matrices are cut as they come out") {
  Runtime runtime;
  for (const auto& [rows, cols, tile_rows, tile_cols] : std::vector<std::array<Index, 4>>{
           {1, 1, 1, 1}, {7, 5, 3, 2}, {6, 4, 3, 2}, {5, 3, 8, 9}, {1, 13, 1, 4}}) {
    CAPTURE(rows);
    CAPTURE(cols);
    Matrix<double> matrix(rows, cols);
    matrix.fill([](Index i, Index j) { return 100 * i + j; });
    {
      const Tiles<double> tiles(
          runtime, rows, cols, tile_rows, tile_cols, {},
          [&](Index i, Index j) { return &matrix(i * tile_rows, j * tile_cols); }, cols + 3);
      CHECK(tiles.count_rows() == (rows + tile_rows - 1) / tile_rows);
      CHECK(tiles.count() == tiles.count_rows() * tiles.count_cols());
      Index sum = 0;
      for (Index k = 0; k < tiles.count(); ++k) {
        sum += tiles[k].rows() * tiles[k].cols();
        scale(static_cast<double>(k + 1), tiles[k]);
      }
      CHECK(sum == rows * cols);
      const Index i = tiles.count_rows() - 1, j = tiles.count_cols() - 1;
      CHECK(&tiles(i, j) == &tiles[tiles.count() - 1]);
      CHECK(tiles(i, j).rows() == rows - i * tile_rows);
      CHECK(tiles(i, j).cols() == cols - j * tile_cols);
    }
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j) {
        const Index k = i / tile_rows * ((cols + tile_cols - 1) / tile_cols) + j / tile_cols;
        CHECK(matrix(i, j) == static_cast<double>((100 * i + j) * (k + 1)));
      }
    CHECK(matrix.guarded());
  }
  CHECK_THROWS_WITH_AS(Tiles<double>(runtime, 5, 0, 1, 1),
                       "cannot cut 5 x 0 elements into tiles of 1 x 1: every extent must be at least 1",
                       Error);
  CHECK_THROWS_AS(Tiles<double>(runtime, 5, 5, 0, 1), Error);
}

TEST_CASE("tiles: those that are not there are told by their numbers") {
  Runtime runtime;
  const Tiles<double> tiles(runtime, 4, 6, 2, 2);
  CHECK_THROWS_WITH_AS(fill(1, tiles[6]), "there is no tile 6: there are 6, counted from 0", Error);
  CHECK_THROWS_WITH_AS(fill(1, tiles[-1]), "there is no tile -1: there are 6, counted from 0", Error);
  CHECK_THROWS_WITH_AS(fill(1, tiles(0, 3)), "there is no tile (0, 3): there are 2 x 3, counted from 0",
                       Error);
  CHECK_THROWS_WITH_AS(fill(1, tiles(2, 0)), "there is no tile (2, 0): there are 2 x 3, counted from 0",
                       Error);
}

TEST_CASE("tiles: as many as can be counted, however large") {
  Runtime runtime;
  constexpr Index vast = Index{1} << 40, largest = std::numeric_limits<Index>::max();
  CHECK_THROWS_WITH_AS(
      Tiles<double>(runtime, vast, vast, 1, 1),
      "cannot cut a matrix into 1099511627776 x 1099511627776 tiles: those are too many to be "
      "counted; use larger ones",
      Error);
  CHECK(Tiles<double>(runtime, 2, 3, largest, largest).count() == 1);
}

TEST_CASE("tiles: slabs of given heights") {
  Runtime runtime;
  for (const std::vector<Index>& heights :
       std::vector<std::vector<Index>>{{1}, {4, 4, 4}, {3, 3, 1, 3, 3, 1}, {1, 7, 2}}) {
    const Index rows = std::accumulate(heights.begin(), heights.end(), Index{0}), cols = 5;
    CAPTURE(rows);
    std::vector<Index> first(heights.size());
    std::exclusive_scan(heights.begin(), heights.end(), first.begin(), Index{0});
    const auto row = [&](Index k) { return first[static_cast<std::size_t>(k)]; };
    for (const bool dense : {false, true}) {
      Matrix<double> padded(rows, cols);  // rows cols + 3 apart
      std::vector<double> packed(static_cast<std::size_t>(rows * cols));
      const auto at = [&](Index i, Index j) -> double& {
        return dense ? packed[static_cast<std::size_t>(i * cols + j)] : padded(i, j);
      };
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < cols; ++j) at(i, j) = static_cast<double>(100 * i + j);
      {
        const Tiles<double> tiles(
            runtime, heights, cols, [](Index, Index) { return 0; },
            [&](Index k, Index j) { return &at(row(k), j); }, dense ? 0 : cols + 3);
        CHECK(tiles.count_rows() == static_cast<Index>(heights.size()));
        CHECK(tiles.count_cols() == 1);
        CHECK(tiles.count() == tiles.count_rows());
        CHECK(tiles.tile_rows() == *std::max_element(heights.begin(), heights.end()));
        CHECK(tiles.tile_cols() == cols);
        for (Index k = 0; k < tiles.count(); ++k) {
          CHECK(tiles[k].rows() == heights[static_cast<std::size_t>(k)]);
          CHECK(tiles[k].cols() == cols);
          CHECK(&tiles(k, 0) == &tiles[k]);
          scale(static_cast<double>(k + 1), tiles[k]);
        }
      }
      for (Index i = 0; i < rows; ++i) {
        const Index k = std::upper_bound(first.begin(), first.end(), i) - first.begin();  // counted from 1
        for (Index j = 0; j < cols; ++j) CHECK(at(i, j) == static_cast<double>((100 * i + j) * k));
      }
      CHECK(padded.guarded());
    }
  }
  const Tiles<double> owned(runtime, {2, 3}, 4, {}, {});  // memory of the runtime
  fill(7, owned[1]);
  CHECK(HostView<double>(owned[1], Access::read)(2, 3) == 7);
  CHECK_THROWS_WITH_AS(Tiles<double>(runtime, std::vector<Index>{}, 5, {}, {}),
                       "cannot cut a matrix into 0 slabs: there must be at least 1", Error);
  CHECK_THROWS_WITH_AS(Tiles<double>(runtime, {3, 0, 3}, 5, {}, {}),
                       "cannot cut a slab of 0 x 5 elements (number 1): every extent must be at least 1",
                       Error);
  CHECK_THROWS_AS(Tiles<double>(runtime, {3, 3}, 0, {}, {}), Error);
  CHECK_THROWS_AS(Tiles<double>(runtime, {3, 3}, 5, [](Index k, Index) { return static_cast<int>(k); }, {}),
                  Error);  // there is no rank 1
}

TEST_CASE("tiles: four times the memory limit passes through the disk") {
  const std::filesystem::path folder = std::filesystem::absolute("spilled");
  std::filesystem::create_directories(folder);
  {
    Options options;
    options.gpus = 0;
    options.cpu_memory = std::size_t{32} << 20;
    options.spill = folder;
    options.spill_bytes = std::size_t{512} << 20;
    Runtime runtime(options);
    std::vector<Tile<double>> tiles;
    for (int k = 0; k < 64; ++k) {
      tiles.emplace_back(runtime, 512, 512);  // 2 MiB
      fill(k, tiles.back());
    }
    runtime.wait();
    for (const Tile<double>& tile : tiles) scale(2, tile);
    for (int k = 0; k < 64; ++k) {
      CAPTURE(k);
      const HostView<double> view(tiles[static_cast<std::size_t>(k)], Access::read);
      CHECK(view(0, 0) == 2 * k);
      CHECK(view(511, 511) == 2 * k);
    }
    CHECK(runtime.traffic().to_disk >= std::int64_t{96} << 20);
    CHECK(runtime.traffic().from_disk >= std::int64_t{96} << 20);
    CHECK(runtime.machine().capacity(MemoryKind::disk) > 0);
  }
  CHECK(std::filesystem::is_empty(folder));
}
