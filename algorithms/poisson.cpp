#include "poisson.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "../codelets/transform.hpp"

namespace asterism::poisson {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Sum of magnitudes of the second difference's fullest row: a row at a side lacks the neighbour there.
double second_difference_norm(Index points, double h) {
  return (2.0 + static_cast<double>(std::min<Index>(points - 1, 2))) / (h * h);
}

void require_sound(const Grid& grid) {
  if (grid.rows < 1 || grid.cols < 1)
    throw Error(fmt::format("grid is {} x {}: every extent must be at least 1", grid.rows, grid.cols));
  const auto sound = [](double length) { return std::isfinite(length) && length > 0; };
  if (!sound(grid.length_y) || !sound(grid.length_x))
    throw Error(fmt::format("lengths are {} x {}: both must be positive and finite", grid.length_y, grid.length_x));
}

constexpr Index mebibyte = Index{1} << 20;

/// What the choice of a layout works with, per rank. Sizes in bytes.
struct Resources {
  Where where;        ///< the workers that the slabs go to
  Index workers;      ///< how many of them
  Index rows, row;    ///< rows of the grid, size of one
  Index capacity;     ///< of the memory that they work in (of each, where there are several)
  bool spills;        ///< whether a disk takes what does not fit in main memory

  [[nodiscard]] Index grid() const { return rows * row; }
  /// Whether slabs have to share the workers' memory with others that come and go.
  [[nodiscard]] bool limited() const { return where == Where::cuda || spills; }
};

template <class T>
Resources resources_for(const Machine& machine, const Grid& grid) {
  const int gpus = machine.count(WorkerKind::cuda), cpus = machine.count(WorkerKind::cpu);
  // Slabs that keep a GPU busy would keep one core busy for seconds while all the others wait for it: with GPUs the
  // cores leave the slabs to them.
  const bool on_gpus = gpus > 0;
  return {on_gpus ? Where::cuda : Where::cpu,
          on_gpus ? gpus : cpus,
          (grid.rows + machine.ranks - 1) / machine.ranks,
          grid.cols * static_cast<Index>(sizeof(T)),
          static_cast<Index>(machine.capacity(on_gpus ? MemoryKind::gpu : MemoryKind::main)),
          machine.capacity(MemoryKind::disk) > 0};
}

Mode choose_mode(const Resources& r) {
  // Without a disk main memory holds the whole grid in any case.
  const Index room = r.where == Where::cuda ? r.workers * r.capacity : r.capacity;
  return !r.limited() || r.grid() < room / 10 * 8 ? Mode::incore : Mode::streaming;
}

/// What a slab shows to the others takes as much room as so many of its rows: in float64 its boundary, its prefix, its
/// first unknown and the value above; and copies of two rows.
template <class T>
constexpr Index shown_rows =
    (Index{kernels::boundary_rows} + Index{kernels::prefix_rows} + 2) * static_cast<Index>(sizeof(double) / sizeof(T)) + 2;

template <class T>
Index choose_slab_rows(const Resources& r) {
  Index wanted = 0, most = r.grid();  // bytes
  if (r.where == Where::cuda) {
    // Large enough to hide the cost of a task, small enough for a pipeline of several to fit.
    wanted = std::clamp(r.grid() / (8 * r.workers), 16 * mebibyte, 256 * mebibyte);
    most = r.capacity / 16;
  } else {
    // A little more than a core's own caches hold, and several slabs for every core.
    wanted = std::min(4 * mebibyte, r.grid() / (4 * r.workers));
    if (r.spills) most = r.capacity / (8 * (r.workers + 1));
  }
  // What the slabs show takes no more than a twentieth of the grid, or 64 MiB.
  const Index allowed_rows = std::max({Index{1}, r.rows / 20, 64 * mebibyte / r.row});
  const Index rows = std::max(wanted / r.row, shown_rows<T> * r.rows / allowed_rows);
  const Index limited = std::max<Index>(1, std::min(rows, most / r.row));
  // The tridiagonal CUDA kernels are fastest on whole blocks of rows.
  constexpr Index block = kernels::cuda::block_rows;
  return r.where == Where::cuda && limited > block ? limited / block * block : limited;
}

/// Lines that are transformed together, and the working memory that a slab's task then needs.
template <class T>
void choose_working_memory(const Resources& r, Index cols, Layout& layout) {
  if (r.where == Where::cpu) {
    // A few at a time: what the transform leaves in the cache the elimination finds there.
    layout.lines_at_once = std::clamp<Index>(mebibyte / 2 / r.row, 1, layout.slab_rows);
    layout.scratch = kernels::cpu::slab_scratch<T>(layout.slab_rows, cols, layout.lines_at_once);
  }
#ifdef ASTERISM_WITH_CUDA
  if (r.where == Where::cuda) {
    // Whole blocks of the tridiagonal kernels, as reduce_slab hands them on group by group.
    constexpr Index block = kernels::cuda::block_rows;
    const Index lines = kernels::cuda::dst_lines_at_once<T>(cols, layout.slab_rows);
    layout.lines_at_once = std::min((lines + block - 1) / block * block, layout.slab_rows);
    layout.scratch = kernels::cuda::slab_scratch<T>(layout.slab_rows, cols, layout.lines_at_once);
  }
#endif
}

/// @throw Error when not even two slabs (one, where there is but one) and their working memory fit.
void require_room(const Resources& r, const Layout& layout) {
  const Index slabs = layout.mode == Mode::streaming && layout.slabs > 1 ? 2 : 1;
  const Index slab = layout.slab_rows * r.row, scratch = 8 * layout.scratch;
  if (!r.limited() || slabs * slab + scratch <= r.capacity) return;
  const auto human = [](Index bytes) { return human_bytes(static_cast<double>(bytes)); };
  throw Error(fmt::format("{} slab{} of {} rows ({} each) and {} of working memory do not fit in {} of {} memory; use "
                          "a smaller --slab, or allow more memory",
                          slabs, slabs == 1 ? "" : "s", layout.slab_rows, human(slab), human(scratch),
                          human(r.capacity), r.where == Where::cuda ? "GPU" : "main"),
              Blame::machine);
}

/// Slab height, mode and working memory from the sizes of grid and memories.
template <class T>
Layout choose_layout(const Machine& machine, const Grid& grid, const Settings& settings) {
  const Resources r = resources_for<T>(machine, grid);
  Layout layout;
  layout.where = r.where;
  layout.mode = settings.mode == Mode::automatic ? choose_mode(r) : settings.mode;
  layout.slab_rows = std::min(settings.slab_rows > 0 ? settings.slab_rows : choose_slab_rows<T>(r), r.rows);
  layout.slabs = (grid.rows + layout.slab_rows - 1) / layout.slab_rows;
  choose_working_memory<T>(r, grid.cols, layout);
  require_room(r, layout);
  // Three eighths of the memory for slabs that arrive or are worked on, as much for those that stay between the passes,
  // and the rest for what leaves and for what StarPU keeps to use again.
  layout.slabs_in_flight = 2 * r.workers;
  if (r.limited()) {
    const Index shown = shown_rows<T> * r.row;
    const Index room = r.capacity / 8 * 3 - 8 * layout.scratch;
    layout.slabs_in_flight = std::max(layout.slabs_in_flight, room / (layout.slab_rows * r.row + shown));
  }
  return layout;
}

/// Rank 0's choice, on every rank: the machines of the ranks may differ, but their graphs must not.
Layout agree(const Runtime& runtime, const Layout& mine) {
  std::array<double, 6> numbers{};
  if (runtime.rank() == 0)
    numbers = {static_cast<double>(mine.mode),       static_cast<double>(mine.slab_rows),
               static_cast<double>(mine.slabs),      static_cast<double>(mine.lines_at_once),
               static_cast<double>(mine.scratch),    static_cast<double>(mine.slabs_in_flight)};
  runtime.sum_over_ranks(numbers.data(), numbers.size());
  const auto index = [&](std::size_t i) { return static_cast<Index>(numbers[i]); };
  return {static_cast<Mode>(index(0)), mine.where, index(1), index(2), index(3), index(4), index(5)};
}

/// A tile of every rank, for what each of them needs in full.
std::vector<Tile<double>> one_per_rank(Runtime& runtime, Index rows, Index cols) {
  std::vector<Tile<double>> tiles;
  for (int rank = 0; rank < runtime.ranks(); ++rank) tiles.emplace_back(runtime, rows, cols, rank);
  return tiles;
}

template <class T, class Value>
void fill(const Runtime& runtime, const Tile<T>& tile, Value value) {
  if (tile.owner() != runtime.rank()) return;
  const HostView<T> view(tile, HostView<T>::Access::write);
  for (Index i = 0; i < view.rows(); ++i)
    for (Index j = 0; j < view.cols(); ++j) view(i, j) = value(j);
}

}  // namespace

double Grid::operator_norm() const { return second_difference_norm(cols, hx()) + second_difference_norm(rows, hy()); }

template <class T>
Solver<T>::Solver(Runtime& runtime, const Grid& grid, const Settings& settings) : runtime_(&runtime), grid_(grid) {
  require_sound(grid);
  if (settings.slab_rows < 0)
    throw Error(fmt::format("slabs of {} rows: a slab needs at least 1", settings.slab_rows));
  const Machine machine = runtime.machine();
  layout_ = agree(runtime, choose_layout<T>(machine, grid, settings));
  fetch_result_ = settings.fetch_result;
  interface_where_ = machine.count(WorkerKind::cpu) > 0 ? Where::cpu : Where::cuda;

  const Index n = grid.cols;
  args_ = {grid.hy() * grid.hy() / kernels::dst_twice(n), layout_.lines_at_once, kernels::Content::grid};
  if (layout_.where == Where::cpu) kernels::cpu::plan_dst<T>(n);
#ifdef ASTERISM_WITH_CUDA
  if (layout_.where == Where::cuda)
    runtime.on_each_worker(WorkerKind::cuda, [&] { kernels::cuda::plan_dst<T>(n, layout_.lines_at_once); });
#endif

  excess_ = one_per_rank(runtime, 1, n);
  for (const Tile<double>& tile : excess_)
    fill(runtime, tile, [&](Index j) { return kernels::dirichlet_excess(j + 1, n, grid.hx(), grid.hy()); });
  work_ = one_per_rank(runtime, 1, layout_.scratch);
  nothing_above_ = Tile<double>(runtime, kernels::prefix_rows, n, owner(0));
  nothing_below_ = Tile<double>(runtime, 1, n, owner(layout_.slabs - 1));
  const auto zero = [](Index) { return 0.0; };
  fill(runtime, nothing_above_, zero);
  fill(runtime, nothing_below_, zero);
  boundary_ = per_slab(kernels::boundary_rows);
  prefix_ = per_slab(kernels::prefix_rows);
  first_ = per_slab(1);
  above_ = per_slab(1);
  const auto owner_of = [this](Index slab, Index) { return owner(slab); };
  top_ = Tiles<T>(runtime, layout_.slabs, n, 1, n, owner_of);
  bottom_ = Tiles<T>(runtime, layout_.slabs, n, 1, n, owner_of);
}

template <class T>
int Solver<T>::owner(Index slab) const {
  return static_cast<int>(slab * runtime_->ranks() / layout_.slabs);
}

template <class T>
Tiles<double> Solver<T>::per_slab(Index rows) const {
  return Tiles<double>(*runtime_, layout_.slabs * rows, grid_.cols, rows, grid_.cols,
                       [this](Index slab, Index) { return owner(slab); });
}

template <class T>
Index Solver<T>::first_row() const {
  Index slab = 0;
  while (slab < layout_.slabs && owner(slab) < runtime_->rank()) ++slab;
  return std::min(first_row(slab), grid_.rows);
}

template <class T>
Index Solver<T>::row_count() const {
  Index rows = 0;
  for (Index slab = 0; slab < layout_.slabs; ++slab)
    if (owner(slab) == runtime_->rank()) rows += std::min(layout_.slab_rows, grid_.rows - first_row(slab));
  return rows;
}

template <class T>
Tiles<T> Solver<T>::borrow(T* rows) const {
  const Index mine = first_row();
  return Tiles<T>(
      *runtime_, grid_.rows, grid_.cols, layout_.slab_rows, grid_.cols,
      [this](Index slab, Index) { return owner(slab); },
      [&](Index slab, Index) {
        return owner(slab) == runtime_->rank() ? rows + (first_row(slab) - mine) * grid_.cols : nullptr;
      });
}

template <class T>
Tiles<T> Solver<T>::own() const {
  return Tiles<T>(*runtime_, grid_.rows, grid_.cols, layout_.slab_rows, grid_.cols,
                  [this](Index slab, Index) { return owner(slab); });
}

template <class T>
Report Solver<T>::solve(Tiles<T>& f) {
  const auto start = Clock::now();
  const Traffic before = runtime_->traffic();
  const bool streaming = layout_.mode == Mode::streaming;
  const Index last = layout_.slabs - 1;
  const auto excess = [&](Index c) -> const Tile<double>& { return excess_[static_cast<std::size_t>(owner(c))]; };
  const auto work = [&](Index c) -> const Tile<double>& { return work_[static_cast<std::size_t>(owner(c))]; };
  const auto prefix_above = [&](Index c) -> const Tile<double>& { return c == 0 ? nothing_above_ : prefix_[c - 1]; };
  const auto below = [&](Index c) -> const Tile<double>& { return c == last ? nothing_below_ : first_[c + 1]; };
  const auto hints = [&](Index c) { return Hints{.where = layout_.where, .label = fmt::format("slab {}", c)}; };
  // Short tasks that everything waits for: before the slabs that are queued already.
  const Hints interface{.where = interface_where_, .priority = 1};
  kernels::SlabArgs args = args_;

  // Every slab comes with a task of the interface system. A stream that was submitted whole would have StarPU fetch
  // slabs until there is no room left for the task that is to run next.
  const auto wait_for_turn = [&] {
    if (streaming) runtime_->wait_for_room(static_cast<std::size_t>(2 * layout_.slabs_in_flight));
  };

  // Pass 1: what every slab shows to the others; eliminate from the first slab down. A single slab has no others.
  for (Index c = 0; c <= last && last > 0; ++c) {
    wait_for_turn();
    if (streaming) {
      codelets::reduce_slab<T>(args, f[c], excess(c), boundary_[c], work(c), hints(c));
      if (c < layout_.slabs - layout_.slabs_in_flight) f[c].wont_use();  // pass 2 begins with the last ones
    } else {
      codelets::transform_slab<T>(args, f[c], excess(c), boundary_[c], work(c), hints(c));
    }
    if (c < last) codelets::eliminate({}, boundary_[c], prefix_above(c), prefix_[c], interface);
  }
  if (last > 0 && !streaming) args.content = kernels::Content::modes;

  // Pass 2, from the last slab up: substitute, then solve every slab between its known neighbours.
  for (Index c = last; c >= 0; --c) {
    wait_for_turn();
    if (last > 0) codelets::substitute({}, boundary_[c], prefix_above(c), below(c), first_[c], above_[c], interface);
    if (streaming) f[c].write_through();
    codelets::solve_slab<T>(args, f[c], excess(c), last > 0 ? above_[c] : nothing_below_, below(c), top_[c],
                            bottom_[c], work(c), hints(c));
    if (streaming)
      f[c].wont_use();
    else if (fetch_result_)
      f[c].fetch();
  }
  runtime_->wait();
  if (layout_.where == Where::cuda && fetch_result_)
    for (Index c = 0; c <= last; ++c)
      if (owner(c) == runtime_->rank()) HostView<T>(f[c], HostView<T>::Access::read);

  Report report;
  report.seconds["solve"] = seconds_since(start);
  report.traffic = runtime_->traffic() - before;
  return report;
}

template <class T>
Check Solver<T>::check(Tiles<T>& u, const Source& source, const kernels::ModelProblem* known) {
  const auto start = Clock::now();
  const Index last = layout_.slabs - 1;
  kernels::SlabProblem problem{grid_.weights(), known != nullptr ? *known : kernels::ModelProblem{}, 0,
                               known != nullptr};
  Tiles<double> sums(*runtime_, layout_.slabs, kernels::residual_sums, 1, kernels::residual_sums,
                     [this](Index slab, Index) { return owner(slab); });
  Tile<T> side_above(*runtime_, 1, grid_.cols, owner(0)), side_below(*runtime_, 1, grid_.cols, owner(last));
  fill(*runtime_, side_above, [](Index) { return T{0}; });
  fill(*runtime_, side_below, [](Index) { return T{0}; });
  const std::vector<Tile<double>> work = one_per_rank(*runtime_, 1, kernels::cuda::residual_scratch);

  // Two buffers take turns for f: one is filled while the other is being looked at. Replacing a tile waits for its
  // tasks, so no more than two slabs are ever there beside the solution.
  const std::size_t slab_bytes = static_cast<std::size_t>(layout_.slab_rows * grid_.cols) * sizeof(T);
  const PinnedBuffer buffers[2] = {{*runtime_, slab_bytes}, {*runtime_, slab_bytes}};
  Tile<T> f[2];
  for (Index c = 0; c <= last; ++c) {
    const bool mine = owner(c) == runtime_->rank();
    Tile<T>& rhs = f[c % 2];
    rhs = Tile<T>();
    rhs = Tile<T>(*runtime_, mine ? buffers[c % 2].as<T>() : nullptr, u[c].rows(), grid_.cols, grid_.cols, owner(c));
    if (mine) source(first_row(c), rhs);
    problem.first_row = first_row(c);
    codelets::residual<T>(problem, u[c], c == 0 ? side_above : bottom_[c - 1], c == last ? side_below : top_[c + 1],
                          rhs, sums[c], work[static_cast<std::size_t>(owner(c))],
                          {.where = layout_.where, .label = fmt::format("slab {}", c)});
    if (layout_.mode == Mode::streaming) u[c].wont_use();
  }
  runtime_->wait();

  std::array<double, kernels::residual_sums> total{};
  for (Index c = 0; c <= last; ++c) {
    if (owner(c) != runtime_->rank()) continue;
    const HostView<double> view(sums[c], HostView<double>::Access::read);
    for (Index i = 0; i < kernels::residual_sums; ++i) total[static_cast<std::size_t>(i)] += view(0, i);
  }
  runtime_->sum_over_ranks(total.data(), kernels::residual_sums);

  const auto norm = [&](kernels::ResidualSum which) { return std::sqrt(total[which]); };
  Check check;
  const double scale =
      grid_.operator_norm() * norm(kernels::solution2) + norm(kernels::rhs2);
  check.scaled_residual = scale == 0 ? 0 : norm(kernels::residual2) / scale;
  if (known != nullptr) check.error = norm(kernels::error2) / norm(kernels::known2);
  check.seconds = seconds_since(start);
  return check;
}

template <class T>
Report solve(Runtime& runtime, const Grid& grid, T* f, const Settings& settings) {
  if (runtime.ranks() > 1)
    throw Error("poisson::solve works on one rank's memory; with several ranks use poisson::Solver");
  Solver<T> solver(runtime, grid, settings);
  Tiles<T> slabs = solver.borrow(f);
  return solver.solve(slabs);
}

template class Solver<float>;
template class Solver<double>;
template Report solve(Runtime&, const Grid&, float*, const Settings&);
template Report solve(Runtime&, const Grid&, double*, const Settings&);

}  // namespace asterism::poisson
