/// \file
/// Sums over units on a GPU: a block of threads has a unit, and goes through its rows in packs of neighbouring ones.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "../../runtime/cuda.hpp"
#include "units.hpp"

namespace asterism::sparse::cuda {

inline constexpr int warp_lanes = 32;
inline constexpr unsigned whole_warp = 0xffffffffu;

/// Of the block that has a unit.
inline constexpr int unit_threads = 256;

/// The sum of what the lanes of a warp have, for all of them.
__device__ inline double sum_of_warp(double own) {
#pragma unroll
  for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
    own += __shfl_xor_sync(whole_warp, own, distance);
  return own;
}

/// Several sums at once, which takes hardly more than one. @return of lane k sum k
template <int count>
__device__ double sums_of_warp(const double (&own)[count]) {
  constexpr int padded = static_cast<int>(std::bit_ceil(static_cast<unsigned>(count)));
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  double a[padded] = {};
#pragma unroll
  for (int k = 0; k < count; ++k) a[k] = own[k];
#pragma unroll
  for (int half = padded / 2; half > 0; half /= 2) {  // a lane goes on with half of the sums
    const bool upper = (lane & half) != 0;
#pragma unroll
    for (int k = 0; k < half; ++k) {
      const double given = upper ? a[k] : a[k + half], kept = upper ? a[k + half] : a[k];
      a[k] = kept + __shfl_xor_sync(whole_warp, given, half);
    }
  }
#pragma unroll
  for (int distance = padded; distance < warp_lanes; distance *= 2)
    a[0] += __shfl_xor_sync(whole_warp, a[0], distance);
  return a[0];
}

/// a[u] += a[u + count / 2], and so on. @return what they add up to
template <int count>
__device__ double by_halves(double (&a)[count]) {
#pragma unroll
  for (int half = count / 2; half > 0; half /= 2)
#pragma unroll
    for (int u = 0; u < half; ++u) a[u] += a[u + half];
  return a[0];
}

/// The sums of what all threads of a block have, always added in the same order, for all of them. All of them call it.
template <int threads, int count>
__device__ void sum_over_block(double (&sums)[count]) {
  constexpr int warps = threads / warp_lanes;
  __shared__ double of_warps[count][warps];
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes,
            warp = static_cast<int>(threadIdx.x) / warp_lanes;
#pragma unroll
  for (int k = 0; k < count; ++k) sums[k] = sum_of_warp(sums[k]);
  __syncthreads();  // the sums before have been read
  if (lane == 0)
#pragma unroll
    for (int k = 0; k < count; ++k) of_warps[k][warp] = sums[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < count; ++k) {
    sums[k] = of_warps[k][lane % warps];
#pragma unroll
    for (int distance = warps / 2; distance > 0; distance /= 2)
      sums[k] += __shfl_xor_sync(whole_warp, sums[k], distance);
  }
}

/// Calls body(j, u) for the units whose sums a thread adds up first: j counts them.
template <class Body>
__device__ void for_units_of_thread(int units, Body body) {
  constexpr int of_thread = static_cast<int>(most_units) / unit_threads;
#pragma unroll
  for (int j = 0; j < of_thread; ++j)
    if (const int u = static_cast<int>(threadIdx.x) + j * unit_threads; u < units) body(j, u);
}

/// Those units' sums, of `kinds` products.
template <int kinds>
struct SumsOfThread {
  double of[kinds][most_units / unit_threads] = {};

  /// What those of all threads of the block add up to, for all of them: by halves, as units.hpp says. All of them call
  /// it.
  __device__ void add_up(double (&totals)[kinds]) {
    constexpr int warps = unit_threads / warp_lanes;
    __shared__ double left[kinds][unit_threads];
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int k = 0; k < kinds; ++k) left[k][thread] = by_halves(of[k]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kinds; ++k) {
      double of_lane[warps];
#pragma unroll
      for (int w = 0; w < warps; ++w) of_lane[w] = left[k][w * warp_lanes + thread % warp_lanes];
      totals[k] = sum_of_warp(by_halves(of_lane));
    }
  }
};

/// The sums over units of all blocks, of `kinds` products. @tparam most blocks
template <int most, int kinds>
struct SumLists {
  const double* at[kinds][most];
  std::int16_t begins[most + 1];  ///< units before those of a block
  std::int16_t blocks;

  /// @param others of the other products; the same divisions. None: those of all products are one after the other
  template <class... Others>
  explicit SumLists(const Many<In<double>>& first, const Others&... others)
      : blocks(static_cast<std::int16_t>(first.size())) {
    constexpr int of_tile = sizeof...(others) == 0 ? kinds : 1;
    static_assert(sizeof...(others) + of_tile == kinds);
    begins[0] = 0;
    for (Index b = 0; b < first.size(); ++b) {
      const Index units = first[b].cols / of_tile;
      begins[b + 1] = static_cast<std::int16_t>(begins[b] + units);
      int kind = 0;
      for (; kind < of_tile; ++kind) at[kind][b] = first[b].data + kind * units;
      ((at[kind++][b] = others[b].data), ...);
    }
  }

  /// What they add up to, for all threads of the block. All of them call it.
  __device__ void add_up(double (&totals)[kinds]) const {
    SumsOfThread<kinds> sums;
    const int units = begins[most == 1 ? 1 : blocks];
    for_units_of_thread(units, [&](int j, int u) {
      const int block = block_of(u);
#pragma unroll
      for (int k = 0; k < kinds; ++k) sums.of[k][j] = at[k][block][u - begins[block]];
    });
    sums.add_up(totals);
  }

 private:
  [[nodiscard]] __device__ int block_of(int unit) const {
    if constexpr (most == 1) return 0;
    int low = 0, high = blocks;  // begins[low] <= unit < begins[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (begins[middle] <= unit ? low : high) = middle;
    }
    return low;
  }
};

/// Consecutive rows of a block.
struct Unit {
  Index number, first;
  int rows;
};

/// Those of the calling block of threads. @param backward whether the last ones come first: what the kernel before has
/// left in the cache is what it wrote last @param first_block that has a unit
__device__ inline Unit own_unit(Index unit_rows, Index rows, bool backward, unsigned first_block = 0) {
  const Index number = backward ? gridDim.x - 1 - blockIdx.x : blockIdx.x - first_block;
  const Index first = number * unit_rows, left = rows - first;
  return {number, first, static_cast<int>(left < unit_rows ? left : unit_rows)};
}

/// Neighbouring elements that one load or store moves.
template <class T, int width>
struct alignas(sizeof(T) * width) Pack {
  T v[width];
};

/// Of vectors of T; matrices and diagonals of another type have as many rows in a pack.
template <class T>
inline constexpr int pack_width = 16 / static_cast<int>(sizeof(T));

/// How likely it is to be needed again soon.
enum class Again { yes, no };

template <class P>
__device__ P load_whole(const P* at, Again again) {
  static_assert(sizeof(P) == 8 || sizeof(P) == 16);
  using Word = std::conditional_t<sizeof(P) == 8, int2, int4>;
  const Word* const from = reinterpret_cast<const Word*>(at);
  const Word word = again == Again::yes ? *from : __ldcs(from);
  return reinterpret_cast<const P&>(word);
}

/// The elements from `at` on, of `end` in all; beyond them 0. @tparam aligned whether `v` is, as a pack
template <bool aligned, class T, int width>
__device__ void load(Pack<T, width>& pack, const T* v, int at, int end, Again again = Again::yes) {
  if (aligned && at + width <= end) {
    pack = load_whole(reinterpret_cast<const Pack<T, width>*>(v + at), again);
  } else {
#pragma unroll
    for (int e = 0; e < width; ++e) pack.v[e] = at + e < end ? v[at + e] : T{};
  }
}

template <bool aligned, class T, int width>
__device__ void store(const Pack<T, width>& pack, T* v, int at, int end, Again again = Again::yes) {
  static_assert(sizeof(pack) == 16);
  if (aligned && at + width <= end) {
    int4* const word = reinterpret_cast<int4*>(v + at);
    if (again == Again::yes)
      *word = reinterpret_cast<const int4&>(pack);
    else
      __stcs(word, reinterpret_cast<const int4&>(pack));
  } else {
#pragma unroll
    for (int e = 0; e < width; ++e)
      if (at + e < end) v[at + e] = pack.v[e];
  }
}

/// Whether packs of vectors of T, and as many elements here, can be loaded whole; nullptr can.
template <class T, class Element>
bool is_aligned(const Element* v) {
  return reinterpret_cast<std::uintptr_t>(v) % (sizeof(Element) * pack_width<T>) == 0;
}

/// Calls body(std::true_type) or body(std::false_type).
template <class Body>
void with_flag(bool flag, Body body) {
  if (flag)
    body(std::true_type{});
  else
    body(std::false_type{});
}

}  // namespace asterism::sparse::cuda
