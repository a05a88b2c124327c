// What tasks on GPUs put in tiles of any type.

#ifdef ASTERISM_WITH_CUDA

#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/contents.hpp"
#include "runtime/cuda.hpp"

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

TEST_CASE("gpu: what tiles have in main memory is page-locked, of large ones in huge pages, and given back") {
  Runtime runtime;
  const auto where = [](const Tile<double>& tile) {
    const HostView<double> view(tile, HostView<double>::Access::write);
    view(0, view.cols() - 1) = 1;
    cudaPointerAttributes attributes{};
    cuda::check(cudaPointerGetAttributes(&attributes, view.row(0)), "cudaPointerGetAttributes");
    CHECK(attributes.type == cudaMemoryTypeHost);
    return reinterpret_cast<std::uintptr_t>(view.row(0));
  };
  where(Tile<double>(runtime, 1, 1));
  const Index large = Index{1} << 23;
  for (int k = 0; k < 200; ++k)  // 13 GB, were they kept
    CHECK(where(Tile<double>(runtime, 1, large + k)) % (std::uintptr_t{2} << 20) == 0);
}

#endif
