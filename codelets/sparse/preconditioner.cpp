#include "preconditioner.hpp"

#include "unit_sums.hpp"

namespace asterism::sparse::cpu {

template <class T, class V>
void polynomial_step(const PolynomialArgs& args, PolynomialPorts<AsPorts, T, V> ports) {
  const Index own = args.shape.own, rows = args.shape.rows;
  const T gamma = static_cast<T>(args.first ? 0 : args.step.gamma), delta = static_cast<T>(args.step.delta);
  unpack(ports.arrivals, ports.z.data);
  const T* const z = ports.z.data + own;
  T* const next = ports.next.data + own;
  T* const s = ports.s.data;
  const V* const d = ports.inverse_diagonal.data;
  with_rows<V>(args.shape, ports.matrix, [&](const auto& matrix) {
    for_each_chunk(args.unit, rows, [&](Index first, Index end) {
      T az[chunk_rows];
      if (args.first)
        std::fill_n(az, end - first, T{});
      else
        products(matrix, first, end, ports.z.data, az);
      for (Index i = first; i < end; ++i) {
        const T residual = ports.r.data[i] - az[i - first];
        T step = delta * (d != nullptr ? static_cast<T>(d[i]) * residual : residual);
        if (s != nullptr) {
          if (!args.first) step += gamma * s[i];
          s[i] = step;
        }
        next[i] = args.first ? step : z[i] + step;
      }
    });
  });
  if (ports.rz)
    sum_units(args.unit, rows, ports.rz.data,
              [&](Index first, Index end) { return dot<T>(ports.r.data, next, first, end); });
  pack(next, ports.departures);
}

template <class T, class V>
void triangular_stages(const TriangularArgs& args, TriangularPorts<AsPorts, T, V> ports) {
  unpack(ports.arrivals, ports.z.data);
  T* const all = ports.z.data;
  T* const z = all + args.shape.own;
  const Stages& stages = args.stages;
  const auto for_each_group = [&](Index stage, auto body) {
    for (Index g = 0; g < stages.groups; ++g) {
      const std::int32_t* const begins = stages.begins.data() + g * (stages.stages + 1) + stage;
      body(begins[0], begins[1]);
    }
  };
  with_rows<V>(args.shape, ports.factor, [&](const auto& factor) {
    if (args.half == Half::forward) {
      for (Index stage = args.first_stage; stage < args.end_stage; ++stage)
        for_each_group(stage, [&](Index first, Index end) {
          for (Index i = first; i < end; ++i) {
            z[i] = ports.r.data[i];  // padding reads it
            z[i] -= factor.product(i, all);
          }
        });
    } else {
      for (Index stage = args.end_stage; stage-- > args.first_stage;)
        for_each_group(stage, [&](Index first, Index end) {
          for (Index i = end; i-- > first;)  // from the last, for factors whose rows are all in one stage
            z[i] = static_cast<T>(ports.inverse_diagonal.data[i]) * z[i] - factor.product(i, all);
        });
    }
  });
  pack(z, ports.departures);
}

template <class T>
void dot(const DotArgs& args, DotPorts<AsPorts, T> ports) {
  const T* const b = ports.b.data + args.b_own;
  sum_units(args.unit, ports.a.cols, ports.sums.data,
            [&](Index first, Index end) { return dot<T>(ports.a.data, b, first, end); });
}

#define ASTERISM_INSTANTIATE(T, V)                                                      \
  template void polynomial_step(const PolynomialArgs&, PolynomialPorts<AsPorts, T, V>); \
  template void triangular_stages(const TriangularArgs&, TriangularPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE
template void dot(const DotArgs&, DotPorts<AsPorts, float>);
template void dot(const DotArgs&, DotPorts<AsPorts, double>);

}  // namespace asterism::sparse::cpu
