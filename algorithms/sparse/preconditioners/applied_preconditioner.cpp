#include "applied_preconditioner.hpp"

#include <algorithm>
#include <utility>

#include "../../../codelets/sparse/codelets.hpp"
#include "../../common/set.hpp"

namespace asterism::sparse {
namespace {

template <class T>
const Tile<T>* tile_if(const Tile<T>& tile) {
  return tile.state() == nullptr ? nullptr : &tile;
}

/// Where the stages of a block begin in each of its grains; where the whole block is one stage there is one group.
Stages stages_of(const Part& part, Index grain, Index stages, const std::vector<int>& stage_of_row) {
  Stages of_block{.stages = stages, .groups = units_of(part.size, grain), .begins = {}, .longest = 0};
  const auto rows = stage_of_row.begin() + part.first;
  for (Index g = 0; g < of_block.groups; ++g) {
    const Index first = g * grain, end = std::min(part.size, first + grain);
    for (int s = 0; s <= stages; ++s) {
      const auto at = std::lower_bound(rows + first, rows + end, s) - rows;
      if (s > 0) of_block.longest = std::max<Index>(of_block.longest, at - of_block.begins.back());
      of_block.begins.push_back(static_cast<std::int32_t>(at));
    }
  }
  return of_block;
}

}  // namespace

template <class T, class V>
AppliedPreconditioner<T, V>::AppliedPreconditioner(const LinearSystem<T>& system,
                                                   const PreparedPreconditioner<T>& prepared)
    : system_(&system), kind_(prepared.kind), sequential_(prepared.sequential), polynomial_(prepared.steps) {
  make_matrices(prepared);
  if (kind_ == PreconditionerKind::polynomial)
    for (Exchange<T>& turn : exchange_z_) turn = system.another_exchange();
  if (kind_ == PreconditionerKind::triangular) {
    forward_ = exchanges_by_stage(prepared.lower, prepared);
    backward_ = exchanges_by_stage(prepared.upper, prepared);
  }
  make_tiles(prepared);
  load_diagonal(prepared);
}

template <class T, class V>
AppliedPreconditioner<T, V>::AppliedPreconditioner(const LinearSystem<T>& system, Users users)
    : system_(&system), kind_(PreconditionerKind::users), users_(std::move(users)) {
  for (Index b = 0; b < system.count(); ++b) tiles_.emplace_back().z = system.whole_vector(b);
}

template <class T, class V>
void AppliedPreconditioner<T, V>::refresh(const PreparedPreconditioner<T>& prepared) {
  polynomial_ = prepared.steps;
  make_matrices(prepared);
  load_diagonal(prepared);
}

template <class T, class V>
void AppliedPreconditioner<T, V>::make_matrices(const PreparedPreconditioner<T>& prepared) {
  Runtime& runtime = system_->runtime();
  const VectorLayout& layout = system_->layout();
  if (kind_ == PreconditionerKind::polynomial && sizeof(V) != sizeof(T))
    left_ = BlockMatrix<V>(runtime, layout, system_->structure(), prepared.matrix, system_->format());
  if (kind_ != PreconditionerKind::triangular) return;
  const auto in_blocks = [&](const Csr<T>& factor) {
    DiagonalStructure structure = diagonal_structure(runtime, factor);
    structure.diagonals
        .clear();  // a vector has what the factors have entries in, and no more of their diagonals
    structure.stencil.reset();
    return BlockMatrix<V>(runtime, layout, structure, factor, {});
  };
  left_ = in_blocks(prepared.lower);
  right_ = in_blocks(prepared.upper);
}

/// For each stage of a factor its own, as blocks go on with the next one only when they have what others found in
/// this one.
template <class T, class V>
std::vector<Exchange<T>> AppliedPreconditioner<T, V>::exchanges_by_stage(
    const Csr<T>& factor, const PreparedPreconditioner<T>& prepared) const {
  const auto stages = static_cast<std::size_t>(sequential_ ? 1 : prepared.facts.stages);
  if (system_->count() == 1) return std::vector<Exchange<T>>(stages);  // nobody to exchange with
  const std::vector<std::vector<Index>> foreign =
      foreign_columns(system_->runtime(), system_->blocks(), factor);
  std::vector<std::vector<std::vector<Index>>> of_stages(stages,
                                                         std::vector<std::vector<Index>>(foreign.size()));
  for (std::size_t k = 0; k < foreign.size(); ++k)
    for (const Index column : foreign[k]) of_stages[prepared.stage_of_row[column]][k].push_back(column);
  std::vector<Exchange<T>> exchanges;
  for (const auto& of_stage : of_stages)
    exchanges.emplace_back(system_->runtime(), system_->layout(), of_stage);
  return exchanges;
}

template <class T, class V>
void AppliedPreconditioner<T, V>::make_tiles(const PreparedPreconditioner<T>& prepared) {
  Runtime& runtime = system_->runtime();
  const Partition& blocks = system_->blocks();
  const bool has_diagonal =
      kind_ != PreconditionerKind::none && prepared.facts.choice.method != PreconditionerMethod::polynomial;
  const bool has_terms =
      std::ranges::any_of(polynomial_, [](const PolynomialStep& step) { return step.gamma != 0; });
  for (Index b = 0; b < blocks.count(); ++b) {
    const Part& part = blocks[b];
    BlockTiles& t = tiles_.emplace_back();
    if (has_z()) t.z = system_->whole_vector(b);
    if (kind_ == PreconditionerKind::polynomial) t.next = system_->whole_vector(b);
    if (has_terms) t.s = system_->own_vector(b);
    if (has_diagonal) t.inverse_diagonal = Tile<V>(runtime, 1, part.size, part.rank);
    if (kind_ == PreconditionerKind::triangular) {
      const Index grain = sequential_ ? part.size : grain_rows(system_->rows());
      const Stages& stages = stages_.emplace_back(
          stages_of(part, grain, sequential_ ? 1 : prepared.facts.stages, prepared.stage_of_row));
      t.stages = Tile<std::int32_t>(runtime, 1, static_cast<Index>(stages.begins.size()), part.rank);
      set(runtime, t.stages, [&](Index, Index j) { return stages.begins[j]; });
    }
  }
}

template <class T, class V>
void AppliedPreconditioner<T, V>::load_diagonal(const PreparedPreconditioner<T>& prepared) {
  const Partition& blocks = system_->blocks();
  const Index first_mine = blocks.elements_of(system_->runtime().rank()).first;
  for (Index b = 0; b < blocks.count(); ++b) {
    const Tile<V>& tile = tiles_[b].inverse_diagonal;
    if (tile.state() == nullptr) continue;
    const Index first = blocks[b].first - first_mine;
    set(system_->runtime(), tile, [&](Index, Index j) { return prepared.inverse_diagonal[first + j]; });
  }
}

template <class T, class V>
const Tile<V>* AppliedPreconditioner<T, V>::inverse_diagonal(Index block) const {
  return tile_if(tiles_[block].inverse_diagonal);
}

/// A of a polynomial is that of the system, unless its numbers are of another type.
template <class T, class V>
BlockPorts<AsTiles, V> AppliedPreconditioner<T, V>::left(Index block) const {
  if constexpr (sizeof(T) == sizeof(V))
    if (kind_ == PreconditionerKind::polynomial) return system_->matrix().ports(block);
  return left_.ports(block);
}

template <class T, class V>
const BlockShape& AppliedPreconditioner<T, V>::left_shape(Index block) const {
  const bool own = kind_ == PreconditionerKind::triangular || sizeof(T) != sizeof(V);
  return own ? left_.shape(block) : system_->matrix().shape(block);
}

template <class T, class V>
void AppliedPreconditioner<T, V>::apply(const typename LinearSystem<T>::VectorOf& r) {
  if (kind_ == PreconditionerKind::polynomial) apply_polynomial(r);
  if (kind_ == PreconditionerKind::triangular) apply_triangular(r);
  if (kind_ == PreconditionerKind::users)
    users_(r, [this](Index k) -> const Tile<T>& { return tiles_[k].z; });
}

/// (Q2); z and next change their roles with every step, and so do the tiles between blocks: a block is sent what is
/// new while another still has to read what was.
template <class T, class V>
void AppliedPreconditioner<T, V>::apply_polynomial(const typename LinearSystem<T>::VectorOf& r) {
  for (std::size_t step = 0; step < polynomial_.size(); ++step) {
    const bool first = step == 0, last = step + 1 == polynomial_.size();
    for (Index k = 0; k < system_->count(); ++k) {
      BlockTiles& t = tiles_[k];
      codelets::polynomial_step<T, V>(
          {left_shape(k), system_->unit(), polynomial_[step], first},
          {.matrix = left(k),
           .arrivals = first ? Arrivals<AsTiles, T>{} : exchange_z_[(step + 1) % 2].to(k),
           .inverse_diagonal = tile_if(t.inverse_diagonal),
           .r = r(k),
           .z = t.z,
           .s = tile_if(t.s),
           .next = t.next,
           .rz = {},
           .departures = last ? Departures<AsTiles, T>{} : exchange_z_[step % 2].from(k)},
          system_->blocks().hints(k));
    }
    for (BlockTiles& t : tiles_) std::swap(t.z, t.next);
  }
}

/// (Q3), stage by stage; where it is sequential block by block.
template <class T, class V>
void AppliedPreconditioner<T, V>::apply_triangular(const typename LinearSystem<T>::VectorOf& r) {
  const auto stages = static_cast<Index>(forward_.size());
  for (Index s = 0; s < stages; ++s)
    for (Index k = 0; k < system_->count(); ++k)
      submit_stage(Half::forward, s, k, r(k),
                   sequential_ ? &forward_[s]
                   : s > 0     ? &forward_[s - 1]
                               : nullptr,
                   forward_[s]);
  for (Index s = stages; s-- > 0;)
    for (Index k = system_->count(); k-- > 0;)
      submit_stage(Half::backward, s, k, r(k),
                   sequential_      ? &backward_[s]
                   : s + 1 < stages ? &backward_[s + 1]
                                    : nullptr,
                   backward_[s]);
}

template <class T, class V>
void AppliedPreconditioner<T, V>::submit_stage(Half half, Index stage, Index block, const Tile<T>& r,
                                               const Exchange<T>* arriving, const Exchange<T>& departing) {
  BlockTiles& t = tiles_[block];
  const bool back = half == Half::backward;
  codelets::triangular_stages<T, V>(
      {.shape = back ? right_.shape(block) : left_.shape(block),
       .half = half,
       .stages = stages_[block],
       .first_stage = stage,
       .end_stage = stage + 1},
      {.factor = back ? right_.ports(block) : left_.ports(block),
       .inverse_diagonal = back ? &t.inverse_diagonal : nullptr,
       .stages = t.stages,
       .arrivals = arriving != nullptr ? arriving->to(block) : Arrivals<AsTiles, T>{},
       .r = r,
       .z = t.z,
       .departures = departing.from(block)},
      system_->blocks().hints(block));
}

template <class T, class V>
PreconditionerShape AppliedPreconditioner<T, V>::shape() const {
  const bool triangular = kind_ == PreconditionerKind::triangular;
  return {.kind = kind_,
          .left = has_z() ? left_shape(0) : BlockShape{},
          .right = triangular ? right_.shape(0) : BlockShape{},
          .steps = polynomial_,
          .stages = triangular ? stages_.front() : Stages{}};
}

template <class T, class V>
PreconditionerPorts<AsTiles, T, V> AppliedPreconditioner<T, V>::ports() const {
  const BlockTiles& t = tiles_.front();
  return {.inverse_diagonal = tile_if(t.inverse_diagonal),
          .left = has_z() ? left(0) : BlockPorts<AsTiles, V>{},
          .right = kind_ == PreconditionerKind::triangular ? right_.ports(0) : BlockPorts<AsTiles, V>{},
          .stages = tile_if(t.stages),
          .z = tile_if(t.z),
          .next = tile_if(t.next),
          .s = tile_if(t.s)};
}

template class AppliedPreconditioner<float, float>;
template class AppliedPreconditioner<double, double>;
template class AppliedPreconditioner<double, float>;

}  // namespace asterism::sparse
