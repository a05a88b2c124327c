// The steps of conjugate gradients, one by one on several blocks and in sweeps of a single one.

#include <doctest/doctest.h>

#include <cstring>
#include <optional>
#include <span>

#include "../../support/skip.hpp"
#include "../../support/worst.hpp"
#include "staged_factors.hpp"

using namespace asterism;
using namespace asterism::sparse;
using namespace asterism::sparse::test;
using asterism::test::largest_difference;
using asterism::test::quick_enough;

namespace {

/// A x = b by sweeps over the whole matrix.
template <class V>
struct Solve {
  using T = double;
  Index n, unit;
  Where where;
  PreconditionerShape shape{};
  Block<T> matrix;
  std::optional<Block<V>> left, right;
  Tile<V> inverse_diagonal;
  Tile<std::int32_t> stages;
  Tile<T> x, r, p, q, z, next, s;
  Tile<double> pq, rr, rz;
  Tile<CgState> state;
  Tile<T> pipelined;

  Solve(Runtime& runtime, const Entries& entries, Stored stored, const Stencil& stencil,
        const std::vector<T>& b, Where on)
      : n(static_cast<Index>(b.size())),
        unit(unit_rows(n)),
        where(on),
        matrix(block_of<T>(runtime, entries, 0, n, stored, stencil)),
        x(tile_of(runtime, std::vector<T>(b.size()))),
        r(tile_of(runtime, b)) {
    for (Tile<T>* vector : {&p, &q, &z, &next, &s}) *vector = tile_of(runtime, poison<T>(n));
    for (Tile<double>* sums : {&pq, &rr, &rz}) *sums = tile_of(runtime, poison<double>(units_of(n, unit)));
    state = tile_of(runtime, std::vector<CgState>(1));
    pipelined = tile_of(runtime, poison<T>(pipelined_vectors * n));
  }

  /// Before the first sweep: p = M^-1 r for M = 1, as all of these methods may begin.
  void begin(double limit) {
    dot<T>({unit, 0}, {r, r, rr}, {.where = where});
    const Tile<double>& products = rr;
    turn<T, V>({matrix.shape, unit, -1, limit},
               {.rr = {rr},
                .rz = {products},
                .r = r,
                .z = nullptr,
                .inverse_diagonal = nullptr,
                .x = x,
                .p = p,
                .state = state,
                .departures = {}},
               {.where = where});
  }
  /// p = M^-1 r, where it is known already.
  void begin_with(double limit, const std::vector<T>& z_values, Runtime& runtime) {
    const Tile<T> given = tile_of(runtime, z_values);
    dot<T>({unit, 0}, {r, r, rr}, {.where = where});
    dot<T>({unit, 0}, {r, given, rz}, {.where = where});
    turn<T, V>({matrix.shape, unit, -1, limit},
               {.rr = {rr},
                .rz = {rz},
                .r = r,
                .z = given,
                .inverse_diagonal = nullptr,
                .x = x,
                .p = p,
                .state = state,
                .departures = {}},
               {.where = where});
  }
  void sweep(Index first, Index count) {
    const auto there = [](const auto& tile) { return tile.state() != nullptr ? &tile : nullptr; };
    cg_sweep<T, V>({{matrix.shape, unit, first, 0}, count, shape},
                   {.matrix = matrix.tiles(),
                    .preconditioner = {.inverse_diagonal = there(inverse_diagonal),
                                       .left = left ? left->tiles() : BlockPorts<AsTiles, V>{},
                                       .right = right ? right->tiles() : BlockPorts<AsTiles, V>{},
                                       .stages = there(stages),
                                       .z = z,
                                       .next = next,
                                       .s = s},
                    .x = x,
                    .r = r,
                    .p = p,
                    .q = q,
                    .pq = pq,
                    .rr = rr,
                    .rz = shape.kind == PreconditionerKind::none ? rr : rz,
                    .state = state,
                    .pipelined = pipelined},
                   {.where = where});
  }
  CgState look() { return values_of(state).front(); }
};

/// What M^-1 does to a vector, by the plain loops.
template <class V>
std::vector<double> plain_m(const Solve<V>& solve, const Entries& entries, const StagedFactors& factors,
                            const std::vector<double>& r) {
  const PreconditionerShape& m = solve.shape;
  std::vector<Real> z(r.begin(), r.end()), s(r.size());
  if (m.kind == PreconditionerKind::triangular) z = factors.solve(z);
  if (m.kind == PreconditionerKind::diagonal)
    for (std::size_t i = 0; i < z.size(); ++i) z[i] /= entries[i].at(static_cast<Index>(i));
  if (m.kind == PreconditionerKind::polynomial) {
    std::fill(z.begin(), z.end(), Real{0});
    for (const PolynomialStep& step : m.steps) {
      const std::vector<Real> before = z;
      for (std::size_t i = 0; i < z.size(); ++i) {
        const Real residual = static_cast<Real>(r[i]) - product_of(entries[i], before).first;
        s[i] = static_cast<Real>(step.gamma) * s[i] +
               static_cast<Real>(step.delta) / entries[i].at(static_cast<Index>(i)) * residual;
        z[i] += s[i];
      }
    }
  }
  return {z.begin(), z.end()};
}

template <class V>
void add_preconditioner(Solve<V>& solve, Runtime& runtime, PreconditionerKind kind, const Entries& entries,
                        const StagedFactors& factors, Stored stored, const Stencil& stencil) {
  solve.shape.kind = kind;
  if (kind == PreconditionerKind::none) return;
  std::vector<V> d;
  for (std::size_t i = 0; i < entries.size(); ++i)
    d.push_back(static_cast<V>(1 / entries[i].at(static_cast<Index>(i))));
  solve.inverse_diagonal = tile_of(runtime, d);
  if (kind == PreconditionerKind::polynomial) {
    solve.left = block_of<V>(runtime, entries, 0, solve.n, stored, stencil);
    solve.shape.left = solve.left->shape;
    solve.shape.steps = {{0, 0.9}, {0.1, 0.8}, {0.05, 0.9}};
  }
  if (kind == PreconditionerKind::triangular) {
    FactorTiles<V> tiles(runtime, factors, stored);
    solve.shape.left = tiles.left.shape;
    solve.shape.right = tiles.right.shape;
    solve.shape.stages = factors.stages;
    solve.left = std::move(tiles.left);
    solve.right = std::move(tiles.right);
    solve.stages = std::move(tiles.stages);
  }
}

struct Case {
  Index nx, ny, colours;
  Stored stored;
  PreconditionerKind kind;
};

/// @return x, and the state, after sweeps of so many iterations
template <class V>
std::pair<std::vector<double>, CgState> solved(const Case& c, Where where,
                                               const std::vector<double>& solution,
                                               const std::vector<Index>& counts, double sign = 1) {
  Runtime runtime;
  const bool natural = c.stored == Stored::stencil;
  Stencil stencil = stencil_of(c.nx, c.ny, 1);
  for (double& coefficient : stencil.coefficients) coefficient *= sign;
  const StagedFactors factors(c.nx, c.ny, c.colours, 1);
  Entries entries = natural || c.stored == Stored::diagonals ? entries_of(stencil) : factors.matrix;
  if (sign < 0 && !natural && c.stored != Stored::diagonals)
    for (auto& row : entries)
      for (auto& [j, value] : row) value = -value;
  std::vector<double> b;
  for (const auto& row : entries) b.push_back(static_cast<double>(product_of(row, solution).first));
  Solve<V> solve(runtime, entries, c.stored, stencil, b, where);
  add_preconditioner(solve, runtime, c.kind, entries, factors, c.stored, stencil);
  Real rr = 0;
  for (const double value : b) rr += static_cast<Real>(value) * static_cast<Real>(value);
  const double limit = 1e-26 * static_cast<double>(rr);
  if (c.kind == PreconditionerKind::none)
    solve.begin(limit);
  else
    solve.begin_with(limit, plain_m(solve, entries, factors, b), runtime);
  Index first = 0;
  for (const Index count : counts) {
    solve.sweep(first, count);
    first += count;
  }
  runtime.wait();
  return {values_of(solve.x), solve.look()};
}

const Case cases[] = {
    {23, 29, 2, Stored::csr, PreconditionerKind::none},
    {23, 29, 2, Stored::csr, PreconditionerKind::diagonal},
    {23, 29, 2, Stored::sliced, PreconditionerKind::none},
    {101, 97, 2, Stored::sliced, PreconditionerKind::diagonal},
    {23, 29, 2, Stored::sliced_differences, PreconditionerKind::none},
    {211, 201, 2, Stored::sliced_differences, PreconditionerKind::diagonal},
    {37, 31, 2, Stored::diagonals, PreconditionerKind::none},
    {37, 31, 2, Stored::diagonals, PreconditionerKind::diagonal},
    {37, 31, 2, Stored::stencil, PreconditionerKind::none},
    {133, 131, 2, Stored::stencil, PreconditionerKind::diagonal},
    {9, 7, 2, Stored::sliced, PreconditionerKind::none},
    {1, 1, 1, Stored::sliced, PreconditionerKind::none},
    {23, 29, 2, Stored::csr, PreconditionerKind::polynomial},
    {23, 29, 2, Stored::stencil, PreconditionerKind::polynomial},
    {23, 29, 1, Stored::diagonals, PreconditionerKind::polynomial},
    {23, 29, 2, Stored::sliced, PreconditionerKind::triangular},
    {23, 29, 3, Stored::sliced_differences, PreconditionerKind::triangular},
    {23, 29, 0, Stored::csr, PreconditionerKind::triangular},
    {110, 100, 5, Stored::sliced, PreconditionerKind::triangular},
};

/// More than one row for each of a GPU's threads.
const Case large_cases[] = {
    {421, 401, 2, Stored::sliced, PreconditionerKind::diagonal},
    {613, 611, 2, Stored::stencil, PreconditionerKind::diagonal},
    {743, 741, 2, Stored::stencil, PreconditionerKind::none},
};

bool same_state(const CgState& a, const CgState& b, Index iterations) {
  const int side = side_of(iterations);
  return a.status[side] == b.status[side] && a.rz[side] == b.rz[side] && a.rr == b.rr &&
         a.iterations == b.iterations && std::memcmp(a.alpha, b.alpha, sizeof a.alpha) == 0 &&
         std::memcmp(a.beta, b.beta, sizeof a.beta) == 0;
}

template <class V>
void check_solves(Where where, std::span<const Case> all = cases) {
  for (const Case& c : all) {
    CAPTURE(c.nx);
    CAPTURE(static_cast<int>(c.stored));
    CAPTURE(static_cast<int>(c.kind));
    const std::vector<double> solution = random_values<double>(c.nx * c.ny, 12);
    constexpr Index most = 300;
    const auto [x, state] = solved<V>(c, where, solution, {most});
    CHECK(largest_difference(x, solution) <= 1e-10);
    CHECK(state.status[side_of(most)] == CgStatus::converged);
    CHECK(state.iterations > 0);
    CHECK(state.iterations < most);
    const auto [again, state_again] = solved<V>(c, where, solution, {most});
    CHECK(again == x);
    CHECK(same_state(state, state_again, most));
    const auto [chained, chained_state] = solved<V>(c, where, solution, {1, 2, 0, 7, 1, most - 11});
    CHECK(chained == x);
    CHECK(same_state(state, chained_state, most));
  }
}

void check_negative_curvature(Where where) {
  for (const Stored stored : {Stored::csr, Stored::sliced, Stored::stencil})
    for (const PreconditionerKind kind : {PreconditionerKind::none, PreconditionerKind::diagonal}) {
      const Case c{31, 37, 2, stored, kind};
      const std::vector<double> solution = random_values<double>(c.nx * c.ny, 12);
      const auto [x, state] = solved<double>(c, where, solution, {3, 2}, -1);
      const CgStatus expected =
          kind == PreconditionerKind::none ? CgStatus::negative_curvature : CgStatus::negative_product;
      CHECK(state.status[side_of(5)] == expected);
      CHECK(state.iterations == 0);
      for (const double value : x) CHECK(value == 0);
    }
}

}  // namespace

TEST_CASE("sweeps solve; divided otherwise, and again, they give the same bits; what has converged stays") {
  check_solves<double>(Where::cpu);
}
TEST_CASE("a matrix that is not positive definite is told, and x stays") {
  check_negative_curvature(Where::cpu);
}

#ifdef ASTERISM_WITH_CUDA
TEST_CASE(
    "gpu: sweeps solve; divided otherwise, and again, they give the same bits; what has converged stays") {
  check_solves<double>(Where::cuda);
}
TEST_CASE("gpu: sweeps over large matrices" * quick_enough()) {
  check_solves<double>(Where::cuda, large_cases);
}
TEST_CASE("gpu: preconditioners in single precision do as well") { check_solves<float>(Where::cuda); }
TEST_CASE("gpu: a matrix that is not positive definite is told, and x stays") {
  check_negative_curvature(Where::cuda);
}
#endif
