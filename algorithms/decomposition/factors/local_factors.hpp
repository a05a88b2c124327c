/// \file
/// The blocks of subdomains with their factors (F1): ordered, predicted, factorised by tasks, kept.
#pragma once

#include <memory>
#include <vector>

#include "../../../codelets/decomposition/factorise.hpp"
#include "../../../runtime/runtime.hpp"
#include "../../../runtime/tile.hpp"
#include "../../sparse/preconditioners/preconditioner.hpp"
#include "../cut/subdomains.hpp"
#include "elimination_order.hpp"

namespace asterism::decomposition {

struct FactorFacts {
  Index fill = 0;                ///< entries of all factors, with their diagonals
  std::vector<Index> predicted;  ///< bytes of each rank's factors, before any factorisation
  std::vector<Index> bytes;      ///< that they take
  double seconds_order = 0, seconds_factorise = 0;
};

struct FactorSettings {
  sparse::MatrixClass matrix_class = sparse::MatrixClass::positive_definite;
  Index most_bytes = 0;  ///< of a rank's factors; 0: nine tenths of its machine's memory
  const char* only =
      nullptr;  ///< what the only block is, in messages; nullptr: blocks are those of subdomains
};

/// @tparam V the type of their numbers
template <class V>
class LocalFactors {
 public:
  LocalFactors() = default;
  /// Factorises L_p = R_p A R_p^T, (Z1), of each subdomain; several at a time, as many as there are cores.
  /// @param whole all rows of A @param owners the rank of each subdomain. With several ranks: collective.
  /// @throw Error: factors that a rank has no memory for, told before they are made; a block that is singular or not
  /// positive definite (which one, which row); numbers beyond V
  template <class T>
  LocalFactors(Runtime& runtime, const sparse::Csr<T>& whole, const std::vector<Subdomain>& subdomains,
               const std::vector<int>& owners, const FactorSettings& settings);

  [[nodiscard]] FactorPorts<AsTiles, V> ports(Index subdomain) const;
  [[nodiscard]] const FactorFacts& facts() const { return facts_; }

 private:
  struct TriangleTiles {
    Tile<std::int32_t> begins, places;
    Tile<V> values;
    [[nodiscard]] TrianglePorts<AsTiles, V> ports() const;
  };
  struct Block {
    std::shared_ptr<LocalBlock<V>> local;  // nullptr on other ranks
    std::vector<std::int32_t> row_of, column_of;
    TriangleTiles lower, upper;
    Tile<V> inverse_pivots;
    Tile<std::int32_t> rows, columns;
  };

  template <class T>
  void order(const Runtime& runtime, const sparse::Csr<T>& whole, const std::vector<Subdomain>& subdomains,
             const std::vector<int>& owners, const FactorSettings& settings);
  void require_memory(const Runtime& runtime, Index most_bytes) const;
  template <class T>
  void factorise(Runtime& runtime, const sparse::Csr<T>& whole, const std::vector<Subdomain>& subdomains,
                 const std::vector<int>& owners, const FactorSettings& settings);
  void make_tiles(Runtime& runtime, const std::vector<int>& owners);

  FactorFacts facts_;
  std::vector<EliminationOrder> orders_;  // of this rank's
  std::vector<Block> blocks_;
};

}  // namespace asterism::decomposition
