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

namespace {

/// Calls body(row) for the rows of a stage. Where a row needs the one before, which takes longer than its own arithmetic,
/// two groups, which need nothing of each other, take turns; with more of them there are too many streams.
template <class Body>
void for_each_row(const Stages& stages, Index stage, Half half, Body body) {
  struct Rows {
    Index next, left;
  };
  const Index step = half == Half::forward ? 1 : -1;
  const auto rows_of = [&](Index group) {
    const std::int32_t* const begins = stages.begins.data() + group * (stages.stages + 1) + stage;
    return Rows{half == Half::forward ? begins[0] : begins[1] - 1, begins[1] - begins[0]};
  };
  for (Index g = 0; g < stages.groups;) {
    Rows one = rows_of(g++), other{};
    if (stages.in_order && g < stages.groups) other = rows_of(g++);
    for (; one.left > 0 && other.left > 0; --one.left, --other.left, one.next += step, other.next += step) {
      body(one.next);
      body(other.next);
    }
    for (; one.left > 0; --one.left, one.next += step) body(one.next);
    for (; other.left > 0; --other.left, other.next += step) body(other.next);
  }
}

}  // namespace

template <class T, class V>
void triangular_stages(const TriangularArgs& args, TriangularPorts<AsPorts, T, V> ports) {
  unpack(ports.arrivals, ports.z.data);
  T* const all = ports.z.data;
  T* const z = all + args.shape.own;
  with_rows<V>(args.shape, ports.factor, [&](const auto& factor) {
    if (args.half == Half::forward) {
      for (Index stage = args.first_stage; stage < args.end_stage; ++stage)
        for_each_row(args.stages, stage, args.half, [factor, all, z, r = ports.r.data](Index i) {
          z[i] = r[i];  // padding reads it
          z[i] -= factor.product(i, all);
        });
    } else {
      for (Index stage = args.end_stage; stage-- > args.first_stage;)
        for_each_row(args.stages, stage, args.half,
                     [factor, all, z, d = ports.inverse_diagonal.data](Index i) {
                       z[i] = static_cast<T>(d[i]) * z[i] - factor.product(i, all);
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
