// Lists of tiles, optional ports, structs of ports and commuting updates on one rank and on several.

#include <doctest/doctest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/codelet.hpp"

using namespace asterism;

namespace {

const Codelet set{"test_ranks_set", +[](const double& value, Out<double> x) { std::fill_n(x.data, x.cols, value); }};

void cpu_gather(Many<In<double>> parts, Out<double> all) {
  for (Index k = 0; k < parts.size(); ++k) all.data[k] = parts[k].data[parts[k].cols - 1];
}
const Codelet gather{"test_ranks_gather", cpu_gather};

void cpu_add(In<double> x, Commute<double> total) { *total.data += *x.data; }
const Codelet add{"test_ranks_commute", cpu_add};

/// 1, 2, ..., count in tiles of 1 x 3, rank 0's, rank 1's, and so on in turn.
std::vector<Tile<double>> numbered(Runtime& runtime, int count) {
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < count; ++k) set(k + 1, tiles.emplace_back(runtime, 1, 3, k % runtime.ranks()));
  return tiles;
}

/// On the owner's rank, that a tile has this row.
template <class T>
void check(const Runtime& runtime, const Tile<T>& tile, const std::vector<T>& expected) {
  if (tile.owner() != runtime.rank()) return;
  const HostView<T> view(tile, HostView<T>::Access::read);
  CHECK(std::equal(expected.begin(), expected.end(), view.row(0)));
}

}  // namespace

TEST_CASE("ranks: lists of tiles of all ranks, on every rank") {
  Runtime runtime;
  const int ranks = runtime.ranks();
  for (const int count : {3, 16, 17, 20, 100}) {
    CAPTURE(count);
    const std::vector<Tile<double>> tiles = numbered(runtime, count);
    const std::int64_t before = runtime.traffic().between_ranks;
    std::vector<double> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 1);
    std::vector<Tile<double>> results;
    for (int r = 0; r < ranks; ++r) gather(tiles, results.emplace_back(runtime, 1, count, r));
    for (const Tile<double>& result : results) gather(tiles, result);  // what came once is kept
    for (const Tile<double>& result : results) check(runtime, result, numbers);
    runtime.wait();
    std::int64_t expected = 0;
    for (const Tile<double>& tile : tiles) expected += tile.owner() == runtime.rank() ? 0 : 24;
    CHECK(runtime.traffic().between_ranks - before == expected);
    set(1000, tiles.back());  // comes again
    numbers.back() = 1000;
    gather(tiles, results.front());
    check(runtime, results.front(), numbers);
    runtime.wait();
  }
}

TEST_CASE("ranks: a task changes one of the tiles of all ranks that it reads") {
  Runtime runtime;
  const std::vector<Tile<double>> tiles = numbered(runtime, 20);
  const Codelet add_all{"test_ranks_add_all", +[](Many<In<double>> all, InOut<double> x) {
                          double total = 0;
                          for (const In<double>& y : all) total += *y.data;
                          std::fill_n(x.data, x.cols, total);
                        }};
  std::vector<double> expected(20);
  std::iota(expected.begin(), expected.end(), 1);
  for (std::size_t i = 0; i < 40; ++i) {
    add_all(tiles, tiles[i % 20]);
    expected[i % 20] = std::accumulate(expected.begin(), expected.end(), 0.0);
  }
  for (std::size_t k = 0; k < 20; ++k) check(runtime, tiles[k], std::vector<double>(3, expected[k]));
  runtime.wait();
}

TEST_CASE("ranks: what a list writes belongs to one rank") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Codelet scatter{"test_ranks_scatter", +[](In<double> x, Many<Out<double>> parts) {
                          for (Index k = 0; k < parts.size(); ++k) *parts[k].data = *x.data + static_cast<double>(k);
                        }};
  const Tile<double> x(runtime, 1, 1, 0);
  set(5, x);
  std::vector<Tile<double>> parts;
  for (int k = 0; k < 30; ++k) parts.emplace_back(runtime, 1, 1, last);
  scatter(x, parts);
  for (int k = 0; k < 30; ++k) check(runtime, parts[static_cast<std::size_t>(k)], {5.0 + k});
  if (runtime.ranks() > 1)
    CHECK_THROWS_WITH_AS(scatter(x, {parts[0], x}),
                         ("task test_ranks_scatter writes tiles of rank " + std::to_string(last) +
                          " and of rank 0: it can run on one rank only; choose it with Hints::rank")
                             .c_str(),
                         Error);
  runtime.wait();
}

namespace {

template <template <class> class As>
struct Csr {
  As<In<std::int64_t>> row_starts;
  As<In<std::int32_t>> columns;
  As<In<std::complex<double>>> values;
};

template <template <class> class As>
struct ProductPorts {
  Csr<As> matrix;
  As<Many<In<double>>> x;
  As<Optional<In<double>>> shift;
  As<Out<double>> y;
};

template <class T>
Tile<T> row_of(Runtime& runtime, const std::vector<T>& values, int owner) {
  Tile<T> tile(runtime, 1, static_cast<Index>(values.size()), owner);
  if (owner == runtime.rank())
    std::copy(values.begin(), values.end(), HostView<T>(tile, HostView<T>::Access::write).row(0));
  return tile;
}

}  // namespace

TEST_CASE("ranks: named ports, absent ones, and elements of many types between ranks") {
  const Codelet product{"test_ranks_product", +[](ProductPorts<AsPorts> p) {
                          for (Index i = 0; i < p.y.cols; ++i) {
                            std::complex<double> sum = p.shift ? *p.shift.data : 0.0;
                            for (auto k = p.matrix.row_starts.data[i]; k < p.matrix.row_starts.data[i + 1]; ++k)
                              sum += p.matrix.values.data[k] * *p.x[p.matrix.columns.data[k]].data;
                            p.y.data[i] = sum.real() + 100 * sum.imag();
                          }
                        }};
  Runtime runtime;
  const int ranks = runtime.ranks();
  const Tile<std::int64_t> row_starts = row_of<std::int64_t>(runtime, {0, 2, 3}, 0);
  const Tile<std::int32_t> columns = row_of<std::int32_t>(runtime, {0, 1, 17}, 1 % ranks);
  const Tile<std::complex<double>> values =
      row_of<std::complex<double>>(runtime, {{1, 0}, {2, 1}, {0.5, 0}}, 2 % ranks);
  const std::vector<Tile<double>> x = numbered(runtime, 18);
  for (int r = 0; r < ranks; ++r) {
    const Tile<double> y(runtime, 1, 2, r), shifted(runtime, 1, 2, r);
    product({.matrix = {row_starts, columns, values}, .x = x, .shift = nullptr, .y = y});
    product({.matrix = {row_starts, columns, values}, .x = x, .shift = x[6], .y = shifted});
    check(runtime, y, {5 + 200, 9});
    check(runtime, shifted, {12 + 200, 16});
  }
  runtime.wait();
}

TEST_CASE("ranks: commuting updates by tasks that read tiles of all ranks run where the total is") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const std::vector<Tile<double>> x = numbered(runtime, 30);
  for (const int owner : {0, last}) {
    const Tile<double> total(runtime, 1, 1, owner), seen(runtime, 1, 1, last - owner);
    set(0, total);
    double expected = 0;
    for (int round = 0; round < 4; ++round) {
      for (int k = 0; k < 30; ++k) add(x[static_cast<std::size_t>(k)], total);
      expected += 465;
      gather({total}, seen);
      check(runtime, seen, {expected});
      set(7, x[3]);  // after those who read it
      set(4, x[3]);
    }
    check(runtime, total, {expected});
  }
  runtime.wait();
}

TEST_CASE("ranks: a total whose update fails on its rank is lost there, and all are told") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Codelet fails{"test_ranks_commute_fail", +[](const int& number, In<double>, Commute<double> total) {
                        if (number == 7) throw Error("no seventh");
                        *total.data += 1;
                      }};
  const Tile<double> total(runtime, 1, 1, last), x(runtime, 1, 1, 0);
  set(0, total);
  set(1, x);
  for (int k = 0; k < 20; ++k) fails(k, x, total);
  CHECK_THROWS_AS(runtime.wait(), TaskFailure);
  if (runtime.rank() == last) CHECK_THROWS_AS(HostView<double>(total, HostView<double>::Access::read), TaskFailure);
  set(0, total);
  set(1, x);  // of this period, too
  for (int k = 10; k < 20; ++k) fails(k, x, total);
  check(runtime, total, {10.0});
  runtime.wait();
}
