#include <memory>
#include <utility>

#include "rounds.hpp"

namespace asterism::transforms::cuda {
namespace {

/// The largest biased exponent of each line's numbers, over 0. A warp has places of one line: hard lines are
/// longer than a warp is wide.
__global__ void find_exponents(const double* __restrict__ from, Index n, Index ld, Index lines,
                               int* __restrict__ exponents) {
  constexpr unsigned warp = 32, all = 0xffffffff;
  const Index j = global_x(), step = threads_y();
  for (Index line = global_y(); line < lines; line += step) {
    int exponent = j < n ? biased_exponent(from[line * ld + j]) : 0;
    for (unsigned lanes = warp / 2; lanes > 0; lanes /= 2)
      exponent = max(exponent, __shfl_xor_sync(all, exponent, lanes));
    if (threadIdx.x % warp == 0) atomicMax(exponents + line, exponent);
  }
}

/// (C2), split into the lines 2 i (high) and 2 i + 1 (rest) for line i. The thread at t < M - N makes
/// elements t and N - t, where t is at most N / 2, and N + t, which is 0.
__global__ void fold_chirped(const double* __restrict__ from, Index ld, Index lines, ChirpTables::View chirp,
                             const int* __restrict__ exponents, Complex<double>* __restrict__ to) {
  const Index N = chirp.N, M = chirp.M, t = global_x(), step = threads_y();
  if (t >= M - N) return;
  const bool has_pair = t > 0 && 2 * t <= N;
  Complex<double> w{}, v{}, v_before{};
  if (has_pair) {
    w = chirp.w[t];
    v = chirp.v[t];
    v_before = chirp.v[t - 1];
  }
  for (Index line = global_y(); line < lines; line += step) {
    Complex<double>*const high = to + 2 * line * M, *const rest = high + M;
    const auto put = [&](Index at, Complex<double> a) {
      const HighAndRest split = chirp_split(a, chirp.grid.coarse);
      high[at] = split.high;
      rest[at] = split.rest;
    };
    if (has_pair) {
      const double inverse = 1 / line_scale(exponents[line]);
      const double* const row = from + line * ld;
      const Pair<Complex<double>> pair =
          chirp_fold(row[t - 1] * inverse, row[N - t - 1] * inverse, w, v, v_before, chirp.grid.mirror_sign);
      put(t, pair.first);
      put(N - t, pair.second);
    }
    if (t == 0) put(0, {0, 0});
    put(N + t, {0, 0});
  }
}

/// (C3), in place.
__global__ void multiply_chirped(Complex<double>* __restrict__ spectra, Index lines,
                                 ChirpTables::View chirp) {
  const Index M = chirp.M, k = global_x(), step = threads_y();
  if (k >= M) return;
  const Complex<double> c_high = chirp.high[k], c_low = chirp.low[k];
  for (Index line = global_y(); line < lines; line += step) {
    Complex<double>*const high = spectra + 2 * line * M + k, *const rest = high + M;
    const HighAndRest product = chirp_multiply({*high, *rest}, c_high, c_low);
    *high = product.high;
    *rest = product.rest;
  }
}

/// The thread at l makes U_l, the outputs 2 l and 2 l + 1 of each line.
__global__ void unfold_chirped(const Complex<double>* __restrict__ from, Index lines, ChirpTables::View chirp,
                               const int* __restrict__ exponents, double* __restrict__ to, Index ld) {
  const Index N = chirp.N, l = global_x(), step = threads_y();
  if (2 * l >= N) return;
  const Complex<double> w = chirp.w[l];
  for (Index line = global_y(); line < lines; line += step) {
    const Complex<double>*const high = from + 2 * line * chirp.M, *const rest = high + chirp.M;
    const Complex<double> U = chirp_join({high[l], rest[l]}, w, chirp.grid.fine);
    const double scale = line_scale(exponents[line]);
    double* const row = to + line * ld;
    if (l > 0) row[2 * l - 1] = U.re * scale;
    if (2 * l < N - 1) row[2 * l] = U.im * scale;
  }
}

}  // namespace

ChirpTables::ChirpTables(const Chirp& chirp)
    : N_(chirp.N),
      M_(chirp.M),
      grid_(chirp.grid()),
      w_(chirp.w),
      v_(chirp.v),
      high_(chirp.high),
      low_(chirp.low) {}

Chirped::Chirped(std::shared_ptr<const ChirpTables> tables, Index lines_at_once)
    : owner_(std::move(tables)),
      tables_(owner_->view()),
      copy_pitch_(tables_.N / 2 + 1),
      line_bytes_(aligned(static_cast<std::size_t>(bytes_per_line(tables_.N - 1) * lines_at_once))),
      exponent_bytes_(aligned(static_cast<std::size_t>(lines_at_once) * sizeof(int))),
      copy_bytes_(aligned(static_cast<std::size_t>(copy_pitch_ * lines_at_once) * sizeof(Complex<double>))),
      fft_(FftKind::complex, tables_.M, tables_.M, 2 * lines_at_once) {}

Index Chirped::bytes_per_line(Index n) {
  return 2 * convolution_length(n + 1) * static_cast<Index>(sizeof(Complex<double>));
}

std::size_t Chirped::scratch_bytes() const {
  return line_bytes_ + exponent_bytes_ + copy_bytes_ + fft_.work_bytes();
}

void Chirped::operator()(cudaStream_t stream, const Lines<const double>& from, const Lines<double>& to,
                         Round round, void* work) {
  const bool adjacent = from.width == 1 && from.stride == 1 && to.stride == 1;
  if (adjacent) {
    transform_rows(stream, from.data + round.first * from.distance, from.distance,
                   to.data + round.first * to.distance, to.distance, round.count, work);
  } else {
    // The foldings of Fourier transforms are nothing but copies.
    const Rows<double> copies{
        reinterpret_cast<Complex<double>*>(static_cast<char*>(work) + line_bytes_ + exponent_bytes_),
        copy_pitch_};
    double* const rows = reinterpret_cast<double*>(copies.data);
    fold_lines<double, double>(stream, Transform::dft, from, round, nullptr, copies);
    transform_rows(stream, rows, 2 * copy_pitch_, rows, 2 * copy_pitch_, round.count, work);
    unfold_lines<double, double>(stream, Transform::idft, copies, nullptr, to, round);
  }
}

void Chirped::transform_rows(cudaStream_t stream, const double* from, Index from_ld, double* to, Index to_ld,
                             Index count, void* work) {
  auto* const lines = static_cast<Complex<double>*>(work);
  auto* const exponents = reinterpret_cast<int*>(static_cast<char*>(work) + line_bytes_);
  void* const work_area = static_cast<char*>(work) + line_bytes_ + exponent_bytes_ + copy_bytes_;
  const Index n = tables_.N - 1;
  const Launch points(n, count), folds(tables_.M - tables_.N, count), all(tables_.M, count),
      pairs(n / 2 + 1, count);

  asterism::cuda::check(cudaMemsetAsync(exponents, 0, exponent_bytes_, stream), "cudaMemsetAsync");
  find_exponents<<<points.blocks, points.threads, 0, stream>>>(from, n, from_ld, count, exponents);
  asterism::cuda::check_launch("exponents of the lines of a sine transform");
  fold_chirped<<<folds.blocks, folds.threads, 0, stream>>>(from, from_ld, count, tables_, exponents, lines);
  asterism::cuda::check_launch("fold lines of a sine transform with a chirp");
  fft_(stream, lines, work_area);  // in the last round perhaps stale lines too: harmless
  multiply_chirped<<<all.blocks, all.threads, 0, stream>>>(lines, count, tables_);
  asterism::cuda::check_launch("multiply by the spectrum of a chirp");
  fft_.inverse(stream, lines, work_area);
  unfold_chirped<<<pairs.blocks, pairs.threads, 0, stream>>>(lines, count, tables_, exponents, to, to_ld);
  asterism::cuda::check_launch("unfold lines of a sine transform with a chirp");
}

}  // namespace asterism::transforms::cuda
