#include "residual.hpp"

#include <algorithm>

#include "../unit_sums.hpp"

namespace asterism::sparse::cpu {

template <class T>
void place(const PlaceArgs& args, PlacePorts<AsPorts, T> ports) {
  std::copy_n(ports.from.data, ports.from.cols, ports.v.data + args.own);
  pack(ports.from.data, ports.departures);
}

template <class T>
void take(const PlaceArgs& args, TakePorts<AsPorts, T> ports) {
  std::copy_n(ports.v.data + args.own, ports.own.cols, ports.own.data);
}

template <class T>
void send(const PlaceArgs& args, SendPorts<AsPorts, T> ports) {
  pack(ports.v.data + args.own, ports.departures);
}

template <class T>
void residual(const ResidualArgs& args, ResidualPorts<AsPorts, T> ports) {
  unpack(ports.arrivals, ports.v.data);
  T* const r = ports.r.data;
  with_rows<T>(args.shape, ports.matrix, [&](const auto& matrix) {
    sum_units(args.unit, args.shape.rows, ports.rr.data, [&](Index first, Index end) {
      products(matrix, first, end, ports.v.data, r + first);
      for (Index i = first; i < end; ++i) r[i] = ports.b.data[i] - r[i];
      return dot<T>(r, r, first, end);
    });
  });
}

template void place(const PlaceArgs&, PlacePorts<AsPorts, float>);
template void place(const PlaceArgs&, PlacePorts<AsPorts, double>);
template void take(const PlaceArgs&, TakePorts<AsPorts, float>);
template void take(const PlaceArgs&, TakePorts<AsPorts, double>);
template void send(const PlaceArgs&, SendPorts<AsPorts, float>);
template void send(const PlaceArgs&, SendPorts<AsPorts, double>);
template void residual(const ResidualArgs&, ResidualPorts<AsPorts, float>);
template void residual(const ResidualArgs&, ResidualPorts<AsPorts, double>);

}  // namespace asterism::sparse::cpu
