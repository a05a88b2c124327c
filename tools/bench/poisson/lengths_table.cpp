#include "lengths_table.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "../../../algorithms/poisson/solver.hpp"
#include "../../poisson/report.hpp"

namespace asterism::tools {
namespace {

struct LengthsCase {
  std::vector<Index> shape;
  const char* what;  ///< of the FFT's length n + 1 between Dirichlet ends
};

/// Cubes and squares that people choose, and those that FFTs like.
const std::vector<LengthsCase>& cases() {
  static const std::vector<LengthsCase> all = {
      {{511, 511}, "2^9"},
      {{500, 500}, "3 167"},
      {{1023, 1023}, "2^10"},
      {{1000, 1000}, "7 11 13"},
      {{1457, 1457}, "2 3^6"},
      {{1458, 1458}, "1459, prime"},
      {{2047, 2047}, "2^11"},
      {{2000, 2000}, "3 23 29"},
      {{4095, 4095}, "2^12"},
      {{4096, 4096}, "17 241"},
      {{5000, 5000}, "3 1667"},
      {{6000, 6000}, "17 353"},
      {{8191, 8191}, "2^13"},
      {{8192, 8192}, "3 2731"},
      {{10'000, 10'000}, "73 137"},
      {{10'006, 10'006}, "10007, prime"},
      {{12'011, 12'011}, "2^2 3 7 11 13"},
      {{15'000, 15'000}, "7 2143"},
      {{16'000, 16'000}, "16001, prime"},
      {{127, 127, 127}, "2^7"},
      {{255, 255, 255}, "2^8"},
      {{256, 256, 256}, "257, prime"},
      {{511, 511, 511}, "2^9"},
      {{512, 512, 512}, "3^3 19"},
      {{600, 600, 600}, "601, prime"},
      {{1000, 1000, 1000}, "7 11 13"},
  };
  return all;
}

double cells_of(const LengthsCase& grid) {
  double cells = 1;
  for (const Index n : grid.shape) cells *= static_cast<double>(n);
  return cells;
}

/// On cores a solve of more takes longer than one wants to wait; on GPUs tiles, working memory and what the check needs
/// take less than three grids.
bool has_room(const Runtime& runtime, const LengthsCase& grid, Precision precision) {
  constexpr double most_on_cores = 5000.0 * 5000.0, grids = 3;
  const Machine machine = runtime.machine();
  const double room = std::min(static_cast<double>(machine.capacity(MemoryKind::gpu)),
                               static_cast<double>(physical_memory()));
  return machine.count(WorkerKind::cuda) == 0
             ? cells_of(grid) <= most_on_cores
             : grids * cells_of(grid) * static_cast<double>(bytes_of(precision)) <= room;
}

struct LengthsFigures {
  double gcells_per_second, residual;  ///< the latter in units of rounding
};

template <class T>
LengthsFigures measure(Runtime& runtime, const PoissonProblemOptions& problem, const Repetition& repetition,
                       const LengthsCase& grid) {
  PoissonProblemOptions of_grid = problem;
  of_grid.grid.grid = grid.shape;
  const Fastest fastest = fastest_solve<poisson::Solver, T>(runtime, repetition, state_poisson(of_grid));
  return {cells_of(grid) / fastest.seconds / 1e9, fastest.scaled_residual / roundoff(precision_of<T>)};
}

}  // namespace

void print_lengths_table(Runtime& runtime, const PoissonProblemOptions& problem, const Repetition& repetition,
                         std::optional<Precision> precision, Figures& figures) {
  std::vector<Precision> precisions{Precision::f64, Precision::f32};
  if (precision) precisions = {*precision};
  figures.print("\n{:<20} {:<14}", "grid", "n + 1");
  for (const Precision p : precisions) figures.print(" {:>12} {:>8}", to_string(p) + " Gcell/s", "res/eps");
  figures.print("\n");
  nlohmann::ordered_json grids = nlohmann::ordered_json::array();
  for (const LengthsCase& grid : cases()) {
    nlohmann::ordered_json known{{"grid", poisson::to_string(grid.shape)}, {"fft_length", grid.what}};
    figures.print("{:<20} {:<14}", poisson::to_string(grid.shape), grid.what);
    for (const Precision p : precisions) {
      if (!has_room(runtime, grid, p)) {
        figures.print(" {:>12} {:>8}", "-", "-");
        continue;
      }
      const LengthsFigures found =
          in_precision(p, [&]<class T>() { return measure<T>(runtime, problem, repetition, grid); });
      figures.print(" {:>12.2f} {:>8.2f}", found.gcells_per_second, found.residual);
      known[to_string(p)] = {{"gcells_per_second", found.gcells_per_second},
                             {"scaled_residual_eps", found.residual}};
    }
    figures.print("\n");
    grids.push_back(known);
  }
  figures.note("grids", grids);
}

}  // namespace asterism::tools
