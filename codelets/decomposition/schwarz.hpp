/// \file
/// Additive Schwarz methods over subdomains, each of which has its own rows and, where they overlap, its neighbours':
///
///     (Z1)  restricted: z = sum_p R~_p^T L_p^-1 R_p r; symmetric: z = sum_p R_p^T L_p^-1 R_p r.
///           R_p takes the rows of a subdomain with its overlap, R~_p^T gives back its own ones only; L_p = R_p A R_p^T,
///           or, weighted, W_p^-1 R_p A R_p^T W_p^-1 with W_p^2 R_p = R_p (sum_q R_q^T R_q)^-1: one over the counts of
///           subdomains that have each row.
///     (Z2)  coarse: z = Q r = Z (Z^T A Z)^-1 Z^T r. A column of Z is 1 on the own rows of a patch, a part of a subdomain.
#pragma once

#include "../sparse/exchange.hpp"
#include "factors.hpp"

namespace asterism::decomposition {

using sparse::Arrivals;
using sparse::Departures;

/// y = L_p^-1 r, r from blocks of rows; what of y goes back. Of several subdomains r and y are one behind the other. Of
/// several vectors, each a row of y, the packs of the first come first, and so on; their places are the same.
struct LocalSolveArgs {
  Index vectors = 1;
  // Of subdomains whose factors come one after the other: which ones these are.
  Index first = 0;                  ///< where they begin in y
  bool takes = true, gives = true;  ///< whether they are the first ones and the last ones: r comes, y goes
};
template <template <class> class As, class T, class V>
struct LocalSolvePorts {
  Arrivals<As, T> arrivals;
  FactorPorts<As, V> factors;
  SolveRoom<As, V> room;
  As<InOut<T>> y;
  Departures<As, T> departures;
};

/// The part of a vector in packs for several.
template <template <template <class> class, class> class Side, class T>
Side<AsPorts, T> of_vector(const Side<AsPorts, T>& all, Index vector) {
  Side<AsPorts, T> its = all;
  its.packs.count = all.places.count;
  its.packs.views += vector * all.places.count;
  return its;
}

/// z = what subdomains send, added in the order of the packs, of which none has a place twice.
struct AssembleArgs {
  Index own = 0, rows = 0;  ///< where a block's own elements begin in z, and how many they are
  bool anew = true;         ///< else it is added to what z has
};
template <template <class> class As, class T>
struct AssemblePorts {
  Arrivals<As, T> arrivals;
  As<InOut<T>> z;
};

/// (Z2): the sums of r over patches. @param members own rows, patch by patch @param begins where a patch begins in them,
/// and the end
template <template <class> class As, class T>
struct PatchSumPorts {
  Arrivals<As, T> arrivals;
  As<In<std::int32_t>> members, begins;
  As<Scratch<T>> work;
  As<Out<double>> sums;
};
/// (Z2): the values of all patches.
template <template <class> class As>
struct CoarseSolvePorts {
  As<Many<In<double>>> sums;
  FactorPorts<As, double> factors;
  SolveRoom<As, double> room;
  As<Out<double>> values;
};
/// (Z2): values of patches for subdomains' own rows.
struct SpreadArgs {
  Index first = 0;  ///< of the subdomains' patches
};
/// @param patches of own rows, counted from the first
template <template <class> class As, class T>
struct SpreadPorts {
  As<In<double>> values;
  As<In<std::int32_t>> patches;
  As<Out<T>> y;
  Departures<As, T> departures;
};

/// x += z. @param own where z begins
struct CorrectArgs {
  Index own = 0;
};

namespace cpu {
template <class T, class V>
void local_solve(const LocalSolveArgs& args, LocalSolvePorts<AsPorts, T, V> ports);
template <class T>
void assemble(const AssembleArgs& args, AssemblePorts<AsPorts, T> ports);
template <class T>
void patch_sums(PatchSumPorts<AsPorts, T> ports);
void coarse_solve(CoarseSolvePorts<AsPorts> ports);
template <class T>
void spread(const SpreadArgs& args, SpreadPorts<AsPorts, T> ports);
template <class T>
void correct(const CorrectArgs& args, In<T> z, InOut<T> x);
/// The sum of all elements, in their order.
void add_up_all(Many<In<double>> parts, Out<double> sum);
}  // namespace cpu

namespace cuda {
template <class T, class V>
void local_solve(Stream stream, const LocalSolveArgs& args, LocalSolvePorts<AsPorts, T, V> ports);
template <class T>
void assemble(Stream stream, const AssembleArgs& args, AssemblePorts<AsPorts, T> ports);
template <class T>
void patch_sums(Stream stream, PatchSumPorts<AsPorts, T> ports);
void coarse_solve(Stream stream, CoarseSolvePorts<AsPorts> ports);
template <class T>
void spread(Stream stream, const SpreadArgs& args, SpreadPorts<AsPorts, T> ports);
template <class T>
void correct(Stream stream, const CorrectArgs& args, In<T> z, InOut<T> x);
}  // namespace cuda

namespace codelets {
template <class T, class V>
inline const Codelet<LocalSolveArgs, LocalSolvePorts<AsPorts, T, V>> local_solve{
    typed_name<V>("local_solve") + (sizeof(T) == sizeof(V) ? "" : "_of_f64"), cpu::local_solve<T, V>,
    ASTERISM_CUDA_KERNEL(cuda::local_solve<T, V>)};
template <class T>
inline const Codelet<AssembleArgs, AssemblePorts<AsPorts, T>> assemble{
    typed_name<T>("assemble"), cpu::assemble<T>, ASTERISM_CUDA_KERNEL(cuda::assemble<T>)};
template <class T>
inline const Codelet<NoArgs, PatchSumPorts<AsPorts, T>> patch_sums{
    typed_name<T>("patch_sums"), cpu::patch_sums<T>, ASTERISM_CUDA_KERNEL(cuda::patch_sums<T>)};
inline const Codelet<NoArgs, CoarseSolvePorts<AsPorts>> coarse_solve{
    "coarse_solve", cpu::coarse_solve, ASTERISM_CUDA_KERNEL(cuda::coarse_solve)};
template <class T>
inline const Codelet<SpreadArgs, SpreadPorts<AsPorts, T>> spread{typed_name<T>("spread"), cpu::spread<T>,
                                                                 ASTERISM_CUDA_KERNEL(cuda::spread<T>)};
template <class T>
inline const Codelet<CorrectArgs, In<T>, InOut<T>> correct{typed_name<T>("correct"), cpu::correct<T>,
                                                           ASTERISM_CUDA_KERNEL(cuda::correct<T>)};
inline const Codelet<NoArgs, Many<In<double>>, Out<double>> add_up_all{"add_up_all", cpu::add_up_all};
}  // namespace codelets

}  // namespace asterism::decomposition
