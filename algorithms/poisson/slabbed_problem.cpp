#include "slabbed_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "../../runtime/collectives.hpp"
#include "../common/statement.hpp"
#include "singular_mean.hpp"

namespace asterism::poisson {
namespace {

using Clock = std::chrono::steady_clock;
using grid::AxisRow;
using sums::SquareSum;

/// Half a unit in the last place of 1.
template <class T>
constexpr double rounding = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What the tasks of all ranks are cut by: their machines may differ, but their graphs must not. Rank 0's slabs, lanes
/// and dealing; streaming where any rank has to; the working memory of the rank that needs the most.
struct Agreement {
  Mode mode = Mode::incore;
  Index slab_planes = 0, lanes = 0, scratch = 0;
  Dealing dealing = Dealing::blocks;
};
Agreement agreement_of_ranks(const Runtime& runtime, const Layout& mine) {
  const std::vector<Agreement> all =
      gather(runtime, Agreement{mine.mode, mine.slab_planes, mine.lanes, mine.scratch, mine.dealing});
  Agreement agreement = all.front();
  for (const Agreement& its : all) {
    if (its.mode == Mode::streaming) agreement.mode = Mode::streaming;
    agreement.scratch = std::max(agreement.scratch, its.scratch);
  }
  return agreement;
}

/// With several ranks each chooses a second time, around what was agreed on: so many planes at once as its own workers
/// transform, and so many slabs in flight as its own memories hold.
template <class Choice>
Layout agreed_layout(const Runtime& runtime, const Machine& machine, const Grid& grid, Settings settings,
                     const Choice& choose) {
  Layout layout;
  agree(runtime, [&] { layout = choose(machine, grid, settings); });  // a memory may be too small on one rank only
  if (runtime.ranks() == 1) return layout;
  const Agreement slabs = agreement_of_ranks(runtime, layout);
  settings.mode = slabs.mode;
  settings.slab_planes = slabs.slab_planes;
  agree(runtime, [&] { layout = choose(machine, grid, settings); });
  layout.scratch = agreement_of_ranks(runtime, layout).scratch;
  layout.lanes = slabs.lanes;
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
  return s.add("mode", settings.mode).add("planes of a slab", settings.slab_planes).add("mean", settings.mean).text();
}

/// Takes a number off all values of a tile.
template <class T>
void subtract(const Tile<T>& tile, double number) {
  const HostView<T> view(tile, HostView<T>::Access::read_write);
  for (Index i = 0; i < view.rows(); ++i)
    for (Index j = 0; j < view.cols(); ++j)
      view(i, j) = static_cast<T>(static_cast<double>(view(i, j)) - number);
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
                                  const Choice& choose)
    : runtime_(&runtime), grid_(discretise(problem)), settings_(settings) {
  runtime.require_alike(statement(problem, settings, sizeof(T)));
  const Machine machine = runtime.machine();
  layout_ = agreed_layout(runtime, machine, grid_, settings, choose);
  cpus_ = machine.count(WorkerKind::cpu);
  slabs_ = SlabPartition(runtime, grid_, layout_, machine.count(WorkerKind::cuda));

  axis_ = slabs_.per_plane(grid::axis_columns);
  for (Index number = 0; number < slab_count(); ++number)
    set_axis_rows(runtime, axis_[number], grid_, slabs_.first_in_problem(slabs_[number].place));
  front_ = slabs_.per_slab<T>(1, grid_.columns());
  back_ = slabs_.per_slab<T>(1, grid_.columns());
  side_values_.emplace(runtime, with_planes_to_cut(problem), grid_, slabs_);
}

template <class T>
Index SlabbedProblem<T>::first_plane() const {
  return first_plane(slabs_.of_rank(runtime_->rank()).first);
}

template <class T>
Index SlabbedProblem<T>::plane_count() const {
  return first_plane(slabs_.of_rank(runtime_->rank()).end) - first_plane();
}

template <class T>
Hints SlabbedProblem<T>::before_passes_hints(Slab s) const {
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
    side_values_->lift(s, f[number], axis_[number], before_passes_hints(s));
  }
}

template <class T>
Tiles<T> SlabbedProblem<T>::borrow(T* planes) const {
  const Index start = first_plane();
  return slabs_.per_plane<T>(grid_.columns(), [&](Index number, Index) {
    return slabs_.is_mine(slabs_[number]) ? planes + (first_plane(number) - start) * grid_.columns() : nullptr;
  });
}

template <class T>
Tiles<T> SlabbedProblem<T>::own() const {
  return slabs_.per_plane<T>(grid_.columns());
}

template <class T>
grid::ModelProblem SlabbedProblem<T>::model_problem(const Known& known, Index number) const {
  return {known.model, known.seed + static_cast<std::uint64_t>(slabs_[number].problem), grid_.slow, grid_.a};
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
  const Slab s = slabs_[number];
  grid::codelets::model_rhs<T>({model_problem(known, number), slabs_.first_in_problem(s.place)},
                               axis_[number], f, slabs_.hints(s));
}

template <class T>
std::vector<double> SlabbedProblem<T>::solution_means(const Tiles<T>& f) {
  const PlaneMoments moments(*runtime_, grid_, layout_, slabs_);
  for (Index number = 0; number < slab_count(); ++number) {
    const Slab s = slabs_[number];
    moments.take(s, f[number], axis_[number], before_passes_hints(s));
  }
  projected_.clear();
  const char* const what = side_values_->any() ? "f, with the given derivatives," : "f";
  SolvedMeans means = solve_means(grid_, settings_, moments.of_all_planes(), rounding<T>, what);
  projected_ = std::move(means.projected);
  return std::move(means.of_planes);
}

/// The mean of a model's u in every problem of the batch. An operator without second differences and with
/// lambda = 1 leaves u as it is, so that u is its right-hand side. Collective.
template <class T>
std::vector<double> SlabbedProblem<T>::means_of(const Known& known) const {
  const std::vector<Tile<double>> unlinked = one_per_rank(*runtime_, layout_.slab_planes, grid::axis_columns);
  for (const Tile<double>& tile : unlinked)
    set(*runtime_, tile, [](Index, Index column) { return column == grid::width_column ? 1.0 : 0.0; });
  const PlaneMoments moments(*runtime_, grid_, layout_, slabs_);
  for (Index number = 0; number < slab_count(); ++number) {
    const Slab s = slabs_[number];
    grid::ModelProblem problem = model_problem(known, number);
    problem.a.x.length = problem.a.y.length = std::numeric_limits<double>::infinity();
    problem.a.lambda = 1;
    const Tile<T> u(*runtime_, slabs_.planes_of(s.place), grid_.columns(), slabs_.owner(number));
    grid::codelets::model_rhs<T>({problem, slabs_.first_in_problem(s.place)}, slabs_.mine(unlinked, s), u,
                                 slabs_.hints(s));
    moments.take(s, u, axis_[number], slabs_.hints(s));
  }
  const std::vector<double> all = moments.of_all_planes();
  std::vector<double> means(static_cast<std::size_t>(grid_.batch));
  for (Index plane = 0; plane < grid_.total_planes(); ++plane)
    means[static_cast<std::size_t>(plane / grid_.planes)] +=
        all[static_cast<std::size_t>(grid::moments_count * plane + grid::first_moment)] / grid_.measure();
  return means;
}

template <class T>
Check SlabbedProblem<T>::check(Tiles<T>& u, const Source& source, const std::optional<Known>& known) {
  const auto start = Clock::now();
  require_slabs(u);
  const Index last = layout_.slabs - 1;
  const auto sums = slabs_.per_slab<SquareSum>(1, grid::residual_sums);
  std::vector<Tile<T>> zeros;
  for (int rank = 0; rank < runtime_->ranks(); ++rank) {
    zeros.emplace_back(*runtime_, 1, grid_.columns(), rank);
    set(*runtime_, zeros.back(), [](Index, Index) { return T{0}; });
  }
  const auto work = one_per_rank<SquareSum>(*runtime_, 1, grid::cuda::residual_scratch);
  // Where constants may be added to u, the one whose mean vanishes is found: the random u less its mean.
  const bool floats = known && known->model == grid::Model::random && grid_.has_constants();
  const std::vector<double> means = floats ? means_of(*known) : std::vector<double>{};
  const auto beside = [&](Slab s, Index step, const Tiles<T>& edges) -> const Tile<T>& {
    const Index place = s.place + step;
    if (place >= 0 && place <= last) return edges[s.number + step];
    if (!grid_.slow.periodic()) return slabs_.mine(zeros, s);
    return edges[slabs_.slab(s.problem, place < 0 ? last : 0).number];
  };

  // Two buffers take turns for f: one is filled while the other is being looked at. Replacing a tile waits
  // for its tasks, so no more than two slabs are ever there beside the solution. A model's f needs no main
  // memory.
  const std::size_t slab_bytes =
      known ? 1 : static_cast<std::size_t>(layout_.slab_planes * grid_.columns()) * sizeof(T);
  const PinnedBuffer buffers[2] = {{*runtime_, slab_bytes}, {*runtime_, slab_bytes}};
  Tile<T> f[2];
  for (Index number = 0; number < slab_count(); ++number) {
    const Slab s = slabs_[number];
    const bool mine_too = slabs_.is_mine(s);
    Tile<T>& rhs = f[number % 2];
    rhs = Tile<T>();
    if (known)
      rhs = Tile<T>(*runtime_, slabs_.planes_of(s.place), grid_.columns(), slabs_.owner(number));
    else
      rhs = Tile<T>(*runtime_, mine_too ? buffers[number % 2].as<T>() : nullptr, slabs_.planes_of(s.place),
                    grid_.columns(), grid_.columns(), slabs_.owner(number));
    if (mine_too) source(number, rhs);
    const double mean = projected_.empty() ? 0 : projected_[static_cast<std::size_t>(slabs_[number].problem)];
    const bool project = mine_too && mean != 0;
    if (project) rhs.wait();
    if (project && !runtime_->task_has_failed()) subtract(rhs, mean);  // or a view would throw what wait() throws everywhere
    side_values_->lift(s, rhs, axis_[number], slabs_.hints(s));
    grid::SlabProblem problem{model_problem(known.value_or(Known{}), number),
                              slabs_.first_in_problem(s.place), known.has_value()};
    if (floats) problem.problem.mean = means[static_cast<std::size_t>(slabs_[number].problem)];
    grid::codelets::residual<T>(problem, u[number], beside(s, -1, back_), beside(s, 1, front_), rhs,
                                axis_[number], sums[number], slabs_.mine(work, s), slabs_.hints(s));
    if (layout_.mode == Mode::streaming) u[number].wont_use();
  }
  runtime_->wait();

  std::vector<SquareSum> total(grid::residual_sums);
  for (Index number = 0; number < slab_count(); ++number) {
    if (!slabs_.is_mine(slabs_[number])) continue;
    const HostView<SquareSum> view(sums[number], HostView<SquareSum>::Access::read);
    for (Index i = 0; i < grid::residual_sums; ++i) total[static_cast<std::size_t>(i)] += view(0, i);
  }
  sum_over_ranks(*runtime_, total);

  const auto norm = [&](grid::ResidualSum which) { return total[which].root(); };
  Check check;
  check.scaled_residual =
      ratio(norm(grid::residual2), grid_.operator_norm() * norm(grid::solution2) + norm(grid::rhs2));
  check.reason = !std::isfinite(check.scaled_residual)   ? Reason::not_finite
                 : check.scaled_residual > most_eps * rounding<T> ? Reason::inaccurate
                                                         : Reason::solved;
  if (known) check.error = ratio(norm(grid::error2), norm(grid::known2));
  check.seconds = seconds_since(start);
  return check;
}

template class SlabbedProblem<float>;
template class SlabbedProblem<double>;

}  // namespace asterism::poisson
