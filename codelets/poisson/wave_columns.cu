#include "../../runtime/cuda.hpp"
#include "block_rows.cuh"

namespace asterism::poisson::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int threads = 128;

/// The column and block of rows that a thread works on; the grid is one-dimensional.
struct Place {
  Index column, block;
};
__device__ Place place(Index n) {
  const Index tiles = parts(n, threads);
  return {blockIdx.x % tiles * threads + threadIdx.x, blockIdx.x / tiles};
}
unsigned grid(Index n, Index blocks) { return static_cast<unsigned>(parts(n, threads) * blocks); }

/// Whether a thread has no wave to work on.
__device__ bool is_idle(const In<double>& mu, Index k) { return k >= mu.cols || regime_of(mu, k) != Regime::waves; }

/// What is kept of block b of a column, as a tile of one column.
template <class Port>
__device__ Port block_at(const Blocks& blocks, Index k, Index b) {
  return {blocks.data + b * wave_joined_rows * blocks.n + k, wave_joined_rows, 1, blocks.n};
}

/// Block b of a segment with the rows `axis`. @param f f(i): the right-hand side of row i
template <class RightHandSide>
__device__ Emitter emitter_of(const In<double>& axis, Index b, const In<double>& mu, Index k, RightHandSide f) {
  Emitter e;
  const Index first = b * block_rows, end = first + rows_in_block<block_rows>(axis.rows, b);
  for (Index i = first; i < end; ++i) e.append(rung_at(axis, i, mu, k, f(i)));
  return e;
}

__global__ void __launch_bounds__(threads) respond_kernel(In<double> axis, In<double> mu, Out<double> response) {
  const Index k = place(mu.cols).column;
  if (is_idle(mu, k)) {
    if (k < mu.cols) response.row(wave_response_rows - 1)[k] = 0.0;
    return;
  }
  Emitter whole;
  for (Index b = 0; b < blocks_of(axis.rows); ++b)
    whole = join(whole, emitter_of(axis, b, mu, k, [](Index) { return 0.0; }));
  put(response, 0, k, whole.scattering, mu.row(impedance_row)[k]);
}

template <class T>
__global__ void __launch_bounds__(threads)
    reduce_kernel(In<T> lines, Index first_block, In<double> axis, In<double> mu, double scale, Blocks blocks) {
  const auto [k, b] = place(lines.cols);
  if (is_idle(mu, k)) return;
  const Emitter e =
      emitter_of(axis, b, mu, k, [&](Index i) { return scale * static_cast<double>(lines.row(i)[k]); });
  put(block_at<Out<double>>(blocks, k, first_block + b), 0, e, 1.0);
}

__global__ void __launch_bounds__(threads) join_kernel(In<double> mu, Blocks blocks, Out<double> shown) {
  const Index k = place(blocks.n).column;
  if (is_idle(mu, k)) return;
  Emitter whole;
  for (Index b = 0; b < blocks_of(blocks.rows); ++b)
    whole = join(whole, joined_waves_at(block_at<In<double>>(blocks, k, b), 0));
  put(shown, 0, k, whole.emitted_before);
  put(shown, 2, k, whole.emitted_after);
}

/// Afterwards every block has, in the place of what it emits, what enters it: R before it, then L after it.
__global__ void __launch_bounds__(threads)
    interface_kernel(In<double> mu, Blocks blocks, In<double> before, In<double> after) {
  const Index k = place(blocks.n).column;
  if (is_idle(mu, k)) return;
  // What lies before a block waits where the block had what goes on after it, which is not wanted any more.
  constexpr Index amplitude_row = 2, reflection_row = wave_shown_rows + 4;
  const Index count = blocks_of(blocks.rows);
  Beyond start = beyond_at(before, k);
  for (Index b = 0; b < count; ++b) {
    const Beyond next = eliminate(start, joined_waves_at(block_at<In<double>>(blocks, k, b), 0));
    const auto block = block_at<Out<double>>(blocks, k, b);
    put(block, amplitude_row, 0, start.amplitude);
    put(block, reflection_row, 0, start.reflection);
    start = next;
  }
  Wave left = meet(start, beyond_at(after, k)).left;
  for (Index b = count - 1; b >= 0; --b) {
    const auto kept = block_at<In<double>>(blocks, k, b);
    const Scattering s = scattering_at(kept, wave_shown_rows, 0);
    const Cut cut = poisson::meet({wave_at(kept, amplitude_row, 0), wave_at(kept, reflection_row, 0)},
                                  {wave_at(kept, 0, 0) + s.through * left, s.before});
    const auto block = block_at<Out<double>>(blocks, k, b);
    put(block, 0, 0, cut.right);
    put(block, 2, 0, left);
    left = cut.left;
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    solve_kernel(InOut<T> lines, In<double> axis, In<double> mu, double scale, Blocks around) {
  const auto [k, b] = place(lines.cols);
  if (is_idle(mu, k)) return;
  const auto entering = block_at<In<double>>(around, k, b);
  const Index first = b * block_rows, count = rows_in_block<block_rows>(lines.rows, b);
  const auto pivot = [&](const Beyond& start, Index i) {
    const Index row = first + i;
    return RungPivot(start, rung_at(axis, row, mu, k, scale * static_cast<double>(lines.row(row)[k])));
  };
  Beyond starts[block_rows], start{wave_at(entering, 0, 0), {}};
  for (Index i = 0; i < count; ++i) {
    starts[i] = start;
    start = pivot(start, i).after();
  }
  Wave left = wave_at(entering, 2, 0);
  for (Index i = count - 1; i >= 0; --i) {
    const RungPivot row = pivot(starts[i], i);
    left = row.substitute(left);
    lines.row(first + i)[k] = static_cast<T>(row.unknown(left));
  }
}

}  // namespace

void respond_waves(Stream stream, In<double> axis, In<double> mu, Out<double> response) {
  if (mu.rows != wave_mu_rows) return;
  respond_kernel<<<grid(mu.cols, 1), threads, 0, native(stream)>>>(axis, mu, response);
  check_launch("respond_waves");
}

template <class T>
void reduce_wave_blocks(Stream stream, In<T> lines, Index first_row, In<double> axis, In<double> mu, double scale,
                        const Blocks& blocks) {
  if (mu.rows != wave_mu_rows) return;
  reduce_kernel<T><<<grid(lines.cols, blocks_of(lines.rows)), threads, 0, native(stream)>>>(
      lines, first_row / block_rows, axis, mu, scale, blocks);
  check_launch("reduce_wave_blocks");
}

void join_wave_blocks(Stream stream, In<double> mu, const Blocks& blocks, Out<double> shown) {
  if (mu.rows != wave_mu_rows) return;
  join_kernel<<<grid(blocks.n, 1), threads, 0, native(stream)>>>(mu, blocks, shown);
  check_launch("join_wave_blocks");
}

template <class T>
void solve_wave_blocks(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
                       In<double> after, const Blocks& blocks) {
  if (mu.rows != wave_mu_rows) return;
  interface_kernel<<<grid(lines.cols, 1), threads, 0, native(stream)>>>(mu, blocks, before, after);
  check_launch("interface of waves");
  solve_kernel<T><<<grid(lines.cols, blocks_of(lines.rows)), threads, 0, native(stream)>>>(lines, axis, mu, scale, blocks);
  check_launch("solve_wave_blocks");
}

template void reduce_wave_blocks(Stream, In<float>, Index, In<double>, In<double>, double, const Blocks&);
template void reduce_wave_blocks(Stream, In<double>, Index, In<double>, In<double>, double, const Blocks&);
template void solve_wave_blocks(Stream, InOut<float>, In<double>, In<double>, double, In<double>, In<double>,
                                const Blocks&);
template void solve_wave_blocks(Stream, InOut<double>, In<double>, In<double>, double, In<double>, In<double>,
                                const Blocks&);

}  // namespace asterism::poisson::cuda
