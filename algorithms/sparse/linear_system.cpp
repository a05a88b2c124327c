#include "linear_system.hpp"

#include <utility>

#include "../../runtime/contents.hpp"
#include "../common/team.hpp"

namespace asterism::sparse {
namespace {

/// Each list with what another has for the same block.
void merge(std::vector<std::vector<Index>>& lists, const std::vector<std::vector<Index>>& others) {
  for (std::size_t k = 0; k < lists.size(); ++k)
    lists[k].insert(lists[k].end(), others[k].begin(), others[k].end());
}

/// Whether blocks read whole diagonals.
bool reads_diagonals(const DiagonalStructure& structure, Index n, std::optional<Format> format) {
  if (format) return *format == Format::diagonals || *format == Format::stencil;
  return structure.stencil || fills_diagonals(structure, n);
}

}  // namespace

template <class T>
LinearSystem<T>::LinearSystem(Runtime& runtime, const Partition& blocks,
                              const PreparedPreconditioner<T>& prepared, std::optional<Format> format)
    : runtime_(&runtime),
      blocks_(&blocks),
      structure_(diagonal_structure(runtime, *prepared.matrix)),
      format_(format) {
  const Partition::Range mine = blocks.elements_of(runtime.rank());
  first_mine_ = mine.first;
  unit_ = unit_rows(rows());
  for (Index i = mine.first; i < mine.end && !prepared.new_of_old.empty(); ++i)
    new_of_old_.push_back(prepared.new_of_old[i] - mine.first);
  wanted_ = reads_diagonals(structure_, rows(), format) && !structure_.diagonals.empty()
                ? reached_columns(runtime, blocks, structure_.diagonals)
                : foreign_columns(runtime, blocks, *prepared.matrix);
  std::vector<std::vector<Index>> all = wanted_;
  if (prepared.kind == PreconditionerKind::triangular) {
    merge(all, foreign_columns(runtime, blocks, prepared.lower));
    merge(all, foreign_columns(runtime, blocks, prepared.upper));
  }
  layout_ = VectorLayout(runtime, blocks, std::move(all));
  matrix_ = BlockMatrix<T>(runtime, layout_, structure_, *prepared.matrix, format);
  exchange_ = another_exchange();
}

template <class T>
LinearSystem<T>::LinearSystem(Runtime& runtime, const Partition& blocks, const BlockArrays<T>& block,
                              Index entries)
    : runtime_(&runtime),
      blocks_(&blocks),
      unit_(unit_rows(blocks.extent())),
      structure_{.entries = entries},
      wanted_(1),
      layout_(runtime, blocks, wanted_),
      matrix_(runtime, blocks, block) {
  exchange_ = another_exchange();
}

/// Blocks of an operator have no whole units. Of longer ones there are still no more than most_units.
template <class T>
LinearSystem<T>::LinearSystem(Runtime& runtime, const Partition& blocks)
    : runtime_(&runtime),
      blocks_(&blocks),
      first_mine_(blocks.elements_of(runtime.rank()).first),
      unit_(unit_rows(2 * blocks.extent())),
      wanted_(static_cast<std::size_t>(blocks.parts_of(runtime.rank()).count())),
      layout_(runtime, blocks, wanted_),
      matrix_(blocks) {
  static_assert(most_units / 2 + most_blocks <= most_units);
  exchange_ = another_exchange();
}

/// The blocks' vectors stay as they are: they have what a stencil reads only if there was one.
template <class T>
void LinearSystem<T>::refresh(const PreparedPreconditioner<T>& prepared) {
  DiagonalStructure structure = diagonal_structure(*runtime_, *prepared.matrix);
  if (!structure_.stencil) structure.stencil.reset();
  matrix_ = BlockMatrix<T>(*runtime_, layout_, structure, *prepared.matrix, format_);
  structure_ = std::move(structure);
}

template <class T>
template <class X>
Tile<X> LinearSystem<T>::zeros(Index block, Index size) const {
  Tile<X> tile(*runtime_, 1, size, blocks_->owner(block));
  clear(tile, blocks_->hints(block));
  return tile;
}

template <class T>
Tile<T> LinearSystem<T>::own_vector(Index block) const {
  return own_vectors(block, 1);
}

template <class T>
Tile<T> LinearSystem<T>::own_vectors(Index block, Index count) const {
  return zeros<T>(block, count * (*blocks_)[block].size);
}

template <class T>
Tile<T> LinearSystem<T>::whole_vector(Index block) const {
  return zeros<T>(block, layout_.size(block));
}

template <class T>
Tile<double> LinearSystem<T>::sums(Index block, Index lists) const {
  return zeros<double>(block, lists * units_of((*blocks_)[block].size, unit()));
}

template <class T>
void LinearSystem<T>::for_each_mine(const VectorOf& tiles,
                                    const std::function<void(const Tile<T>&, Index)>& body) const {
  const Partition::Range mine = blocks_->parts_of(runtime_->rank());
  for (Index k = mine.first; k < mine.end; ++k) body(tiles(k), (*blocks_)[k].first - first_mine_);
}

template <class T>
void LinearSystem<T>::load(const T* mine, double scale, const VectorOf& tiles) const {
  for_each_mine(tiles, [&](const Tile<T>& tile, Index first) {
    const HostView<T> to(tile, HostView<T>::Access::write);
    const auto copy = [&](Index begin, Index end) {
      for (Index i = first + begin; i < first + end; ++i)
        to(0, place(i) - first) = static_cast<T>(mine[i] / scale);
    };
    in_parts(to.cols(), 0, copy, least_copied);
  });
}

template <class T>
void LinearSystem<T>::store(const VectorOf& tiles, double scale, T* mine) const {
  for_each_mine(tiles, [&](const Tile<T>& tile, Index first) {
    const HostView<T> from(tile, HostView<T>::Access::read);
    const auto copy = [&](Index begin, Index end) {
      for (Index i = first + begin; i < first + end; ++i)
        mine[i] = static_cast<T>(from(0, place(i) - first) * scale);
    };
    in_parts(from.cols(), 0, copy, least_copied);
  });
}

template class LinearSystem<float>;
template class LinearSystem<double>;

}  // namespace asterism::sparse
