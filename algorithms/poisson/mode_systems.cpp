#include "mode_systems.hpp"

#include "../../codelets/poisson/tridiagonal.hpp"
#include "../common/set.hpp"
#include "slabs/partition.hpp"

namespace asterism::poisson {

std::vector<double> mode_eigenvalues(const Grid& grid) {
  const std::vector<double> along_x = grid::eigenvalues(grid.a.x);
  std::vector<double> mu;
  for (const double y : grid::eigenvalues(grid.a.y))
    for (const double x : along_x) mu.push_back(y + x - grid.a.lambda);
  if (grid.has_constants()) mu[0] = 1 / (grid.slow.length * grid.slow.length);
  return mu;
}

ModeTiles mode_tiles(Runtime& runtime, const Grid& grid, int rank, const std::vector<double>& mu, Index first,
                     Index count) {
  const InterfaceRows rows = grid.interface();
  const bool periodic = grid.slow.periodic();
  ModeTiles tiles{{runtime, rows.mu, count, rank},
                  {runtime, periodic ? rows.joined : rows.prefix, count, rank},
                  {runtime, rows.beside, count, rank}};
  const auto mode = [&](Index k) { return mu[static_cast<std::size_t>(first + k)]; };
  const double largest_link = grid::largest_link(grid.rows);
  const auto impedance = [&](Index k) { return poisson::impedance(mode(k), largest_link); };
  set(runtime, tiles.mu, [&](Index row, Index k) { return row == mu_row ? mode(k) : impedance(k); });
  // Zeros, but for waves, where it matters with what an end answers: a value of zero at the end of a link, or no flux.
  const auto reflected = [](const Beyond& beyond, Index row) {
    return row == 2 ? beyond.reflection.re : row == 3 ? beyond.reflection.im : 0.0;
  };
  const double lower = grid.rows.front().before, upper = grid.rows.back().after;
  const auto is_wave = [&](Index k) { return !periodic && mode(k) < 0; };
  set(runtime, tiles.before_axis, [&](Index row, Index k) {
    if (!is_wave(k)) return 0.0;
    return reflected(lower == 0 ? beyond_nothing() : beyond_value(0, impedance(k) / lower), row);
  });
  set(runtime, tiles.after_axis, [&](Index row, Index k) {
    if (!is_wave(k)) return 0.0;
    return reflected(upper == 0 ? beyond_nothing() : beyond_value(0, 0), row);
  });
  return tiles;
}

}  // namespace asterism::poisson
