// Conjugate gradients step by step on one block and on several: the same bits.

#include <doctest/doctest.h>

#include <deque>

#include "kernel_codelets.hpp"

using namespace asterism;
using namespace asterism::sparse;
using namespace asterism::sparse::test;

namespace {

/// What a block gets from one other.
template <class T>
struct Link {
  std::size_t from, to;
  Tile<std::int32_t> departing, arriving;
  Tile<T> pack;
};

/// A matrix in blocks, with M a diagonal or 1.
template <class T>
class Blocks {
 public:
  /// @param cuts where blocks begin, and n
  Blocks(Runtime& runtime, const Entries& entries, Stored stored, const Stencil& stencil,
         const std::vector<Index>& cuts, const std::vector<T>& r, const std::vector<T>& d, Where where)
      : unit_(unit_rows(cuts.back())), where_(where) {
    for (std::size_t b = 0; b + 1 < cuts.size(); ++b) {
      const Index first = cuts[b], end = cuts[b + 1], rows = end - first;
      Part& part = parts_.emplace_back();
      part.block = block_of<T>(runtime, entries, first, end, stored, stencil);
      const auto own = [&](const std::vector<T>& v) {
        return tile_of(runtime, std::vector<T>(v.begin() + first, v.begin() + end));
      };
      part.r = own(r);
      if (!d.empty()) part.d = own(d);
      part.x = tile_of(runtime, std::vector<T>(static_cast<std::size_t>(rows)));
      part.q = tile_of(runtime, poison<T>(rows));
      part.p = tile_of(runtime, poison<T>(part.block.shape.cols));
      for (Tile<double>* sums : {&part.pq, &part.rr, &part.rz})
        *sums = tile_of(runtime, poison<double>(units_of(rows, unit_)));
      part.state = tile_of(runtime, std::vector<CgState>(1));
    }
    for (std::size_t to = 0; to < parts_.size(); ++to)
      for (std::size_t from = 0; from < parts_.size(); ++from) link(runtime, cuts, from, to);
  }

  void iterate(Index iterations) {
    for (Part& part : parts_) dot<T>({unit_, 0}, {part.r, part.r, part.rr}, {.where = where_});
    for (Part& part : parts_) {
      // (r, d r) is not needed to be exact here, only the same in all divisions.
      dot<T>({unit_, 0}, {part.r, part.d.state() != nullptr ? part.d : part.r, part.rz}, {.where = where_});
    }
    for (Part& part : parts_) turn_part(part, -1);
    for (Index k = 0; k < iterations; ++k) {
      for (Part& part : parts_) multiply_part(part, k);
      for (Part& part : parts_) descend_part(part, k);
      for (Part& part : parts_) turn_part(part, k);
    }
  }

  [[nodiscard]] std::vector<T> x() const {
    std::vector<T> all;
    for (const Part& part : parts_) {
      const std::vector<T> own = values_of(part.x);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  /// Of all blocks.
  [[nodiscard]] std::vector<double> residuals() const {
    std::vector<double> all;
    for (const Part& part : parts_) all.push_back(values_of(part.state).front().rr);
    return all;
  }

 private:
  struct Part {
    Block<T> block;
    Tile<T> r, d, x, p, q;
    Tile<double> pq, rr, rz;
    Tile<CgState> state;
  };

  void link(Runtime& runtime, const std::vector<Index>& cuts, std::size_t from, std::size_t to) {
    if (from == to) return;
    std::vector<std::int32_t> departing, arriving;
    const std::vector<Index>& numbers = parts_[to].block.numbers;
    for (std::size_t k = 0; k < numbers.size(); ++k)
      if (numbers[k] >= cuts[from] && numbers[k] < cuts[from + 1]) {
        departing.push_back(static_cast<std::int32_t>(numbers[k] - cuts[from]));
        arriving.push_back(static_cast<std::int32_t>(k));
      }
    if (departing.empty()) return;
    const auto size = static_cast<Index>(departing.size());
    links_.push_back(
        {from, to, tile_of(runtime, departing), tile_of(runtime, arriving), Tile<T>(runtime, 1, size)});
  }

  [[nodiscard]] std::size_t number_of(const Part& part) const {
    std::size_t number = 0;
    while (&parts_[number] != &part) ++number;
    return number;
  }
  [[nodiscard]] TileList<double> all(Tile<double> Part::*sums) const {
    TileList<double> list;
    for (const Part& part : parts_) list.add(part.*sums);
    return list;
  }

  void multiply_part(Part& part, Index iteration) {
    TileList<T> packs;
    TileList<std::int32_t> places;
    for (const Link<T>& link : links_)
      if (link.to == number_of(part)) packs.add(link.pack), places.add(link.arriving);
    multiply<T>({part.block.shape, unit_, iteration, 0},
                {part.block.tiles(), {packs, places}, part.state, part.p, part.q, part.pq},
                {.where = where_});
  }
  void descend_part(Part& part, Index iteration) {
    const bool has_d = part.d.state() != nullptr;
    descend<T, T>({part.block.shape, unit_, iteration, 0},
                  {.pq = all(&Part::pq),
                   .q = part.q,
                   .inverse_diagonal = has_d ? &part.d : nullptr,
                   .r = part.r,
                   .rr = part.rr,
                   .rz = has_d ? &part.rz : nullptr,
                   .state = part.state},
                  {.where = where_});
  }
  void turn_part(Part& part, Index iteration) {
    const bool has_d = part.d.state() != nullptr;
    TileList<T> packs;
    TileList<std::int32_t> places;
    for (const Link<T>& link : links_)
      if (link.from == number_of(part)) packs.add(link.pack), places.add(link.departing);
    turn<T, T>({part.block.shape, unit_, iteration, 0},
               {.rr = all(&Part::rr),
                .rz = all(has_d ? &Part::rz : &Part::rr),
                .r = part.r,
                .z = nullptr,
                .inverse_diagonal = has_d ? &part.d : nullptr,
                .x = part.x,
                .p = part.p,
                .state = part.state,
                .departures = {packs, places}},
               {.where = where_});
  }

  Index unit_;
  Where where_;
  std::deque<Part> parts_;
  std::deque<Link<T>> links_;
};

/// The bits on one block are those on several, whatever their vectors' own elements begin with.
template <class T>
void check_divisions(Where where) {
  Runtime runtime;
  const Index nx = 11, ny = 97, n = nx * ny, unit = unit_rows(n);
  const Stencil stencil = stencil_of(nx, ny, 1);
  const Entries entries = entries_of(stencil);
  const std::vector<T> r = random_values<T>(n, 4);
  for (const Stored stored : all_stored)
    for (const bool has_d : {false, true}) {
      CAPTURE(static_cast<int>(stored));
      CAPTURE(has_d);
      std::vector<T> d;
      if (has_d)
        for (const T value : r) d.push_back(value > 0 ? T{0.25} : T{0.125});
      const auto iterated = [&](const std::vector<Index>& cuts) {
        Blocks<T> blocks(runtime, entries, stored, stencil, cuts, r, d, where);
        blocks.iterate(5);
        runtime.wait();
        for (const double rr : blocks.residuals()) CHECK(rr == blocks.residuals().front());
        return std::pair(blocks.x(), blocks.residuals().front());
      };
      const auto whole = iterated({0, n});
      for (const T value : whole.first) REQUIRE(std::isfinite(value));
      CHECK(whole.second > 0);
      CHECK(iterated({0, 2 * unit, n}) == whole);
      CHECK(iterated({0, unit, 2 * unit, 3 * unit, n}) == whole);
    }
}

/// Blocks that share nothing: no packs at all.
void check_blocks_apart(Where where) {
  Runtime runtime;
  const Index unit = unit_rows(600), n = 600 / unit * unit + 7;
  Entries entries(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) entries[static_cast<std::size_t>(i)][i] = 2 + static_cast<double>(i % 3);
  const std::vector<double> r = random_values<double>(n, 4);
  Blocks<double> one(runtime, entries, Stored::sliced, {}, {0, n}, r, {}, where),
      two(runtime, entries, Stored::sliced, {}, {0, unit, n}, r, {}, where);
  one.iterate(2);
  two.iterate(2);
  runtime.wait();
  CHECK(one.x() == two.x());
}

}  // namespace

TEST_CASE_TEMPLATE("steps have the same bits on one block and on several", T, float, double) {
  check_divisions<T>(Where::cpu);
}
TEST_CASE("blocks that need nothing of each other") { check_blocks_apart(Where::cpu); }

#ifdef ASTERISM_WITH_CUDA
TEST_CASE_TEMPLATE("gpu: steps have the same bits on one block and on several", T, float, double) {
  check_divisions<T>(Where::cuda);
}
TEST_CASE("gpu: blocks that need nothing of each other") { check_blocks_apart(Where::cuda); }
#endif
