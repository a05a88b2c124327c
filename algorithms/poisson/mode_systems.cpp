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

Index mode_rows(const Grid& grid) {
  const InterfaceRows rows = grid.interface();
  const bool periodic = grid.slow.periodic();
  return rows.mu + 2 * rows.beside + rows.carried_shown(periodic) + 2 * rows.carried_response(periodic);
}

ModeTiles mode_tiles(Runtime& runtime, const Grid& grid, int rank, const std::vector<double>& mu, Index first,
                     Index count) {
  const InterfaceRows rows = grid.interface();
  const bool periodic = grid.slow.periodic();
  const auto tile = [&](Index height) { return Tile<double>(runtime, height, count, rank); };
  const Index shown = rows.carried_shown(periodic), response = rows.carried_response(periodic);
  ModeTiles tiles{tile(rows.mu), tile(rows.beside), tile(rows.beside),
                  tile(shown),   tile(response),    tile(response)};
  const auto mode = [&](Index k) { return mu[static_cast<std::size_t>(first + k)]; };
  const double largest_link = grid::largest_link(grid.rows);
  const auto impedance = [&](Index k) { return poisson::impedance(mode(k), largest_link); };
  set(runtime, tiles.mu, [&](Index row, Index k) { return row == mu_row ? mode(k) : impedance(k); });
  // For waves it matters with what an end answers: a value of zero at the end of a link, or no flux. Otherwise the value is
  // known, and a prefix without segments has no share of what follows (gamma = 1); joined segments that are none are zeros.
  const double lower_link = grid.rows.front().before, upper_link = grid.rows.back().after;
  const auto is_wave = [&](Index k) { return !periodic && mode(k) < 0; };
  const auto lower = [&](Index k) {
    if (!is_wave(k)) return Wave{};
    return (lower_link == 0 ? beyond_nothing() : beyond_value(0, impedance(k) / lower_link)).reflection;
  };
  const auto upper = [&](Index k) {
    if (!is_wave(k)) return Wave{};
    return (upper_link == 0 ? beyond_nothing() : beyond_value(0, 0)).reflection;
  };
  const auto reflect = [&](const auto& end, const Tile<double>& beyond, const Tile<double>& alone) {
    constexpr Index reflection_row = amplitude_rows;  // of a Beyond
    const auto part = [&](Index row, Index k) { return row == 0 ? end(k).re : row == 1 ? end(k).im : 0.0; };
    set(runtime, beyond,
        [&](Index row, Index k) { return row < reflection_row ? 0.0 : part(row - reflection_row, k); });
    set(runtime, alone, [&](Index row, Index k) {
      return is_wave(k) ? part(row, k) : row == gamma_row && !periodic ? 1.0 : 0.0;
    });
  };
  reflect(lower, tiles.before_axis, tiles.lower_response);
  reflect(upper, tiles.after_axis, tiles.upper_response);
  set(runtime, tiles.shown_by_none, [](Index, Index) { return 0.0; });
  return tiles;
}

}  // namespace asterism::poisson
