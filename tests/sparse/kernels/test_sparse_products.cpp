// (B1) with its dot product, in every format, against entries one by one; polynomial steps, dot products and the
// exchange.

#include <doctest/doctest.h>

#include "../../support/worst.hpp"
#include "kernel_codelets.hpp"

using namespace asterism;
using namespace asterism::sparse;
using namespace asterism::sparse::test;
using asterism::test::Worst;

namespace {

struct Problem {
  Entries entries;
  Stencil stencil;
};

/// A matrix of n rows that the format can have.
Problem problem_for(Stored stored, Index n, unsigned seed) {
  if (stored == Stored::stencil) {
    const Index nz = n % 3 == 0 ? 3 : 1, ny = n / nz % 7 == 0 ? 7 : n / nz % 2 == 0 ? 2 : 1;
    const Stencil stencil = stencil_of(n / nz / ny, ny, nz);
    return {entries_of(stencil), stencil};
  }
  if (stored != Stored::diagonals) return {random_entries(n, 400, seed), {}};
  std::mt19937_64 engine(seed);
  Entries entries(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i)
    for (const Index offset : {-101, -30, -1, 0, 2, 30, 257})
      if (i + offset >= 0 && i + offset < n && (i + offset) % 5 != 0)
        entries[static_cast<std::size_t>(i)][i + offset] = random_value(engine);
  return {entries, {}};
}

constexpr Index sizes[] = {1, 31, 32, 33, 42, 255, 256, 257, 1009, 5003, 66150};

template <class T>
void check_products(Where where) {
  Runtime runtime;
  for (const Index n : sizes)
    for (const Stored stored : all_stored) {
      CAPTURE(n);
      CAPTURE(static_cast<int>(stored));
      const Problem problem = problem_for(stored, n, static_cast<unsigned>(n));
      const Block<T> block = block_of<T>(runtime, problem.entries, 0, n, stored, problem.stencil);
      const std::vector<T> vector = random_values<T>(n, 3);
      const Index unit = unit_rows(n);
      const Tile<T> p = tile_of(runtime, vector), q = tile_of(runtime, poison<T>(n));
      const Tile<double> pq = tile_of(runtime, poison<double>(units_of(n, unit)));
      CgState state = running_state();
      state.status[1] = CgStatus::converged;
      const Tile<CgState> tile = tile_of(runtime, std::vector{state});
      const auto at = [&](Index iteration) {
        multiply<T>({block.shape, unit, iteration, 0}, {block.tiles(), {}, tile, p, q, pq}, {.where = where});
        runtime.wait();
      };
      at(1);  // has ended
      for (const T value : values_of(q)) CHECK(std::isnan(value));
      at(0);
      const std::vector<T> product = values_of(q);
      const std::vector<double> sums = values_of(pq);
      Real sum = 0, sum_magnitude = 0;
      Worst worst;
      for (Index i = 0; i < n; ++i) {
        const auto [exact, magnitude] = product_of(problem.entries[static_cast<std::size_t>(i)], vector);
        const auto k = static_cast<std::size_t>(i);
        worst.take_in((static_cast<Real>(product[k]) - exact) / (magnitude > 0 ? magnitude : 1));
        const Real term = static_cast<Real>(product[k]) * static_cast<Real>(vector[k]);
        sum += term;
        sum_magnitude += std::abs(term);
      }
      CHECK(worst.value() <= 24 * std::numeric_limits<T>::epsilon());
      for (const double unit_sum : sums) sum -= static_cast<Real>(unit_sum);
      CHECK(std::abs(sum) <= 1e-14L * (sum_magnitude + 1e-300L));
      CHECK(values_of(p) == vector);
    }
}

/// next = z + s, s = gamma s + delta d (r - A z), and (r, next).
template <class T, class V>
void check_polynomial_steps(Where where) {
  Runtime runtime;
  for (const Index n : {1, 33, 257, 1009})
    for (const Stored stored : all_stored)
      for (const bool first : {false, true})
        for (const bool has_s : {false, true}) {
          CAPTURE(n);
          CAPTURE(static_cast<int>(stored));
          const Problem problem = problem_for(stored, n, 8);
          const Block<V> block = block_of<V>(runtime, problem.entries, 0, n, stored, problem.stencil);
          const std::vector<T> r = random_values<T>(n, 1), z = first ? poison<T>(n) : random_values<T>(n, 2),
                               s = first ? poison<T>(n) : random_values<T>(n, 3);
          const std::vector<V> d = random_values<V>(n, 4);
          const Index unit = unit_rows(n);
          const Tile<T> r_tile = tile_of(runtime, r), z_tile = tile_of(runtime, z),
                        s_tile = tile_of(runtime, s), next_tile = tile_of(runtime, poison<T>(n));
          const Tile<V> d_tile = tile_of(runtime, d);
          const Tile<double> rz = tile_of(runtime, poison<double>(units_of(n, unit)));
          constexpr double gamma = 0.375, delta = 0.75;
          polynomial_step<T, V>({block.shape, unit, {gamma, delta}, first},
                                {.matrix = block.tiles(),
                                 .arrivals = {},
                                 .inverse_diagonal = d_tile,
                                 .r = r_tile,
                                 .z = z_tile,
                                 .s = has_s ? &s_tile : nullptr,
                                 .next = next_tile,
                                 .rz = rz,
                                 .departures = {}},
                                {.where = where});
          runtime.wait();
          const std::vector<T> next = values_of(next_tile), new_s = values_of(s_tile);
          Worst worst;
          Real sum = 0;
          for (std::size_t i = 0; i < next.size(); ++i) {
            const Real product = first ? 0 : product_of(problem.entries[i], z).first;
            Real step = Real{delta} * static_cast<Real>(d[i]) * (static_cast<Real>(r[i]) - product);
            if (has_s && !first) step += Real{gamma} * static_cast<Real>(s[i]);
            worst.take_in(static_cast<Real>(next[i]) - step - (first ? 0 : static_cast<Real>(z[i])));
            if (has_s) worst.take_in(static_cast<Real>(new_s[i]) - step);
            sum += static_cast<Real>(r[i]) * static_cast<Real>(next[i]);
          }
          CHECK(worst.value() <= 400 * std::numeric_limits<T>::epsilon());
          for (const double unit_sum : values_of(rz)) sum -= static_cast<Real>(unit_sum);
          CHECK(std::abs(sum) <= 1e-12L);
        }
}

template <class T>
void check_dot(Where where) {
  Runtime runtime;
  for (const Index own : {0, 1, 7})
    for (const Index n : sizes) {
      const std::vector<T> a = random_values<T>(n, 5), b = random_values<T>(n + own + 2, 6);
      const Index unit = unit_rows(n);
      const Tile<T> a_tile = tile_of(runtime, a), b_tile = tile_of(runtime, b);
      const Tile<double> sums(runtime, 1, units_of(n, unit));
      dot<T>({unit, own}, {a_tile, b_tile, sums}, {.where = where});
      runtime.wait();
      const std::vector<double> found = values_of(sums);
      Worst worst;
      for (Index u = 0; u < sums.cols(); ++u) {
        Real sum = -static_cast<Real>(found[static_cast<std::size_t>(u)]);
        for (Index i = u * unit; i < std::min(n, (u + 1) * unit); ++i)
          sum += static_cast<Real>(a[static_cast<std::size_t>(i)]) *
                 static_cast<Real>(b[static_cast<std::size_t>(i + own)]);
        worst.take_in(sum);
      }
      CHECK(worst.value() <= 1e-13L);
    }
}

}  // namespace

TEST_CASE_TEMPLATE("products are their entries', and nothing once the iteration has ended", T, float,
                   double) {
  check_products<T>(Where::cpu);
}
TEST_CASE("steps of polynomials, with all that may be missing") {
  check_polynomial_steps<double, double>(Where::cpu);
  check_polynomial_steps<double, float>(Where::cpu);
  check_polynomial_steps<float, float>(Where::cpu);
}
TEST_CASE_TEMPLATE("dot products of units", T, float, double) { check_dot<T>(Where::cpu); }

#ifdef ASTERISM_WITH_CUDA
TEST_CASE_TEMPLATE("gpu: products are their entries'", T, float, double) { check_products<T>(Where::cuda); }
TEST_CASE("gpu: steps of polynomials, with all that may be missing") {
  check_polynomial_steps<double, double>(Where::cuda);
  check_polynomial_steps<double, float>(Where::cuda);
  check_polynomial_steps<float, float>(Where::cuda);
}
TEST_CASE_TEMPLATE("gpu: dot products of units", T, float, double) { check_dot<T>(Where::cuda); }
#endif
