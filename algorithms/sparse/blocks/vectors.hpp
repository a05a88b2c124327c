/// \file
/// The vectors that blocks multiply: the block's own elements and those of other rows that it has entries in, in
/// ascending order of their numbers; and how these come from the blocks that own them.
#pragma once

#include <cstdint>
#include <vector>

#include "../../../codelets/sparse/exchange.hpp"
#include "../../../runtime/runtime.hpp"
#include "../../../runtime/tile.hpp"
#include "../../common/partition.hpp"

namespace asterism::sparse {

/// The elements of each block's vector.
class VectorLayout {
 public:
  VectorLayout() = default;
  /// @param foreign for every block of this rank, in their order, the elements of other blocks; sorted and unique here.
  /// With several ranks: collective.
  VectorLayout(const Runtime& runtime, const Partition& blocks, std::vector<std::vector<Index>> foreign);

  /// Of every block, of other ranks too: how many elements its vector has, and where its own begin in it.
  [[nodiscard]] Index size(Index block) const { return sizes_[static_cast<std::size_t>(block)].all; }
  [[nodiscard]] Index own(Index block) const { return sizes_[static_cast<std::size_t>(block)].before; }
  /// Where an element is in the vector of a block of this rank. It must be there.
  [[nodiscard]] std::int32_t place(Index block, Index element) const;
  [[nodiscard]] const Partition& blocks() const { return *blocks_; }
  /// Of a block of this rank: the elements of others.
  [[nodiscard]] const std::vector<Index>& foreign(Index block) const;

 private:
  struct Size {
    Index all, before;
  };
  const Partition* blocks_ = nullptr;
  Index first_mine_ = 0;
  std::vector<std::vector<Index>> foreign_;
  std::vector<Size> sizes_;
};

/// Sends elements of blocks to the vectors of others.
template <class T>
class Exchange {
 public:
  Exchange() = default;
  /// @param wanted for every block of this rank, in their order, the elements of others that it needs: in ascending
  /// order, and part of the layout's. With several ranks: collective.
  Exchange(Runtime& runtime, const VectorLayout& layout, const std::vector<std::vector<Index>>& wanted);

  /// What one block sends another.
  struct Pair {
    Index from, to, elements;
    Tile<T> pack;
    Tile<std::int32_t> taken, placed;  ///< in the own elements of the one, in the vector of the other
  };
  [[nodiscard]] const std::vector<Pair>& pairs() const { return pairs_; }

  /// What a task that makes a block's own elements, or uses those of others, is given.
  [[nodiscard]] Departures<AsTiles, T> from(Index block) const;
  [[nodiscard]] Arrivals<AsTiles, T> to(Index block) const;
  /// The same, behind others.
  void add_to(Index block, Arrivals<AsTiles, T>& arrivals) const;

  /// Bytes that cross from block to block each time.
  [[nodiscard]] Index bytes() const;

 private:
  std::vector<Pair> pairs_;
};

/// Submits what gives others what they need of a vector, whose elements are counted from `own` on; nothing where nobody
/// needs any, as where a matrix falls apart.
template <class T>
void send(const Tile<T>& v, Index own, const Departures<AsTiles, T>& departures, const Hints& hints);

}  // namespace asterism::sparse
