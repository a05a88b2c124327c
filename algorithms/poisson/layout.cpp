#include "layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "../../runtime/error.hpp"
#include "mode_systems.hpp"
#include "slabs/costs.hpp"

namespace asterism::poisson {
namespace {

constexpr Index mebibyte = Index{1} << 20;

/// What the choice of a layout works with, per rank. Sizes in bytes.
struct Resources {
  Where where;          ///< the workers that the slabs go to
  Index workers;        ///< how many of them
  Index problems;       ///< of the batch
  Index planes, plane;  ///< planes of the grid (those of one problem at most), size of one
  Index grid;           ///< size of all that the rank holds
  double gpu_seconds;   ///< of a solve of that on one GPU, where it stays
  Index capacity;       ///< of the memory that they work in (of each, where there are several)
  bool spills;          ///< whether a disk takes what does not fit in main memory
  bool one_rank;        ///< works on all slabs
  bool equal_ranks;     ///< as fast as each other, as far as can be told

  /// Whether slabs have to share the workers' memory with others that come and go.
  [[nodiscard]] bool limited() const { return where == Where::cuda || spills; }
};

template <class T>
Resources resources_for(const Machine& machine, const RankedMachine& all, const Grid& grid) {
  const int gpus = machine.count(WorkerKind::cuda), cpus = machine.count(WorkerKind::cpu);
  // Slabs that keep a GPU busy would keep one core busy for seconds while all the others wait for it: with GPUs the
  // cores leave the slabs to them.
  const bool on_gpus = gpus > 0;
  const Index mine = parts(grid.total_planes(), machine.ranks);
  const Index plane = grid.columns() * static_cast<Index>(sizeof(T));
  return {on_gpus ? Where::cuda : Where::cpu,
          on_gpus ? gpus : cpus,
          grid.batch,
          std::min(mine, grid.planes),
          plane,
          mine * plane,
          seconds_on_gpu(grid, mine * grid.columns(), sizeof(T)),
          static_cast<Index>(machine.capacity(on_gpus ? MemoryKind::gpu : MemoryKind::main)),
          machine.capacity(MemoryKind::disk) > 0,
          machine.ranks == 1,
          all.equal};
}

Mode choose_mode(const Resources& r) {
  // Without a disk main memory holds the whole grid in any case.
  const Index room = r.where == Where::cuda ? r.workers * r.capacity : r.capacity;
  return !r.limited() || stays_in(r.grid, room) ? Mode::incore : Mode::streaming;
}

/// Planes in float64 of a slab's part of the interface systems: its ends, its prefix, its first unknown and the value before.
Index interface_rows(const Grid& grid) {
  const InterfaceRows rows = grid.interface();
  const bool periodic = grid.slow.periodic();
  return rows.shown + rows.carried_shown(periodic) + rows.carried_response(periodic) + 2 * rows.beside;
}

/// Planes of the grid that take as much room as one in float64.
template <class T>
constexpr Index planes_of_double = sizeof(double) / sizeof(T);

/// A slab's part of the interface systems takes as much room as so many of its planes.
template <class T>
Index interface_planes(const Grid& grid) {
  return interface_rows(grid) * planes_of_double<T>;
}

/// Where the slabs are, as what they show is there. But a step of few columns would wait there behind slabs that pass
/// through, and is done on a core meanwhile.
Where choose_interface(const Resources& r, Mode mode, bool has_cpus, Index columns) {
  constexpr Index many_columns = 1 << 18;
  return mode == Mode::streaming && has_cpus && columns < many_columns ? Where::cpu : r.where;
}

/// GPUs of this rank that are worth their while. Two have all lines transformed twice, and what they tell each other takes
/// 100 to 200 us: each is to have 190 us of the work, or what comes to it and goes again through its link in that time.
Index worthwhile_gpus(const Resources& r, Mode mode, bool fetch_result) {
  constexpr double seconds_each = 190e-6;
  constexpr Index bytes_each = 8 * mebibyte;
  if (mode == Mode::streaming) return r.workers;
  const Index busy = fetch_result ? r.grid / bytes_each : static_cast<Index>(r.gpu_seconds / seconds_each);
  Index gpus = std::clamp<Index>(busy, 1, r.workers);
  while (gpus < r.workers && !stays_in(r.grid, gpus * r.capacity)) ++gpus;
  return gpus;
}

/// Every one of the GPUs gets as many of a problem's slabs as the others where these are a multiple of this.
Index even_number(const Resources& r, Index gpus) { return gpus / std::gcd(gpus, r.problems); }

/// At most so many planes a slab, every one of the GPUs as many slabs as the others.
Index evenly_dealt(const Resources& r, Index gpus, Index planes) {
  const Index even = even_number(r, gpus);
  return parts(r.planes, parts(parts(r.planes, planes), even) * even);
}

/// The same, about so many planes, and whole blocks of the tridiagonal CUDA kernels' rows, on which these are fastest, where
/// that leaves it so and, unless slabs stream through, makes no more of them.
Index dealt_in_blocks(const Resources& r, Mode mode, Index gpus, Index wanted, Index most) {
  constexpr Index block = cuda::block_rows;
  const auto in_blocks = [&](Index planes, Index limit) -> std::optional<Index> {
    const Index whole = cuda::blocks_of(evenly_dealt(r, gpus, planes)) * block;
    if (whole <= limit && parts(r.planes, whole) % even_number(r, gpus) == 0) return whole;
    return {};
  };
  const Index even = evenly_dealt(r, gpus, wanted),
              lower = wanted > block && wanted < r.planes ? wanted / block * block : wanted;
  if (const auto higher = in_blocks(wanted, std::min(most, even + even / 8))) return *higher;
  return mode == Mode::streaming ? in_blocks(lower, lower).value_or(even) : even;
}

/// The work of the cores of all ranks.
CoreWork work_on_cores(const Resources& r, const Grid& grid, Index cores) {
  return {.problems = grid.batch,
          .planes = grid.planes,
          .columns = grid.columns(),
          .transformed_axes = (is_transformed(grid.a.x) ? 1 : 0) + (is_transformed(grid.a.y) ? 1 : 0),
          .element_bytes = r.plane / grid.columns(),
          .workers = cores};
}

/// Planes that what the slabs of a problem show may take the room of: a twentieth of the grid, or 64 MiB.
Index shown_planes(const Resources& r) {
  return std::max({Index{1}, r.planes / 20, 64 * mebibyte / r.plane});
}

/// At least so many planes a slab of GPUs: beside a stream what they show takes no more than a quarter of their memories.
Index least_planes(const Resources& r, Mode mode, Where interface, Index interface_planes) {
  if (mode == Mode::streaming && interface == Where::cuda)
    return parts(interface_planes * (r.grid / r.plane), r.workers * r.capacity / 4 / r.plane);
  return interface_planes * r.planes / shown_planes(r);
}

/// At most so many slabs of a problem on cores. For two a core, of which one waits for the interface systems while the other is
/// worked on, what they show may take half as much memory as the grid, or 256 MiB; but for where memory is short.
Index most_slabs_on_cores(const Resources& r, const CoreWork& work, Index interface_planes) {
  const Index room = std::max(r.planes / 2, 256 * mebibyte / r.plane) / interface_planes;
  const Index busy = r.spills ? 1 : std::min(parts(2 * work.workers, work.problems), room);
  return std::max({Index{1}, busy, shown_planes(r) / interface_planes});
}

Index choose_slab_planes(const Resources& r, Mode mode, Where interface, bool fetch_result,
                         Index interface_planes, const CoreWork& on_cores) {
  constexpr Index largest = 2048 * mebibyte;
  const Index gpus = r.where == Where::cuda ? worthwhile_gpus(r, mode, fetch_result) : 0;
  Index wanted = 0, most = r.grid;  // bytes
  if (gpus == 1 && mode == Mode::incore && r.one_rank) {
    // A slab that is all there is has nothing to tell others; but a few let work and transfers overlap. Working memory
    // grows with the slab, and so do two buffers in main memory that the check of u needs.
    wanted = most = std::min({fetch_result ? r.grid / 4 : r.grid, largest, r.capacity - r.grid});
  } else if (r.where == Where::cuda && mode == Mode::incore) {
    // Each slab tells others of itself, which takes longer than work on another meanwhile would save; but four for each GPU
    // where they come and go, or where unlike ranks have them by their speeds.
    const Index each = fetch_result || !r.equal_ranks ? 4 : 1;
    wanted = std::max(r.grid / (each * gpus), 16 * mebibyte);
    most = std::min(largest, r.capacity / 8);
  } else if (r.where == Where::cuda) {
    // Large enough to hide the cost of a task, small enough for a pipeline of several to fit.
    wanted = std::min(std::clamp(r.grid / (8 * r.workers), 16 * mebibyte, 256 * mebibyte), r.capacity / 16);
    most = r.capacity / 8;
  } else {
    const Index slabs = slabs_on_cores(on_cores, most_slabs_on_cores(r, on_cores, interface_planes));
    const Index planes = parts(on_cores.planes, slabs);
    return r.spills ? std::clamp<Index>(r.capacity / (8 * (r.workers + 1)) / r.plane, 1, planes) : planes;
  }
  const Index planes = std::max(parts(wanted, r.plane), least_planes(r, mode, interface, interface_planes));
  const Index most_planes = std::max<Index>(1, most / r.plane);
  return dealt_in_blocks(r, mode, gpus, std::min(planes, most_planes), most_planes);
}

/// Planes that are transformed together, and the working memory that a slab's task then needs.
template <class T>
void choose_working_memory(const Resources& r, SlabArgs args, Layout& layout) {
  if (r.where == Where::cpu) {
    // A few at a time: what the transform leaves in the cache the elimination finds there. Of many, multiples of a
    // register's lanes, as planes may be lines.
    constexpr Index lanes = 8;
    const Index cached = std::max<Index>(1, mebibyte / 2 / r.plane);
    layout.planes_at_once = std::min(cached > lanes ? cached / lanes * lanes : cached, layout.slab_planes);
    args.planes_at_once = layout.planes_at_once;
    layout.scratch = cpu::slab_scratch<T>(args, layout.slab_planes);
  }
  if constexpr (built_with_cuda) {
    if (r.where != Where::cuda) return;
    // As reduce_slab hands them on to the tridiagonal kernels, group by group.
    const Index block = cuda::group_rows(args.columns(), args.interface);
    layout.planes_at_once =
        std::min(std::max(block, 64 * mebibyte / r.plane / block * block), layout.slab_planes);
    args.planes_at_once = layout.planes_at_once;
    layout.scratch = cuda::slab_scratch<T>(args, layout.slab_planes);
  }
}

/// Planes of a slab of a stream whose interface tiles come and go as the slabs do.
template <class T>
Index planes_beside_interface(const Resources& r, const Grid& grid, const SlabArgs& args) {
  const InterfaceRows rows = grid.interface();
  const Index all = interface_rows(grid);
  // What a slab is solved with is read by the GPU in pass 2, `told` planes of it: the higher slabs are, the less. The pipeline
  // takes the longer to fill, to turn and to drain, three slabs. Their sum is least where both are equal.
  const Index told = (all - 2 * rows.beside - rows.shown / 2) * planes_of_double<T>;
  // How a slab responds, what each rank has of the modes, and what two slabs tell.
  const Index beside = (rows.response + mode_rows(grid) + 2 * all) * planes_of_double<T>;
  const auto fits = [&](Index planes) {
    Layout layout;
    layout.slab_planes = planes;
    choose_working_memory<T>(r, args, layout);
    // Three slabs, one that comes, one that is solved and one that leaves. What StarPU keeps to use again takes the rest.
    return (3 * planes + beside) * r.plane + 8 * layout.scratch <= r.capacity / 16 * 13;
  };
  auto planes = static_cast<Index>(std::sqrt(static_cast<double>(told * r.planes) / 3));
  while (planes > 1 && !fits(planes)) --planes;
  return planes;
}

/// Into slabs of so many planes.
void cut(const Resources& r, const Grid& grid, Index planes, Layout& layout) {
  layout.slab_planes = std::min(planes, r.planes);
  layout.slabs = parts(grid.planes, layout.slab_planes);
}

/// @throw Error when not even two slabs (one, where there is but one) and their working memory fit.
void require_room(const Resources& r, const Layout& layout) {
  const Index slabs = layout.mode == Mode::streaming && layout.slabs > 1 ? 2 : 1;
  const Index slab = layout.slab_planes * r.plane, scratch = 8 * layout.scratch;
  if (!r.limited() || slabs * slab + scratch <= r.capacity) return;
  const auto human = [](Index bytes) { return human_bytes(static_cast<double>(bytes)); };
  throw Error(
      fmt::format(
          "{} slab{} of {} planes ({} each) and {} of working memory do not fit in {} of {} memory; use "
          "a smaller --slab, or allow more memory",
          slabs, slabs == 1 ? "" : "s", layout.slab_planes, human(slab), human(scratch), human(r.capacity),
          r.where == Where::cuda ? "GPU" : "main"),
      Blame::machine);
}

}  // namespace

Preferences preferences(const Problem& problem) {
  constexpr double small = 1 << 22;  // unknowns, of which a solve takes 125 us on an H200
  double unknowns = static_cast<double>(problem.batch);
  for (const Index n : problem.shape) unknowns *= static_cast<double>(n);
  return {.scheduler = unknowns <= small ? "prio" : ""};
}

template <class T>
Layout choose_layout(const Machine& machine, const RankedMachine& all, const Grid& grid, const Settings& settings,
                     SlabArgs args) {
  if (settings.slab_planes < 0)
    throw Error(fmt::format("slabs of {} planes: a slab needs at least 1", settings.slab_planes));
  const Resources r = resources_for<T>(machine, all, grid);
  const Index interface = interface_planes<T>(grid);
  Layout layout;
  layout.where = r.where;
  layout.mode = settings.mode == Mode::automatic ? choose_mode(r) : settings.mode;
  layout.interface = choose_interface(r, layout.mode, machine.count(WorkerKind::cpu) > 0, grid.columns());
  const CoreWork on_cores = work_on_cores(r, grid, all.cores);
  const bool is_free = settings.slab_planes == 0;
  cut(r, grid,
      is_free
          ? choose_slab_planes(r, layout.mode, layout.interface, settings.fetch_result, interface, on_cores)
          : settings.slab_planes,
      layout);
  layout.lanes = r.where == Where::cuda ? r.workers : 1;
  layout.dealing =
      layout.mode == Mode::streaming && layout.interface == Where::cpu ? Dealing::turns : Dealing::blocks;
  // A small tile that has to find room among large slabs makes StarPU free one of them, and the GPU stand still meanwhile.
  const Index shown =
      grid.batch * layout.slabs * interface_rows(grid) * grid.columns() * Index{sizeof(double)};
  layout.keeps_interface = layout.mode == Mode::streaming && layout.interface == Where::cuda &&
                           shown / (layout.lanes * machine.ranks) < r.capacity / 3;
  layout.repeats_responses = layout.interface_passes();
  if (layout.interface_passes() && is_free)
    cut(r, grid, evenly_dealt(r, r.workers, planes_beside_interface<T>(r, grid, args)), layout);
  choose_working_memory<T>(r, args, layout);
  require_room(r, layout);
  // Three eighths of the memory for slabs that arrive or are worked on, as much for those that stay between the passes,
  // and the rest for what leaves and for what StarPU keeps to use again.
  layout.slabs_in_flight = (r.where == Where::cuda && !layout.interface_passes() ? 3 : 2) * r.workers;
  if (r.limited()) {
    const Index room = r.capacity / 8 * 3 - 8 * layout.scratch;
    layout.slabs_in_flight =
        std::max(layout.slabs_in_flight, r.workers * (room / ((layout.slab_planes + interface) * r.plane)));
  }
  return layout;
}

template Layout choose_layout<float>(const Machine&, const RankedMachine&, const Grid&, const Settings&, SlabArgs);
template Layout choose_layout<double>(const Machine&, const RankedMachine&, const Grid&, const Settings&, SlabArgs);

}  // namespace asterism::poisson
