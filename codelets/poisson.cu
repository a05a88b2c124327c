#include <algorithm>

#include "../runtime/cuda.hpp"
#include "poisson.hpp"
#include "transform.hpp"

namespace asterism::kernels::cuda {
namespace {

/// Parts of the working memory of a slab kernel, each aligned for cuFFT. All in doubles.
template <class T>
struct Workspace {
  double *blocks, *lines, *transform;

  static constexpr Index alignment = 256 / sizeof(double);
  static constexpr Index aligned(Index doubles) { return (doubles + alignment - 1) / alignment * alignment; }
  static constexpr Index doubles(Index elements) {
    return (elements * static_cast<Index>(sizeof(T)) + 7) / static_cast<Index>(sizeof(double));
  }

  static Index size(Index rows, Index n, Index lines_at_once) {
    return aligned(blocks_scratch(rows, n)) + aligned(doubles(lines_at_once * n)) +
           aligned(doubles(dst_scratch<T>(n, lines_at_once)));
  }

  Workspace(const Scratch<double>& work, Index rows, Index n, Index lines_at_once)
      : blocks(work.data),
        lines(blocks + aligned(blocks_scratch(rows, n))),
        transform(lines + aligned(doubles(lines_at_once * n))) {}
};

/// Boundaries of the blocks of a slab, kept while the slab's rows pass by in groups.
struct BlockBoundaries {
  double *y_first, *y_last;
  Index n;

  BlockBoundaries(double* blocks, Index rows, Index columns)
      : y_first(blocks), y_last(blocks + blocks_of(rows) * columns), n(columns) {}

  template <class T>
  void take(Stream stream, Index first_row, In<T> lines, In<double> excess, double scale) const {
    const Index offset = first_row / block_rows * n;
    reduce_blocks(stream, lines, excess, scale, y_first + offset, y_last + offset);
  }
};

}  // namespace

template <class T>
void reduce_slab(Stream stream, const SlabArgs& args, In<T> f, In<double> excess, Out<double> boundary,
                 Scratch<double> work) {
  const Index n = f.cols;
  const Workspace<T> w(work, f.rows, n, args.lines_at_once);
  const BlockBoundaries blocks(w.blocks, f.rows, n);
  T* const lines = reinterpret_cast<T*>(w.lines);
  for (Index first = 0; first < f.rows; first += args.lines_at_once) {
    const Index count = std::min(args.lines_at_once, f.rows - first);
    dst<T>(stream, {f.row(first), count, n, f.ld}, {lines, count, n, n}, reinterpret_cast<T*>(w.transform),
           args.lines_at_once);
    blocks.take<T>(stream, first, {lines, count, n, n}, excess, args.scale);
  }
  join_blocks(stream, f.rows, excess, blocks.y_first, blocks.y_last, boundary);
}

template <class T>
void transform_slab(Stream stream, const SlabArgs& args, InOut<T> f, In<double> excess, Out<double> boundary,
                    Scratch<double> work) {
  const Workspace<T> w(work, f.rows, f.cols, args.lines_at_once);
  const BlockBoundaries blocks(w.blocks, f.rows, f.cols);
  const In<T> lines{f.data, f.rows, f.cols, f.ld};
  dst<T>(stream, lines, {f.data, f.rows, f.cols, f.ld}, reinterpret_cast<T*>(w.transform), args.lines_at_once);
  blocks.take(stream, 0, lines, excess, args.scale);
  join_blocks(stream, f.rows, excess, blocks.y_first, blocks.y_last, boundary);
}

template <class T>
void solve_slab(Stream stream, const SlabArgs& args, InOut<T> f, In<double> excess, In<double> above,
                In<double> below, Out<T> top, Out<T> bottom, Scratch<double> work) {
  const Workspace<T> w(work, f.rows, f.cols, args.lines_at_once);
  const In<T> lines{f.data, f.rows, f.cols, f.ld};
  const Out<T> result{f.data, f.rows, f.cols, f.ld};
  T* const transform = reinterpret_cast<T*>(w.transform);
  if (args.content == Content::grid) dst<T>(stream, lines, result, transform, args.lines_at_once);
  solve(stream, f, excess, args.scale, above, below, w.blocks);
  dst<T>(stream, lines, result, transform, args.lines_at_once);
  const std::size_t row_bytes = static_cast<std::size_t>(f.cols) * sizeof(T);
  const auto copy_row = [&](T* to, Index row) {
    asterism::cuda::check(cudaMemcpyAsync(to, f.row(row), row_bytes, cudaMemcpyDeviceToDevice,
                                          asterism::cuda::native(stream)),
                          "copy of a slab's edge");
  };
  copy_row(top.data, 0);
  copy_row(bottom.data, f.rows - 1);
}

template <class T>
Index slab_scratch(Index rows, Index n, Index lines_at_once) {
  return Workspace<T>::size(rows, n, lines_at_once);
}

#define ASTERISM_INSTANTIATE(T)                                                                                  \
  template void reduce_slab(Stream, const SlabArgs&, In<T>, In<double>, Out<double>, Scratch<double>);           \
  template void transform_slab(Stream, const SlabArgs&, InOut<T>, In<double>, Out<double>, Scratch<double>);     \
  template void solve_slab(Stream, const SlabArgs&, InOut<T>, In<double>, In<double>, In<double>, Out<T>,        \
                           Out<T>, Scratch<double>);                                                             \
  template Index slab_scratch<T>(Index, Index, Index);
ASTERISM_INSTANTIATE(float)
ASTERISM_INSTANTIATE(double)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::kernels::cuda
