// What is in tiles: set, cleared, made, copied, moved, cut anew, reduced, on one rank and several.

#include <doctest/doctest.h>

#include <complex>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "../../support/matrix.hpp"
#include "runtime/contents.hpp"
#include "runtime/per_rank.hpp"

using namespace asterism;

namespace {

double number(Index i, Index j) { return static_cast<double>(100 * i + j); }

/// A matrix cut in some way, its tiles dealt to the ranks in turns, with number(i, j) in them.
Tiles<double> cut(Runtime& runtime, Index rows, Index cols, Index tile_rows, Index tile_cols) {
  Tiles<double> tiles(runtime, rows, cols, tile_rows, tile_cols,
                      [&](Index i, Index j) { return static_cast<int>((i + 2 * j) % runtime.ranks()); });
  for (Index i = 0; i < tiles.count_rows(); ++i)
    for (Index j = 0; j < tiles.count_cols(); ++j)
      generate(tiles(i, j), [=](Index k, Index l) { return number(i * tile_rows + k, j * tile_cols + l); });
  return tiles;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE_TEMPLATE("contents: tiles of all element types are set, cleared, made, copied and gathered", T, float,
                   double, char, std::int32_t, std::int64_t, std::complex<double>) {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Tile<T> a(runtime, 2, 3, last), b(runtime, 2, 3, 0);
  set(a, T(7));
  CHECK(gather(a) == std::vector<T>(6, T(7)));
  generate(a, [](Index i, Index j) { return T(static_cast<float>(10 * i + j)); });
  copy(a, b);
  CHECK(gather(b) == std::vector<T>{T(0), T(1), T(2), T(10), T(11), T(12)});
  clear(a);
  CHECK(gather(a) == std::vector<T>(6, T(0)));
  set(runtime, b, [](Index i, Index j) { return T(static_cast<float>(i + j)); });
  copy(b, a);
  CHECK(gather(a) == std::vector<T>{T(0), T(1), T(2), T(1), T(2), T(3)});
  const Tile<T> other(runtime, 3, 2, 0);
  CHECK(refusal([&] { copy(a, other); }) ==
        "cannot copy a 2 x 3 tile to one of 3 x 2: their extents must be the same");
  const Tile<T> second(runtime, 1, 3, 0);
  copy_rows(a, 1, second);
  CHECK(gather(second) == std::vector<T>{T(1), T(2), T(3)});
  CHECK(
      refusal([&] { copy_rows(a, 2, second); }) ==
      "cannot copy rows from 2 on of a 2 x 3 tile to one of 1 x 3: it must have these rows, and as many columns");
  CHECK(refusal([&] { copy_rows(a, 0, other); }).starts_with("cannot copy rows from 0 on of a 2 x 3 tile"));
}

TEST_CASE_TEMPLATE("contents: copied rows are written, and no more than these", T, float, double) {
  const test::Matrix<T> from = test::Matrix<T>(9, 5).fill_random(1);
  test::Matrix<T> rows(4, 5, 1);
  detail::copy_rows<T>(3, from.in(), rows.out());
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 5; ++j) CHECK(rows(i, j) == from(3 + i, j));
  CHECK(rows.guarded());
}

TEST_CASE("contents: a tile on every rank") {
  Runtime runtime;
  const PerRank<double> everywhere(runtime, 2, 2);
  CHECK(everywhere.size() == runtime.ranks());
  const Tile<double> one(runtime, 2, 2, runtime.ranks() - 1);
  generate(one, number);
  copy(one, everywhere);
  const HostView<double> mine(everywhere.mine(), HostView<double>::Access::read);
  CHECK(mine(1, 1) == 101);
  const PerRank<double> empty;
  CHECK(refusal([&] { static_cast<void>(empty.mine()); }) ==
        "the tile of rank 0 is asked for, of 0 there are");
  CHECK(refusal([&] { static_cast<void>(everywhere[runtime.ranks()]); }).starts_with("the tile of rank "));
}

TEST_CASE("contents: a tile gets another owner") {
  Runtime runtime;
  Tile<double> tile(runtime, 2, 2, 0);
  generate(tile, number);
  for (int rank = runtime.ranks() - 1; rank >= 0; --rank) {
    move_to(runtime, tile, rank);
    CHECK(tile.owner() == rank);
    CHECK(gather(tile) == std::vector<double>{0, 1, 100, 101});
  }
}

TEST_CASE("contents: a matrix is cut anew") {
  Runtime runtime;
  const Index rows = 13, cols = 11;
  std::vector<double> expected;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) expected.push_back(number(i, j));
  const Tiles<double> from = cut(runtime, rows, cols, 4, 3);
  CHECK(gather(from) == expected);
  for (const auto& [tile_rows, tile_cols] :
       {std::pair<Index, Index>{4, 3}, {13, 11}, {1, 11}, {5, 2}, {13, 1}}) {
    const Tiles<double> to(runtime, rows, cols, tile_rows, tile_cols,
                           [&](Index i, Index j) { return static_cast<int>((2 * i + j) % runtime.ranks()); });
    redistribute(from, to);
    CHECK(gather(to) == expected);
  }
  const Tiles<double> slabs(runtime, {2, 7, 1, 3}, cols,
                            [&](Index k, Index) { return static_cast<int>(k % runtime.ranks()); }, {});
  redistribute(from, slabs);
  CHECK(gather(slabs) == expected);
  const Tiles<double> back(runtime, rows, cols, 6, 5);
  redistribute(slabs, back);
  CHECK(gather(back) == expected);

  const Tiles<double> other(runtime, rows, cols + 1, 4, 4);
  CHECK(refusal([&] { redistribute(from, other); }).starts_with("cannot cut a matrix of 13 x 11 elements"));
  std::vector<Tile<double>> unlike;
  for (const Index width : {11, 10}) unlike.emplace_back(runtime, 1, width);
  const Tiles<double> no_matrix(std::move(unlike));
  CHECK(refusal([&] {
          redistribute(no_matrix, other);
        }).starts_with("tile (1, 0) of 1 x 10 elements is no part of a matrix"));
  CHECK(refusal([&] { redistribute(other, no_matrix); }).starts_with("tile (1, 0)"));
}

TEST_CASE("contents: reductions add up in the order of a tree, whoever has the parts") {
  Runtime runtime;
  const auto add = codelet("test_contents_add", [](In<double> x, InOut<double> y) { *y.data += *x.data; });
  for (const int count : {1, 2, 3, 4, 7, 16, 100}) {
    std::vector<Tile<double>> parts;
    std::vector<double> sums;
    for (int k = 0; k < count; ++k) {
      const double value = 1 / (k + 3.);
      set(parts.emplace_back(runtime, 1, 1, k % runtime.ranks()), value);
      sums.push_back(value);
    }
    for (std::size_t n = sums.size(); n > 1; n = (n + 1) / 2)
      for (std::size_t k = 0; 2 * k < n; ++k)
        sums[k] = 2 * k + 1 < n ? sums[2 * k] + sums[2 * k + 1] : sums[2 * k];
    const Tile<double> sum(runtime, 1, 1, runtime.ranks() - 1);
    const TileList<double> all(parts);
    reduce(runtime, add, all, sum);
    CHECK(gather(sum) == std::vector<double>{sums[0]});
    CHECK(gather(parts[0]) == std::vector<double>{1 / 3.});
    const Reduction<double> again(runtime, all);
    for (int round = 0; round < 3; ++round) again(add, all, sum);
    CHECK(gather(sum) == std::vector<double>{sums[0]});
  }
  CHECK(refusal([&] { Reduction<double>(runtime, {}); }) ==
        "a reduction of 0 parts: there must be at least 1");
  const Tile<double> there(runtime, 1, 1);
  const std::vector<const Tile<double>*> one_absent{&there, nullptr};
  CHECK(refusal([&] { Reduction<double>(runtime, one_absent); }) ==
        "part 1 of a reduction is absent: leave it out");
}

TEST_CASE("ranks: what the host changes after it was sent comes again, or is refused") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Tile<double> here(runtime, 1, 8, 0), there(runtime, 1, 8, last);
  const auto check = [&](double expected) {
    copy(here, there);
    if (runtime.rank() == last)
      CHECK(HostView<double>(there, HostView<double>::Access::read)(0, 7) == expected);
  };
  for (const double number : {1., 2.}) {
    set(runtime, here, [&](Index, Index) { return number; });  // on all ranks
    check(number);
  }
  for (const double number : {3., 4.}) {
    if (runtime.rank() == 0) HostView<double>(here, HostView<double>::Access::read_write)(0, 7) = number;
    here.tell_changed();
    check(number);
  }
  if (runtime.rank() == 0) HostView<double>(here, HostView<double>::Access::write)(0, 7) = 5;
  if (runtime.rank() == 0 && last > 0)
    CHECK_THROWS_WITH_AS(
        copy(here, there),
        ("task copy_8 on rank " + std::to_string(last) +
         " reads a tile of rank 0 (port 0) that a HostView has changed since it was sent there: call "
         "its tell_changed() on all ranks after such a change, or let a task write it")
            .c_str(),
        Error);
  set(here, 49);  // a task tells by itself
  check(49);
  runtime.wait();
}
