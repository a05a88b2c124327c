/// \file
/// Stripes on the device: all their elements, copies of their rows, and their ends swept ahead of the
/// interior.
#pragma once

#include <algorithm>

#include "stripe.hpp"

namespace asterism::relaxation::cuda {

constexpr int element_threads = 256;  ///< of a block that goes over elements

/// Calls at(r, column) for all of so many rows and columns: blocks take rows, or parts of them, in turn.
template <class At>
__device__ void for_each_element(Index rows, Index columns, const At& at) {
  const Index pieces = parts(columns, blockDim.x);
  for (Index piece = blockIdx.x; piece < rows * pieces; piece += gridDim.x) {
    const Index r = piece / pieces, column = piece % pieces * blockDim.x + threadIdx.x;
    if (column < columns) at(r, column);
  }
}
inline unsigned element_blocks(Index rows, Index columns) {
  return static_cast<unsigned>(std::clamp<Index>(rows * parts(columns, element_threads), 1, 1 << 16));
}

/// Rows of one array to another.
template <class T>
struct RowCopy {
  const T* from;
  T* to;
  Index from_ld, to_ld, rows;
};

/// Two copies at once: what is done to the upper and the lower end of a stripe.
template <class T>
void copy_rows(Stream stream, const RowCopy<T>& upper, const RowCopy<T>& lower, Index columns);

/// What a stripe exchanges with its neighbours before and after a task's sweeps.
template <class T>
struct Exchange {
  In<T> above, below;  ///< belong into its ghost rows
  Out<T> top, bottom;  ///< get its own first and last rows, if they are there
};

/// All sweeps of a task over a stripe, and the exchange.
template <class T, class Args>
using Sweeps = void (*)(Stream stream, const Args& args, InOut<T> u, InOut<T> other, In<T> g,
                        const Exchange<T>& with);

/// What an end's rows are after the sweeps, to `edge`.
template <class T, class Args>
void relax_end(Stream stream, Sweeps<T, Args> sweep, Args args, const End& end, In<T> u, In<T> g, In<T> above,
               In<T> below, Out<T> edge, T* work) {
  const Index rows = end.stripe.tile_rows(), columns = end.stripe.tile_cols();
  args.stripe = end.stripe;
  const InOut<T> first{work, rows, columns, columns}, second{work + rows * columns, rows, columns, columns};
  const T* const from = u.row(end.first_tile_row);
  copy_rows<T>(stream, {from, first.data, u.ld, columns, rows}, {from, second.data, u.ld, columns, rows},
               columns);
  const In<T> source = args.has_source ? In<T>{g.row(end.first_tile_row), rows, columns, g.ld} : g;
  sweep(stream, args, first, second, source, {above, below, edge, {}});
}

/// The border's rows after the sweeps, of a stripe that stays as it is.
template <class T, class Args>
void relax_border(Stream stream, Sweeps<T, Args> sweep, const Args& args, const BorderPorts<AsPorts, T>& p) {
  const End upper = End::upper(args.stripe), lower = End::lower(args.stripe);
  // Towards the interior, the ghost rows are rows of the stripe itself.
  const auto rows_of_u = [&](Index tile_row) {
    return In<T>{p.u.row(tile_row), args.stripe.halo, p.u.cols, p.u.ld};
  };
  relax_end(stream, sweep, args, upper, p.u, p.g, p.above, rows_of_u(2 * args.stripe.halo), p.top, p.work.data);
  relax_end(stream, sweep, args, lower, p.u, p.g, rows_of_u(lower.first_tile_row), p.below, p.bottom,
            p.work.data + border_scratch(args.stripe) / 2);
}

}  // namespace asterism::relaxation::cuda
