#include "arguments.hpp"

namespace asterism::relaxation {
namespace {

Sweep sweep_of(Method method) { return method == Method::ssor ? Sweep::symmetric : Sweep::red_black; }

}  // namespace

Index ghost_rows(Method method, Index sweeps) {
  return method == Method::jacobi ? jacobi_reach(sweeps) : reach(sweep_of(method), sweeps);
}

Index least_rows(const Settings& settings, Index sweeps) {
  if (settings.exchange == Exchange::stale) return 1;
  return (settings.exchange == Exchange::overlapped ? 2 : 1) * ghost_rows(settings.method, sweeps);
}

JacobiArgs jacobi_args(const Discretisation& grid, const Stripe& stripe, Index sweeps, bool has_source) {
  return {stripe, grid.along_y, grid.along_x, sweeps, has_source};
}

ColourArgs colour_args(const Discretisation& grid, const Stripe& stripe, Index sweeps, bool has_source,
                       const Settings& settings) {
  return {.stripe = stripe,
          .along_y = grid.along_y,
          .along_x = grid.along_x,
          .omega = *settings.omega,
          .sweeps = sweeps,
          .sweep = sweep_of(settings.method),
          .has_source = has_source,
          .stale_ghosts = settings.exchange == Exchange::stale};
}

}  // namespace asterism::relaxation
