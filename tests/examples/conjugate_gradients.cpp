// The conjugate gradient method on a sparse matrix in blocks of rows, dot products as tasks: five-point differences on a
// square of m x m nodes, b = A * ones.
#include <asterism/runtime/per_rank.hpp>
#include <asterism/runtime/run.hpp>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>
#include "conjugate_gradients_steps.hpp"

const Codelet product{"multiply", multiply_on_core, ASTERISM_CUDA_KERNEL(multiply_on_gpu)};
const Codelet start{"begin", begin, ASTERISM_CUDA_KERNEL(OnGpu<begin>::launch)};
const Codelet step{"descend", descend, ASTERISM_CUDA_KERNEL(OnGpu<descend>::launch)};
const Codelet new_direction{"turn", turn, ASTERISM_CUDA_KERNEL(OnGpu<turn>::launch)};

double sum(Many<In<double>> parts) {  // in their order: the same bits on all ranks
  double all = 0;
  for (const In<double>& part : parts) all += *part.data;
  return all;
}
const auto first_state = codelet("first_state", [](Many<In<double>> rr, Out<State> s) { *s.data = {sum(rr), 0, 0}; });
const auto step_length = codelet("step_length", [](Many<In<double>> pq, InOut<State> s) {
  s.data->alpha = s.data->rr / sum(pq);
});
const auto turn_by = codelet("turn_by", [](Many<In<double>> rr, InOut<State> s) {
  const double before = s.data->rr;
  s.data->rr = sum(rr), s.data->beta = s.data->rr / before;
});

int main() {
  return run({}, [](Runtime& runtime) {
    constexpr Index m = 120, n = m * m, height = (n + blocks - 1) / blocks;
    const Tiles<double>::Owner owner = [&](Index, Index k) { return int(k * runtime.ranks() / blocks); };
    const auto vector = [&] { return Tiles<double>(runtime, 1, n, 1, height, owner); };
    const auto numbers = [&] { return Tiles<double>(runtime, 1, blocks, 1, 1, owner); };
    const Tiles<double> b = vector(), x = vector(), r = vector(), p = vector(), q = vector(), rr = numbers(), pq = numbers();
    const PerRank<State> state(runtime, 1, 1);
    std::vector<Tile<std::int64_t>> starts;
    std::vector<Tile<std::int32_t>> columns;
    std::vector<Tile<double>> values;
    for (Index k = 0; k < blocks; ++k) {  // A's rows, where they belong; b = A * ones
      std::vector<std::int64_t> s{0};
      std::vector<std::int32_t> c;
      std::vector<double> v, sums;
      for (Index row = k * height; row < std::min(n, (k + 1) * height); ++row) {
        const Index i = row / m, j = row % m;
        for (const auto& [there, column] : {std::pair(i > 0, row - m), {j > 0, row - 1}, {true, row},
                                            {j + 1 < m, row + 1}, {i + 1 < m, row + m}})
          if (there) c.push_back(std::int32_t(column)), v.push_back(column == row ? 4 : -1);
        sums.push_back(std::accumulate(v.begin() + s.back(), v.end(), 0.));
        s.push_back(std::int64_t(v.size()));
      }
      const auto fill = [&](const auto& from, auto& tile) {
        set(runtime, tile, [&](Index, Index j) { return from[std::size_t(j)]; });
      };
      fill(s, starts.emplace_back(runtime, 1, Index(s.size()), b[k].owner()));
      fill(c, columns.emplace_back(runtime, 1, Index(c.size()), b[k].owner()));
      fill(v, values.emplace_back(runtime, 1, Index(v.size()), b[k].owner()));
      set(runtime, b[k], [&](Index, Index j) { return sums[std::size_t(j)]; });
    }

    for (Index k = 0; k < blocks; ++k) start(b[k], x[k], r[k], p[k], rr[k]);
    for (const Tile<State>& s : state) first_state(rr, s);
    double first = 0;
    Index iteration = 0;
    Snapshot<State> look(state[0]);  // of 20 iterations ago: there are always tasks to be done
    for (; iteration < 2000; ++iteration) {
      for (Index k = 0; k < blocks; ++k)
        product({k, height}, {.a = {.starts = starts[k], .columns = columns[k], .values = values[k]},
                              .p = p, .q = q[k], .pq = pq[k]});
      for (const Tile<State>& s : state) step_length(pq, s);
      for (Index k = 0; k < blocks; ++k) step(state[b[k].owner()], p[k], q[k], x[k], r[k], rr[k]);
      for (const Tile<State>& s : state) turn_by(rr, s);
      for (Index k = 0; k < blocks; ++k) new_direction(state[b[k].owner()], r[k], p[k]);
      if (iteration % 20 != 19) continue;
      if (first == 0) first = look(0, 0).rr;
      if (look(0, 0).rr <= 1e-20 * first) break;
      look = Snapshot<State>(state[0]);
    }
    double error = 0;
    for (const double value : gather(x)) error = std::abs(value - 1) <= error ? error : std::abs(value - 1);  // nor NaN
    if (runtime.rank() == 0) std::printf("%d iterations, largest error %.1e\n", int(iteration), error);
    return error < 1e-8 ? 0 : 1;
  });
}
