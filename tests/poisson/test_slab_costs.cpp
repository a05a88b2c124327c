// Into how many slabs the cost model cuts a grid on cores.

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "../support/skip.hpp"
#include "algorithms/poisson/slabs/costs.hpp"
#include "algorithms/poisson/solver.hpp"

using namespace asterism;
using poisson::CoreWork;
using poisson::seconds_on_cores;
using poisson::slabs_on_cores;

namespace {

CoreWork square(Index n, Index workers) { return {.planes = n, .columns = n, .workers = workers}; }

CoreWork cube(Index n, Index workers) {
  return {.planes = n, .columns = n * n, .transformed_axes = 2, .workers = workers};
}

}  // namespace

TEST_CASE("what takes microseconds is one slab, on however many cores") {
  for (const Index workers : {1, 2, 3, 16, 64, 256}) {
    CAPTURE(workers);
    CHECK(slabs_on_cores(square(31, workers)) == 1);
    CHECK(slabs_on_cores(square(63, workers)) == 1);
    CHECK(slabs_on_cores(square(127, workers)) == 1);
    CHECK(slabs_on_cores({.planes = 1, .columns = 100000, .workers = workers}) == 1);
  }
}

TEST_CASE("one core has nobody to share a problem with: one slab, as far as memory is to be spared") {
  for (const Index n : {63, 511, 1023, 2047}) CHECK(slabs_on_cores(square(n, 1)) == 1);
  for (const Index n : {31, 63, 127}) CHECK(slabs_on_cores(cube(n, 1)) == 1);
  for (const Index workers : {1, 2, 16})
    for (const Index n : {4095, 6000, 16383}) {
      const Index slabs = slabs_on_cores(square(n, workers));
      CHECK(((n + slabs - 1) / slabs - 1) * n * 8 < Index{32} << 20);
    }
  CHECK(slabs_on_cores(square(6000, 1)) == 9);
}

TEST_CASE("by the model, more cores are never slower") {
  for (const Index n : {31, 63, 127, 255, 511, 1023, 2047, 8191}) {
    double least = std::numeric_limits<double>::infinity();
    const double alone = seconds_on_cores(square(n, 1), slabs_on_cores(square(n, 1)));
    for (const Index workers : {1, 2, 4, 16, 64, 256}) {
      CAPTURE(n);
      CAPTURE(workers);
      const double seconds = seconds_on_cores(square(n, workers), slabs_on_cores(square(n, workers)));
      CHECK(seconds <= alone);
      least = std::min(least, seconds);
    }
    if (n > 200) CHECK(least < 0.8 * alone);
  }
}

TEST_CASE("what takes milliseconds keeps all cores busy, evenly") {
  for (const Index workers : {2, 4, 16}) {
    CAPTURE(workers);
    const Index slabs = slabs_on_cores(square(4095, workers));
    CHECK(slabs >= workers);
    CHECK(slabs % workers == 0);
    CHECK(slabs <= 64);
    CHECK(slabs_on_cores(cube(255, workers)) >= workers);
  }
  CHECK(slabs_on_cores(square(255, 2)) == 2);
  CHECK(slabs_on_cores(cube(31, 2)) == 2);
  CHECK(slabs_on_cores(square(1023, 2)) == 4);
}

TEST_CASE("no more slabs than are asked for, and those evenly dealt") {
  for (const Index workers : {2, 3, 16})
    for (const Index most : {1, 2, 5, 17, 50}) {
      CAPTURE(workers);
      CAPTURE(most);
      const Index slabs = slabs_on_cores(cube(511, workers), most);
      CHECK(slabs <= most);
      if (most > workers) CHECK(slabs % workers == 0);
    }
  CHECK(slabs_on_cores(cube(511, 16), 1000) > 16);
  CHECK(slabs_on_cores(cube(5, 2), 1000) <= 5);
}

TEST_CASE("slabs stay in the caches of many cores, as far as the interface systems allow") {
  const CoreWork work = square(4095, 16);
  const Index slabs = slabs_on_cores(work);
  CHECK(work.planes * work.columns * work.element_bytes <= slabs * (Index{2} << 20));
  CHECK(seconds_on_cores(work, slabs) < seconds_on_cores(work, slabs / 4));
}

TEST_CASE("problems of a batch are solved side by side: one slab each where there are enough of them") {
  CoreWork batch = square(511, 4);
  CHECK(slabs_on_cores(batch) > 1);
  batch.problems = 64;
  CHECK(slabs_on_cores(batch) == 1);
}

TEST_CASE("solvers take the model's number, and any other that they are asked for" *
          doctest::skip(test::shape_is("mpi") || test::shape_is("disk") || test::shape_is("gpu"))) {
  Runtime runtime;
  const Index workers = runtime.machine().count(WorkerKind::cpu);
  for (const Index n : {31, 255, 600}) {
    const poisson::Solver<double> solver(runtime, {.shape = {n, n}});
    CHECK(solver.layout().slabs == slabs_on_cores(square(n, workers)));
  }
  // What slabs of large planes show takes much memory. That is no reason to leave cores without any.
  const poisson::Solver<float> large(runtime, {.shape = {40, 1000, 1100}});
  CHECK(large.layout().slabs >= std::min<Index>(workers, 5));
  const poisson::Solver<double> asked(runtime, {.shape = {31, 31}}, {.slab_planes = 8});
  CHECK(asked.layout().slabs == 4);
}
