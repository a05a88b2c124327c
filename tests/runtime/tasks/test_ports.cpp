// Ports beyond one tile each: lists, optional ones, structs with names.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "numbered_tiles.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

/// The first elements as the digits of a number, so that their order shows.
void cpu_join(Many<In<double>> parts, Out<double> joined) {
  *joined.data = 0;
  for (const In<double>& part : parts) *joined.data = 10 * *joined.data + *part.data;
}
const Codelet join{"test_join", cpu_join};

void cpu_sum(Many<In<double>> parts, Out<double> sum) {
  *sum.data = 0;
  for (Index k = 0; k < parts.size(); ++k)
    for (Index i = 0; i < parts[k].rows; ++i)
      *sum.data += std::accumulate(parts[k].row(i), parts[k].row(i) + parts[k].cols, 0.0);
}
const Codelet sum{"test_sum", cpu_sum};

}  // namespace

TEST_CASE("ports: a list of tiles comes in its order, however it is given") {
  Runtime runtime;
  const std::vector<Tile<double>> tiles = numbered(runtime, 3);
  const Tile<double>&a = tiles[0], &b = tiles[1], &c = tiles[2];
  const Tile<double> joined(runtime, 1, 1);
  join({a, b, c}, joined);
  CHECK(value(joined) == 123);
  join({}, {c, b, a}, joined, {.label = "backwards"});
  CHECK(value(joined) == 321);
  join({}, {b}, joined);
  CHECK(value(joined) == 2);
  join(tiles, joined);
  CHECK(value(joined) == 123);
  join(std::vector<const Tile<double>*>{&c, &a, &b, &a}, joined);  // one of them twice
  CHECK(value(joined) == 3121);
  join(std::span(tiles).subspan(1), joined);
  CHECK(value(joined) == 23);
  join(std::vector<std::reference_wrapper<const Tile<double>>>{b, a}, joined);
  CHECK(value(joined) == 21);

  const Tiles<double> grid(runtime, 2, 3, 1, 1);
  for (Index k = 0; k < grid.count(); ++k) set(static_cast<double>(k + 1), grid[k]);
  join(grid, joined);
  CHECK(value(joined) == 123456);

  TileList<double> list;  // made once, for many tasks
  for (Index k = 0; k < grid.count(); k += 2) list.add(grid[k]);
  CHECK(list.size() == 3);
  for (int i = 0; i < 3; ++i) {
    join(list, joined);
    CHECK(value(joined) == 135);
    list.add(grid[1]);
    join(list, joined);
    list = TileList<double>{grid[0], grid[2], grid[4]};
    CHECK(value(joined) == 1352);
  }
}

TEST_CASE("ports: lists of no tile, and of far more than StarPU has places for") {
  Runtime runtime;
  const Tile<double> result(runtime, 1, 1);
  for (const int count : {0, 1, 2, 15, 16, 17, 100, 1000}) {
    CAPTURE(count);
    std::vector<Tile<double>> tiles;
    double expected = 0;
    for (int k = 0; k < count; ++k) {  // of many sizes
      const Index rows = 1 + k % 3, cols = 1 + k % 7;
      set(k, tiles.emplace_back(runtime, rows, cols));
      expected += static_cast<double>(k * rows * cols);
    }
    sum(tiles, result);
    CHECK(value(result) == expected);
    sum({}, tiles, result);
    CHECK(value(result) == expected);
  }
}

TEST_CASE("ports: lists of tiles that a task changes or writes, beside others") {
  Runtime runtime;
  // Each number goes through all the lists.
  const Codelet spread{
      "test_spread", +[](const double& factor, In<double> first, Many<Out<double>> written, Many<InOut<double>> changed,
                         Many<In<double>> read, Many<Scratch<double>> work, InOut<double> last) {
        double total = 0;
        for (const In<double>& x : read) total += *x.data;
        for (Index k = 0; k < work.size(); ++k) *work[k].data = factor * static_cast<double>(k);
        for (Index k = 0; k < written.size(); ++k) *written[k].data = *first.data + *work[k].data;
        for (const InOut<double>& x : changed) *x.data += total;
        *last.data += static_cast<double>(written.size());
      }};
  const std::vector<Tile<double>> read = numbered(runtime, 30), changed = numbered(runtime, 20);
  std::vector<Tile<double>> written, work;
  for (int k = 0; k < 25; ++k) written.emplace_back(runtime, 1, 1), work.emplace_back(runtime, 1, 1);
  const Tile<double> first(runtime, 1, 1), last(runtime, 1, 1);
  set(100, first);
  set(0, last);
  for (int i = 0; i < 3; ++i) spread(2, first, written, changed, read, work, last);
  for (int k = 0; k < 25; ++k) CHECK(value(written[static_cast<std::size_t>(k)]) == 100 + 2 * k);
  for (int k = 0; k < 20; ++k) CHECK(value(changed[static_cast<std::size_t>(k)]) == k + 1 + 3 * 465);
  CHECK(value(last) == 75);
  spread(1, first, {}, {}, {}, {}, last);
  CHECK(value(last) == 75);

  const Codelet only_lists{"test_only_lists", +[](Many<In<double>>, Many<Out<double>> out) {
                             for (const Out<double>& x : out) *x.data = 7;
                           }};
  only_lists({}, written);
  CHECK(value(written[24]) == 7);
  CHECK(refusal([&] { only_lists(read, {}); }) == "task test_only_lists writes no tile: it would have no effect");
  CHECK(refusal([&] { only_lists({}, {}); }) == "task test_only_lists writes no tile: it would have no effect");
}

TEST_CASE("ports: a task may change one of the tiles that it reads in a list") {
  Runtime runtime;
  const std::vector<Tile<double>> tiles = numbered(runtime, 20);
  const Codelet add_all{"test_add_all", +[](Many<In<double>> all, InOut<double> x) {
                          double total = 0;
                          for (const In<double>& y : all) total += *y.data;
                          *x.data = total;
                        }};
  std::vector<double> expected(20);
  std::iota(expected.begin(), expected.end(), 1);
  for (std::size_t i = 0; i < 40; ++i) {
    add_all(tiles, tiles[i % 20]);
    expected[i % 20] = std::accumulate(expected.begin(), expected.end(), 0.0);
  }
  for (std::size_t k = 0; k < 20; ++k) CHECK(value(tiles[k]) == expected[k]);

  const Codelet overwrite{"test_overwrite", +[](Many<In<double>> all, Many<Out<double>> out) {
                            for (Index k = 0; k < out.size(); ++k) *out[k].data = *all[k].data + 1;
                          }};
  overwrite(tiles, tiles);
  for (std::size_t k = 0; k < 20; ++k) CHECK(value(tiles[k]) == expected[k] + 1);
  const Codelet work{"test_work", +[](In<double>, Scratch<double>, Out<double>) {}};
  const Tile<double> x(runtime, 1, 1);
  CHECK(refusal([&] { work(tiles[0], x, x); }) ==
        "task test_work: port 2 is the tile of another port, and one of them is scratch: give each its own");
  CHECK(refusal([&] { work(x, x, tiles[0]); }).find("before anything was written") != std::string::npos);
  CHECK(refusal([&] { work(tiles[0], tiles[0], x); }) ==
        "task test_work: port 1 is the tile of another port, and one of them is scratch: give each its own");
  runtime.wait();
}

TEST_CASE("ports: more than sixteen, one by one") {
  using I = In<double>;
  const Codelet<NoArgs, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, Out<double>> twenty{
      "test_twenty",
      [](I a, I b, I c, I d, I e, I f, I g, I h, I i, I j, I k, I l, I m, I n, I o, I p, I q, I r, I s, Out<double> x) {
        *x.data = 0;
        double weight = 1;
        for (const I& port : {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s})
          *x.data += weight++ * *port.data;
      }};
  Runtime runtime;
  const std::vector<Tile<double>> t = numbered(runtime, 19);
  const Tile<double> x(runtime, 1, 1);
  twenty(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9], t[10], t[11], t[12], t[13], t[14], t[15], t[16],
         t[17], t[18], x);
  CHECK(value(x) == 19 * 20 * 39 / 6);
}

TEST_CASE("ports: messages tell the port and the place in a list") {
  Options options;
  options.gpus = 0;
  options.cpu_memory = std::size_t{20} << 20;
  Runtime runtime(options);
  std::vector<Tile<double>> tiles = numbered(runtime, 3);
  const Tile<double> result(runtime, 1, 1), unwritten(runtime, 2, 5), empty;
  CHECK(refusal([&] {
          sum({tiles[0], unwritten}, result);
        }) == "task test_sum reads a 2 x 5 tile (port 0, tile 1) before anything was written to it");
  CHECK(refusal([&] {
          sum({}, {tiles[0], tiles[1], empty}, result, {.label = "slab 3"});
        }) ==
        "task test_sum (slab 3): port 0, tile 2 is an empty tile (default-constructed, or moved from): assign one of a "
        "Runtime to it first");
  CHECK(refusal([&] { sum(std::vector<const Tile<double>*>{nullptr}, result); }) ==
        "task test_sum: port 0, tile 0 is nullptr: leave it out of the list");
  CHECK(refusal([&] { sum(tiles, empty); }).starts_with("task test_sum: port 1 is an empty tile"));
  CHECK(refusal([&] { sum(std::vector<const Tile<double>*>(70'000, tiles.data()), result); }) ==
        "task test_sum has 70001 tiles: there may be 65536; give them to several tasks");
  CHECK_THROWS_AS(static_cast<void>(value(result)), Error);  // what was refused did not count as written

  const Codelet write{"test_write", +[](Many<Out<double>>, Out<double>) {}};
  const Tile<double> wide(runtime, 1, 9);
  std::vector<Tile<double>> large;
  for (int k = 0; k < 30; ++k) large.emplace_back(runtime, 128, 1024);  // 1 MiB
  const std::string text = refusal([&] { write(large, wide, {.where = Where::cpu}); });
  CHECK_MESSAGE(
      text.find("but its tiles (30 times 128 x 1024 of 8 bytes, 1 x 9 of 8 bytes) need 30.0 MiB at once, main "
                "memory has 20.0 MiB") != std::string::npos,
      text);
  runtime.wait();
}

TEST_CASE("ports: what a task fails to write is lost in all its lists") {
  Runtime runtime;
  const std::vector<Tile<double>> tiles = numbered(runtime, 20);
  const Tile<double> other(runtime, 1, 1);
  const Codelet fails{"test_many_fail", +[](Many<InOut<double>>) { throw Error("not today"); }};
  fails(tiles);
  sum(tiles, other);  // skipped
  CHECK_THROWS_WITH_AS(runtime.wait(), "task test_many_fail failed: not today", TaskFailure);
  for (const Tile<double>& tile : tiles) CHECK_THROWS_AS(static_cast<void>(value(tile)), TaskFailure);
  CHECK_THROWS_AS(static_cast<void>(value(other)), TaskFailure);
  CHECK(refusal([&] { sum(tiles, other); }) ==
        "task test_sum reads a 1 x 1 tile (port 0, tile 0) whose content is lost, because task test_many_fail failed: "
        "not today; write the tile anew before it is read");
  runtime.wait();
}

TEST_CASE("ports: optional ones") {
  const Codelet add{"test_optional",
                    +[](In<double> x, Optional<In<double>> before, Optional<InOut<double>> count, Out<double> y) {
                      *y.data = *x.data;
                      if (before) *y.data += 10 * *before.data + 100 * static_cast<double>(before.rows * before.cols);
                      if (!before)
                        *y.data += before.data == nullptr && before.rows + before.cols + before.ld == 0 ? 0.25 : 0.5;
                      if (count) ++*count.data;
                    }};
  Runtime runtime;
  const std::vector<Tile<double>> x = numbered(runtime, 3);
  const Tile<double> y(runtime, 1, 1), count(runtime, 1, 1), empty;
  set(0, count);
  add(x[0], nullptr, nullptr, y);
  CHECK(value(y) == 1.25);
  add(x[0], x[1], nullptr, y);
  CHECK(value(y) == 121);
  add({}, x[0], nullptr, count, y, {.label = "first"});
  CHECK(value(y) == 1.25);
  for (std::size_t k = 0; k < 3; ++k) add(x[k], k > 0 ? &x[k - 1] : nullptr, {}, y);
  CHECK(value(y) == 123);
  add(x[2], x[2], count, y);
  CHECK(value(y) == 133);
  CHECK(value(count) == 2);
  CHECK(refusal([&] { add(x[0], empty, nullptr, y); }).starts_with("task test_optional: port 1 is an empty tile"));
  CHECK(refusal([&] { add(empty, nullptr, nullptr, y); }).starts_with("task test_optional: port 0 is an empty tile"));
  CHECK(
      refusal([&] { add(x[0], nullptr, nullptr, empty); }).starts_with("task test_optional: port 3 is an empty tile"));

  const Codelet maybe{"test_maybe", +[](In<double>, Optional<Out<double>>) {}};
  CHECK(refusal([&] { maybe(x[0], nullptr); }) == "task test_maybe writes no tile: it would have no effect");
}

namespace {

template <template <class> class As>
struct AxpyPorts {
  As<In<double>> x;
  As<InOut<double>> y;
};

template <template <class> class As, class T>
struct Csr {
  As<In<std::int64_t>> row_starts;
  As<In<std::int32_t>> columns;
  As<In<T>> values;
};

template <template <class> class As, class T>
struct ProductPorts {
  Csr<As, T> matrix;
  As<Many<In<T>>> x;  // in parts
  As<Optional<In<T>>> scale;
  As<Out<T>> y;
};

template <class T>
void cpu_product(const T& shift, ProductPorts<AsPorts, T> p) {
  std::vector<T> x;
  for (const In<T>& part : p.x) x.insert(x.end(), part.data, part.data + part.cols);
  for (Index i = 0; i < p.y.cols; ++i) {
    T product = 0;
    for (auto k = p.matrix.row_starts.data[i]; k < p.matrix.row_starts.data[i + 1]; ++k)
      product += p.matrix.values.data[k] * x.at(static_cast<std::size_t>(p.matrix.columns.data[k]));
    p.y.data[i] = (p.scale ? *p.scale.data : 1) * product + shift;
  }
}

template <class T>
Tile<T> row_of(Runtime& runtime, const std::vector<T>& values) {
  Tile<T> tile(runtime, 1, static_cast<Index>(values.size()));
  std::copy(values.begin(), values.end(), HostView<T>(tile, HostView<T>::Access::write).row(0));
  return tile;
}

}  // namespace

TEST_CASE("ports: named in a struct") {
  const Codelet axpy{"test_named_axpy", +[](const double& a, AxpyPorts<AsPorts> p) { *p.y.data += a * *p.x.data; }};
  const Codelet bare{"test_named_bare", +[](AxpyPorts<AsPorts> p) { *p.y.data -= *p.x.data; }};
  Runtime runtime;
  const Tile<double> x(runtime, 1, 1), y(runtime, 1, 1), unwritten(runtime, 1, 1), empty;
  set(3, x);
  set(1, y);
  axpy(2.0, {.x = x, .y = y});
  CHECK(value(y) == 7);
  axpy(2.0, {.x = x, .y = y}, {.label = "slab 3"});
  CHECK(value(y) == 13);
  bare({.x = x, .y = y});
  bare({}, {.x = x, .y = y}, {.priority = 1});
  CHECK(value(y) == 7);
  const AxpyPorts<AsTiles> both{.x = y, .y = x};
  axpy(1.0, both);
  CHECK(value(x) == 10);
  CHECK(refusal([&] { axpy(2.0, {.x = x, .y = unwritten}); }) ==
        "task test_named_axpy reads a 1 x 1 tile (port 1) before anything was written to it");
  CHECK(refusal([&] { axpy(2.0, {.x = empty, .y = y}); }).starts_with("task test_named_axpy: port 0 is an empty tile"));
}

TEST_CASE_TEMPLATE("ports: structs in a struct, with lists and optional ports", T, float, double) {
  const Codelet<T, ProductPorts<AsPorts, T>> product{typed_name<T>("test_product"), cpu_product<T>};
  Runtime runtime;
  // 1 2 0
  // 0 0 3
  const Tile<std::int64_t> row_starts = row_of<std::int64_t>(runtime, {0, 2, 3});
  const Tile<std::int32_t> columns = row_of<std::int32_t>(runtime, {0, 1, 2});
  const Tile<T> values = row_of<T>(runtime, {1, 2, 3}), left = row_of<T>(runtime, {1, 10}),
                right = row_of<T>(runtime, {100}), a_half = row_of<T>(runtime, {0.5}), y(runtime, 1, 2);
  const Csr<AsTiles, T> matrix{row_starts, columns, values};
  const auto result = [&] {
    const HostView<T> view(y, HostView<T>::Access::read);
    return std::vector<T>{view(0, 0), view(0, 1)};
  };
  product(0, {.matrix = matrix, .x = {left, right}, .scale = nullptr, .y = y});
  CHECK(result() == std::vector<T>{21, 300});
  product(1, {.matrix = {.row_starts = row_starts, .columns = columns, .values = values},
              .x = {left, right},
              .scale = a_half,
              .y = y});
  CHECK(result() == std::vector<T>{11.5, 151});
  const Tile<T> unwritten(runtime, 1, 1);
  CHECK(refusal([&] {
          product(0, {.matrix = matrix, .x = {left, unwritten}, .scale = a_half, .y = y});
        }) == "task " + product.name() + " reads a 1 x 1 tile (port 3, tile 1) before anything was written to it");
  CHECK(refusal([&] { product(0, {.matrix = matrix, .x = {left}, .scale = unwritten, .y = y}); }) ==
        "task " + product.name() + " reads a 1 x 1 tile (port 4) before anything was written to it");
}

namespace {

template <template <class> class As>
struct Sixteen {
  As<In<double>> a, b, c, d, e, f, g, h, i, j, k, l, m, n, o;
  As<Out<double>> p;
};
template <template <class> class As>
struct One {
  As<Many<In<double>>> only;
};

}  // namespace

TEST_CASE("ports: the largest struct and the smallest") {
  const Codelet digits{
      "test_struct_sizes", +[](Sixteen<AsPorts> s, One<AsPorts> more) {
        *s.p.data = 0;
        for (const In<double>& x : {s.a, s.b, s.c, s.d, s.e, s.f, s.g, s.h, s.i, s.j, s.k, s.l, s.m, s.n, s.o})
          *s.p.data = 10 * *s.p.data + *x.data;
        *s.p.data += 0.5 * static_cast<double>(more.only.size());
      }};
  Runtime runtime;
  std::vector<Tile<double>> t;
  for (int k = 0; k < 15; ++k) set((k + 1) % 10, t.emplace_back(runtime, 1, 1));
  const Tile<double> p(runtime, 1, 1);
  digits({t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9], t[10], t[11], t[12], t[13], t[14], p},
         {.only = {t[0], t[1], t[2]}});
  CHECK(value(p) == 123456789012345 + 1.5);
}

#ifdef ASTERISM_WITH_CUDA

TEST_CASE("gpu: lists, optional ports and structs reach a CUDA kernel's host code, with data that is on the GPU") {
  Options options;
  options.gpus = 1;
  Runtime runtime(options);
  struct Seen {
    Index size = 0;
    bool all_there = true, none = false, scratch = false;
  };
  const Codelet<std::shared_ptr<Seen>, Many<InOut<double>>, Optional<In<double>>, Csr<AsPorts, float>,
                Scratch<std::int32_t>>
      look{"test_gpu_ports", nullptr,
           [](Stream, const std::shared_ptr<Seen>& seen, Many<InOut<double>> list, Optional<In<double>> none,
              Csr<AsPorts, float> matrix, Scratch<std::int32_t> work) {
             seen->size = list.size();
             for (const InOut<double>& x : list)
               seen->all_there = seen->all_there && x.data != nullptr && x.cols == 100;
             seen->none = !none;
             seen->scratch = work.data != nullptr && work.cols == 33 && matrix.values.cols == 3;
           }};
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < 40; ++k) set(k, tiles.emplace_back(runtime, 1, 100));
  const Tile<std::int64_t> row_starts = row_of<std::int64_t>(runtime, {0, 2, 3});
  const Tile<std::int32_t> columns = row_of<std::int32_t>(runtime, {0, 1, 2}), work(runtime, 1, 33);
  const Tile<float> values = row_of<float>(runtime, {1, 2, 3});
  const auto seen = std::make_shared<Seen>();
  look(seen, tiles, nullptr, {row_starts, columns, values}, work);
  runtime.wait();
  CHECK(seen->size == 40);
  CHECK(seen->all_there);
  CHECK(seen->none);
  CHECK(seen->scratch);
  CHECK(runtime.traffic().to_device >= 40 * 100 * 8 + 3 * (8 + 4 + 4));
  for (int k = 0; k < 40; ++k) CHECK(value(tiles[static_cast<std::size_t>(k)]) == k);
}

#endif
