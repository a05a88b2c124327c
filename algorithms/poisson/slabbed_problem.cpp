#include "slabbed_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "../../runtime/collectives.hpp"
#include "../common/set.hpp"
#include "../common/statement.hpp"

namespace asterism::poisson {
namespace {

using Clock = std::chrono::steady_clock;
using grid::AxisRow;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What the tasks of all ranks are cut by: their machines may differ, but their graphs must not. Rank 0's slabs and
/// dealing; streaming, and responses that are repeated, where any rank has to; the working memory of the rank that needs
/// the most.
struct Agreement {
  Mode mode = Mode::incore;
  Index slab_planes = 0, scratch = 0;
  Dealing dealing = Dealing::blocks;
  bool repeats_responses = false;
};
Agreement agreement_of_ranks(const Runtime& runtime, const Layout& mine) {
  const std::vector<Agreement> all =
      gather(runtime, Agreement{mine.mode, mine.slab_planes, mine.scratch, mine.dealing, mine.repeats_responses});
  Agreement agreement = all.front();
  for (const Agreement& its : all) {
    if (its.mode == Mode::streaming) agreement.mode = Mode::streaming;
    agreement.scratch = std::max(agreement.scratch, its.scratch);
    agreement.repeats_responses = agreement.repeats_responses || its.repeats_responses;
  }
  return agreement;
}

RankedMachine machine_of_ranks(const Runtime& runtime) {
  RankedMachine all;
  std::vector<std::vector<double>> gpus(static_cast<std::size_t>(runtime.ranks()));  // of each rank: their memory
  for (const Candidate& worker : all_workers(runtime))
    if (worker.where == Where::cuda)
      gpus[static_cast<std::size_t>(worker.rank)].push_back(worker.memory);
    else
      ++all.cores;
  all.equal = std::ranges::adjacent_find(gpus, std::ranges::not_equal_to()) == gpus.end();
  return all;
}

/// With several ranks each chooses a second time, around what was agreed on: so many planes at once as its own workers
/// transform, and so many slabs in flight as its own memories hold.
template <class Choice>
Layout agreed_layout(const Runtime& runtime, const Machine& machine, const Grid& grid, Settings settings,
                     const Choice& choose) {
  const RankedMachine all = machine_of_ranks(runtime);
  Layout layout;
  agree(runtime, [&] {
    layout = choose(machine, all, grid, settings);
  });  // a memory may be too small on one rank only
  if (runtime.ranks() == 1) return layout;
  const Agreement slabs = agreement_of_ranks(runtime, layout);
  settings.mode = slabs.mode;
  settings.slab_planes = slabs.slab_planes;
  agree(runtime, [&] { layout = choose(machine, all, grid, settings); });
  const Agreement memories = agreement_of_ranks(runtime, layout);
  layout.scratch = memories.scratch;
  layout.repeats_responses = memories.repeats_responses;
  layout.dealing = slabs.dealing;
  return layout;
}

std::string statement(const Problem& problem, const Settings& settings, std::size_t element_bytes) {
  Statement s;
  s.add("grid", problem.shape).add("batch", problem.batch).add("bytes of a number", element_bytes);
  s.add("lengths", problem.lengths).add("centering", problem.centering).add("lambda", problem.lambda);
  s.add("coordinates", problem.coordinates);
  for (const Ends& ends : problem.ends)
    for (const End* end : {&ends.lower, &ends.upper})
      s.add("condition", end->condition).add("given value", end->value).add("given values", end->values);
  s.add("mode", settings.mode).add("planes of a slab", settings.slab_planes).add("mean", settings.mean);
  return s.add("balance", settings.balance).add("weights", settings.weights).text();
}

/// @throw Error: see discretise; ranks were given different problems
Grid discretised(const Runtime& runtime, const Problem& problem, const Settings& settings,
                 std::size_t element_bytes) {
  Grid grid = discretise(problem);
  runtime.require_alike(statement(problem, settings, element_bytes));
  return grid;
}

/// A solver's way to measure, for its grid.
template <class Measure>
MeasureSlabs of_grid(const Measure& measure, const Grid& grid) {
  if (!measure) return {};
  return [&](const Layout& layout, std::vector<Candidate>& workers) { measure(grid, layout, workers); };
}

/// The rows of the slowest axis, per slab.
Tiles<double> axis_of_slabs(const Runtime& runtime, const Grid& grid, const SlabPartition& slabs) {
  Tiles<double> axis = slabs.per_plane(grid::axis_columns);
  for (Index number = 0; number < slabs.count(); ++number)
    set_axis_rows(runtime, axis[number], grid, slabs.first_in_problem(slabs[number].place));
  return axis;
}

}  // namespace

void set_axis_rows(const Runtime& runtime, const Tile<double>& tile, const Grid& grid, Index first_plane) {
  set(runtime, tile, [&](Index i, Index column) {
    const AxisRow& row = grid.rows[static_cast<std::size_t>(first_plane + i)];
    return std::array{row.before, row.after, row.width, row.position}[static_cast<std::size_t>(column)];
  });
}

template <class T>
SlabbedProblem<T>::SlabbedProblem(Runtime& runtime, const Problem& problem, const Settings& settings,
                                  const Choice& choose, const Measure& measure)
    : runtime_(&runtime),
      grid_(discretised(runtime, problem, settings, sizeof(T))),
      settings_(settings),
      layout_(agreed_layout(runtime, runtime.machine(), grid_, settings, choose)),
      slabs_(runtime, layout_,
             deal_slabs(runtime, grid_, layout_, settings, sizeof(T), of_grid(measure, grid_))),
      axis_(axis_of_slabs(runtime, grid_, slabs_)),
      cpus_(runtime.machine().count(WorkerKind::cpu)),
      side_values_(runtime, with_planes_to_cut(problem), grid_, slabs_),
      models_(runtime, grid_, layout_, slabs_, axis_) {
  if (grid_.has_constants()) plane_means_.emplace(runtime, grid_, layout_, slabs_, settings_, rounding<T>);
}

template <class T>
Hints SlabbedProblem<T>::beside_passes_hints(Slab s) const {
  // What passes through is looked at where it lies, so that it need not cross the link once more.
  return layout_.mode == Mode::streaming && cpus_ > 0 ? Hints{.where = Where::cpu} : slabs_.hints(s);
}

template <class T>
Report SlabbedProblem<T>::finish(const Begun& begun, const Tiles<T>& u) {
  runtime_->wait();
  if (layout_.where == Where::cuda && settings_.fetch_result)
    for (Index number = 0; number < slab_count(); ++number)
      if (slabs_.is_mine(slabs_[number])) HostView<T>(u[number], HostView<T>::Access::read);
  Report report;
  report.seconds["solve"] = seconds_since(begun.time);
  report.traffic = runtime_->traffic() - begun.traffic;
  return report;
}

template <class T>
void SlabbedProblem<T>::lift(Tiles<T>& f) const {
  for (Index number = 0; number < slab_count(); ++number) {
    const Slab s = slabs_[number];
    side_values_.lift(s, f[number], axis_[number], beside_passes_hints(s));
  }
}

template <class T>
Tiles<T> SlabbedProblem<T>::borrow(T* planes) const {
  const Index start = first_plane();
  return slabs_.per_plane<T>(grid_.columns(), [&](Index number, Index) {
    return slabs_.is_mine(slabs_[number]) ? planes + (first_plane(number) - start) * grid_.columns()
                                          : nullptr;
  });
}

template <class T>
Tiles<T> SlabbedProblem<T>::own() const {
  return slabs_.per_plane<T>(grid_.columns());
}

template <class T>
void SlabbedProblem<T>::require_slab(Index number, const Tile<T>& tile) const {
  if (number < 0 || number >= slab_count())
    throw Error(
        fmt::format("there is no slab {}: the problem is cut into {}, counted from 0", number, slab_count()));
  const Index planes = slabs_.planes_of(slabs_[number].place), columns = grid_.columns();
  if (tile.rows() != planes || tile.cols() != columns || tile.owner() != slabs_.owner(number))
    throw Error(
        fmt::format("the tile of slab {} has {} x {} elements and belongs to rank {}; {} x {} of rank {} are "
                    "wanted: make the tiles with the solver's borrow() or own()",
                    number, tile.rows(), tile.cols(), tile.owner(), planes, columns, slabs_.owner(number)));
}

template <class T>
void SlabbedProblem<T>::require_slabs(const Tiles<T>& tiles) const {
  if (tiles.count() != slab_count())
    throw Error(
        fmt::format("{} tiles are given, the problem is cut into {} slabs: make the tiles with the solver's "
                    "borrow() or own()",
                    tiles.count(), slab_count()));
  for (Index number = 0; number < slab_count(); ++number) require_slab(number, tiles[number]);
}

template <class T>
void SlabbedProblem<T>::fill(Index number, const Tile<T>& f, const Known& known) const {
  require_slab(number, f);
  models_.fill(slabs_[number], f, known);
}

template <class T>
void SlabbedProblem<T>::take_means(const Tiles<T>& f) {
  for (Index number = 0; number < slab_count(); ++number) {
    const Slab s = slabs_[number];
    plane_means_->take(s, f[number], axis_[number], beside_passes_hints(s));
  }
  plane_means_->gather();
  look_at_mean();
}

template <class T>
void SlabbedProblem<T>::look_at_mean() {
  projected_.clear();
  projected_ = plane_means_->projected(side_values_.any() ? "f, with the given derivatives," : "f");
}

template <class T>
Check SlabbedProblem<T>::check(Tiles<T>& u, const Source& source, const std::optional<Known>& known) {
  require_slabs(u);
  const Tiles<T> front = slabs_.template per_slab<T>(1, grid_.columns()),
                 back = slabs_.template per_slab<T>(1, grid_.columns());
  for (Index number = 0; number < slab_count(); ++number) {
    const Slab s = slabs_[number];
    copy_rows(u[number], 0, front[number], beside_passes_hints(s));
    copy_rows(u[number], slabs_.planes_of(s.place) - 1, back[number], beside_passes_hints(s));
  }
  const CheckedProblem<T> problem{grid_, layout_, slabs_, axis_, front, back, side_values_, projected_};
  return SolutionCheck<T>(*runtime_, problem, models_, known)(u, source);
}

template class SlabbedProblem<float>;
template class SlabbedProblem<double>;

}  // namespace asterism::poisson
