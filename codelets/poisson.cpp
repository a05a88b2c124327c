#include "poisson.hpp"

#include <algorithm>

#include "transform.hpp"

namespace asterism::kernels::cpu {
namespace {

template <class T>
InOut<T> rows_of(const InOut<T>& lines, Index first, Index count) {
  return {lines.data + first * lines.ld, count, lines.cols, lines.ld};
}

template <class T>
In<T> read(const InOut<T>& lines) {
  return {lines.data, lines.rows, lines.cols, lines.ld};
}

InOut<double> update(const Out<double>& tile) { return {tile.data, tile.rows, tile.cols, tile.ld}; }

}  // namespace

template <class T>
void reduce_slab(const SlabArgs& args, In<T> f, In<double> excess, Out<double> boundary, Scratch<double> work) {
  for (Index first = 0; first < f.rows; first += args.lines_at_once) {
    const Index count = std::min(args.lines_at_once, f.rows - first);
    const InOut<T> lines{reinterpret_cast<T*>(work.data), count, f.cols, f.cols};
    for (Index i = 0; i < count; ++i) std::copy_n(f.row(first + i), f.cols, lines.row(i));
    dst(lines);
    reduce(read(lines), excess, args.scale, update(boundary), first == 0 ? Segment::start : Segment::append);
  }
}

template <class T>
void transform_slab(const SlabArgs& args, InOut<T> f, In<double> excess, Out<double> boundary, Scratch<double>) {
  for (Index first = 0; first < f.rows; first += args.lines_at_once) {
    const InOut<T> lines = rows_of(f, first, std::min(args.lines_at_once, f.rows - first));
    dst(lines);
    reduce(read(lines), excess, args.scale, update(boundary), first == 0 ? Segment::start : Segment::append);
  }
}

template <class T>
void solve_slab(const SlabArgs& args, InOut<T> f, In<double> excess, In<double> above, In<double> below, Out<T> top,
                Out<T> bottom, Scratch<double>) {
  if (args.content == Content::grid) dst(f);
  solve(f, excess, args.scale, above, below);
  dst(f);
  std::copy_n(f.row(0), f.cols, top.data);
  std::copy_n(f.row(f.rows - 1), f.cols, bottom.data);
}

template <class T>
Index slab_scratch(Index rows, Index n, Index lines_at_once) {
  const Index elements = std::min(rows, lines_at_once) * n;
  return (elements * static_cast<Index>(sizeof(T)) + 7) / 8;
}

#define ASTERISM_INSTANTIATE(T)                                                                                  \
  template void reduce_slab(const SlabArgs&, In<T>, In<double>, Out<double>, Scratch<double>);                   \
  template void transform_slab(const SlabArgs&, InOut<T>, In<double>, Out<double>, Scratch<double>);             \
  template void solve_slab(const SlabArgs&, InOut<T>, In<double>, In<double>, In<double>, Out<T>, Out<T>,        \
                           Scratch<double>);                                                                     \
  template Index slab_scratch<T>(Index, Index, Index);
ASTERISM_INSTANTIATE(float)
ASTERISM_INSTANTIATE(double)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::kernels::cpu
