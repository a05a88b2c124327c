// Tiles of all types of elements.

#include <doctest/doctest.h>

#include <complex>
#include <cstdint>
#include <filesystem>
#include <span>
#include <type_traits>
#include <vector>

#include "runtime/codelet.hpp"

using namespace asterism;

namespace {

struct Move {  // of a tabu search, say; with a hole between its members
  char kind;
  double gain;
  std::int32_t from[3];
  bool operator==(const Move&) const = default;
};

template <class T>
T element(Index k) {
  if constexpr (std::is_same_v<T, Move>)
    return {static_cast<char>('a' + k % 26), 0.5 * static_cast<double>(k), {1, static_cast<std::int32_t>(k), -1}};
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return {static_cast<double>(k), -0.25};
  else
    return static_cast<T>(k * 7919);
}

}  // namespace

TEST_CASE_TEMPLATE("elements: of any trivially copyable type", T, std::int32_t, std::int64_t, std::uint8_t,
                   std::complex<double>, Move) {
  const Codelet<Index, Out<T>> fill{"test_elements_fill", [](const Index& first, Out<T> x) {
                                      for (Index i = 0; i < x.rows; ++i)
                                        for (Index j = 0; j < x.cols; ++j)
                                          x.row(i)[j] = element<T>(first + i * x.cols + j);
                                    }};
  const Codelet<NoArgs, Many<In<T>>, Scratch<T>, InOut<T>> last{
      "test_elements_last", [](Many<In<T>> all, Scratch<T> work, InOut<T> x) {
        *work.data = *x.data;
        for (const In<T>& part : all)
          if (part.row(part.rows - 1)[part.cols - 1] == element<T>(5 * 3 - 1)) *work.data = element<T>(4242);
        x.row(x.rows - 1)[x.cols - 1] = *work.data;
      }};
  Runtime runtime;
  std::vector<T> memory(40, element<T>(1));
  {
    const Tile<T> borrowed(runtime, memory.data(), 5, 3, 8), own(runtime, 2, 7), work(runtime, 1, 1);
    fill(0, borrowed);
    fill(100, own);
    last({own, borrowed}, work, own);
    const HostView<T> view(own, HostView<T>::Access::read);
    CHECK(view(0, 0) == element<T>(100));
    CHECK(view(1, 5) == element<T>(112));
    CHECK(view(1, 6) == element<T>(4242));
  }
  CHECK(memory[4 * 8 + 2] == element<T>(14));
  CHECK(memory[3] == element<T>(1));  // between the rows
}

TEST_CASE_TEMPLATE("elements: those of any trivially copyable type pass through the disk", T, std::int32_t, Move) {
  const std::filesystem::path folder = std::filesystem::absolute("spilled-elements");
  std::filesystem::create_directories(folder);
  {
    Options options;
    options.gpus = 0;
    options.cpu_memory = std::size_t{32} << 20;
    options.spill = folder;
    options.spill_bytes = std::size_t{256} << 20;
    Runtime runtime(options);
    const Codelet<Index, Out<T>> fill{"test_spilled_fill", [](const Index& k, Out<T> x) {
                                        for (Index j = 0; j < x.cols; ++j) x.data[j] = element<T>(k + j);
                                      }};
    const Codelet<NoArgs, Many<In<T>>, Out<T>> ends{"test_spilled_ends", [](Many<In<T>> parts, Out<T> out) {
                                                      for (Index k = 0; k < parts.size(); ++k)
                                                        out.data[k] = parts[k].data[parts[k].cols - 1];
                                                    }};
    constexpr Index cols = static_cast<Index>((std::size_t{1} << 20) / sizeof(T));
    std::vector<Tile<T>> tiles;
    for (Index k = 0; k < 80; ++k) fill(k, tiles.emplace_back(runtime, 1, cols));  // 1 MiB
    const Tile<T> out(runtime, 1, 20);
    for (std::size_t first = 0; first < 80; first += 20) {
      ends(std::span(tiles).subspan(first, 20), out);
      const HostView<T> view(out, HostView<T>::Access::read);
      for (Index k = 0; k < 20; ++k) CHECK(view(0, k) == element<T>(static_cast<Index>(first) + k + cols - 1));
    }
    CHECK(runtime.traffic().to_disk >= std::int64_t{40} << 20);
  }
  CHECK(std::filesystem::is_empty(folder));
}
