#include "schwarz.hpp"

#include <algorithm>

namespace asterism::decomposition::cpu {

template <class T, class V>
void local_solve(const LocalSolveArgs& args, LocalSolvePorts<AsPorts, T, V> ports) {
  for (Index v = 0; v < args.vectors && args.takes; ++v)
    sparse::cpu::unpack(of_vector(ports.arrivals, v), ports.y.row(v));
  T* const y = ports.y.data + args.first;
  solve_factored<T, V>(ports.factors, args.vectors, {y, ports.y.ld}, ports.room.work, {y, ports.y.ld});
  for (Index v = 0; v < args.vectors && args.gives; ++v)
    sparse::cpu::pack(static_cast<const T*>(ports.y.row(v)), of_vector(ports.departures, v));
}

template <class T>
void assemble(const AssembleArgs& args, AssemblePorts<AsPorts, T> ports) {
  T* const z = ports.z.data + args.own;
  if (args.anew) std::fill_n(z, args.rows, T{});
  for (Index k = 0; k < ports.arrivals.packs.size(); ++k) {
    const In<T>& pack = ports.arrivals.packs[k];
    const std::int32_t* const places = ports.arrivals.places[k].data;
    for (Index j = 0; j < pack.cols; ++j) z[places[j]] += pack.data[j];
  }
}

template <class T>
void patch_sums(PatchSumPorts<AsPorts, T> ports) {
  sparse::cpu::unpack(ports.arrivals, ports.work.data);
  for (Index patch = 0; patch < ports.sums.cols; ++patch) {
    double sum = 0;
    for (std::int32_t k = ports.begins.data[patch]; k < ports.begins.data[patch + 1]; ++k)
      sum += static_cast<double>(ports.work.data[ports.members.data[k]]);
    ports.sums.data[patch] = sum;
  }
}

void coarse_solve(CoarseSolvePorts<AsPorts> ports) {
  double* next = ports.values.data;
  for (const In<double>& sums : ports.sums) next = std::copy_n(sums.data, sums.cols, next);
  const Rows<double> values{ports.values.data, ports.values.ld};
  solve_factored<double, double>(ports.factors, 1, {values.data, values.ld}, ports.room.work, values);
}

template <class T>
void spread(const SpreadArgs& args, SpreadPorts<AsPorts, T> ports) {
  for (Index i = 0; i < ports.patches.cols; ++i)
    ports.y.data[i] = static_cast<T>(ports.values.data[args.first + ports.patches.data[i]]);
  sparse::cpu::pack(static_cast<const T*>(ports.y.data), ports.departures);
}

template <class T>
void correct(const CorrectArgs& args, In<T> z, InOut<T> x) {
  for (Index i = 0; i < x.cols; ++i) x.data[i] += z.data[args.own + i];
}

void add_up_all(Many<In<double>> parts, Out<double> sum) {
  sum.data[0] = 0;
  for (const In<double>& part : parts)
    for (Index i = 0; i < part.cols; ++i) sum.data[0] += part.data[i];
}

template void local_solve(const LocalSolveArgs&, LocalSolvePorts<AsPorts, float, float>);
template void local_solve(const LocalSolveArgs&, LocalSolvePorts<AsPorts, double, float>);
template void local_solve(const LocalSolveArgs&, LocalSolvePorts<AsPorts, double, double>);
#define ASTERISM_INSTANTIATE(T)                                           \
  template void assemble(const AssembleArgs&, AssemblePorts<AsPorts, T>); \
  template void patch_sums(PatchSumPorts<AsPorts, T>);                    \
  template void spread(const SpreadArgs&, SpreadPorts<AsPorts, T>);       \
  template void correct(const CorrectArgs&, In<T>, InOut<T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::decomposition::cpu
