#include <algorithm>

#include "../../runtime/cuda.hpp"
#include "exchange.hpp"

namespace asterism::sparse::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int threads = 256;

/// As many packs as travel with a launch. @tparam Element const T: they are read
template <class Element>
struct Packs {
  static constexpr Index most = 64;
  Element* elements[most];
  const std::int32_t* places[most];
  Index counts[most];
  Index count = 0, longest = 0;

  void add(Element* data, const std::int32_t* at, Index size) {
    elements[count] = data;
    places[count] = at;
    counts[count++] = size;
    longest = std::max(longest, size);
  }
};

template <class T>
__global__ void __launch_bounds__(threads) pack_kernel(const __grid_constant__ Packs<T> packs, const T* v) {
  T* const to = packs.elements[blockIdx.y];
  const std::int32_t* const places = packs.places[blockIdx.y];
  for (Index j = blockIdx.x * Index{threads} + threadIdx.x; j < packs.counts[blockIdx.y];
       j += Index{threads} * gridDim.x)
    to[j] = v[places[j]];
}

template <class T>
__global__ void __launch_bounds__(threads) unpack_kernel(const __grid_constant__ Packs<const T> packs, T* v) {
  const T* const from = packs.elements[blockIdx.y];
  const std::int32_t* const places = packs.places[blockIdx.y];
  for (Index j = blockIdx.x * Index{threads} + threadIdx.x; j < packs.counts[blockIdx.y];
       j += Index{threads} * gridDim.x)
    v[places[j]] = from[j];
}

/// Calls launch(packs, grid) with all packs of an exchange, some at a time.
template <class Element, class Exchange, class Launch>
void for_some_packs(const Exchange& exchange, Launch launch) {
  Packs<Element> packs;
  for (Index k = 0; k < exchange.packs.size(); ++k) {
    packs.add(exchange.packs[k].data, exchange.places[k].data, exchange.packs[k].cols);
    if (packs.count < Packs<Element>::most && k + 1 < exchange.packs.size()) continue;
    const Index blocks = std::clamp<Index>(parts(packs.longest, threads), 1, 1024);
    launch(packs, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(packs.count)));
    packs = {};
  }
}

}  // namespace

template <class T>
void pack(Stream stream, const T* v, const Departures<AsPorts, T>& departures) {
  for_some_packs<T>(departures, [&](const Packs<T>& packs, dim3 grid) {
    pack_kernel<<<grid, threads, 0, native(stream)>>>(packs, v);
    check_launch("pack");
  });
}

template <class T>
void unpack(Stream stream, const Arrivals<AsPorts, T>& arrivals, T* v) {
  for_some_packs<const T>(arrivals, [&](const Packs<const T>& packs, dim3 grid) {
    unpack_kernel<<<grid, threads, 0, native(stream)>>>(packs, v);
    check_launch("unpack");
  });
}

template void pack(Stream, const float*, const Departures<AsPorts, float>&);
template void pack(Stream, const double*, const Departures<AsPorts, double>&);
template void unpack(Stream, const Arrivals<AsPorts, float>&, float*);
template void unpack(Stream, const Arrivals<AsPorts, double>&, double*);

}  // namespace asterism::sparse::cuda
