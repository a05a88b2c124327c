#include "transfer.hpp"

#include <map>
#include <utility>

#include "../common/set.hpp"

namespace asterism::decomposition {

void add_parcels(const Partition& blocks, Index piece, const std::vector<Index>& rows,
                 const std::vector<std::int32_t>& places, std::vector<Parcel>& parcels) {
  Index end = 0;  // of the block of the last parcel
  for (const std::int32_t place : places) {
    const Index row = rows[static_cast<std::size_t>(place)];
    if (row >= end) {
      const Index block = blocks.part_of(row);
      end = blocks[block].first + blocks[block].size;
      parcels.push_back({block, piece, {}, {}});
    }
    Parcel& parcel = parcels.back();
    parcel.taken.push_back(static_cast<std::int32_t>(row - blocks[parcel.from].first));
    parcel.placed.push_back(place);
  }
}

std::vector<Parcel> reversed(std::vector<Parcel> parcels) {
  for (Parcel& parcel : parcels) {
    std::swap(parcel.from, parcel.to);
    std::swap(parcel.taken, parcel.placed);
  }
  return parcels;
}

std::vector<Parcel> joined(const std::vector<Parcel>& parcels) {
  std::vector<Parcel> all;
  std::map<Index, std::vector<std::int32_t>> times;  // that a giver's element has gone to the taker
  std::map<std::pair<std::int32_t, Index>, std::size_t> parcel_of;
  Index taker = -1;
  for (const Parcel& parcel : parcels) {
    if (parcel.to != taker) {
      times.clear();
      parcel_of.clear();
      taker = parcel.to;
    }
    std::vector<std::int32_t>& before = times[parcel.from];
    for (std::size_t k = 0; k < parcel.taken.size(); ++k) {
      const auto element = static_cast<std::size_t>(parcel.taken[k]);
      if (element >= before.size()) before.resize(element + 1);
      const auto [at, is_new] = parcel_of.try_emplace({before[element]++, parcel.from}, all.size());
      if (is_new) all.push_back({parcel.from, taker, {}, {}});
      all[at->second].taken.push_back(parcel.taken[k]);
      all[at->second].placed.push_back(parcel.placed[k]);
    }
  }
  return all;
}

template <class T>
Transfer<T>::Transfer(Runtime& runtime, const std::vector<Parcel>& parcels, Index from_pieces,
                      const OwnerOf& givers, Index to_pieces, const OwnerOf& takers)
    : from_(static_cast<std::size_t>(from_pieces)), to_(static_cast<std::size_t>(to_pieces)) {
  for (const Parcel& parcel : parcels) {
    const auto elements = static_cast<Index>(parcel.taken.size());
    const int giver = givers(parcel.from), taker = takers(parcel.to);
    const auto places = std::make_shared<const Places>(Tile<std::int32_t>(runtime, 1, elements, giver),
                                                       Tile<std::int32_t>(runtime, 1, elements, taker));
    set(runtime, places->taken, [&](Index, Index j) { return parcel.taken[static_cast<std::size_t>(j)]; });
    set(runtime, places->placed, [&](Index, Index j) { return parcel.placed[static_cast<std::size_t>(j)]; });
    packs_.emplace_back(Tile<T>(runtime, 1, elements, giver), places);
    from_[static_cast<std::size_t>(parcel.from)].push_back(packs_.size() - 1);
    to_[static_cast<std::size_t>(parcel.to)].push_back(packs_.size() - 1);
    if (giver != taker) bytes_between_ranks_ += elements * static_cast<Index>(sizeof(T));
  }
}

template <class T>
Transfer<T> Transfer<T>::another(Runtime& runtime) const {
  Transfer other;
  other.from_ = from_;
  other.to_ = to_;
  other.bytes_between_ranks_ = bytes_between_ranks_;
  for (const Pack& pack : packs_)
    other.packs_.emplace_back(Tile<T>(runtime, 1, pack.elements.cols(), pack.elements.owner()), pack.places);
  return other;
}

template <class T>
template <class Side>
Side Transfer<T>::side(const std::vector<std::size_t>& packs, Tile<std::int32_t> Places::*places) const {
  Side side;
  for (const std::size_t k : packs) {
    side.packs.add(packs_[k].elements);
    side.places.add((*packs_[k].places).*places);
  }
  return side;
}

template <class T>
sparse::Departures<AsTiles, T> Transfer<T>::from(Index piece) const {
  return side<sparse::Departures<AsTiles, T>>(from_[static_cast<std::size_t>(piece)], &Places::taken);
}

template <class T>
sparse::Arrivals<AsTiles, T> Transfer<T>::to(Index piece) const {
  return side<sparse::Arrivals<AsTiles, T>>(to_[static_cast<std::size_t>(piece)], &Places::placed);
}

template class Transfer<float>;
template class Transfer<double>;

}  // namespace asterism::decomposition
