// Factors of subdomains' blocks: they solve, they take the memory that was predicted, and what has none is told.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "../support/messages.hpp"
#include "../support/worst.hpp"
#include "algorithms/common/set.hpp"
#include "algorithms/common/workers.hpp"
#include "codelets/decomposition/schwarz.hpp"
#include "subdomain_solves.hpp"

namespace asterism::test {
namespace {

using namespace decomposition;
using sparse::MatrixClass;

std::vector<int> owners(const Runtime& runtime, std::size_t count) {
  return owners_of(static_cast<Index>(count), runtime.ranks());
}

/// Elements a(j) of a tile, on its owner's rank.
template <class T, class Value>
Tile<T> tile_of(Runtime& runtime, Index size, int owner, Value value) {
  Tile<T> tile(runtime, 1, size, owner);
  set(runtime, tile, [&](Index, Index j) { return value(j); });
  return tile;
}

/// The largest error of L_p^-1 b_p, against a dense solve, in units of the solution.
template <class V>
double error_of(Runtime& runtime, const sparse::Csr<double>& a, const std::vector<Subdomain>& subdomains,
                MatrixClass matrix_class, SolveOn solve_on = SolveOn::cores) {
  LocalFactors<V> factors(runtime, a, subdomains, owners(runtime, subdomains.size()),
                          {.matrix_class = matrix_class, .solve_on = solve_on});
  Worst worst;
  for (Index g = 0; g < factors.groups().count(); ++g) {
    const Part& group = factors.groups()[g];
    std::vector<double> b;
    std::vector<Index> begins;  // of subdomains
    for (Index p = group.first; p < group.first + group.size; ++p) {
      begins.push_back(static_cast<Index>(b.size()));
      for (const double value : scattered(static_cast<Index>(subdomains[p].rows.size()))) b.push_back(value);
    }
    const auto n = static_cast<Index>(b.size());
    const Tile<double> right = tile_of<double>(runtime, n, group.rank, [&](Index j) { return b[j]; });
    const auto places = tile_of<std::int32_t>(runtime, n, group.rank, [](Index j) { return j; });
    const Tile<double> x(runtime, 1, n, group.rank), again(runtime, 1, n, group.rank);
    const auto submit = [&](const Tile<double>& y) {
      clear(y);
      const auto pieces = factors.pieces(g);
      for (const auto& piece : pieces)
        codelets::local_solve<double, V>(
            {.first = piece.first, .takes = &piece == &pieces.front(), .gives = &piece == &pieces.back()},
            {.arrivals = {.packs = {right}, .places = {places}},
             .factors = piece.factors,
             .room = piece.room,
             .y = y,
             .departures = {}},
            factors.groups().hints(g));
    };
    submit(again);  // in pieces, where a GPU solves while others are factorised
    factors.settle(subdomains);
    submit(x);  // in one, and what has been left behind is found
    runtime.wait();
    if (group.rank != runtime.rank()) continue;
    const HostView<double> view(x, HostView<double>::Access::read);
    const HostView<double> view_again(again, HostView<double>::Access::read);
    Index different = 0;
    for (Index j = 0; j < n; ++j) different += view(0, j) == view_again(0, j) ? 0 : 1;
    CHECK(different == 0);
    for (Index k = 0; k < group.size; ++k) {
      const std::vector<Index>& rows = subdomains[group.first + k].rows;
      const DenseVector known =
          solve_dense(part_of(dense(a), rows, rows), DenseVector(&b[begins[k]], rows.size()));
      const double unit = std::abs(known).max();
      for (std::size_t i = 0; i < rows.size(); ++i)
        worst.take_in((view(0, begins[k] + static_cast<Index>(i)) - known[i]) / unit);
    }
  }
  return static_cast<double>(worst.value());
}

}  // namespace

TEST_CASE("factors solve: positive definite and general blocks, a band, a single row, in f64 and f32") {
  Runtime runtime;
  for (const char* name : {"poisson2d:12x11", "poisson3d:5x4x6", "circuit-like:150", "poisson2d:90x1"}) {
    CAPTURE(name);
    const auto a = model(name);
    for (const Cut cut : {Cut::rows, Cut::graph}) {
      const auto subdomains = cut_into_subdomains(a, {.count = 3, .cut = cut, .overlap = 2});
      for (const MatrixClass matrix_class : {MatrixClass::positive_definite, MatrixClass::general}) {
        CHECK(error_of<double>(runtime, a, subdomains, matrix_class) < 1e-12);
        CHECK(error_of<float>(runtime, a, subdomains, matrix_class) < 1e-3);
      }
    }
  }
  const auto convection = model("convection2d:9x14");
  CHECK(error_of<double>(runtime, convection, cut_into_subdomains(convection, {.count = 4, .overlap = 9}),
                         MatrixClass::general) < 1e-12);
  const auto rows = cut_into_subdomains(convection, {.count = 126});
  CHECK(error_of<double>(runtime, convection, rows, MatrixClass::general) < 1e-12);
}

TEST_CASE("triangles of several blocks are one, whose rows are in the order of levels") {
  using Numbers = std::vector<std::int32_t>;
  const Numbers begins{0, 0, 1, 3}, places{0, 0, 1}, levels{0, 1, 2}, begin{0, 0, 1}, place{0}, level{0, 1};
  const std::vector<float> values{2, 3, 4}, value{5};
  JoinedTriangle<float> joined;
  joined.join(std::vector<Triangle<float>>{{begins, places, values, levels}, {begin, place, value, level}});
  CHECK(joined.begins == Numbers{0, 0, 1, 3, 3, 4});
  CHECK(joined.order == Numbers{0, 3, 1, 4, 2});
  const Triangle<float> view = joined.view();
  CHECK(Numbers(view.places.begin(), view.places.end()) == Numbers{0, 0, 1, 3});
  CHECK(std::vector<float>(view.values.begin(), view.values.end()) == std::vector<float>{2, 3, 4, 5});
  JoinedTriangle<double> none;
  none.join({});
  CHECK(none.view().values.empty());
}

#ifdef ASTERISM_WITH_CUDA
TEST_CASE("gpu: factors solve there, the same each time, for several subdomains at once, of all sizes") {
  Runtime runtime;
  for (const char* name :
       {"poisson2d:12x11", "poisson3d:5x4x6", "poisson2d:90x1", "poisson2d:40x41", "poisson3d:11x12x13"}) {
    CAPTURE(name);
    const auto a = model(name);
    for (const Index count : {1, 3, 7}) {
      CAPTURE(count);
      const auto subdomains = cut_into_subdomains(a, {.count = count, .overlap = 2});
      CHECK(error_of<double>(runtime, a, subdomains, MatrixClass::positive_definite, SolveOn::gpus) < 1e-12);
      CHECK(error_of<float>(runtime, a, subdomains, MatrixClass::positive_definite, SolveOn::gpus) < 1e-3);
      CHECK(error_of<double>(runtime, a, subdomains, MatrixClass::general, SolveOn::gpus) < 1e-12);
      CHECK(error_of<float>(runtime, a, subdomains, MatrixClass::general, SolveOn::gpus) < 1e-3);
    }
  }
  const auto convection = model("convection2d:39x44");
  for (const Index count : {1, 5, 300})
    CHECK(error_of<double>(runtime, convection, cut_into_subdomains(convection, {.count = count}),
                           MatrixClass::general, SolveOn::gpus) < 1e-12);
  const Index n =
      most_width + 300;  // supernodes as wide as they may be, below them as many rows as there is no room for
  Dense full = diagonal(n, static_cast<double>(n));
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      if (i != j) full(i, j) = std::cos(static_cast<double>(i * j));
  const auto all = cut_into_subdomains(csr_of(full), {});
  CHECK(error_of<double>(runtime, csr_of(full), all, MatrixClass::positive_definite, SolveOn::gpus) < 1e-11);
}

TEST_CASE(
    "gpu: a GPU solves with the first factors while others are made; what is wrong with one is told then") {
  Runtime runtime;
  Index cores = 0;
  for (const Candidate& worker : all_workers(runtime)) cores += worker.where == Where::cpu ? 1 : 0;
  auto a = model("poisson2d:70x70");
  const auto subdomains = cut_into_subdomains(a, {.count = 8 * cores});
  CHECK(error_of<double>(runtime, a, subdomains, MatrixClass::positive_definite, SolveOn::gpus) < 1e-12);
  CHECK(error_of<float>(runtime, a, subdomains, MatrixClass::positive_definite, SolveOn::gpus) < 1e-3);

  const FactorSettings on_gpus{.solve_on = SolveOn::gpus};
  const auto all_owners = owners(runtime, subdomains.size());
  LocalFactors<double> factors(runtime, a, subdomains, all_owners, on_gpus);
  CHECK(!factors.is_settled());
  CHECK(factors.pieces(0).size() > 1);
  factors.settle(subdomains);
  CHECK(factors.is_settled());
  CHECK(factors.pieces(0).size() == 1);
  CHECK(factors.facts().seconds_factorise > 0);

  const Index row = subdomains[3].rows[2];
  // No other row changes its pivot then, in whichever order they come: how many subdomains there are depends on the cores.
  for (Index i = 0; i < a.rows(); ++i)
    for (Index k = a.row_begin[i]; k < a.row_begin[i + 1]; ++k)
      if (i == row || a.columns[k] == row) a.values[k] = i == a.columns[k] ? -4 : 0;
  const std::string row_words = fmt::format("row {} ", row);
  LocalFactors<double> none(runtime, a, subdomains, all_owners, on_gpus);
  message_has(message_of([&] { none.settle(subdomains); }),
              {"subdomain 3", "not positive definite", row_words.c_str(), "pivot -4;"});
}
#endif

TEST_CASE("rows are exchanged where the diagonal is no pivot; a lower triangle has no U") {
  Runtime runtime;
  Dense swapped(6, 6);
  for (int i = 0; i < 6; ++i) swapped(i, (i + 1) % 6) = i + 2;
  swapped(2, 0) = 1;
  swapped(3, 3) = 1e-30;
  const auto all = [](Index n) {
    Subdomain s;
    for (Index i = 0; i < n; ++i) {
      s.rows.push_back(i);
      s.owned.push_back(static_cast<std::int32_t>(i));
    }
    return std::vector{s};
  };
  CHECK(error_of<double>(runtime, csr_of(swapped), all(6), MatrixClass::general) < 1e-14);
  Dense lower = diagonal(5, 2);
  lower(4, 0) = lower(3, 1) = 1;
  CHECK(error_of<double>(runtime, csr_of(lower), all(5), MatrixClass::general) < 1e-14);
}

TEST_CASE("memory: what is predicted is what factors take; too much is refused before") {
  Runtime runtime;
  const auto a = model("poisson2d:40x40");
  const auto subdomains = cut_into_subdomains(a, {.count = 4, .overlap = 40});
  for (const MatrixClass matrix_class : {MatrixClass::positive_definite, MatrixClass::general}) {
    const LocalFactors<double> factors(runtime, a, subdomains, owners(runtime, 4),
                                       {.matrix_class = matrix_class});
    const FactorFacts& facts = factors.facts();
    REQUIRE(facts.bytes.size() == static_cast<std::size_t>(runtime.ranks()));
    for (std::size_t rank = 0; rank < facts.bytes.size(); ++rank) {
      CHECK(static_cast<double>(facts.bytes[rank]) <= 1.1 * static_cast<double>(facts.predicted[rank]));
      CHECK(static_cast<double>(facts.bytes[rank]) >= 0.9 * static_cast<double>(facts.predicted[rank]));
    }
    CHECK(facts.fill > 4 * a.total_rows);
  }
  const auto refuse = [&](const std::vector<int>& owners) {
    try {
      LocalFactors<double>(runtime, a, subdomains, owners, {.most_bytes = 1000});
      FAIL("not refused");
    } catch (const Error& error) {
      CHECK(error.blame() == Blame::machine);
      message_has(error.what(), {"will take", "there may be 1000 bytes", "more subdomains"});
      return std::string(error.what());
    }
    return std::string();
  };
  refuse(owners(runtime, 4));
  // Others have room where one has all.
  const bool on_one_of_several = refuse({0, 0, 0, 0}).find("--balance equal") != std::string::npos;
  CHECK(on_one_of_several == (runtime.ranks() > 1));
}

TEST_CASE("blocks without factors are told: which, which row, which pivot") {
  Runtime runtime;
  Dense full = diagonal(12, 4);
  for (int i = 0; i + 1 < 12; ++i) full(i, i + 1) = full(i + 1, i) = -1;
  const auto refusal = [&](const Dense& matrix, MatrixClass matrix_class, auto number) {
    const auto a = csr_of(matrix);
    return message_of([&] {
      LocalFactors<decltype(number)>(runtime, a, cut_into_subdomains(a, {.count = 3}), owners(runtime, 3),
                                     {.matrix_class = matrix_class});
    });
  };
  Dense minus = full;
  minus(6, 6) = -4;
  message_has(refusal(minus, MatrixClass::positive_definite, 0.0),
              {"subdomain 1", "not positive definite", "row 6", "-4"});
  Dense singular = full;
  for (int i = 8; i < 12; ++i) singular(i, 10) = 0;
  message_has(refusal(singular, MatrixClass::general, 0.0), {"subdomain 2", "singular", "row 10"});
  Dense huge = full;
  huge(5, 5) = 1e60;
  message_has(refusal(huge, MatrixClass::positive_definite, 0.0F), {"(5, 5)", "1e+60", "f32", "f64"});
  CHECK(refusal(huge, MatrixClass::positive_definite, 0.0).empty());
  Dense overflowing = full;
  overflowing(4, 4) = 1e-30;
  overflowing(5, 4) = overflowing(4, 5) = 1e20;
  overflowing(5, 5) = 1e38;
  message_has(refusal(overflowing, MatrixClass::positive_definite, 0.0F), {"f32", "row 5"});
}

}  // namespace asterism::test
