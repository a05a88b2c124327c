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
Stages stages_of(const Part& part, Index grain, Index stages, const std::vector<int>& stage_of_row,
                 bool in_order) {
  Stages of_block{.stages = stages,
                  .groups = units_of(part.size, grain),
                  .begins = {},
                  .longest = 0,
                  .in_order = in_order};
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
    : system_(&system), kind_(prepared.kind), sequential_(prepared.sequential) {
  set_up_->polynomial = prepared.steps;
  make_matrices(prepared);
  if (kind_ == PreconditionerKind::triangular) make_stages(prepared);
  if (kind_ != PreconditionerKind::none && prepared.facts.choice.method != PreconditionerMethod::polynomial) {
    make_diagonal();
    load_diagonal(prepared);
  }
  make_vectors();
}

template <class T, class V>
AppliedPreconditioner<T, V>::AppliedPreconditioner(const LinearSystem<T>& system, Users users)
    : system_(&system), kind_(PreconditionerKind::users), users_(std::move(users)) {
  make_vectors();
}

template <class T, class V>
AppliedPreconditioner<T, V> AppliedPreconditioner<T, V>::another() const {
  AppliedPreconditioner other;
  other.system_ = system_;
  other.kind_ = kind_;
  other.sequential_ = sequential_;
  other.users_ = users_;
  other.set_up_ = set_up_;
  other.make_vectors();
  return other;
}

template <class T, class V>
void AppliedPreconditioner<T, V>::refresh(const PreparedPreconditioner<T>& prepared) {
  set_up_->polynomial = prepared.steps;
  make_matrices(prepared);
  load_diagonal(prepared);
}

template <class T, class V>
void AppliedPreconditioner<T, V>::make_matrices(const PreparedPreconditioner<T>& prepared) {
  Runtime& runtime = system_->runtime();
  const VectorLayout& layout = system_->layout();
  if (kind_ == PreconditionerKind::polynomial && sizeof(V) != sizeof(T))
    set_up_->left =
        BlockMatrix<V>(runtime, layout, system_->structure(), *prepared.matrix, system_->format());
  if (kind_ != PreconditionerKind::triangular) return;
  const auto in_blocks = [&](const Csr<T>& factor) {
    DiagonalStructure structure = diagonal_structure(runtime, factor);
    structure.diagonals
        .clear();  // a vector has what the factors have entries in, and no more of their diagonals
    structure.stencil.reset();
    return BlockMatrix<V>(runtime, layout, structure, factor, {});
  };
  set_up_->left = in_blocks(prepared.lower);
  set_up_->right = in_blocks(prepared.upper);
}

template <class T, class V>
void AppliedPreconditioner<T, V>::make_stages(const PreparedPreconditioner<T>& prepared) {
  for (const Part& part : system_->blocks().parts()) {
    const Index grain = sequential_ ? part.size : grain_rows(system_->rows());
    const Stages& stages = set_up_->stages.emplace_back(
        stages_of(part, grain, sequential_ ? 1 : prepared.facts.stages, prepared.stage_of_row,
                  sequential_ || prepared.facts.grains_in_order));
    const Tile<std::int32_t>& tile = set_up_->stages_tiles.emplace_back(
        system_->runtime(), 1, static_cast<Index>(stages.begins.size()), part.rank);
    set(system_->runtime(), tile, [&](Index, Index j) { return stages.begins[j]; });
  }
  set_up_->forward = wanted_by_stage(prepared.lower, prepared);
  set_up_->backward = wanted_by_stage(prepared.upper, prepared);
}

/// For each stage of a factor its own, as blocks go on with the next one only when they have what others found in
/// this one.
template <class T, class V>
std::vector<typename AppliedPreconditioner<T, V>::Wanted> AppliedPreconditioner<T, V>::wanted_by_stage(
    const Csr<T>& factor, const PreparedPreconditioner<T>& prepared) const {
  const auto stages = static_cast<std::size_t>(sequential_ ? 1 : prepared.facts.stages);
  if (system_->count() == 1) return std::vector<Wanted>(stages);  // nobody to exchange with
  const Wanted foreign = foreign_columns(system_->runtime(), system_->blocks(), factor);
  std::vector<Wanted> of_stages(stages, Wanted(foreign.size()));
  for (std::size_t k = 0; k < foreign.size(); ++k)
    for (const Index column : foreign[k]) of_stages[prepared.stage_of_row[column]][k].push_back(column);
  return of_stages;
}

template <class T, class V>
void AppliedPreconditioner<T, V>::make_diagonal() {
  for (const Part& part : system_->blocks().parts())
    set_up_->inverse_diagonal.emplace_back(system_->runtime(), 1, part.size, part.rank);
}

template <class T, class V>
void AppliedPreconditioner<T, V>::make_vectors() {
  if (!has_z()) return;
  const bool is_polynomial = kind_ == PreconditionerKind::polynomial;
  const bool has_terms =
      std::ranges::any_of(set_up_->polynomial, [](const PolynomialStep& step) { return step.gamma != 0; });
  for (Index b = 0; b < system_->count(); ++b) {
    BlockTiles& t = tiles_.emplace_back();
    t.z = system_->whole_vector(b);
    if (is_polynomial) t.next = system_->whole_vector(b);
    if (has_terms) t.s = system_->own_vector(b);
  }
  if (is_polynomial)
    for (Exchange<T>& turn : exchange_z_) turn = system_->another_exchange();
  for (const Wanted& stage : set_up_->forward)
    forward_.emplace_back(system_->runtime(), system_->layout(), stage);
  for (const Wanted& stage : set_up_->backward)
    backward_.emplace_back(system_->runtime(), system_->layout(), stage);
}

template <class T, class V>
void AppliedPreconditioner<T, V>::load_diagonal(const PreparedPreconditioner<T>& prepared) {
  const Partition& blocks = system_->blocks();
  const Index first_mine = blocks.elements_of(system_->runtime().rank()).first;
  for (std::size_t b = 0; b < set_up_->inverse_diagonal.size(); ++b) {
    const Index first = blocks[static_cast<Index>(b)].first - first_mine;
    set(system_->runtime(), set_up_->inverse_diagonal[b],
        [&](Index, Index j) { return prepared.inverse_diagonal[first + j]; });
  }
}

template <class T, class V>
const Tile<V>* AppliedPreconditioner<T, V>::inverse_diagonal(Index block) const {
  return set_up_->inverse_diagonal.empty() ? nullptr : &set_up_->inverse_diagonal[block];
}

/// A of a polynomial is that of the system, unless its numbers are of another type.
template <class T, class V>
BlockPorts<AsTiles, V> AppliedPreconditioner<T, V>::left(Index block) const {
  if constexpr (sizeof(T) == sizeof(V))
    if (kind_ == PreconditionerKind::polynomial) return system_->matrix().ports(block);
  return set_up_->left.ports(block);
}

template <class T, class V>
const BlockShape& AppliedPreconditioner<T, V>::left_shape(Index block) const {
  const bool own = kind_ == PreconditionerKind::triangular || sizeof(T) != sizeof(V);
  return own ? set_up_->left.shape(block) : system_->matrix().shape(block);
}

template <class T, class V>
void AppliedPreconditioner<T, V>::apply(const typename LinearSystem<T>::VectorOf& r) {
  if (kind_ == PreconditionerKind::polynomial) apply_polynomial(r);
  if (kind_ == PreconditionerKind::triangular) apply_triangular(r);
  if (kind_ == PreconditionerKind::users)
    users_(r, [this](Index k) -> const Tile<T>& { return tiles_[k].z; });
}

template <class T, class V>
Index AppliedPreconditioner<T, V>::tasks() const {
  if (kind_ == PreconditionerKind::polynomial) return static_cast<Index>(set_up_->polynomial.size());
  return static_cast<Index>(forward_.size() + backward_.size());
}

/// (Q2); z and next change their roles with every step, and so do the tiles between blocks: a block is sent what is
/// new while another still has to read what was.
template <class T, class V>
void AppliedPreconditioner<T, V>::apply_polynomial(const typename LinearSystem<T>::VectorOf& r) {
  const std::vector<PolynomialStep>& steps = set_up_->polynomial;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const bool first = step == 0, last = step + 1 == steps.size();
    for (Index k = 0; k < system_->count(); ++k) {
      BlockTiles& t = tiles_[k];
      codelets::polynomial_step<T, V>(
          {left_shape(k), system_->unit(), steps[step], first},
          {.matrix = left(k),
           .arrivals = first ? Arrivals<AsTiles, T>{} : exchange_z_[(step + 1) % 2].to(k),
           .inverse_diagonal = inverse_diagonal(k),
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
      {.shape = back ? set_up_->right.shape(block) : set_up_->left.shape(block),
       .half = half,
       .stages = set_up_->stages[block],
       .first_stage = stage,
       .end_stage = stage + 1},
      {.factor = back ? set_up_->right.ports(block) : set_up_->left.ports(block),
       .inverse_diagonal = back ? inverse_diagonal(block) : nullptr,
       .stages = set_up_->stages_tiles[block],
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
          .right = triangular ? set_up_->right.shape(0) : BlockShape{},
          .steps = set_up_->polynomial,
          .stages = triangular ? set_up_->stages.front() : Stages{}};
}

template <class T, class V>
PreconditionerPorts<AsTiles, T, V> AppliedPreconditioner<T, V>::ports() const {
  PreconditionerPorts<AsTiles, T, V> all;
  all.inverse_diagonal = inverse_diagonal(0);
  if (!has_z()) return all;
  all.left = left(0);
  if (kind_ == PreconditionerKind::triangular) {
    all.right = set_up_->right.ports(0);
    all.stages = &set_up_->stages_tiles.front();
  }
  const BlockTiles& t = tiles_.front();
  all.z = tile_if(t.z);
  all.next = tile_if(t.next);
  all.s = tile_if(t.s);
  return all;
}

template class AppliedPreconditioner<float, float>;
template class AppliedPreconditioner<double, double>;
template class AppliedPreconditioner<double, float>;

}  // namespace asterism::sparse
