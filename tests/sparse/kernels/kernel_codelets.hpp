/// \file
/// The kernels of codelets/sparse as codelets, so that tests run them wherever they can run.
#pragma once

#include "../blocks.hpp"
#include "codelets/sparse/krylov/conjugate_gradients.hpp"
#include "codelets/sparse/preconditioner.hpp"

namespace asterism::sparse::test {

template <class T>
const Codelet<CgArgs, MultiplyPorts<AsPorts, T>> multiply{typed_name<T>("test_multiply"), cpu::multiply<T>,
                                                          ASTERISM_CUDA_KERNEL(cuda::multiply<T>)};
template <class T, class V>
const Codelet<CgArgs, DescentPorts<AsPorts, T, V>> descend{typed_name<V>(typed_name<T>("test_descend")),
                                                           cpu::descend<T, V>,
                                                           ASTERISM_CUDA_KERNEL(cuda::descend<T, V>)};
template <class T, class V>
const Codelet<CgArgs, DirectionPorts<AsPorts, T, V>> turn{
    typed_name<V>(typed_name<T>("test_turn")), cpu::turn<T, V>, ASTERISM_CUDA_KERNEL(cuda::turn<T, V>)};
template <class T, class V>
const Codelet<CgSweepArgs, CgSweepPorts<AsPorts, T, V>> cg_sweep{
    typed_name<V>(typed_name<T>("test_cg_sweep")), cpu::cg_sweep<T, V>,
    ASTERISM_CUDA_KERNEL(cuda::cg_sweep<T, V>)};
template <class T, class V>
const Codelet<PolynomialArgs, PolynomialPorts<AsPorts, T, V>> polynomial_step{
    typed_name<V>(typed_name<T>("test_polynomial_step")), cpu::polynomial_step<T, V>,
    ASTERISM_CUDA_KERNEL(cuda::polynomial_step<T, V>)};
template <class T, class V>
const Codelet<TriangularArgs, TriangularPorts<AsPorts, T, V>> triangular_stages{
    typed_name<V>(typed_name<T>("test_triangular_stages")), cpu::triangular_stages<T, V>,
    ASTERISM_CUDA_KERNEL(cuda::triangular_stages<T, V>)};
template <class T>
const Codelet<DotArgs, DotPorts<AsPorts, T>> dot{typed_name<T>("test_dot"), cpu::dot<T>,
                                                 ASTERISM_CUDA_KERNEL(cuda::dot<T>)};

inline CgState running_state() {
  CgState state{};
  state.rz[0] = state.rz[1] = 1;
  return state;
}

}  // namespace asterism::sparse::test
