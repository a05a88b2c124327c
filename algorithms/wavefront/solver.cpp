#include "solver.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "../common/convergence.hpp"
#include "../common/stopwatch.hpp"
#include "../relaxation/problem.hpp"
#include "../relaxation/stripes.hpp"

namespace asterism::wavefront {
namespace {

void require_sound(const Problem& p) {
  constexpr Index limit = Index{1} << 29;  // the schedule counts nodes and sweeps in 32 bits
  if (p.shape.empty() || p.shape.size() > 3)
    throw Error(fmt::format("the grid has {} axes: wavefronts are for grids of 1 to 3", p.shape.size()));
  for (const Index n : p.shape) {
    if (n < 1)
      throw Error(fmt::format("grid is {}: every extent must be at least 1", fmt::join(p.shape, " x ")));
    if (n > limit)
      throw Error(fmt::format("grid is {}: no extent may be above {}", fmt::join(p.shape, " x "), limit));
  }
  if (!p.lengths.empty() && p.lengths.size() != p.shape.size())
    throw Error(fmt::format("{} lengths for {} axes: give one for each", p.lengths.size(), p.shape.size()));
  for (const double length : p.lengths)
    if (!std::isfinite(length) || length <= 0)
      throw Error(
          fmt::format("lengths are {}: all must be positive and finite", fmt::join(p.lengths, " x ")));
  if (!p.sides.empty() && p.sides.size() != p.shape.size())
    throw Error(fmt::format("values on the sides of {} axes, there are {}: give them for each",
                            p.sides.size(), p.shape.size()));
  for (const Problem::Sides& sides : p.sides)
    for (const double value : {sides.lower, sides.upper})
      if (!std::isfinite(value))
        throw Error(fmt::format("the value on a side is {}: it must be finite", value));
}

void require_sound(const Settings& s) {
  if (s.omega && !(*s.omega > 0 && *s.omega < 2))
    throw Error(fmt::format("omega is {}: SOR converges for 0 < omega < 2 only", *s.omega));
  if (s.sweeps < 0 || s.check_every < 0)
    throw Error(fmt::format("{} sweeps, a residual every {}: the numbers cannot be negative", s.sweeps,
                            s.check_every));
  relaxation::require_end(s.sweeps, s.tolerance);
}

/// (W1) on a grid.
struct Discretisation {
  WavefrontArgs grid;
  double diagonal;
  double jacobi_gap;     ///< 1 - rho, rho = sum of 2 a_axis cos(pi / (n_axis + 1)), to full accuracy
  double operator_norm;  ///< ||A||_inf
};

Discretisation discretise(const Problem& p) {
  Discretisation made{};
  WavefrontArgs& grid = made.grid;
  grid.dimensions = static_cast<int>(p.shape.size());
  const std::size_t first = 3 - p.shape.size();
  for (std::size_t axis = first; axis < 3; ++axis) {
    grid.nodes[axis] = p.shape[axis - first];
    const double intervals = static_cast<double>(grid.nodes[axis] + 1);
    const double h = (p.lengths.empty() ? 1 : p.lengths[axis - first]) / intervals;
    grid.along[axis] = 1 / (h * h);
    made.diagonal += 2 / (h * h);
  }
  made.operator_norm = made.diagonal;
  for (std::size_t axis = first; axis < 3; ++axis) {
    made.operator_norm += grid.along[axis] * static_cast<double>(std::min<Index>(2, grid.nodes[axis] - 1));
    grid.along[axis] /= made.diagonal;
    const double sine = std::sin(std::numbers::pi / (2 * static_cast<double>(grid.nodes[axis] + 1)));
    made.jacobi_gap += 4 * grid.along[axis] * sine * sine;
  }
  return made;
}

Index check_every_of(const Problem& problem, const Settings& settings) {
  if (settings.check_every > 0) return settings.check_every;
  return relaxation::choose_check_every(settings.sweeps, settings.tolerance,
                                        *std::max_element(problem.shape.begin(), problem.shape.end()));
}

/// Sweeps that a GPU makes in one submission.
Index sweeps_of_kernel(const Problem& problem, const Settings& settings) {
  constexpr Index most = Index{1} << 28;  // with them the schedule's sums of coordinates have room in 32 bits
  if (settings.direction == Direction::symmetric) return 1;
  const Index until_residual = check_every_of(problem, settings);
  return std::min({until_residual, settings.sweeps > 0 ? settings.sweeps : until_residual, most});
}

/// Points of a slice and its frame.
Index slice_size(const WavefrontArgs& grid) {
  if (grid.dimensions == 1) return 1;
  return (grid.dimensions > 2 ? grid.nodes[1] + 2 : 1) * (grid.nodes[2] + 2);
}

/// Slices of a block on CPUs so that the blocks of as many tasks as are in flight, three of the grid and two
/// of g each, fit in main memory; all that there are where no disk takes those of the others.
/// @throw Error: without a disk, a grid and a g that do not fit; with one, not even slices that do
Index most_slices(const Machine& machine, const WavefrontArgs& grid, std::size_t element) {
  const Index slices = cpu::wavefront_slices(grid);
  const double room = static_cast<double>(machine.capacity(MemoryKind::main)),
               slice = static_cast<double>(slice_size(grid)) * static_cast<double>(element);
  const std::optional<std::size_t> tasks = relaxation::tasks_in_memory(machine);
  if (!tasks && 2 * slice * static_cast<double>(slices) > room)
    throw Error(
        fmt::format("{} unknowns and their f take {}, main memory has {} for them; allow more (--memory), or "
                    "name a folder for what does not fit (--spill)",
                    fmt::join(grid.nodes.end() - grid.dimensions, grid.nodes.end(), " x "),
                    human_bytes(2 * slice * static_cast<double>(slices)), human_bytes(room)),
        Blame::machine);
  if (!tasks) return slices;
  constexpr double share = 0.9, blocks = 5;  // the rest is for what is small
  const double most = share * room / (blocks * slice * static_cast<double>(*tasks));
  if (most < 1)
    throw Error(
        fmt::format(
            "slices of {} each along the slowest axis: main memory, {}, has no room for {} of them at "
            "a time for each of {} tasks; allow more (--memory)",
            human_bytes(slice), human_bytes(room), blocks, *tasks),
        Blame::machine);
  return static_cast<Index>(std::min(most, static_cast<double>(slices)));
}

/// For CPUs. Blocks as high as the caches allow for, since a task can do as many sweeps as they have slices,
/// but enough of them that all workers find some that do not depend on each other, and high enough for tasks
/// that are worth their cost.
/// @param most slices of a block
WavefrontLayout choose_cpu_layout(const WavefrontArgs& grid, std::size_t element, int workers, Index most) {
  constexpr double cache = 512 << 10, worth = 2e5;  // bytes; points
  const auto size = static_cast<double>(slice_size(grid));
  const Index slices = cpu::wavefront_slices(grid);
  const double in_cache = cache / (2 * size * static_cast<double>(element)),
               shared = static_cast<double>(slices) / (6 * workers);
  const double height = std::max(std::min(in_cache, shared), std::sqrt(worth / size));
  WavefrontLayout layout;
  const Index blocks_of = std::clamp<Index>(static_cast<Index>(std::ceil(height)), 1, std::min(slices, most));
  layout.tile.points[static_cast<std::size_t>(3 - grid.dimensions)] = blocks_of;
  layout.tile.sweeps = std::min<Index>(blocks_of, grid.dimensions == 1 ? 256 : 64);
  return layout;
}

/// A cooperative kernel is for one GPU.
const Hints on_first_gpu = [] {
  Hints hints;
  hints.where = Where::cuda;
  hints.worker = 0;
  return hints;
}();

/// Blocks of a layout that the GPU can have at once; 0: none.
template <class T>
int most_blocks(const WavefrontArgs& grid, const WavefrontLayout& layout) {
  const std::size_t shared = cuda::wavefront_shared_bytes<T>(grid.dimensions, layout.tile, grid.has_source);
  return cuda::wavefront_blocks_per_sm<T>(grid.dimensions, layout.threads, shared) * cuda::multiprocessors();
}

/// At least as many as an inter-tile wavefront has tiles: along one axis it has one at a place.
double tiles_at_once(const WavefrontArgs& grid, const WavefrontTile& tile) {
  double all = std::ceil(static_cast<double>(grid.sweeps) / static_cast<double>(tile.sweeps)), most = all;
  for (std::size_t axis = static_cast<std::size_t>(3 - grid.dimensions); axis < 3; ++axis) {
    const double tiles = std::ceil(static_cast<double>(grid.nodes[axis] + tile.sweeps) /
                                   static_cast<double>(tile.points[axis])) +
                         1;
    all *= tiles;
    most = std::max(most, tiles);
  }
  return all / most;
}

/// For a GPU, where nothing has been measured: 256 columns for as many threads, long along x, and no larger
/// than the grid.
constexpr int untuned_threads = 256;
WavefrontTile untuned_tile(const WavefrontArgs& grid) {
  WavefrontTile tile = grid.dimensions == 1   ? WavefrontTile{256, {1, 1, 1024}}
                       : grid.dimensions == 2 ? WavefrontTile{16, {1, 16, 64}}
                                              : WavefrontTile{4, {8, 8, 32}};
  for (std::size_t axis = static_cast<std::size_t>(3 - grid.dimensions); axis < 3; ++axis)
    tile.points[axis] = std::min(tile.points[axis], grid.nodes[axis]);
  tile.sweeps = std::min(tile.sweeps, grid.sweeps);
  return tile;
}

/// What no GPU can run, before the CUDA runtime is asked.
void require_sound(const WavefrontLayout& layout, int dimensions) {
  if (!cuda::is_possible(dimensions, layout.tile)) {
    const auto m = tile_extents(dimensions, layout.tile);
    throw Error(fmt::format(
        "tiles of {} sweeps x {} points (--tile): each extent must be from 1 to {}, but for that "
        "along x, and their sum at most {}",
        m[0], fmt::join(m.end() - dimensions, m.end(), " x "), cuda::most_tile_extent, cuda::most_tile_sum));
  }
  if (layout.threads < 32 || layout.threads > 1024 || layout.threads % 32 != 0)
    throw Error(
        fmt::format("blocks of {} threads: a multiple of 32 from 32 to 1024 is wanted", layout.threads));
}

}  // namespace

WavefrontArgs sweeps_at_once(const Problem& problem, const Settings& settings) {
  require_sound(problem);
  require_sound(settings);
  WavefrontArgs args = discretise(problem).grid;
  args.sweeps = sweeps_of_kernel(problem, settings);
  return args;
}

template <class T>
Solver<T>::Solver(Runtime& runtime, const Problem& problem, const Settings& settings)
    : runtime_(runtime), settings_(settings), sides_(problem.sides) {
  require_sound(problem);
  require_sound(settings);
  const Machine machine = runtime.machine();
  if (machine.ranks > 1)
    throw Error(fmt::format(
        "wavefronts run on one rank, there are {}: start the program without mpirun, or choose a method "
        "by colours",
        machine.ranks));
  const Discretisation made = discretise(problem);
  grid_ = made.grid;
  diagonal_ = made.diagonal;
  operator_norm_ = made.operator_norm;
  if (sides_.empty()) sides_.resize(problem.shape.size());
  const bool symmetric = settings_.direction == Direction::symmetric;
  if (!settings_.omega)
    settings_.omega = 2 / (1 + std::sqrt(made.jacobi_gap * (symmetric ? 2 : 2 - made.jacobi_gap)));
  grid_.omega = *settings_.omega;
  radius_ = relaxation::spectral_radius(relaxation::Method::sor, grid_.omega, 1 - made.jacobi_gap);
  // Young 1971, chapter 15: a sweep and one backward at the best omega reduce the error by (1 - s) / (1 + s)
  // at least.
  const double s = std::sqrt(made.jacobi_gap / 2);
  if (symmetric) radius_ = std::max(radius_, std::sqrt((1 - s) / (1 + s)));
  settings_.check_every = check_every_of(problem, settings_);
  on_gpu_ = machine.count(WorkerKind::cuda) > 0;
  grid_.sweeps = sweeps_of_kernel(problem, settings_);
  choose_layout(machine);
  make_tiles();
}

template <class T>
void Solver<T>::choose_layout(const Machine& machine) {
  on_gpu_ ? choose_blocks() : choose_slices(machine);
  grid_.layout = *settings_.layout;
}

/// On a GPU: tiles, threads and blocks.
template <class T>
void Solver<T>::choose_blocks() {
  if constexpr (built_with_cuda) {
    WavefrontLayout layout = settings_.layout.value_or(WavefrontLayout{untuned_tile(grid_)});
    if (layout.threads == 0) layout.threads = untuned_threads;
    require_sound(layout, grid_.dimensions);
    WavefrontArgs grid = grid_;
    runtime_.on_worker(WorkerKind::cuda, 0, [&] {
      for (const bool has_source : {false, true}) {  // which takes more room
        grid.has_source = has_source;
        most_blocks_[has_source ? 1 : 0] = most_blocks<T>(grid, layout);
      }
    });
    if (most_blocks_[0] == 0)
      throw Error(fmt::format(
          "tiles of {} sweeps x {} points (--tile) do not fit in a block of the GPU: choose smaller ones",
          layout.tile.sweeps, fmt::join(layout.tile.points, " x ")));
    if (layout.blocks == 0)
      layout.blocks = static_cast<int>(std::min<double>(most_blocks_[most_blocks_[1] > 0 ? 1 : 0],
                                                        std::ceil(tiles_at_once(grid, layout.tile))));
    if (layout.blocks < 1 || layout.blocks > most_blocks_[0])
      throw Error(fmt::format(
          "the layout has {} blocks of {} threads: with its tiles, {} sweeps x {} points, 1 to {} blocks "
          "can be on the GPU at once",
          layout.blocks, layout.threads, layout.tile.sweeps, fmt::join(layout.tile.points, " x "),
          most_blocks_[0]));
    settings_.layout = layout;
    height_ = cpu::wavefront_slices(grid_);
  }
}

/// On CPUs: tiles of so many slices along the slowest axis.
template <class T>
void Solver<T>::choose_slices(const Machine& machine) {
  const Index most = most_slices(machine, grid_, sizeof(T));
  tasks_in_memory_ = relaxation::tasks_in_memory(machine);
  if (!settings_.layout)
    settings_.layout = choose_cpu_layout(grid_, sizeof(T), machine.count(WorkerKind::cpu), most);
  const WavefrontTile& tile = settings_.layout->tile;
  height_ = tile.points[static_cast<std::size_t>(3 - grid_.dimensions)];
  if (tile.sweeps < 1 || height_ < tile.sweeps)
    throw Error(fmt::format(
        "tiles of {} sweep{} x {} slice{} along the slowest axis (--tile): on CPUs a tile has at "
        "least 1 sweep and no more sweeps than slices",
        tile.sweeps, tile.sweeps == 1 ? "" : "s", height_, height_ == 1 ? "" : "s"));
  height_ = std::min(height_, most);
  settings_.layout->tile.points[static_cast<std::size_t>(3 - grid_.dimensions)] = height_;
  settings_.layout->tile.sweeps = std::min({tile.sweeps, height_, grid_.sweeps});
}

template <class T>
void Solver<T>::make_tiles() {
  const Index blocks = cpu::wavefront_blocks(grid_, height_);
  if (grid_.dimensions == 1) {
    u_ = Tiles<T>(runtime_, 1, grid_.nodes[2] + 2, 1, height_);
  } else {
    const Index rows = grid_.dimensions > 2 ? grid_.nodes[1] + 2 : 1;
    u_ = Tiles<T>(runtime_, wavefront_rows(grid_), wavefront_cols(grid_), height_ * rows,
                  wavefront_cols(grid_));
  }
  sums_ = Tiles<sums::SquareSum>(runtime_, on_gpu_ ? 1 : blocks, wavefront_sums, 1, wavefront_sums);
  for (Tile<T>& tile : none_) {
    tile = Tile<T>(runtime_, 1, 1);
    HostView<T>(tile, HostView<T>::Access::write)(0, 0) = 0;
  }
  if (!on_gpu_) return;
  meeting_ = Tile<unsigned>(runtime_, 1, cuda::wavefront_scratch);
  work_ = Tile<sums::SquareSum>(runtime_, 1, cuda::wavefront_residual_scratch);
}

/// Calls visit(row, first, count, z, y): parts of the rows of a grid's blocks, which begin with number
/// `first` of their nx + 2 values; z and y are numbers of framed planes and rows, 1 along an axis that there
/// is not.
template <class T>
template <class Visit>
void Solver<T>::for_rows(const Tiles<T>& grid, detail::HostAccess access, const Visit& visit) const {
  const Index rows = grid_.dimensions > 2 ? grid_.nodes[1] + 2 : 1;
  for (Index k = 0; k < grid.count(); ++k) {
    const HostView<T> view(grid[k], access);
    const Index first = k * height_;  // slice
    for (Index row = 0; row < view.rows(); ++row) {
      if (grid_.dimensions == 1)
        visit(view.row(0), first, view.cols(), Index{1}, Index{1});
      else if (grid_.dimensions == 2)
        visit(view.row(row), Index{0}, view.cols(), Index{1}, first + row);
      else
        visit(view.row(row), Index{0}, view.cols(), first + row / rows, row % rows);
    }
  }
}

template <class T>
void Solver<T>::load(const T* f, const T* u) {
  using Access = detail::HostAccess;
  const auto [nz, ny, nx] = grid_.nodes;
  const auto outside = [](Index i, Index n) { return i < 1 || i > n; };
  // The value on the sides of an axis that end `i` belongs to.
  const auto side = [&](std::size_t axis, Index i) {
    const Problem::Sides& sides = sides_[axis + sides_.size() - 3];
    return static_cast<T>(i < 1 ? sides.lower : sides.upper);
  };
  for_rows(u_, Access::write,
           [&, nz = nz, ny = ny, nx = nx](T* row, Index first, Index count, Index z, Index y) {
             const bool framed = outside(z, nz) || outside(y, ny);
             const T* const given = framed ? nullptr : u + ((z - 1) * ny + (y - 1)) * nx;
             for (Index j = 0; j < count; ++j) {
               const Index x = first + j;
               if (outside(x, nx))
                 row[j] = side(2, x);
               else
                 row[j] = outside(z, nz) ? side(0, z) : outside(y, ny) ? side(1, y) : given[x - 1];
             }
           });
  grid_.has_source = f != nullptr;
  if (f == nullptr) return;
  if (g_.count() == 0)
    g_ = Tiles<T>(runtime_, wavefront_rows(grid_), wavefront_cols(grid_), u_.tile_rows(), u_.tile_cols());
  const double scale = -1 / diagonal_;
  for_rows(
      g_, Access::write, [&, nz = nz, ny = ny, nx = nx](T* row, Index first, Index count, Index z, Index y) {
        const bool framed = outside(z, nz) || outside(y, ny);
        const T* const given = framed ? nullptr : f + ((z - 1) * ny + (y - 1)) * nx;
        for (Index j = 0; j < count; ++j) {
          const Index x = first + j;
          row[j] =
              framed || outside(x, nx) ? T{0} : static_cast<T>(scale * static_cast<double>(given[x - 1]));
        }
      });
}

template <class T>
void Solver<T>::store(T* u) const {
  const auto [nz, ny, nx] = grid_.nodes;
  for_rows(u_, detail::HostAccess::read,
           [&, nz = nz, ny = ny, nx = nx](const T* row, Index first, Index count, Index z, Index y) {
             if (z < 1 || z > nz || y < 1 || y > ny) return;
             const Index begin = std::max(first, Index{1}), end = std::min(first + count, nx + 1);
             if (begin < end)
               std::copy(row + (begin - first), row + (end - first),
                         u + ((z - 1) * ny + (y - 1)) * nx + begin - 1);
           });
}

/// Of a task that is submitted now on a CPU; waits for room for it.
template <class T>
Hints Solver<T>::cpu_hints(Index sweeps) const {
  Hints hints{.where = Where::cpu, .cost = static_cast<std::uint64_t>(sweeps)};
  if (tasks_in_memory_) runtime_.wait_for_room(*tasks_in_memory_);
  return hints;
}

template <class T>
void Solver<T>::sweep(Index count, bool backward) {
  WavefrontArgs grid = grid_;
  grid.backward = backward;
  if (on_gpu_) {
    grid.layout.blocks = std::min(grid.layout.blocks, most_blocks_[grid.has_source ? 1 : 0]);
    for (Index done = 0; done < count; done += grid.sweeps) {
      grid.sweeps = std::min(grid_.sweeps, count - done);
      codelets::wavefront<T>(grid, u_[0], grid.has_source ? g_[0] : none_[0], meeting_, on_first_gpu);
    }
    return;
  }
  const Index blocks = u_.count();
  // Block number k as the sweeps see them, or a tile that is not looked at.
  const auto block = [&](const Tiles<T>& tiles, Index k, std::size_t port) -> const Tile<T>& {
    return k < 0 || k >= blocks || tiles.count() == 0 || (&tiles == &g_ && !grid.has_source)
               ? none_[port]
               : tiles[backward ? blocks - 1 - k : k];
  };
  for (Index done = 0; done < count; done += grid.sweeps) {
    grid.sweeps = std::min(settings_.layout->tile.sweeps, count - done);
    for (Index number = 0; number <= blocks; ++number)
      codelets::wavefront_slab<T>({grid, height_, number}, block(u_, number - 1, 0), block(u_, number, 1),
                                  block(u_, number + 1, 2), block(g_, number - 1, 3), block(g_, number, 4),
                                  cpu_hints(grid.sweeps));
  }
}

template <class T>
relaxation::Norms Solver<T>::norms() const {
  WavefrontArgs grid = grid_;
  grid.backward = false;
  const auto source = [&](Index k) -> const Tile<T>& { return grid.has_source ? g_[k] : none_[0]; };
  if (on_gpu_) {
    codelets::wavefront_residual<T>(grid, u_[0], source(0), sums_[0], work_, on_first_gpu);
  } else {
    for (Index k = 0; k < u_.count(); ++k)
      codelets::wavefront_residual_slab<T>({grid, height_, k}, k > 0 ? u_[k - 1] : none_[1], u_[k],
                                           k + 1 < u_.count() ? u_[k + 1] : none_[2], source(k), sums_[k],
                                           cpu_hints());
  }
  runtime_.wait();
  using sums::SquareSum;
  SquareSum squares[wavefront_sums] = {};
  for (Index k = 0; k < sums_.count(); ++k) {
    const HostView<SquareSum> view(sums_[k], HostView<SquareSum>::Access::read);
    for (Index which = 0; which < wavefront_sums; ++which) squares[which] += view(0, which);
  }
  return {diagonal_ * squares[wavefront_residual_squares].root(), squares[wavefront_solution_squares].root(),
          diagonal_ * squares[wavefront_source_squares].root()};
}

template <class T>
Report Solver<T>::solve(const T* f, T* u) {
  if (on_gpu_ && f != nullptr && most_blocks_[1] == 0)
    throw Error(
        fmt::format("tiles of {} sweeps x {} points do not fit in a block of the GPU beside a "
                    "right-hand side: choose smaller ones",
                    settings_.layout->tile.sweeps, fmt::join(settings_.layout->tile.points, " x ")));
  Report report;
  const Traffic before = runtime_.traffic();
  Stopwatch stopwatch;
  load(f, u);
  relaxation::Convergence convergence(
      {settings_.tolerance, operator_norm_, radius_, grid_.nodes[0] + grid_.nodes[1] + grid_.nodes[2]});
  std::optional<Reason> end = convergence.judge(norms(), 0);
  report.seconds["load"] = stopwatch.lap();
  const Index most = settings_.sweeps > 0 ? settings_.sweeps : std::numeric_limits<Index>::max();
  while (!end && report.iterations < most) {
    const Index count = std::min(settings_.check_every, most - report.iterations);
    if (settings_.direction == Direction::forward)
      sweep(count, false);
    else
      for (Index k = 0; k < count; ++k) sweep(1, (report.iterations + k) % 2 == 1);
    report.iterations += count;
    end = convergence.judge(norms(), report.iterations);
  }
  report.reason = end.value_or(settings_.tolerance > 0 ? Reason::iteration_limit : Reason::solved);
  report.residual_history = convergence.history();
  report.seconds["sweeps"] = stopwatch.lap();
  store(u);
  report.seconds["store"] = stopwatch.lap();
  report.traffic = runtime_.traffic() - before;
  return report;
}

template class Solver<float>;
template class Solver<double>;

}  // namespace asterism::wavefront
