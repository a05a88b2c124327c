/// \file
/// The blocks of subdomains with their factors (F1), (F2): ordered, predicted, dealt, factorised by tasks, kept.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "../../../codelets/decomposition/factorise.hpp"
#include "../../../runtime/runtime.hpp"
#include "../../../runtime/tile.hpp"
#include "../../sparse/preconditioners/preconditioner.hpp"
#include "../cut/subdomains.hpp"
#include "dealing.hpp"
#include "joined_triangle.hpp"
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
  bool later = false;    ///< whether the constructor need not wait for factors whose size is known before
  const char* only =
      nullptr;  ///< what the only block is, in messages; nullptr: blocks are those of subdomains
};

/// @tparam V the type of their numbers
template <class V>
class LocalFactors {
 public:
  LocalFactors() = default;
  /// Factorises L_p = R_p A R_p^T, (Z1), of each subdomain; several at a time, as many as there are cores. Those that a GPU
  /// solves with come by and by, which `settings.later` allows for all positive definite blocks, and settle() has to be
  /// called: where a GPU has more subdomains than there are cores it solves with some while others are factorised.
  /// @param whole all rows of A @param owners the rank of each subdomain. With several ranks: collective.
  /// @throw Error: factors that a rank has no memory for, told before they are made; a block that is singular or not
  /// positive definite (which one, which row), unless settle() has to be called; numbers beyond V
  template <class T>
  LocalFactors(Runtime& runtime, const sparse::Csr<T>& whole, const std::vector<Subdomain>& subdomains,
               const std::vector<int>& owners, const FactorSettings& settings);

  /// Whether factors come by and by still.
  [[nodiscard]] bool is_settled() const { return settled_; }
  /// Waits for all tasks, and from then on there are all factors. With several ranks: collective.
  /// @param subdomains those of the constructor @throw Error: as the constructor, what is wrong with a block; a task has
  /// failed
  void settle(const std::vector<Subdomain>& subdomains);

  /// Which subdomains are solved for together, and where: a part has consecutive subdomains.
  [[nodiscard]] const Partition& groups() const { return groups_; }
  /// What a group is solved with by one task: consecutive subdomains.
  struct Piece {
    FactorPorts<AsTiles, V> factors;
    SolveRoom<AsTiles, V> room;
    Index first = 0;  ///< row of the group
  };
  /// The pieces of a group: one, unless its factors come by and by. The solution is the same to the last bit.
  [[nodiscard]] std::vector<Piece> pieces(Index group) const;
  /// Room for solutions with so many right-hand sides at once; at first there is for one.
  void make_room(Index columns);
  [[nodiscard]] const FactorFacts& facts() const { return facts_; }

 private:
  struct TriangleTiles {
    Tile<std::int32_t> begins, places;
    Tile<V> values;
    Tile<std::int32_t> order;
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
    Index order = 0, nodes = 0, lists = 0, panels = 0, work = 0;
  };
  /// Consecutive subdomains.
  struct Group {
    Group(Index from, Index count) : first(from), size(count) {}

    Index first, size;
    std::vector<Group> batches;          // of it: what is factorised at a time
    std::unique_ptr<V[]> panel_numbers;  // of supernodes, on this rank; else its batches have them
    std::vector<Supernode> nodes;
    std::vector<std::int32_t> lists, row_of, column_of;
    JoinedTriangle<V> joined_lower, joined_upper;  // for a GPU, without supernodes
    std::vector<V> joined_pivots;
    Sizes sizes;
    TriangleTiles lower, upper;
    Tile<V> inverse_pivots, panels, work;
    Tile<Supernode> node_tile;
    Tile<std::int32_t> list_tile, rows, columns, counters;
  };

  /// Its batches, or else itself.
  template <class AnyGroup>
  static std::span<AnyGroup> parts_of(AnyGroup& group) {
    if (group.batches.empty()) return {&group, 1};
    return group.batches;
  }

  template <class T>
  void order(const sparse::Csr<T>& whole, const std::vector<Subdomain>& subdomains,
             const std::vector<int>& owners);
  void require_memory() const;
  void divide(const std::vector<Candidate>& workers, const std::vector<FactorSize>& sizes);
  template <class T>
  void make_blocks(const sparse::Csr<T>& whole, const std::vector<Subdomain>& subdomains,
                   const std::vector<int>& owners);
  void factorise(const std::vector<int>& owners);
  void publish();
  void end(const std::vector<Subdomain>& subdomains);
  void forget_orders();
  void require_factors(const std::vector<Subdomain>& subdomains) const;
  void gather_group(Group& group) const;
  void join_triangles(Group& group) const;
  void gather_groups();
  void make_tiles();
  void make_tiles(Group& group, int owner);
  [[nodiscard]] Piece piece_of(const Group& its, Index first) const;

  Runtime* runtime_ = nullptr;
  FactorSettings settings_;
  FactorFacts facts_;
  Partition groups_;
  std::vector<Block> blocks_;  // of subdomains
  std::vector<Group> of_groups_;
  std::vector<Tile<double>> ended_;  // when the factorisation of each subdomain did
  double begun_ = 0;                 // when they did
  bool settled_ = true;
};

}  // namespace asterism::decomposition
