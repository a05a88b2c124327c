#include <type_traits>

#include "rounds.hpp"

namespace asterism::transforms::cuda {
namespace {

template <class E>
__device__ void put(E* row, Index place, E value) {
  if (place != nowhere) row[place] = value;
}

template <class Number>
__device__ Number number_at(const Number* row, Index place) {
  return place != nowhere ? row[place] : Number{};
}

/// What folding makes and unfolding takes, where rows of complex numbers hold it.
template <Transform kind, class U>
using Folded = std::conditional_t<folds_to_real(kind), U, Complex<U>>;
template <Transform kind, class U>
using Unfolded = std::conditional_t<unfolds_real(kind), U, Complex<U>>;

template <class Number, class U>
__device__ Number* row_of(const Rows<U>& rows, Index line) {
  return reinterpret_cast<Number*>(rows.data + line * rows.pitch);
}

template <class U>
__device__ Complex<U> spread(U real) {
  return {real, 0};
}
template <class U>
__device__ Complex<U> spread(Complex<U> number) {
  return number;
}

/// What a pair's folding makes, into its row.
template <Transform kind, class U>
__device__ void put_folded(const Rows<U>& rows, Index line, Index n, const PairPlaces& there,
                           const Pair<Folded<kind, U>>& pair) {
  if (rows.packing == Packing::tight) {
    auto* const row = row_of<Folded<kind, U>>(rows, line);
    put(row, there.first, pair.first);
    put(row, there.second, pair.second);
    return;
  }
  auto* const row = row_of<Complex<U>>(rows, line);
  const Complex<U> first = spread(pair.first);
  put(row, there.first, first);
  if (fft_kind(kind) == FftKind::to_real)
    put(row, there.first > 0 ? n - there.first : nowhere, {first.re, -first.im});
  else
    put(row, there.second, spread(pair.second));
}

/// A number that unfolding takes from a row.
template <Transform kind, class U>
__device__ Unfolded<kind, U> take_unfolded(const Rows<U>& rows, Index line, Index place) {
  if constexpr (fft_kind(kind) == FftKind::to_real)
    if (rows.packing == Packing::spread) return number_at(row_of<const Complex<U>>(rows, line), place).re;
  return number_at(row_of<const Unfolded<kind, U>>(rows, line), place);
}

template <class U>
__device__ Complex<U> rotation(const Complex<U>* rotations, Index p) {
  return rotations != nullptr ? rotations[p] : Complex<U>{};
}

// --- Lines alone in their group: a thread has one pair of several lines --------------------------

template <Transform kind, class T, class U>
__global__ void fold_alone(Lines<const T> from, Round round, const Complex<U>* __restrict__ rotations,
                           Rows<U> to) {
  const Index n = from.length, p = global_x(), step = threads_y();
  if (p >= fold_pairs(kind, n)) return;
  const PairPlaces here = fold_from(kind, n, p), there = fold_to(kind, n, p);
  const Complex<U> r = rotation(rotations, p);
  for (Index first = global_y(); first < round.count; first += rows_per_thread * step) {
    T x[rows_per_thread] = {}, y[rows_per_thread] = {};
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      const Index line = first + i * step;
      if (line < round.count) {
        const T* const points = from.data + (round.first + line) * from.distance;
        if (here.first != nowhere) x[i] = points[here.first * from.stride];
        if (here.second != nowhere) y[i] = points[here.second * from.stride];
      }
    }
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      const Index line = first + i * step;
      if (line < round.count) {
        put_folded<kind>(to, line, n, there, fold<kind, U>(n, p, x[i], y[i], r));
      }
    }
  }
}

template <Transform kind, class T, class U>
__global__ void unfold_alone(Rows<U> from, const Complex<U>* __restrict__ rotations, Lines<T> to,
                             Round round) {
  using Number = Unfolded<kind, U>;
  const Index n = to.length, p = global_x(), step = threads_y();
  if (p >= unfold_pairs(kind, n)) return;
  const PairPlaces here = unfold_from(kind, n, p), there = unfold_to(kind, n, p);
  const Complex<U> r = rotation(rotations, p), next = rotation(rotations, p + 1);
  for (Index first = global_y(); first < round.count; first += rows_per_thread * step) {
    Number u[rows_per_thread] = {}, v[rows_per_thread] = {};
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      const Index line = first + i * step;
      if (line < round.count) {
        u[i] = take_unfolded<kind>(from, line, here.first);
        v[i] = take_unfolded<kind>(from, line, here.second);
      }
    }
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      const Index line = first + i * step;
      if (line < round.count) {
        const Pair<U> pair = unfold<kind>(u[i], v[i], r, next);
        T* const points = to.data + (round.first + line) * to.distance;
        points[there.first * to.stride] = static_cast<T>(pair.first);
        if (there.second != nowhere) points[there.second * to.stride] = static_cast<T>(pair.second);
      }
    }
  }
}

// --- Lines side by side: a block has a tile of lines and pairs, and transposes it ----------------

constexpr int tile = 32, tile_step = 8;  // threads: tile x tile_step

template <Transform kind, class T, class U>
__global__ void fold_side_by_side(Lines<const T> from, Round round, const Complex<U>* __restrict__ rotations,
                                  Rows<U> to) {
  __shared__ T x[tile][tile + 1], y[tile][tile + 1];  // [pair][line]
  const Index n = from.length, pairs = fold_pairs(kind, n), first_pair = Index{blockIdx.x} * tile,
              first_line = Index{blockIdx.y} * tile;

  if (const Index line = first_line + threadIdx.x; line < round.count) {
    const T* const points = first_point(from, round.first + line);
#pragma unroll
    for (int i = threadIdx.y; i < tile; i += tile_step) {
      const Index p = first_pair + i;
      if (p >= pairs) break;
      const PairPlaces here = fold_from(kind, n, p);
      x[i][threadIdx.x] = here.first != nowhere ? points[here.first * from.stride] : T{};
      y[i][threadIdx.x] = here.second != nowhere ? points[here.second * from.stride] : T{};
    }
  }
  __syncthreads();

  const Index p = first_pair + threadIdx.x;
  if (p >= pairs) return;
  const PairPlaces there = fold_to(kind, n, p);
  const Complex<U> r = rotation(rotations, p);
#pragma unroll
  for (int i = threadIdx.y; i < tile; i += tile_step) {
    const Index line = first_line + i;
    if (line >= round.count) break;
    put_folded<kind>(to, line, n, there, fold<kind, U>(n, p, x[threadIdx.x][i], y[threadIdx.x][i], r));
  }
}

template <Transform kind, class T, class U>
__global__ void unfold_side_by_side(Rows<U> from, const Complex<U>* __restrict__ rotations, Lines<T> to,
                                    Round round) {
  __shared__ T x[tile][tile + 1], y[tile][tile + 1];  // [line][pair]
  const Index n = to.length, pairs = unfold_pairs(kind, n), first_pair = Index{blockIdx.x} * tile,
              first_line = Index{blockIdx.y} * tile;

  if (const Index p = first_pair + threadIdx.x; p < pairs) {
    const PairPlaces here = unfold_from(kind, n, p);
    const Complex<U> r = rotation(rotations, p), next = rotation(rotations, p + 1);
#pragma unroll
    for (int i = threadIdx.y; i < tile; i += tile_step) {
      const Index line = first_line + i;
      if (line >= round.count) break;
      const Pair<U> pair = unfold<kind>(take_unfolded<kind>(from, line, here.first),
                                        take_unfolded<kind>(from, line, here.second), r, next);
      x[i][threadIdx.x] = static_cast<T>(pair.first);
      y[i][threadIdx.x] = static_cast<T>(pair.second);
    }
  }
  __syncthreads();

  const Index line = first_line + threadIdx.x;
  if (line >= round.count) return;
  T* const points = first_point(to, round.first + line);
#pragma unroll
  for (int i = threadIdx.y; i < tile; i += tile_step) {
    const Index p = first_pair + i;
    if (p >= pairs) break;
    const PairPlaces there = unfold_to(kind, n, p);
    points[there.first * to.stride] = x[threadIdx.x][i];
    if (there.second != nowhere) points[there.second * to.stride] = y[threadIdx.x][i];
  }
}

dim3 tiles(Index pairs, Index lines) {
  return {static_cast<unsigned>(parts(pairs, tile)), static_cast<unsigned>(parts(lines, tile))};
}

// --- Launches -------------------------------------------------------------------------------------

/// Calls use(std::integral_constant<Transform, kind>).
template <class Use>
void with_kind(Transform kind, const Use& use) {
  switch (kind) {
    case Transform::dst1:
      return use(std::integral_constant<Transform, Transform::dst1>{});
    case Transform::dst2:
      return use(std::integral_constant<Transform, Transform::dst2>{});
    case Transform::dst3:
      return use(std::integral_constant<Transform, Transform::dst3>{});
    case Transform::dst4:
      return use(std::integral_constant<Transform, Transform::dst4>{});
    case Transform::dct1:
      return use(std::integral_constant<Transform, Transform::dct1>{});
    case Transform::dct2:
      return use(std::integral_constant<Transform, Transform::dct2>{});
    case Transform::dct3:
      return use(std::integral_constant<Transform, Transform::dct3>{});
    case Transform::dct4:
      return use(std::integral_constant<Transform, Transform::dct4>{});
    case Transform::dft:
      return use(std::integral_constant<Transform, Transform::dft>{});
    case Transform::idft:
      return use(std::integral_constant<Transform, Transform::idft>{});
  }
}

}  // namespace

template <class T, class U>
void fold_lines(cudaStream_t stream, Transform kind, const Lines<const T>& from, Round round,
                const Complex<U>* rotations, Rows<U> to) {
  const Index pairs = fold_pairs(kind, from.length);
  with_kind(kind, [&]<class Kind>(Kind) {
    if (from.width == 1) {
      const Launch launch(pairs, round.count);
      fold_alone<Kind::value, T, U><<<launch.blocks, launch.threads, 0, stream>>>(from, round, rotations, to);
    } else {
      fold_side_by_side<Kind::value, T, U>
          <<<tiles(pairs, round.count), dim3(tile, tile_step), 0, stream>>>(from, round, rotations, to);
    }
  });
  asterism::cuda::check_launch("fold lines of a transform");
}

template <class T, class U>
void unfold_lines(cudaStream_t stream, Transform kind, Rows<U> from, const Complex<U>* rotations,
                  const Lines<T>& to, Round round) {
  const Index pairs = unfold_pairs(kind, to.length);
  with_kind(kind, [&]<class Kind>(Kind) {
    if (to.width == 1) {
      const Launch launch(pairs, round.count);
      unfold_alone<Kind::value, T, U>
          <<<launch.blocks, launch.threads, 0, stream>>>(from, rotations, to, round);
    } else {
      unfold_side_by_side<Kind::value, T, U>
          <<<tiles(pairs, round.count), dim3(tile, tile_step), 0, stream>>>(from, rotations, to, round);
    }
  });
  asterism::cuda::check_launch("unfold lines of a transform");
}

template void fold_lines(cudaStream_t, Transform, const Lines<const float>&, Round, const Complex<float>*,
                         Rows<float>);
template void fold_lines(cudaStream_t, Transform, const Lines<const float>&, Round, const Complex<double>*,
                         Rows<double>);
template void fold_lines(cudaStream_t, Transform, const Lines<const double>&, Round, const Complex<double>*,
                         Rows<double>);
template void unfold_lines(cudaStream_t, Transform, Rows<float>, const Complex<float>*, const Lines<float>&,
                           Round);
template void unfold_lines(cudaStream_t, Transform, Rows<double>, const Complex<double>*, const Lines<float>&,
                           Round);
template void unfold_lines(cudaStream_t, Transform, Rows<double>, const Complex<double>*,
                           const Lines<double>&, Round);

}  // namespace asterism::transforms::cuda
