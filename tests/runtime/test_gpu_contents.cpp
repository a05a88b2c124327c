// What tasks on GPUs put in tiles of any type.

#ifdef ASTERISM_WITH_CUDA

#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
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

TEST_CASE_TEMPLATE("gpu: rows of a tile are copied there, from its memory or from where the tile is at home",
                   T, float, double) {
  Runtime runtime;
  constexpr Index rows = 900, cols = 50, first = 300;
  const auto number = [](Index i, Index j) { return static_cast<T>(i * cols + j); };
  const Tile<T> some(runtime, rows, cols), kept = Tile<T>::kept_at_home(runtime, rows, cols);
  for (const Tile<T>* const from : {&some, &kept}) {
    asterism::set(runtime, *from, number);
    const Tile<T> to(runtime, 400, cols);
    copy_rows(*from, first, to, {.where = Where::cuda});
    const HostView<T> view(to, HostView<T>::Access::read);
    for (Index i = 0; i < view.rows(); ++i)
      for (Index j = 0; j < cols; ++j) CHECK(view(i, j) == number(first + i, j));
  }
}

TEST_CASE("gpu: what tiles have in main memory is page-locked, of large ones in huge pages, and given back") {
  const auto pages_in_memory = [] {
    std::int64_t mapped = 0, in_memory = 0;
    std::ifstream("/proc/self/statm") >> mapped >> in_memory;
    return in_memory;
  };
  const auto use_tiles = [&] {
    Runtime runtime;
    const auto address_of = [](const Tile<double>& tile) {
      const HostView<double> view(tile, HostView<double>::Access::write);
      std::fill_n(view.row(0), view.cols(), 1.0);
      cudaPointerAttributes attributes{};
      cuda::check(cudaPointerGetAttributes(&attributes, view.row(0)), "cudaPointerGetAttributes");
      CHECK(attributes.type == cudaMemoryTypeHost);
      return reinterpret_cast<std::uintptr_t>(view.row(0));
    };
    address_of(Tile<double>(runtime, 1, 1));
    for (Index k = 0; k < 20; ++k)  // StarPU keeps those of other sizes
      CHECK(address_of(Tile<double>(runtime, 1, (Index{1} << 23) + k)) % (std::uintptr_t{2} << 20) == 0);
    return pages_in_memory();
  };
  const std::int64_t most = use_tiles(), page = 4096;
  CHECK((most - pages_in_memory()) * page > std::int64_t{1} << 30);  // of 1.3 GB
}

#endif
