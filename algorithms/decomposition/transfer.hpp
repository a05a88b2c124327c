/// \file
/// Elements of vectors on their way between blocks of rows and subdomains, packed pair by pair.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "../../codelets/sparse/exchange.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "../common/partition.hpp"

namespace asterism::decomposition {

/// What one piece of a vector gives to another: elements at `taken` in the one, at `placed` in the other.
struct Parcel {
  Index from = 0, to = 0;
  std::vector<std::int32_t> taken, placed;
};

/// Adds a parcel from each block that has some of the rows to a piece: to those of its elements. `rows` has the row of each
/// element, ascending. @param places the elements that are wanted, ascending
void add_parcels(const Partition& blocks, Index piece, const std::vector<Index>& rows,
                 const std::vector<std::int32_t>& places, std::vector<Parcel>& parcels);
/// The same the other way round.
std::vector<Parcel> reversed(std::vector<Parcel> parcels);

/// Parcels between the same two pieces as one, in the order of the givers' first; where a giver's element goes to several
/// places, as several parcels, none of which has it twice. @param parcels of a taker follow each other
std::vector<Parcel> joined(const std::vector<Parcel>& parcels);

template <class T>
class Transfer {
 public:
  using OwnerOf = std::function<int(Index piece)>;

  Transfer() = default;
  /// @param parcels the same on every rank, none of them empty @param givers, takers the ranks of the pieces
  /// @param from_pieces, to_pieces how many there are
  Transfer(Runtime& runtime, const std::vector<Parcel>& parcels, Index from_pieces, const OwnerOf& givers,
           Index to_pieces, const OwnerOf& takers);

  /// The same for other vectors, which are under way at the same time.
  [[nodiscard]] Transfer another(Runtime& runtime) const;

  /// What a task that makes a piece, or uses those of others, is given.
  [[nodiscard]] sparse::Departures<AsTiles, T> from(Index piece) const;
  /// In the order of the pieces that they come from.
  [[nodiscard]] sparse::Arrivals<AsTiles, T> to(Index piece) const;
  /// Bytes that cross from rank to rank each time.
  [[nodiscard]] Index bytes_between_ranks() const { return bytes_between_ranks_; }

 private:
  struct Places {
    Tile<std::int32_t> taken, placed;
  };
  struct Pack {
    Tile<T> elements;
    std::shared_ptr<const Places> places;
  };
  /// Departures or Arrivals of some packs.
  template <class Side>
  [[nodiscard]] Side side(const std::vector<std::size_t>& packs, Tile<std::int32_t> Places::*places) const;

  std::vector<Pack> packs_;
  std::vector<std::vector<std::size_t>> from_, to_;  // packs of each piece
  Index bytes_between_ranks_ = 0;
};

}  // namespace asterism::decomposition
