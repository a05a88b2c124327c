// Stripes are filled, shown to their neighbours and stored; what their equations are short of.

#include "stripe.cuh"

#include "../../runtime/cuda.hpp"
#include "../sums/block_sums.cuh"
#include "../common/chained_launch.cuh"

namespace asterism::relaxation::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::launch_chained;
using asterism::cuda::native;
using asterism::cuda::wait_for_previous_kernel;

namespace {

template <class T>
__global__ void __launch_bounds__(element_threads)
    fill_stripe_kernel(FillArgs args, FillPorts<AsPorts, T> p) {
  const Stripe& stripe = args.stripe;
  const Index n = stripe.nodes, begin = stripe.halo, end = stripe.halo + stripe.rows;
  for_each_element(stripe.tile_rows(), stripe.tile_cols(), [&](Index r, Index column) {
    const Index c = number_in(stripe, r, column);
    const bool own = begin <= r && r < end;
    T value = 0, source = 0;
    if (c > n + 1)
      value = 0;
    else if (r < begin && stripe.first)
      value = p.frame_rows.row(0)[c];
    else if (r >= end && stripe.last)
      value = p.frame_rows.row(1)[c];
    else if (c == 0 || c == n + 1)
      value = p.frame_columns.row(r)[c == 0 ? 0 : 1];
    else if (own) {
      value = p.initial.row(r - begin)[c - 1];
      if (args.has_source)
        source = static_cast<T>(-static_cast<double>(p.f.row(r - begin)[c - 1]) / args.diagonal);
    }
    p.u.row(r)[column] = value;
    if (!own || c == 0 || c > n) p.other.row(r)[column] = value;
    if (args.has_source) p.g.row(r)[column] = source;
  });
  if (!args.has_source && blockIdx.x == 0 && threadIdx.x == 0) *p.g.data = 0;
}

template <class T>
__global__ void __launch_bounds__(element_threads)
    store_stripe_kernel(Stripe stripe, In<T> u, Out<T> result) {
  for_each_element(stripe.rows, stripe.nodes, [&](Index i, Index j) {
    const Index r = stripe.halo + i;
    result.row(i)[j] = u.row(r)[column_of(stripe, r, j + 1)];
  });
}

template <class T>
__global__ void __launch_bounds__(element_threads)
    copy_rows_kernel(RowCopy<T> upper, RowCopy<T> lower, Index columns) {
  wait_for_previous_kernel();
  for_each_element(upper.rows + lower.rows, columns, [&](Index r, Index column) {
    const bool above = r < upper.rows;
    const RowCopy<T>& copy = above ? upper : lower;
    const Index i = above ? r : r - upper.rows;
    copy.to[i * copy.to_ld + column] = copy.from[i * copy.from_ld + column];
  });
}

// ---- The residual ----------------------------------------------------------------------------------------

/// Adds the sums of all threads of the block and writes the totals.
__device__ void write_block_sums(const sums::SquareSum (&own)[residual_parts], sums::SquareSum* total) {
  const int t = static_cast<int>(threadIdx.x);
  for (int s = 0; s < residual_parts; ++s) {
    const sums::SquareSum sum = sums::cuda::sum_of_block<element_threads>(own[s], t);
    if (t == 0) total[s] = sum;
  }
}

/// Every block has some consecutive rows.
template <class T>
__global__ void __launch_bounds__(element_threads)
    residual_kernel(ResidualArgs args, In<T> u, In<T> g, In<T> above, In<T> below, sums::SquareSum* partial) {
  const Stripe& stripe = args.stripe;
  const FivePoint<double> a{args.along_y, args.along_x};
  const bool natural = stripe.arrangement == Arrangement::natural;
  const Index half = stripe.half(), columns = stripe.tile_cols();
  const Index each = parts(stripe.rows, gridDim.x), first_row = min(blockIdx.x * each, stripe.rows);
  const Index end_row = min(first_row + each, stripe.rows);
  sums::SquareSum sums[residual_parts] = {};
  for (Index i = first_row; i < end_row; ++i) {
    const Index r = stripe.halo + i;
    const T* const row = u.row(r);
    const T* const before = i == 0 && !stripe.first ? above.row(stripe.halo - 1) : u.row(r - 1);
    const T* const after = i == stripe.rows - 1 && !stripe.last ? below.row(0) : u.row(r + 1);
    for (Index column = threadIdx.x; column < columns; column += element_threads) {
      const Index number = number_in(stripe, r, column);
      if (number < 1 || number > stripe.nodes) continue;
      const bool red = column < half;  // places_of, made of columns: it takes 8 registers less
      const Index across = natural ? column : red ? column + half : column - half;
      const Index left = natural ? column - 1 : across - 1 + (number & 1),
                  right = natural ? column + 1 : across + (number & 1);
      const auto value = [](const T* values, Index k) { return static_cast<double>(values[k]); };
      const double v = row[column], source = args.has_source ? value(g.row(r), column) : 0.0;
      const double target =
          balance(a, value(before, across), value(after, across), value(row, left), value(row, right)) +
          source;
      sums[residual_squares].add(v - target);
      sums[solution_squares].add(v);
      sums[source_squares].add(source);
    }
  }
  write_block_sums(sums, partial + static_cast<Index>(blockIdx.x) * residual_parts);
}

__global__ void __launch_bounds__(element_threads)
    add_partial_sums_kernel(const sums::SquareSum* partial, Index blocks, sums::SquareSum* total) {
  sums::SquareSum sums[residual_parts] = {};
  for (Index b = threadIdx.x; b < blocks; b += element_threads)
    for (int s = 0; s < residual_parts; ++s) sums[s] += partial[b * residual_parts + s];
  write_block_sums(sums, total);
}

}  // namespace

template <class T>
void copy_rows(Stream stream, const RowCopy<T>& upper, const RowCopy<T>& lower, Index columns) {
  if (upper.rows + lower.rows == 0) return;
  launch_chained<copy_rows_kernel<T>>("copy_rows", stream, element_blocks(upper.rows + lower.rows, columns),
                                      element_threads, upper, lower, columns);
}

template <class T>
void fill_stripe(Stream stream, const FillArgs& args, FillPorts<AsPorts, T> p) {
  fill_stripe_kernel<<<element_blocks(args.stripe.tile_rows(), args.stripe.tile_cols()), element_threads, 0,
                       native(stream)>>>(args, p);
  check_launch("fill_stripe");
}

template <class T>
void copy_edges(Stream stream, const Stripe& stripe, EdgePorts<AsPorts, T> p) {
  const auto& [tile, top, bottom] = p;
  copy_rows<T>(stream, {tile.row(stripe.halo), top.data, tile.ld, top.ld, top.rows},
               {tile.row(stripe.rows), bottom.data, tile.ld, bottom.ld, bottom.rows}, stripe.tile_cols());
}

template <class T>
void fill_ghosts(Stream stream, const Stripe& stripe, GhostPorts<AsPorts, T> p) {
  const auto& [tile, above, below] = p;
  copy_rows<T>(
      stream, {above.data, tile.data, above.ld, tile.ld, stripe.first ? 0 : stripe.halo},
      {below.data, tile.row(stripe.halo + stripe.rows), below.ld, tile.ld, stripe.last ? 0 : stripe.halo},
      stripe.tile_cols());
}

template <class T>
void store_stripe(Stream stream, const Stripe& stripe, In<T> u, Out<T> result) {
  store_stripe_kernel<<<element_blocks(stripe.rows, stripe.nodes), element_threads, 0, native(stream)>>>(
      stripe, u, result);
  check_launch("store_stripe");
}

template <class T>
void stripe_residual(Stream stream, const ResidualArgs& args, ResidualPorts<AsPorts, T> p) {
  const Index blocks = std::min(args.stripe.rows, residual_blocks);
  residual_kernel<<<static_cast<unsigned>(blocks), element_threads, 0, native(stream)>>>(args, p.u, p.g, p.above, p.below, p.work.data);
  check_launch("stripe_residual");
  add_partial_sums_kernel<<<1, element_threads, 0, native(stream)>>>(p.work.data, blocks, p.sums.data);
  check_launch("stripe_residual sums");
}

#define ASTERISM_INSTANTIATE(T)                                                 \
  template void copy_rows(Stream, const RowCopy<T>&, const RowCopy<T>&, Index); \
  template void fill_stripe(Stream, const FillArgs&, FillPorts<AsPorts, T>);    \
  template void copy_edges(Stream, const Stripe&, EdgePorts<AsPorts, T>);       \
  template void fill_ghosts(Stream, const Stripe&, GhostPorts<AsPorts, T>);     \
  template void store_stripe(Stream, const Stripe&, In<T>, Out<T>);             \
  template void stripe_residual(Stream, const ResidualArgs&, ResidualPorts<AsPorts, T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::relaxation::cuda
