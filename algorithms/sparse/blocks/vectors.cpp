#include "vectors.hpp"

#include <algorithm>

#include "../../../codelets/sparse/krylov/residual.hpp"
#include "../../../runtime/collectives.hpp"
#include "../../common/each_once.hpp"
#include "../../common/set.hpp"

namespace asterism::sparse {

VectorLayout::VectorLayout(const Runtime& runtime, const Partition& blocks,
                           std::vector<std::vector<Index>> foreign)
    : blocks_(&blocks), first_mine_(blocks.parts_of(runtime.rank()).first), foreign_(std::move(foreign)) {
  std::vector<Size> mine;
  for (std::size_t k = 0; k < foreign_.size(); ++k) {
    std::vector<Index>& elements = foreign_[k];
    keep_each_once(elements);
    const Part& part = blocks[first_mine_ + static_cast<Index>(k)];
    const auto before = std::ranges::lower_bound(elements, part.first) - elements.begin();
    mine.push_back({static_cast<Index>(elements.size()) + part.size, before});
  }
  sizes_ = gather_lists(runtime, mine);
}

const std::vector<Index>& VectorLayout::foreign(Index block) const {
  return foreign_[static_cast<std::size_t>(block - first_mine_)];
}

std::int32_t VectorLayout::place(Index block, Index element) const {
  const Part& part = (*blocks_)[block];
  if (element >= part.first && element < part.first + part.size)
    return static_cast<std::int32_t>(own(block) + element - part.first);
  const std::vector<Index>& others = foreign(block);
  const Index among = std::ranges::lower_bound(others, element) - others.begin();
  return static_cast<std::int32_t>(element < part.first ? among : among + part.size);
}

template <class T>
Exchange<T>::Exchange(Runtime& runtime, const VectorLayout& layout,
                      const std::vector<std::vector<Index>>& wanted) {
  const Partition& blocks = layout.blocks();
  const Index first_mine = blocks.parts_of(runtime.rank()).first;
  struct Order {
    Index from, to, elements;
  };
  std::vector<Order> orders;
  std::vector<Index> elements;
  for (std::size_t k = 0; k < wanted.size(); ++k)
    for (const Index element : wanted[k]) {
      const Index from = blocks.part_of(element), to = first_mine + static_cast<Index>(k);
      if (orders.empty() || orders.back().from != from || orders.back().to != to)
        orders.push_back({from, to, 0});
      ++orders.back().elements;
      elements.push_back(element);
    }
  orders = gather_lists(runtime, orders);
  elements = gather_lists(runtime, elements);

  auto next = elements.begin();
  for (const Order& order : orders) {
    const auto begin = next;
    next += order.elements;
    const int giver = blocks.owner(order.from), taker = blocks.owner(order.to);
    Pair pair{order.from,
              order.to,
              order.elements,
              Tile<T>(runtime, 1, order.elements, giver),
              Tile<std::int32_t>(runtime, 1, order.elements, giver),
              Tile<std::int32_t>(runtime, 1, order.elements, taker)};
    const Index first = blocks[order.from].first;
    set(runtime, pair.taken, [&](Index, Index j) { return begin[j] - first; });
    set(runtime, pair.placed, [&](Index, Index j) { return layout.place(order.to, begin[j]); });
    pairs_.push_back(std::move(pair));
  }
}

template <class T>
Departures<AsTiles, T> Exchange<T>::from(Index block) const {
  Departures<AsTiles, T> departures;
  for (const Pair& pair : pairs_)
    if (pair.from == block) {
      departures.packs.add(pair.pack);
      departures.places.add(pair.taken);
    }
  return departures;
}

template <class T>
Arrivals<AsTiles, T> Exchange<T>::to(Index block) const {
  Arrivals<AsTiles, T> arrivals;
  add_to(block, arrivals);
  return arrivals;
}

template <class T>
void Exchange<T>::add_to(Index block, Arrivals<AsTiles, T>& arrivals) const {
  for (const Pair& pair : pairs_)
    if (pair.to == block) {
      arrivals.packs.add(pair.pack);
      arrivals.places.add(pair.placed);
    }
}

template <class T>
Index Exchange<T>::bytes() const {
  Index elements = 0;
  for (const Pair& pair : pairs_) elements += pair.elements;
  return elements * static_cast<Index>(sizeof(T));
}

template <class T>
void send(const Tile<T>& v, Index own, const Departures<AsTiles, T>& departures, const Hints& hints) {
  if (departures.packs.size() > 0) codelets::send<T>({own}, {.v = v, .departures = departures}, hints);
}

template void send(const Tile<float>&, Index, const Departures<AsTiles, float>&, const Hints&);
template void send(const Tile<double>&, Index, const Departures<AsTiles, double>&, const Hints&);

template class Exchange<float>;
template class Exchange<double>;

}  // namespace asterism::sparse
