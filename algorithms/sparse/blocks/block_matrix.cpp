#include "block_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "../../../runtime/collectives.hpp"
#include "../../../runtime/error.hpp"
#include "../../../runtime/hardware/machine.hpp"
#include "../../common/each_once.hpp"
#include "../../common/lent.hpp"
#include "../../common/team.hpp"
#include "../../common/tile_or_none.hpp"

namespace asterism::sparse {
namespace {

/// Where a block's vector has what these columns are multiplied with.
std::vector<std::int32_t> places_of(const VectorLayout& layout, Index block, std::span<const Index> columns) {
  std::vector<std::int32_t> places(columns.size());
  in_parts(static_cast<Index>(columns.size()), 0, [&](Index first, Index end) {
    for (Index k = first; k < end; ++k) places[k] = layout.place(block, columns[k]);
  });
  return places;
}

/// @throw Error: a matrix with this structure cannot be stored in this format
void require_format(Format format, const DiagonalStructure& structure) {
  if (format == Format::stencil && !structure.stencil)
    throw Error(
        "format stencil: the rows are not those of a grid with the same few numbers everywhere, or a "
        "preconditioner has given them another order; choose another format, or leave the choice");
  if (format == Format::schur)
    throw Error(
        "format schur: it is what mc-ilu0 may make of a matrix, and no format of the matrix itself; choose another "
        "format, or leave the choice");
  if (format == Format::diagonals && structure.diagonals.empty())
    throw Error(fmt::format(
        "format diagonals: the entries lie on more than {} diagonals, perhaps as a preconditioner has "
        "given the rows another order; choose another format, or leave the choice",
        most_diagonals));
}

}  // namespace

template <class T>
Csr<T> rows_of(const Csr<T>& mine, const Part& part) {
  Csr<T> block;
  block.first_row = part.first;
  block.total_rows = mine.total_rows;
  block.cols = mine.cols;
  const auto first = mine.row_begin.begin() + (part.first - mine.first_row);
  const Index begin = *first, end = first[part.size];
  block.row_begin.assign(first, first + part.size + 1);
  for (Index& number : block.row_begin) number -= begin;
  block.columns.assign(mine.columns.begin() + begin, mine.columns.begin() + end);
  block.values.assign(mine.values.begin() + begin, mine.values.begin() + end);
  return block;
}

template <class T>
std::vector<std::vector<Index>> foreign_columns(const Runtime& runtime, const Partition& blocks,
                                                const Csr<T>& mine) {
  std::vector<std::vector<Index>> foreign;
  const Partition::Range range = blocks.parts_of(runtime.rank());
  for (Index b = range.first; b < range.end; ++b) {
    const Part& part = blocks[b];
    std::vector<Index> columns;
    const Index begin = mine.row_begin[part.first - mine.first_row];
    const Index end = mine.row_begin[part.first + part.size - mine.first_row];
    std::mutex mutex;
    in_parts(end - begin, 0, [&](Index from, Index to) {
      std::vector<Index> found;
      for (Index k = begin + from; k < begin + to; ++k)
        if (const Index column = mine.columns[k]; column < part.first || column >= part.first + part.size)
          found.push_back(column);
      const std::lock_guard lock(mutex);
      columns.insert(columns.end(), found.begin(), found.end());
    });
    keep_each_once(columns);
    foreign.push_back(std::move(columns));
  }
  return foreign;
}

std::vector<std::vector<Index>> reached_columns(const Runtime& runtime, const Partition& blocks,
                                                const std::vector<Index>& diagonals) {
  std::vector<std::vector<Index>> foreign;
  const Partition::Range range = blocks.parts_of(runtime.rank());
  for (Index b = range.first; b < range.end; ++b) {
    const Part& part = blocks[b];
    const Index first = std::max<Index>(0, part.first + std::min<Index>(0, diagonals.front()));
    const Index end =
        std::min(blocks.extent(), part.first + part.size + std::max<Index>(0, diagonals.back()));
    std::vector<Index> columns;
    for (Index column = first; column < end; ++column)
      if (column < part.first || column >= part.first + part.size) columns.push_back(column);
    foreign.push_back(std::move(columns));
  }
  return foreign;
}

template <class V>
BlockMatrix<V>::Sizes::Sizes(const BlockArrays<V>& a)
    : shape(a.shape),
      values(a.values.size()),
      begins(a.begins.size()),
      columns(a.columns.size()),
      differences(a.differences.size()),
      bytes(a.bytes()) {}

/// Its tiles, over arrays of the owner.
template <class V>
typename BlockMatrix<V>::Block BlockMatrix<V>::lent_block(Runtime& runtime, int owner,
                                                          const BlockArrays<V>& arrays, const Sizes& sizes) {
  return {.shape = sizes.shape,
          .arrays = {},
          .values = lent(runtime, arrays.values.data(), sizes.values, owner),
          .begins = lent(runtime, arrays.begins.data(), sizes.begins, owner),
          .columns = lent(runtime, arrays.columns.data(), sizes.columns, owner),
          .differences = lent(runtime, arrays.differences.data(), sizes.differences, owner)};
}

template <class V>
BlockMatrix<V>::BlockMatrix(Runtime& runtime, const Partition& partition, const BlockArrays<V>& arrays)
    : bytes_(arrays.bytes()) {
  blocks_.push_back(lent_block(runtime, partition.owner(0), arrays, Sizes(arrays)));
}

template <class V>
template <class T>
BlockMatrix<V>::BlockMatrix(Runtime& runtime, const VectorLayout& layout, const DiagonalStructure& structure,
                            const Csr<T>& mine, std::optional<Format> format) {
  agree(runtime, [&] {
    if (format) require_format(*format, structure);
  });
  const Partition& blocks = layout.blocks();
  std::vector<BlockArrays<V>> arrays;
  std::vector<Sizes> sizes;
  const Partition::Range range = blocks.parts_of(runtime.rank());
  for (Index b = range.first; b < range.end; ++b) {
    const RowsView<T> block(mine, blocks[b].first, blocks[b].size);
    const bool on_gpu = blocks[b].where == Where::cuda;
    const Format its_format = format.value_or(choose_format(structure, blocks.extent(), on_gpu));
    const std::vector<std::int32_t> places =
        has_columns(its_format) ? places_of(layout, b, block.columns()) : std::vector<std::int32_t>{};
    sizes.emplace_back(arrays.emplace_back(
        arranged<V>(structure, its_format, block, layout.own(b), layout.size(b), places)));
  }
  sizes = gather_lists(runtime, sizes);
  for (Index b = 0; b < blocks.count(); ++b) {
    const Sizes& its = sizes[static_cast<std::size_t>(b)];
    const int owner = blocks.owner(b);
    BlockArrays<V> own;
    if (owner == runtime.rank()) own = std::move(arrays[static_cast<std::size_t>(b - range.first)]);
    blocks_.push_back(lent_block(runtime, owner, own, its));
    blocks_.back().arrays = std::move(own);
    bytes_ += its.bytes;
  }
}

template <class V>
BlockMatrix<V>::BlockMatrix(const Partition& blocks) {
  for (const Part& part : blocks.parts()) {
    BlockShape shape{.format = Format::stencil, .rows = part.size, .cols = part.size};
    shape.stencil = {.coefficients = {0, 0, 0, 1, 0, 0, 0}, .nx = part.size, .ny = 1, .nz = 1};
    blocks_.emplace_back().shape = shape;
  }
}

template <class V>
BlockPorts<AsTiles, V> BlockMatrix<V>::ports(Index block) const {
  const Block& b = blocks_[static_cast<std::size_t>(block)];
  return {tile_or_none(b.values), tile_or_none(b.begins), tile_or_none(b.columns),
          tile_or_none(b.differences)};
}

template class BlockMatrix<float>;
template class BlockMatrix<double>;
#define ASTERISM_INSTANTIATE(V, T)                                                              \
  template BlockMatrix<V>::BlockMatrix(Runtime&, const VectorLayout&, const DiagonalStructure&, \
                                       const Csr<T>&, std::optional<Format>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(float, double);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE
template Csr<float> rows_of(const Csr<float>&, const Part&);
template Csr<double> rows_of(const Csr<double>&, const Part&);
template std::vector<std::vector<Index>> foreign_columns(const Runtime&, const Partition&, const Csr<float>&);
template std::vector<std::vector<Index>> foreign_columns(const Runtime&, const Partition&,
                                                         const Csr<double>&);

}  // namespace asterism::sparse
