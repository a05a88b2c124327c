#include "stream.hpp"

namespace asterism::poisson {

template <class T>
void SlabStream<T>::begin(const std::vector<Slab>& turns) {
  stays_.assign(turns.size(), keeps_all());
  Index to_come = static_cast<Index>(turns.size());
  for (const Slab s : turns)
    if (to_come-- <= layout_.slabs_in_flight) stays_[static_cast<std::size_t>(s.place)] = true;
}

/// A stream that was submitted whole would have StarPU fetch slabs until there is no room left for the task that is to
/// run next.
template <class T>
void SlabStream<T>::wait_for_room() const {
  if (!keeps_all()) runtime_->wait_for_room(static_cast<std::size_t>(layout_.slabs_in_flight));
}

template <class T>
void SlabStream<T>::reduced(Slab s, const Tile<T>& slab) const {
  if (!stays_[static_cast<std::size_t>(s.place)]) slab.wont_use();
}

template <class T>
void SlabStream<T>::to_be_solved(const Tile<T>& slab) const {
  if (!keeps_all()) slab.write_through();
}

template <class T>
void SlabStream<T>::solved(const Tile<T>& slab) const {
  if (!keeps_all())
    slab.wont_use();
  else if (fetches_)
    slab.fetch();
}

template class SlabStream<float>;
template class SlabStream<double>;

}  // namespace asterism::poisson
