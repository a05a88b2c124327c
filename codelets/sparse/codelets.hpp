/// \file
/// The codelets of conjugate gradients and preconditioners. V: the type of a preconditioner's numbers.
#pragma once

#include "codelet_names.hpp"
#include "krylov/conjugate_gradients.hpp"
#include "krylov/one_reduction/chronopoulos_gear.hpp"
#include "krylov/one_reduction/pipelined.hpp"
#include "krylov/several/columns.hpp"
#include "krylov/several/gpus.hpp"
#include "preconditioner.hpp"

namespace asterism::sparse::codelets {

template <class T>
inline const Codelet<CgArgs, MultiplyPorts<AsPorts, T>> multiply{
    typed_name<T>("cg_multiply"), cpu::multiply<T>, ASTERISM_CUDA_KERNEL(cuda::multiply<T>)};
template <class T>
inline const Codelet<MultiplyAllArgs, MultiplyAllPorts<AsPorts, T>> multiply_all{
    typed_name<T>("cg_multiply_all"), cpu::multiply_all<T>};
template <class T, class V>
inline const Codelet<CgArgs, DescentPorts<AsPorts, T, V>> descend{
    name_for<T, V>("cg_descend"), cpu::descend<T, V>, ASTERISM_CUDA_KERNEL(cuda::descend<T, V>)};
template <class T, class V>
inline const Codelet<CgArgs, DirectionPorts<AsPorts, T, V>> turn{name_for<T, V>("cg_turn"), cpu::turn<T, V>,
                                                                 ASTERISM_CUDA_KERNEL(cuda::turn<T, V>)};
template <class T, class V>
inline const Codelet<CgSweepArgs, CgSweepPorts<AsPorts, T, V>> cg_sweep{
    name_for<T, V>("cg_sweep"), cpu::cg_sweep<T, V>, ASTERISM_CUDA_KERNEL(cuda::cg_sweep<T, V>)};
template <class T, class V>
using CgColumns = Codelet<CgColumnsArgs, CgColumnsPorts<AsPorts, T, V>>;
template <class T, class V>
inline const CgColumns<T, V> cg_columns{name_for<T, V>("cg_columns"), typename CgColumns<T, V>::Cpu{},
                                        ASTERISM_CUDA_KERNEL(cuda::cg_columns<T, V>)};
template <class T, class V>
using CgOnGpus = Codelet<CgOnGpusArgs, CgOnGpusPorts<AsPorts, T, V>>;
template <class T, class V>
inline const CgOnGpus<T, V> cg_on_gpus{name_for<T, V>("cg_on_gpus"), typename CgOnGpus<T, V>::Cpu{},
                                       ASTERISM_CUDA_KERNEL(cuda::cg_on_gpus<T, V>)};
template <class T, class V>
inline const Codelet<AdvanceArgs, AdvancePorts<AsPorts, T, V>> advance{
    name_for<T, V>("cg_advance"), cpu::advance<T, V>, ASTERISM_CUDA_KERNEL(cuda::advance<T, V>)};
template <class T, class V>
inline const Codelet<AdvanceArgs, PipelinedPorts<AsPorts, T, V>> advance_pipelined{
    name_for<T, V>("cg_advance_pipelined"), cpu::advance_pipelined<T, V>,
    ASTERISM_CUDA_KERNEL(cuda::advance_pipelined<T, V>)};
template <class T, class V>
inline const Codelet<PolynomialArgs, PolynomialPorts<AsPorts, T, V>> polynomial_step{
    name_for<T, V>("polynomial_step"), cpu::polynomial_step<T, V>,
    ASTERISM_CUDA_KERNEL(cuda::polynomial_step<T, V>)};
template <class T, class V>
inline const Codelet<TriangularArgs, TriangularPorts<AsPorts, T, V>> triangular_stages{
    name_for<T, V>("triangular_stages"), cpu::triangular_stages<T, V>,
    ASTERISM_CUDA_KERNEL(cuda::triangular_stages<T, V>)};
template <class T>
inline const Codelet<DotArgs, DotPorts<AsPorts, T>> dot{typed_name<T>("sparse_dot"), cpu::dot<T>,
                                                        ASTERISM_CUDA_KERNEL(cuda::dot<T>)};

/// A copy of a state, for the host to look at while the iteration goes on.
inline const Codelet<NoArgs, In<CgState>, Out<CgState>> show{
    "cg_show", +[](In<CgState> state, Out<CgState> shown) { *shown.data = *state.data; },
    ASTERISM_CUDA_KERNEL(cuda::show)};
inline const Codelet<NextStateArgs, NextStatePorts<AsPorts>> show_next{"cg_show_next", cpu::show_next,
                                                                       ASTERISM_CUDA_KERNEL(cuda::show_next)};

}  // namespace asterism::sparse::codelets
