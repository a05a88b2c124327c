/// \file
/// The residual r = b - A v, and vectors on their way into it.
#pragma once

#include "../exchange.hpp"
#include "../matrix.hpp"
#include "../units.hpp"

namespace asterism::sparse {

/// v, from its first own element on, becomes `from`; others get what they need of it.
struct PlaceArgs {
  Index own = 0;
};
template <template <class> class As, class T>
struct PlacePorts {
  As<In<T>> from;
  As<InOut<T>> v;
  Departures<As, T> departures;
};

/// The other way round: v's own elements.
template <template <class> class As, class T>
struct TakePorts {
  As<In<T>> v;
  As<Out<T>> own;
};

/// Others get what they need of v.
template <template <class> class As, class T>
struct SendPorts {
  As<In<T>> v;
  Departures<As, T> departures;
};

/// r = b - A v.
struct ResidualArgs {
  BlockShape shape;
  Index unit = 0;
};
/// @param rr sums over units of the squares of r
template <template <class> class As, class T>
struct ResidualPorts {
  BlockPorts<As, T> matrix;
  Arrivals<As, T> arrivals;
  As<InOut<T>> v;
  As<In<T>> b;
  As<Out<T>> r;
  As<Out<double>> rr;
};

namespace cpu {
template <class T>
void place(const PlaceArgs& args, PlacePorts<AsPorts, T> ports);
template <class T>
void take(const PlaceArgs& args, TakePorts<AsPorts, T> ports);
template <class T>
void send(const PlaceArgs& args, SendPorts<AsPorts, T> ports);
template <class T>
void residual(const ResidualArgs& args, ResidualPorts<AsPorts, T> ports);
}  // namespace cpu

namespace cuda {
template <class T>
void place(Stream stream, const PlaceArgs& args, PlacePorts<AsPorts, T> ports);
template <class T>
void take(Stream stream, const PlaceArgs& args, TakePorts<AsPorts, T> ports);
template <class T>
void send(Stream stream, const PlaceArgs& args, SendPorts<AsPorts, T> ports);
template <class T>
void residual(Stream stream, const ResidualArgs& args, ResidualPorts<AsPorts, T> ports);
}  // namespace cuda

namespace codelets {
template <class T>
inline const Codelet<PlaceArgs, PlacePorts<AsPorts, T>> place{typed_name<T>("sparse_place"), cpu::place<T>,
                                                              ASTERISM_CUDA_KERNEL(cuda::place<T>)};
template <class T>
inline const Codelet<PlaceArgs, TakePorts<AsPorts, T>> take{typed_name<T>("sparse_take"), cpu::take<T>,
                                                            ASTERISM_CUDA_KERNEL(cuda::take<T>)};
template <class T>
inline const Codelet<PlaceArgs, SendPorts<AsPorts, T>> send{typed_name<T>("sparse_send"), cpu::send<T>,
                                                            ASTERISM_CUDA_KERNEL(cuda::send<T>)};
template <class T>
inline const Codelet<ResidualArgs, ResidualPorts<AsPorts, T>> residual{
    typed_name<T>("sparse_residual"), cpu::residual<T>, ASTERISM_CUDA_KERNEL(cuda::residual<T>)};
}  // namespace codelets

}  // namespace asterism::sparse
