/// \file
/// What blocks send each other of their vectors: of each pair of blocks, the elements of the one that the other has
/// entries in, packed in a tile of their own, which alone crosses links and networks.
#pragma once

#include <cstdint>

#include "../../runtime/codelet.hpp"

namespace asterism::sparse {

/// To others: packs[k][j] = v[places[k][j]].
template <template <class> class As, class T>
struct Departures {
  As<Many<Out<T>>> packs;
  As<Many<In<std::int32_t>>> places;
};

/// From others: v[places[k][j]] = packs[k][j].
template <template <class> class As, class T>
struct Arrivals {
  As<Many<In<T>>> packs;
  As<Many<In<std::int32_t>>> places;
};

/// @param v a block's vector, or its own part of it: `places` say which
template <template <class> class As, class T>
struct PackPorts {
  As<In<T>> v;
  Departures<As, T> departures;
};
template <template <class> class As, class T>
struct UnpackPorts {
  As<InOut<T>> v;
  Arrivals<As, T> arrivals;
};

namespace cpu {
template <class T>
void pack(const T* v, const Departures<AsPorts, T>& departures);
template <class T>
void unpack(const Arrivals<AsPorts, T>& arrivals, T* v);
}  // namespace cpu

namespace cuda {
template <class T>
void pack(Stream stream, const T* v, const Departures<AsPorts, T>& departures);
template <class T>
void unpack(Stream stream, const Arrivals<AsPorts, T>& arrivals, T* v);
}  // namespace cuda

}  // namespace asterism::sparse
