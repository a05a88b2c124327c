#include "exchange.hpp"

namespace asterism::sparse::cpu {

template <class T>
void pack(const T* v, const Departures<AsPorts, T>& departures) {
  for (Index k = 0; k < departures.packs.size(); ++k) {
    const Out<T>& to = departures.packs[k];
    const std::int32_t* const places = departures.places[k].data;
    for (Index j = 0; j < to.cols; ++j) to.data[j] = v[places[j]];
  }
}

template <class T>
void unpack(const Arrivals<AsPorts, T>& arrivals, T* v) {
  for (Index k = 0; k < arrivals.packs.size(); ++k) {
    const In<T>& from = arrivals.packs[k];
    const std::int32_t* const places = arrivals.places[k].data;
    for (Index j = 0; j < from.cols; ++j) v[places[j]] = from.data[j];
  }
}

template void pack(const float*, const Departures<AsPorts, float>&);
template void pack(const double*, const Departures<AsPorts, double>&);
template void unpack(const Arrivals<AsPorts, float>&, float*);
template void unpack(const Arrivals<AsPorts, double>&, double*);

}  // namespace asterism::sparse::cpu
