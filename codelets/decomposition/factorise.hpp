/// \file
/// Factorisations (F1), (F2) of the blocks of subdomains, each a task, and bringing what several have made together.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "factors.hpp"

namespace asterism::decomposition {

/// Why a block has no factors.
struct Defect {
  enum class Kind {
    not_positive,  ///< a pivot of a matrix that is taken to be positive definite is zero or negative
    singular,      ///< no row has a pivot for a column
    not_finite,    ///< numbers of the factors exceed what their type holds
  };
  Kind kind = Kind::singular;
  std::int32_t place = 0;  ///< of the pivot, in the order of elimination
  double pivot = 0;
};

/// A triangle, (F1), in main memory.
template <class V>
struct Triangle {
  std::span<const std::int32_t> begins, places;
  std::span<const V> values;
  std::span<const std::int32_t> levels = {};  ///< of its rows: how many follow each other up to one; for GPUs
};

/// A block and its factors.
template <class V>
struct LocalBlock {
  // The block in the order of elimination, by columns; of a symmetric one the lower triangle with the diagonal.
  std::int32_t size = 0;
  bool symmetric = true;
  bool for_gpu = false;  ///< whether a GPU will solve with the factors
  std::vector<std::int32_t> begins, places;
  std::vector<V> values;

  // Of a symmetric block: its supernodes, and room for their panels, which others have.
  std::shared_ptr<const Supernodes> supernodes;
  std::span<V> panels;

  // What is wrong with it, or else that it is in the panels, or its factors. The block itself is gone then.
  std::optional<Defect> defect;
  Triangle<V> lower, upper;
  std::vector<V> inverse_pivots;
  /// Places in the order of elimination, of pivoted rows and columns; empty: as they are.
  std::vector<std::int32_t> row_order, column_order;
  std::shared_ptr<const void> storage;  ///< of the triangles
};

template <class V>
struct FactoriseArgs {
  std::shared_ptr<LocalBlock<V>> block;  ///< nullptr where another rank has it
};

/// What time it is, by the clock that the ends of factorisations are told by.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace cpu {
/// @param ended when it did: seconds_now()
template <class V>
void factorise(const FactoriseArgs<V>& args, Out<double> ended);
/// Factorisations have written panels where their tile lends them: who uses the tile has to wait for them.
template <class V>
void publish(Many<In<double>> ended, InOut<V> panels);
}  // namespace cpu

namespace cuda {
/// The panels of several forests of supernodes, one behind the other, each with its margin, as those of one forest.
template <class V>
void join_panels(Stream stream, Many<In<V>> parts, Out<V> panels);
}  // namespace cuda

namespace codelets {
template <class V>
inline const Codelet<FactoriseArgs<V>, Out<double>> factorise{typed_name<V>("factorise"), cpu::factorise<V>};
template <class V>
inline const Codelet<NoArgs, Many<In<double>>, InOut<V>> publish{typed_name<V>("publish"), cpu::publish<V>};
template <class V>
using JoinPanels = Codelet<NoArgs, Many<In<V>>, Out<V>>;
template <class V>
inline const JoinPanels<V> join_panels{typed_name<V>("join_panels"), typename JoinPanels<V>::CpuOfPorts{},
                                       ASTERISM_CUDA_KERNEL(cuda::join_panels<V>)};
}  // namespace codelets

}  // namespace asterism::decomposition
