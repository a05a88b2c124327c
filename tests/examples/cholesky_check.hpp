// What cholesky.cpp factorises, how good the factor is, and how fast cuSOLVER alone is.
#pragma once

#include <asterism/runtime/contents.hpp>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#ifdef ASTERISM_WITH_CUDA
#include <asterism/runtime/loaded/cublas.hpp>
#include <asterism/runtime/loaded/cusolver.hpp>
#endif

using namespace asterism;

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A's entries: symmetric; the diagonal dominates, so A is positive definite.
inline double entry(Index i, Index j, Index n) {
  const auto hash = std::uint64_t(i * j + i + j) * 0x9e3779b97f4a7c15;
  return double(hash >> 11) * 0x1p-53 - 0.5 + (i == j ? double(n) : 0);
}
inline double x_at(Index j) { return entry(j, 1, 0) + 1; }

/// t = L^T x, of a column of tiles whose first row is `row`.
inline const auto transpose_times =
    codelet("transpose_times", [](Index row, Many<In<double>> column, Out<double> t) {
      for (Index k = 0; k < t.cols; ++k) t.data[k] = 0;
      for (const In<double>& l : column)
        for (Index r = 0; r < l.rows; ++r, ++row)
          for (Index c = 0; c < (&l == column.begin() ? r + 1 : l.cols); ++c)
            t.data[c] += l.row(r)[c] * x_at(row);
    });

/// The largest entry of A x - L t in a row of tiles.
struct Rows {
  Index first, n;
};
inline const auto largest_rest =
    codelet("largest_rest", [](Rows rows, Many<In<double>> l, Many<In<double>> t, Out<double> rest) {
      *rest.data = 0;
      for (Index r = 0; r < l[0].rows; ++r) {
        double sum = 0;
        for (Index k = 0; k < l.size(); ++k)
          for (Index c = 0; c < (k + 1 == l.size() ? r + 1 : l[k].cols); ++c)
            sum -= l[k].row(r)[c] * t[k].data[c];
        for (Index j = 0; j < rows.n; ++j) sum += entry(rows.first + r, j, rows.n) * x_at(j);
        if (!(std::abs(sum) <= *rest.data)) *rest.data = std::abs(sum);  // nor NaN
      }
    });

/// The largest entry of A x - L (L^T x), of A's largest. Collective.
inline double residual(Runtime& runtime, const Tiles<double>& l, Index n) {
  const Index blocks = l.count_rows(), size = l.tile_rows();
  const Tiles<double>::Owner owner = [&](Index, Index k) { return l(k, k).owner(); };
  const Tiles<double> t(runtime, 1, n, 1, size, owner), rests(runtime, 1, blocks, 1, 1, owner);
  for (Index k = 0; k < blocks; ++k) {
    TileList<double> column;
    for (Index i = k; i < blocks; ++i) column.add(l(i, k));
    transpose_times(k * size, column, t[k]);
  }
  for (Index i = 0; i < blocks; ++i) {
    TileList<double> row, factors;
    for (Index k = 0; k <= i; ++k) row.add(l(i, k)), factors.add(t[k]);
    largest_rest({i * size, n}, row, factors, rests[i]);
  }
  double largest = 0;
  for (const double rest : gather(rests))
    if (!(rest <= largest)) largest = rest;
  return largest / double(n);
}

#ifdef ASTERISM_WITH_CUDA
/// The words that cuSOLVER works in for n x n, of which it reads and writes the given half. In a CUDA worker.
inline int words_for(Index n, cublasFillMode_t half = CUBLAS_FILL_MODE_UPPER) {
  int words = 0;
  cuda::check(cusolverDnDpotrf_bufferSize(Stream::of_worker().cusolver(), half, int(n), nullptr, int(n), &words),
              "a workspace's size");
  return words;
}

/// The time of cuSOLVER's own factorisation of A, the best of four: two of its lower half and two of its upper one.
inline double seconds_of_cusolver(Runtime& runtime, Index n) {
  const auto size = std::size_t(n), bytes = size * size * sizeof(double);
  std::vector<double> a(size * size);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) a[std::size_t(i) * size + std::size_t(j)] = entry(i, j, n);
  double best = std::numeric_limits<double>::infinity();
  runtime.on_worker(WorkerKind::cuda, 0, [&] {
    const Stream stream = Stream::of_worker();
    const int words = std::max(words_for(n, CUBLAS_FILL_MODE_LOWER), words_for(n, CUBLAS_FILL_MODE_UPPER));
    double *matrix = nullptr, *work = nullptr;
    int *info = nullptr, minor = 0;
    cuda::check(cudaMalloc(&matrix, bytes), "memory for the whole matrix");
    cuda::check(cudaMalloc(&work, sizeof(double) * std::size_t(words)), "memory for cuSOLVER");
    cuda::check(cudaMalloc(&info, sizeof(int)), "memory for cuSOLVER");
    for (const cublasFillMode_t half :
         {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER, CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
      cuda::check(cudaMemcpyAsync(matrix, a.data(), bytes, cudaMemcpyHostToDevice, cuda::native(stream)),
                  "A");
      cuda::check(cudaStreamSynchronize(cuda::native(stream)), "A");
      const double start = seconds();
      cuda::check(cusolverDnDpotrf(stream.cusolver(), half, int(n), matrix, int(n), work, words, info),
                  "cusolverDnDpotrf");
      cuda::check(cudaMemcpyAsync(&minor, info, sizeof(int), cudaMemcpyDeviceToHost, cuda::native(stream)),
                  "cuSOLVER's info");
      cuda::check(cudaStreamSynchronize(cuda::native(stream)), "cusolverDnDpotrf");
      if (minor != 0) throw Error("cuSOLVER says " + std::to_string(minor));
      best = std::min(best, seconds() - start);
    }
    for (void* memory : {static_cast<void*>(matrix), static_cast<void*>(work), static_cast<void*>(info)})
      cudaFree(memory);
  });
  return best;
}
#else
inline int words_for(Index) { return 1; }
#endif
