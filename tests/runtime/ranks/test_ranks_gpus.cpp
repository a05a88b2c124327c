// Tiles that travel from rank to rank, of all sizes and shapes: between ranks that have GPUs the larger ones go by other ways
// than by MPI.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/contents.hpp"

using namespace asterism;

namespace {

struct Numbers {
  Index seed;
  double operator()(Index i, Index j) const {
    return static_cast<double>((seed * 31 + i * 7 + j * 3) % 1009);
  }
};

const Codelet<NoArgs, In<double>, Out<double>, Out<double>> copy_both{
    "test_ranks_copy_both",
    +[](const NoArgs&, In<double> from, Out<double> a, Out<double> b) {
      for (const Out<double>& to : {a, b}) detail::copy_rows(0, from, to);
    },
    ASTERISM_CUDA_KERNEL(+[](Stream stream, const NoArgs&, In<double> from, Out<double> a, Out<double> b) {
      for (const Out<double>& to : {a, b}) detail::copy_rows_on_gpu(stream, 0, from, to);
    })};

/// How many elements of what a rank has there are not those numbers.
Index wrong(const Tile<double>& tile, const Numbers& numbers) {
  const HostView<double> view(tile, HostView<double>::Access::read);
  Index count = 0;
  for (Index i = 0; i < tile.rows(); ++i)
    for (Index j = 0; j < tile.cols(); ++j) count += view(i, j) == numbers(i, j) ? 0 : 1;
  return count;
}

}  // namespace

TEST_CASE("ranks: tiles of all sizes go round and come back as they were, many at a time and again") {
  Runtime runtime;
  const int ranks = runtime.ranks(), rank = runtime.rank();
  const Hints anywhere{.where = runtime.machine().count(WorkerKind::cuda) > 0 ? Where::cuda : Where::cpu};
  struct Extents {
    Index rows, cols;
  };
  constexpr Index many = 11;
  for (const Extents e : {Extents{1, 1}, Extents{1, 2047}, Extents{1, 2048}, Extents{16'384, 1},
                          Extents{511, 257}, Extents{1024, 2048}, Extents{1024, 2049}}) {
    CAPTURE(e.rows);
    CAPTURE(e.cols);
    const Index ld = e.cols + 5;
    const bool large = e.rows * e.cols > 1'000'000;
    const Index tiles = large ? 5 : many;
    // All ranks have as many, numbered from rank to rank.
    std::vector<Tile<double>> numbered, here, there, back, twin;
    std::vector<std::vector<double>> memory;  // what rank r starts with has rows that are further apart
    for (Index k = 0; k < tiles * ranks; ++k) {
      const int owner = static_cast<int>(k / tiles), next = (owner + 1) % ranks;
      memory.emplace_back(owner == rank ? static_cast<std::size_t>(e.rows * ld) : 0);
      numbered.emplace_back(runtime, owner == rank ? memory.back().data() : nullptr, e.rows, e.cols, ld,
                            owner);
      here.emplace_back(runtime, e.rows, e.cols, owner);
      there.emplace_back(runtime, e.rows, e.cols, next);
      back.emplace_back(runtime, e.rows, e.cols, owner);
      twin.emplace_back(runtime, e.rows, e.cols, owner);
    }
    for (Index round = 0; round < 3; ++round)
      for (Index k = 0; k < tiles * ranks; ++k) {
        const auto i = static_cast<std::size_t>(k);
        generate(numbered[i], Numbers{round * 100 + k});
        copy(numbered[i], here[i], anywhere);
        copy(k % 2 == 0 ? here[i] : numbered[i], there[i],
             anywhere);  // from a GPU, and from main memory
        copy_both({}, there[i], back[i], twin[i], anywhere);
        // On the rank that has neither what it reads nor all that it writes.
        Hints elsewhere = anywhere;
        elsewhere.rank = there[(i + 1) % there.size()].owner();
        copy_both({}, there[i], there[(i + 1) % there.size()], twin[i], elsewhere);
        copy(there[i], there[(i + 1) % there.size()], anywhere);
      }
    for (Index k = rank * tiles; k < (rank + 1) * tiles; ++k) {
      CHECK(wrong(back[static_cast<std::size_t>(k)], {200 + k}) == 0);
      CHECK(wrong(twin[static_cast<std::size_t>(k)], {200 + k}) == 0);
    }
    runtime.wait();
  }
}

namespace {

void cpu_halve(const NoArgs&, In<double> theirs, InOut<double> mine) {
  for (Index j = 0; j < mine.cols; ++j) mine.data[j] = 0.5 * mine.data[j] + 0.5 * theirs.data[j];
}
const Codelet<NoArgs, In<double>, InOut<double>> halve{"test_ranks_halve", cpu_halve};

}  // namespace

// More messages than there can be on their way, of tiles that are written again and again, and read elsewhere meanwhile.
TEST_CASE("ranks: hundreds of messages of the same tiles come in their order") {
  Runtime runtime;
  const Index ranks = runtime.ranks(), each = 7, count = each * ranks;
  constexpr int rounds = 150;
  std::vector<Tile<double>> tiles, old;
  std::vector<std::vector<double>> serial(static_cast<std::size_t>(count));
  for (Index k = 0; k < count; ++k) {
    const Index cols = 1000 + 1501 * (k % each);  // by MPI alone, too
    const int owner = static_cast<int>(k / each);
    generate(tiles.emplace_back(runtime, 1, cols, owner), Numbers{k});
    old.emplace_back(runtime, 1, cols, owner);
    for (Index j = 0; j < cols; ++j) serial[static_cast<std::size_t>(k)].push_back(Numbers{k}(0, j));
  }
  const auto next = [&](Index k) {
    return static_cast<std::size_t>((k + each) % count);
  };  // the same extents
  std::vector<std::vector<double>> before;
  for (int round = 0; round < rounds; ++round) {
    before = serial;
    for (Index k = 0; k < count; ++k) {
      const auto i = static_cast<std::size_t>(k);
      const Index cols = tiles[i].cols();
      copy(tiles[i], old[i]);
      cpu_halve({}, {before[next(k)].data(), 1, cols, cols}, {serial[i].data(), 1, cols, cols});
    }
    for (Index k = 0; k < count; ++k) halve({}, old[next(k)], tiles[static_cast<std::size_t>(k)]);
  }
  for (Index k = runtime.rank() * each; k < (runtime.rank() + 1) * each; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const HostView<double> view(tiles[i], HostView<double>::Access::read);
    Index different = 0;
    for (Index j = 0; j < view.cols(); ++j)
      different += view(0, j) == serial[i][static_cast<std::size_t>(j)] ? 0 : 1;
    CHECK(different == 0);
  }
  runtime.wait();
}
