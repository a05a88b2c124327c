/// \file
/// The blocks of subdomains with their factors (F1), (F2): ordered, predicted, dealt, factorised by tasks, kept.
#pragma once

#include <memory>
#include <vector>

#include "../../../codelets/decomposition/factorise.hpp"
#include "../../../runtime/runtime.hpp"
#include "../../../runtime/tile.hpp"
#include "../../sparse/preconditioners/preconditioner.hpp"
#include "../cut/subdomains.hpp"
#include "dealing.hpp"
#include "local_blocks.hpp"

namespace asterism::decomposition {

struct FactorFacts {
  Index fill = 0;                ///< entries of all factors, with their diagonals and the zeros of supernodes
  std::vector<Index> predicted;  ///< bytes of each rank's factors, before any factorisation
  std::vector<Index> bytes;      ///< that they take
  double seconds_order = 0, seconds_factorise = 0;
};

struct FactorSettings {
  sparse::MatrixClass matrix_class = sparse::MatrixClass::positive_definite;
  SolveOn solve_on = SolveOn::fastest;
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

  /// Which subdomains are solved for together, and where: a part has consecutive subdomains.
  [[nodiscard]] const Partition& groups() const { return groups_; }
  /// Of a group: the vectors of its subdomains follow each other.
  [[nodiscard]] FactorPorts<AsTiles, V> ports(Index group) const;
  [[nodiscard]] SolveRoom<AsTiles, V> room(Index group) const;
  /// Room for solutions with so many right-hand sides at once; at first there is for one.
  void make_room(Runtime& runtime, Index columns);
  [[nodiscard]] const FactorFacts& facts() const { return facts_; }

 private:
  struct TriangleTiles {
    Tile<std::int32_t> begins, places;
    Tile<V> values;
    [[nodiscard]] TrianglePorts<AsTiles, V> ports() const;
  };
  /// Of this rank's subdomains.
  struct Block {
    BlockOrder order;
    std::shared_ptr<LocalBlock<V>> local;
  };
  /// Sizes of tiles.
  struct Sizes {
    Index rows = 0, lower_begins = 0, lower = 0, upper_begins = 0, upper = 0, pivots = 0;
    Index nodes = 0, lists = 0, panels = 0, work = 0;
  };
  struct Group {
    std::unique_ptr<V[]> panel_numbers;  // of supernodes; on this rank
    std::vector<Supernode> nodes;
    std::vector<std::int32_t> lists, row_of, column_of;
    Sizes sizes;
    TriangleTiles lower, upper;
    Tile<V> inverse_pivots, panels, work;
    Tile<Supernode> node_tile;
    Tile<std::int32_t> list_tile, rows, columns, counters;
  };

  template <class T>
  void order(Runtime& runtime, const sparse::Csr<T>& whole, const std::vector<Subdomain>& subdomains,
             const std::vector<int>& owners, const FactorSettings& settings);
  void require_memory(const Runtime& runtime, Index most_bytes) const;
  void make_panels();
  template <class T>
  void factorise(Runtime& runtime, const sparse::Csr<T>& whole, const std::vector<Subdomain>& subdomains,
                 const std::vector<int>& owners, const FactorSettings& settings);
  void require_factors(const Runtime& runtime, const std::vector<Subdomain>& subdomains,
                       const FactorSettings& settings);
  void gather_group(Index group);
  void gather_groups(const Runtime& runtime);
  void make_tiles(Runtime& runtime);

  FactorFacts facts_;
  Partition groups_;
  std::vector<Block> blocks_;  // of subdomains
  std::vector<Group> of_groups_;
};

}  // namespace asterism::decomposition
