#include "solver.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "../common/iteration/iteration.hpp"
#include "../common/workers.hpp"

namespace asterism::wavefront {
namespace {

/// A cooperative kernel is for one GPU.
const Hints on_first_gpu = [] {
  Hints hints;
  hints.where = Where::cuda;
  hints.worker = 0;
  return hints;
}();

}  // namespace

template <class T>
Solver<T>::Solver(Runtime& runtime, const Problem& problem, const Settings& settings)
    : runtime_(runtime),
      settings_(completed(problem, settings)),
      discretisation_(discretise(problem)),
      grid_(sweeps_at_once(problem, settings_)),
      sides_(problem.sides) {
  const Machine machine = runtime.machine();
  if (machine.ranks > 1)
    throw Error(fmt::format(
        "wavefronts run on one rank, there are {}: start the program without mpirun, or choose a method "
        "by colours",
        machine.ranks));
  if (sides_.empty()) sides_.resize(problem.shape.size());
  grid_.omega = *settings_.omega;
  on_gpu_ = machine.count(WorkerKind::cuda) > 0;
  choose_layout(machine);
  make_tiles();
}

template <class T>
void Solver<T>::choose_layout(const Machine& machine) {
  if (on_gpu_) {
    const GpuLayout made = layout_on_gpu<T>(runtime_, grid_, settings_.layout);
    settings_.layout = made.layout;
    most_blocks_ = made.most_blocks;
    height_ = cpu::wavefront_slices(grid_);
  } else {
    settings_.layout = layout_on_cpus(machine, grid_, sizeof(T), settings_.layout);
    tasks_in_memory_ = tasks_in_memory(machine);
    height_ = height_of(*settings_.layout, grid_.dimensions);
  }
  grid_.layout = *settings_.layout;
}

template <class T>
void Solver<T>::make_tiles() {
  u_ = FramedGrid<T>(runtime_, grid_, height_);
  sums_ = Tiles<sums::SquareSum>(runtime_, u_.blocks(), wavefront_sums, 1, wavefront_sums);
  for (Tile<T>& tile : none_) {
    tile = Tile<T>(runtime_, 1, 1);
    HostView<T>(tile, HostView<T>::Access::write)(0, 0) = 0;
  }
  if (!on_gpu_) return;
  meeting_ = Tile<unsigned>(runtime_, 1, cuda::wavefront_scratch);
  work_ = Tile<sums::SquareSum>(runtime_, 1, cuda::wavefront_residual_scratch);
}

template <class T>
void Solver<T>::load(const T* f, const T* u) {
  sweeps_done_ = 0;
  u_.fill(u, sides_);
  grid_.has_source = f != nullptr;
  if (f == nullptr) return;
  if (g_.blocks() == 0) g_ = FramedGrid<T>(runtime_, grid_, height_);
  g_.fill_source(f, discretisation_.diagonal);
}

/// Of a task that is submitted now on a CPU; waits for room for it.
template <class T>
Hints Solver<T>::cpu_hints(Index sweeps) const {
  Hints hints{.where = Where::cpu, .cost = static_cast<std::uint64_t>(sweeps)};
  if (tasks_in_memory_) runtime_.wait_for_room(*tasks_in_memory_);
  return hints;
}

/// So many sweeps, forward ones, or forward and backward in turns.
template <class T>
void Solver<T>::step(Index sweeps) {
  if (settings_.direction == Direction::forward)
    sweep(sweeps, Order::forward);
  else
    for (Index k = 0; k < sweeps; ++k)
      sweep(1, (sweeps_done_ + k) % 2 == 0 ? Order::forward : Order::backward);
  sweeps_done_ += sweeps;
}

template <class T>
void Solver<T>::sweep(Index count, Order order) {
  WavefrontArgs grid = grid_;
  grid.backward = order == Order::backward;
  on_gpu_ ? sweep_on_gpu(grid, count) : sweep_on_cpus(grid, count);
}

/// The kernel goes from one inter-tile wavefront to the next.
template <class T>
void Solver<T>::sweep_on_gpu(WavefrontArgs grid, Index count) {
  grid.layout.blocks = std::min(grid.layout.blocks, most_blocks_[grid.has_source ? 1 : 0]);
  for (Index done = 0; done < count; done += grid.sweeps) {
    grid.sweeps = std::min(grid_.sweeps, count - done);
    codelets::wavefront<T>(grid, u_[0], grid.has_source ? g_[0] : none_[0], meeting_, on_first_gpu);
  }
}

/// Tile by tile in the order of the sequential loop. A tile changes its block and the one before, and reads the next
/// one: so those that lie on a wavefront, two blocks from one band of sweeps to the next, do not wait for each other.
template <class T>
void Solver<T>::sweep_on_cpus(WavefrontArgs grid, Index count) {
  const Index blocks = u_.blocks();
  // Block number k as the sweeps see them, or a tile that is not looked at.
  const auto block_of_u = [&](Index k, std::size_t port) -> const Tile<T>& {
    return k < 0 || k >= blocks ? none_[port] : u_[grid.backward ? blocks - 1 - k : k];
  };
  const auto block_of_g = [&](Index k, std::size_t port) -> const Tile<T>& {
    return k < 0 || k >= blocks || !grid.has_source ? none_[port] : g_[grid.backward ? blocks - 1 - k : k];
  };
  for (Index done = 0; done < count; done += grid.sweeps) {
    grid.sweeps = std::min(grid.layout.tile.sweeps, count - done);
    for (Index number = 0; number <= blocks; ++number)
      codelets::wavefront_slab<T>({grid, height_, number},
                                  {.before = block_of_u(number - 1, 0),
                                   .block = block_of_u(number, 1),
                                   .after = block_of_u(number + 1, 2),
                                   .g_before = block_of_g(number - 1, 3),
                                   .g = block_of_g(number, 4)},
                                  cpu_hints(grid.sweeps));
  }
}

template <class T>
void Solver<T>::submit_residual() {
  const auto source = [&](Index k) -> const Tile<T>& { return grid_.has_source ? g_[k] : none_[0]; };
  if (on_gpu_) {
    codelets::wavefront_residual<T>(grid_, {.u = u_[0], .g = source(0), .sums = sums_[0], .work = work_},
                                    on_first_gpu);
    return;
  }
  for (Index k = 0; k < u_.blocks(); ++k)
    codelets::wavefront_residual_slab<T>({grid_, height_, k},
                                         {.before = k > 0 ? u_[k - 1] : none_[1],
                                          .block = u_[k],
                                          .after = k + 1 < u_.blocks() ? u_[k + 1] : none_[2],
                                          .g = source(k),
                                          .sums = sums_[k]},
                                         cpu_hints());
}

/// Waits for them.
template <class T>
Norms Solver<T>::norms() const {
  using sums::SquareSum;
  runtime_.wait();
  SquareSum squares[wavefront_sums] = {};
  for (Index k = 0; k < sums_.count(); ++k) {
    const HostView<SquareSum> view(sums_[k], HostView<SquareSum>::Access::read);
    for (Index which = 0; which < wavefront_sums; ++which) squares[which] += view(0, which);
  }
  const double diagonal = discretisation_.diagonal;
  return {diagonal * squares[wavefront_residual_squares].root(), squares[wavefront_solution_squares].root(),
          diagonal * squares[wavefront_source_squares].root()};
}

template <class T>
void Solver<T>::require_room_for_source() const {
  if (on_gpu_ && most_blocks_[1] == 0)
    throw Error(
        fmt::format("tiles of {} sweeps x {} points do not fit in a block of the GPU beside a "
                    "right-hand side: choose smaller ones",
                    settings_.layout->tile.sweeps, fmt::join(settings_.layout->tile.points, " x ")));
}

template <class T>
Report Solver<T>::solve(const T* f, T* u) {
  if (f != nullptr) require_room_for_source();
  const StoppingRule rule{
      .tolerance = settings_.tolerance,
      .operator_norm = discretisation_.operator_norm,
      .growth = growth_of_sweeps(grid_.nodes[0] + grid_.nodes[1] + grid_.nodes[2]),
      .spectral_radius = spectral_radius(discretisation_, *settings_.omega, settings_.direction)};
  return iterate(runtime_,
                 {.limit = settings_.sweeps,
                  .check_every = settings_.check_every,
                  .rule = rule,
                  .look = Look::at_once,
                  .observer = settings_.observer},
                 {.load = [&] { load(f, u); },
                  .step = [&](Index sweeps) { step(sweeps); },
                  .submit_residual = [&](Index) { submit_residual(); },
                  .norms = [&](Index) { return norms(); },
                  .store = [&] { u_.store(u); }});
}

template class Solver<float>;
template class Solver<double>;

}  // namespace asterism::wavefront
