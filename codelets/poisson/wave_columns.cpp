#include "wave_columns.hpp"

#include <vector>

namespace asterism::poisson::cpu {
namespace {

/// Columns that are worked on together, so that loops over them vectorise and their state stays in the cache.
constexpr Index wave_strip_columns = 16;

/// One amplitude of every column of a strip.
struct StripWaves {
  double re[wave_strip_columns], im[wave_strip_columns];

  [[nodiscard]] Wave get(Index w) const { return {re[w], im[w]}; }
  void set(Index w, const Wave& wave) {
    re[w] = wave.re;
    im[w] = wave.im;
  }
};

struct StripEmitters {
  StripWaves emitted_before, emitted_after, before, through, after;

  [[nodiscard]] Emitter get(Index w) const {
    return {emitted_before.get(w), emitted_after.get(w), {before.get(w), through.get(w), after.get(w)}};
  }
  void set(Index w, const Emitter& e) {
    emitted_before.set(w, e.emitted_before);
    emitted_after.set(w, e.emitted_after);
    before.set(w, e.scattering.before);
    through.set(w, e.scattering.through);
    after.set(w, e.scattering.after);
  }
};

Out<double> out(const InOut<double>& tile) { return {tile.data, tile.rows, tile.cols, tile.ld}; }
In<double> in(const InOut<double>& tile) { return {tile.data, tile.rows, tile.cols, tile.ld}; }

/// The rows of cpu::reduce's state.
constexpr Index emitted_before_row = 0, emitted_after_row = 2, through_row = 4, after_row = 6;

}  // namespace

void respond_waves(In<double> axis, In<double> mu, Out<double> response) {
  for_each_strip(mu, Regime::waves, wave_strip_columns, [&](Index k, Index columns) {
    StripEmitters strip;
    for (Index w = 0; w < columns; ++w) strip.set(w, Emitter{});
    for (Index i = 0; i < axis.rows; ++i)
      for (Index w = 0; w < columns; ++w) {
        Emitter e = strip.get(w);
        e.append(rung_at(axis, i, mu, k + w, 0.0));
        strip.set(w, e);
      }
    for (Index w = 0; w < columns; ++w)
      put(response, 0, k + w, strip.get(w).scattering, mu.row(impedance_row)[k + w]);
  });
}

template <class T>
void reduce_waves(In<T> lines, In<double> axis, In<double> mu, double scale, InOut<double> state,
                  Segment segment) {
  for_each_strip(mu, Regime::waves, wave_strip_columns, [&](Index k, Index columns) {
    StripEmitters strip;
    for (Index w = 0; w < columns; ++w) {
      Emitter e;
      if (segment == Segment::append)  // what returns before the segment is the response's business
        e = {wave_at(in(state), emitted_before_row, k + w),
             wave_at(in(state), emitted_after_row, k + w),
             {{}, wave_at(in(state), through_row, k + w), wave_at(in(state), after_row, k + w)}};
      strip.set(w, e);
    }
    for (Index i = 0; i < lines.rows; ++i) {
      const T* const f = lines.row(i) + k;
      for (Index w = 0; w < columns; ++w) {
        Emitter e = strip.get(w);
        e.append(rung_at(axis, i, mu, k + w, scale * static_cast<double>(f[w])));
        strip.set(w, e);
      }
    }
    for (Index w = 0; w < columns; ++w) {
      const Emitter e = strip.get(w);
      put(out(state), emitted_before_row, k + w, e.emitted_before);
      put(out(state), emitted_after_row, k + w, e.emitted_after);
      put(out(state), through_row, k + w, e.scattering.through);
      put(out(state), after_row, k + w, e.scattering.after);
    }
  });
}

template <class T>
void solve_waves(InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
                 In<double> after) {
  static thread_local std::vector<StripWaves> amplitudes, reflections;  // what lies before each row
  for_each_strip(mu, Regime::waves, wave_strip_columns, [&](Index k, Index columns) {
    const auto rows = static_cast<std::size_t>(lines.rows);
    amplitudes.resize(rows);
    reflections.resize(rows);
    StripWaves amplitude, reflection, left;
    for (Index w = 0; w < columns; ++w) {
      const Beyond start = beyond_at(before, k + w);
      amplitude.set(w, start.amplitude);
      reflection.set(w, start.reflection);
    }
    const auto pivot = [&](Index i, Index w, double f) {
      const auto j = static_cast<std::size_t>(i);
      return RungPivot({amplitudes[j].get(w), reflections[j].get(w)}, rung_at(axis, i, mu, k + w, scale * f));
    };
    for (Index i = 0; i < lines.rows; ++i) {
      const T* const f = lines.row(i) + k;
      amplitudes[static_cast<std::size_t>(i)] = amplitude;
      reflections[static_cast<std::size_t>(i)] = reflection;
      for (Index w = 0; w < columns; ++w) {
        const Beyond next = pivot(i, w, static_cast<double>(f[w])).after();
        amplitude.set(w, next.amplitude);
        reflection.set(w, next.reflection);
      }
    }
    for (Index w = 0; w < columns; ++w)
      left.set(w, poisson::meet({amplitude.get(w), reflection.get(w)}, beyond_at(after, k + w)).left);
    for (Index i = lines.rows - 1; i >= 0; --i) {
      T* const v = lines.row(i) + k;
      for (Index w = 0; w < columns; ++w) {
        const RungPivot row = pivot(i, w, static_cast<double>(v[w]));
        const Wave l = row.substitute(left.get(w));
        v[w] = static_cast<T>(row.unknown(l));
        left.set(w, l);
      }
    }
  });
}

template void reduce_waves(In<float>, In<double>, In<double>, double, InOut<double>, Segment);
template void reduce_waves(In<double>, In<double>, In<double>, double, InOut<double>, Segment);
template void solve_waves(InOut<float>, In<double>, In<double>, double, In<double>, In<double>);
template void solve_waves(InOut<double>, In<double>, In<double>, double, In<double>, In<double>);

}  // namespace asterism::poisson::cpu
