// (Q3) by stages, against the plain loops.

#include <doctest/doctest.h>

#include "../../support/worst.hpp"
#include "staged_factors.hpp"

using namespace asterism;
using namespace asterism::sparse;
using namespace asterism::sparse::test;
using asterism::test::Worst;

namespace {

template <class T, class V>
void check_triangular(Where where) {
  Runtime runtime;
  for (const auto& [nx, ny, colours, groups] : {std::array<Index, 4>{1, 1, 1, 1},
                                                {5, 3, 2, 1},
                                                {17, 13, 2, 3},
                                                {31, 33, 3, 1},
                                                {40, 41, 5, 4},
                                                {23, 29, 0, 1},
                                                {110, 100, 4, 1},
                                                {110, 100, 5, 2}})
    for (const Stored stored : {Stored::csr, Stored::sliced, Stored::sliced_differences}) {
      CAPTURE(nx);
      CAPTURE(colours);
      CAPTURE(static_cast<int>(stored));
      const StagedFactors factors(nx, ny, colours, groups);
      const Index n = nx * ny;
      const FactorTiles<V> tiles(runtime, factors, stored);
      const std::vector<T> r = random_values<T>(n, 9);
      const Tile<T> r_tile = tile_of(runtime, r), z = tile_of(runtime, poison<T>(n));
      const Index middle = factors.stages.stages / 2;
      const auto apply = [&](Half half, Index first, Index end) {
        const Block<V>& factor = half == Half::forward ? tiles.left : tiles.right;
        triangular_stages<T, V>({factor.shape, half, factors.stages, first, end},
                                {.factor = factor.tiles(),
                                 .inverse_diagonal = tiles.inverse_diagonal,
                                 .stages = tiles.stages,
                                 .arrivals = {},
                                 .r = r_tile,
                                 .z = z,
                                 .departures = {}},
                                {.where = where});
      };
      apply(Half::forward, 0, middle);
      apply(Half::forward, middle, factors.stages.stages);
      apply(Half::backward, middle, factors.stages.stages);
      apply(Half::backward, 0, middle);
      runtime.wait();
      const std::vector<Real> exact = factors.solve(std::vector<Real>(r.begin(), r.end()));
      const std::vector<T> found = values_of(z);
      Worst worst;
      for (std::size_t i = 0; i < exact.size(); ++i) worst.take_in(static_cast<Real>(found[i]) - exact[i]);
      const Real epsilon =
          std::max<Real>(std::numeric_limits<T>::epsilon(), std::numeric_limits<V>::epsilon());
      CHECK(worst.value() <= 64 * epsilon);
    }
}

}  // namespace

TEST_CASE("triangular systems by stages, also some at a time") {
  check_triangular<double, double>(Where::cpu);
  check_triangular<double, float>(Where::cpu);
  check_triangular<float, float>(Where::cpu);
}

#ifdef ASTERISM_WITH_CUDA
TEST_CASE("gpu: triangular systems by stages, also some at a time") {
  check_triangular<double, double>(Where::cuda);
  check_triangular<double, float>(Where::cuda);
  check_triangular<float, float>(Where::cuda);
}
#endif
