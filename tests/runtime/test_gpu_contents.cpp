// What tasks on GPUs put in tiles of any type.

#ifdef ASTERISM_WITH_CUDA

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "runtime/contents.hpp"

using namespace asterism;

TEST_CASE("gpu: a tile is cleared there, and no more than its own elements") {
  Runtime runtime;
  constexpr Index rows = 3, cols = 5, ld = 7;
  std::vector<double> memory(rows * ld, 4.0);
  {
    const Tile<double> borrowed(runtime, memory.data(), rows, cols, ld), own(runtime, 1, 100'000);
    clear(borrowed, {.where = Where::cuda});
    clear(own, {.where = Where::cuda});
    const HostView<double> view(own, HostView<double>::Access::read);
    CHECK(std::all_of(view.row(0), view.row(0) + view.cols(), [](double x) { return x == 0; }));
  }
  for (Index k = 0; k < rows * ld; ++k)
    CHECK(memory[static_cast<std::size_t>(k)] == (k % ld < cols ? 0.0 : 4.0));
}

#endif
