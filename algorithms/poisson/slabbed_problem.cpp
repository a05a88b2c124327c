#include "slabbed_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "../../runtime/collectives.hpp"
#include "../common/statement.hpp"

namespace asterism::poisson {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::AxisRow;
using kernels::SquareSum;

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

/// The solution, with mean zero, of (S1) with mu = 0 where no end of the axis is held: right-hand sides f,
/// replaced. The flux after row j, link_after (v_{j+1} - v_j), is the one before it plus width f_j; it begins
/// with zero, or, where the axis is periodic, such that its drops around the axis add up to zero.
void solve_without_mean(const std::vector<AxisRow>& rows, bool periodic, std::vector<double>& f) {
  const std::size_t m = rows.size();
  std::vector<long double> flux(m);  // after each row
  long double sum = 0, total_width = 0;
  for (std::size_t j = 0; j < m; ++j)
    total_width += rows[j].width, sum += static_cast<long double>(rows[j].width) * f[j];
  const long double mean = sum / total_width;
  long double before = 0, drops = 0, resistance = 0;
  for (std::size_t j = 0; j < m; ++j) {
    before += rows[j].width * (f[j] - mean);
    flux[j] = before;
    if (periodic) drops += flux[j] / rows[j].after, resistance += 1 / static_cast<long double>(rows[j].after);
  }
  const long double first = periodic ? -drops / resistance : 0;
  long double v = 0, weighted = 0;
  std::vector<long double> solution(m);
  for (std::size_t j = 0; j < m; ++j) {
    solution[j] = v;
    weighted += rows[j].width * v;
    if (j + 1 < m) v += (flux[j] + first) / rows[j].after;
  }
  for (std::size_t j = 0; j < m; ++j) f[j] = static_cast<double>(solution[j] - weighted / total_width);
}

bool is_given(const End& end) {
  return end.value != 0 || std::any_of(end.values.begin(), end.values.end(), [](double v) { return v != 0; });
}

/// Takes a number off all values of a tile.
template <class T>
void subtract(const Tile<T>& tile, double number) {
  const HostView<T> view(tile, HostView<T>::Access::read_write);
  for (Index i = 0; i < view.rows(); ++i)
    for (Index j = 0; j < view.cols(); ++j)
      view(i, j) = static_cast<T>(static_cast<double>(view(i, j)) - number);
}

double value_at(const End& end, Index node) {
  return end.values.empty() ? end.value : end.values[static_cast<std::size_t>(node)];
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

  axis_ = slabs_.per_plane(kernels::axis_columns);
  for (Index number = 0; number < slab_count(); ++number)
    set_axis_rows(runtime, axis_[number], grid_, slabs_.first_in_problem(slabs_[number].place));
  front_ = slabs_.per_slab<T>(1, grid_.columns());
  back_ = slabs_.per_slab<T>(1, grid_.columns());
  make_side_values(with_planes_to_cut(problem));
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
void SlabbedProblem<T>::make_side_values(const Problem& problem) {
  const auto any = [](const Ends& ends) { return is_given(ends.lower) || is_given(ends.upper); };
  if (std::none_of(problem.ends.begin(), problem.ends.end(), any)) return;
  const std::size_t axes = problem.ends.size();
  const Ends none;
  const Ends &z = problem.ends[0], &y = axes == 3 ? problem.ends[1] : none, &x = problem.ends[axes - 1];
  const Index ny = grid_.a.y.n, nx = grid_.a.x.n;

  z_sides_ = one_per_rank(*runtime_, 2, grid_.columns());
  for (const Tile<double>& tile : z_sides_)
    set(*runtime_, tile, [&](Index end, Index node) { return value_at(end == 0 ? z.lower : z.upper, node); });
  const auto along = [&](const Ends& ends, Index nodes) {  // values at the ends of a line in each plane
    Tiles<double> sides = slabs_.per_plane(2 * nodes);
    for (Index number = 0; number < slab_count(); ++number)
      set(*runtime_, sides[number], [&](Index i, Index column) {
        const Index plane = slabs_.first_in_problem(slabs_[number].place) + i;
        return value_at(column < nodes ? ends.lower : ends.upper, plane * nodes + column % nodes);
      });
    return sides;
  };
  y_sides_ = along(y, nx);
  x_sides_ = along(x, ny);
}

template <class T>
void SlabbedProblem<T>::lift(Tiles<T>& f) const {
  if (z_sides_.empty()) return;
  for (Index number = 0; number < slab_count(); ++number) {
    const Slab s = slabs_[number];
    lift_slab(s, f[number], before_passes_hints(s));
  }
}

template <class T>
void SlabbedProblem<T>::lift_slab(Slab s, const Tile<T>& f, const Hints& hints) const {
  if (z_sides_.empty()) return;
  const kernels::LiftedSlab slab{grid_.a,          grid_.slow.lower,
                                 grid_.slow.upper, grid_.slow.spacing(),
                                 slabs_.is_first(s), slabs_.is_last(s)};
  codelets::lift<T>(slab, f, x_sides_[s.number], y_sides_[s.number], slabs_.mine(z_sides_, s), axis_[s.number],
                    hints);
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
kernels::ModelProblem SlabbedProblem<T>::model_problem(const Known& known, Index number) const {
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
  codelets::model_rhs<T>({model_problem(known, number), slabs_.first_in_problem(s.place)}, axis_[number], f,
                         slabs_.hints(s));
}

/// The moments of all planes, those of a plane together, on every rank. Collective.
template <class T>
std::vector<double> SlabbedProblem<T>::all_moments(const Tiles<double>& of_slabs) const {
  struct OfPlane {
    Index plane;
    std::array<double, kernels::moments_count> moments;
  };
  runtime_->wait();
  std::vector<OfPlane> mine;
  for (Index number = 0; number < slab_count(); ++number) {
    if (!slabs_.is_mine(slabs_[number])) continue;
    const HostView<double> view(of_slabs[number], HostView<double>::Access::read);
    for (Index i = 0; i < view.rows(); ++i) {
      OfPlane& added = mine.emplace_back(OfPlane{first_plane(number) + i, {}});
      std::copy_n(view.row(i), kernels::moments_count, added.moments.begin());
    }
  }
  std::vector<double> all(static_cast<std::size_t>(kernels::moments_count * grid_.total_planes()));
  for (const OfPlane& of_plane : gather_lists(*runtime_, mine))
    std::copy_n(of_plane.moments.begin(), kernels::moments_count, all.data() + kernels::moments_count * of_plane.plane);
  return all;
}

/// Mode 0 of every plane is the plane's mean. Its system has no unique solution, and none at all unless the
/// mean of f vanishes; it is solved here, for all planes together.
template <class T>
std::vector<double> SlabbedProblem<T>::solution_means(const Tiles<T>& f) {
  const Tiles<double> sums = slabs_.per_plane(kernels::moments_count);
  const std::vector<Tile<double>> work =
      one_per_rank(*runtime_, 1, layout_.slab_planes * kernels::cuda::moments_scratch);
  for (Index number = 0; number < slab_count(); ++number) {
    const Slab s = slabs_[number];
    codelets::moments<T>(grid_.a, f[number], axis_[number], sums[number], slabs_.mine(work, s),
                         before_passes_hints(s));
  }
  const std::vector<double> all = all_moments(sums);
  const auto planes = static_cast<std::size_t>(grid_.planes);
  std::vector<double> means;
  projected_.assign(static_cast<std::size_t>(grid_.batch), 0);
  double width = 0;
  for (const AxisRow& row : grid_.rows) width += row.width;
  const double measure = grid_.measure(), plane_measure = measure / width;
  for (Index problem = 0; problem < grid_.batch; ++problem) {
    const double* const sum = all.data() + 2 * static_cast<std::size_t>(problem * grid_.planes);
    std::vector<double> mean_of_plane(planes);
    double mean = 0, magnitude = 0;
    for (std::size_t j = 0; j < planes; ++j) {
      mean_of_plane[j] = sum[2 * j + kernels::first_moment] / (grid_.rows[j].width * plane_measure);
      mean += sum[2 * j + kernels::first_moment] / measure;
      magnitude += sum[2 * j + kernels::absolute_moment] / measure;
    }
    // The numbers of f are rounded themselves, each by half a unit in its last place.
    constexpr double rounding = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
    const double vanishing = 16 * std::max(rounding, settings_.source_rounding) * magnitude;
    if (settings_.mean == Mean::require && !(std::abs(mean) <= vanishing) && !std::isnan(mean))
      throw Error(fmt::format(
          "the mean of f{} is {:.6g}, {:.2g} of the mean of |f|, and there is no solution unless it "
          "vanishes: no end is held at a value and lambda is 0; correct f, or project its mean away "
          "(--project-mean)",
          z_sides_.empty() ? "" : ", with the given derivatives,", mean, std::abs(mean) / magnitude));
    // What coarser numbers leave of the mean is taken away, too: it is more than rounding here.
    if (settings_.mean == Mean::project || std::abs(mean) > 16 * rounding * magnitude)
      projected_[static_cast<std::size_t>(problem)] = mean;
    solve_without_mean(grid_.rows, grid_.slow.periodic(), mean_of_plane);
    means.insert(means.end(), mean_of_plane.begin(), mean_of_plane.end());
  }
  return means;
}

/// The mean of a model's u in every problem of the batch. An operator without second differences and with
/// lambda = 1 leaves u as it is, so that u is its right-hand side. Collective.
template <class T>
std::vector<double> SlabbedProblem<T>::means_of(const Known& known) const {
  const std::vector<Tile<double>> unlinked =
      one_per_rank(*runtime_, layout_.slab_planes, kernels::axis_columns);
  for (const Tile<double>& tile : unlinked)
    set(*runtime_, tile, [](Index, Index column) { return column == kernels::width_column ? 1.0 : 0.0; });
  const std::vector<Tile<double>> work =
      one_per_rank(*runtime_, 1, layout_.slab_planes * kernels::cuda::moments_scratch);
  const Tiles<double> sums = slabs_.per_plane(kernels::moments_count);
  for (Index number = 0; number < slab_count(); ++number) {
    const Slab s = slabs_[number];
    kernels::ModelProblem problem = model_problem(known, number);
    problem.a.x.length = problem.a.y.length = std::numeric_limits<double>::infinity();
    problem.a.lambda = 1;
    const Tile<T> u(*runtime_, slabs_.planes_of(s.place), grid_.columns(), slabs_.owner(number));
    codelets::model_rhs<T>({problem, slabs_.first_in_problem(s.place)}, slabs_.mine(unlinked, s), u, slabs_.hints(s));
    codelets::moments<T>(grid_.a, u, axis_[number], sums[number], slabs_.mine(work, s), slabs_.hints(s));
  }
  const std::vector<double> all = all_moments(sums);
  std::vector<double> means(static_cast<std::size_t>(grid_.batch));
  for (Index plane = 0; plane < grid_.total_planes(); ++plane)
    means[static_cast<std::size_t>(plane / grid_.planes)] +=
        all[static_cast<std::size_t>(kernels::moments_count * plane + kernels::first_moment)] /
        grid_.measure();
  return means;
}

template <class T>
Check SlabbedProblem<T>::check(Tiles<T>& u, const Source& source, const std::optional<Known>& known) {
  const auto start = Clock::now();
  require_slabs(u);
  const Index last = layout_.slabs - 1;
  const auto sums = slabs_.per_slab<SquareSum>(1, kernels::residual_sums);
  std::vector<Tile<T>> zeros;
  for (int rank = 0; rank < runtime_->ranks(); ++rank) {
    zeros.emplace_back(*runtime_, 1, grid_.columns(), rank);
    set(*runtime_, zeros.back(), [](Index, Index) { return T{0}; });
  }
  const auto work = one_per_rank<SquareSum>(*runtime_, 1, kernels::cuda::residual_scratch);
  // Where constants may be added to u, the one whose mean vanishes is found: the random u less its mean.
  const bool floats = known && known->model == kernels::Model::random && grid_.has_constants();
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
    lift_slab(s, rhs, slabs_.hints(s));
    kernels::SlabProblem problem{model_problem(known.value_or(Known{}), number),
                                 slabs_.first_in_problem(s.place), known.has_value()};
    if (floats) problem.problem.mean = means[static_cast<std::size_t>(slabs_[number].problem)];
    codelets::residual<T>(problem, u[number], beside(s, -1, back_), beside(s, 1, front_), rhs, axis_[number],
                          sums[number], slabs_.mine(work, s), slabs_.hints(s));
    if (layout_.mode == Mode::streaming) u[number].wont_use();
  }
  runtime_->wait();

  std::vector<SquareSum> total(kernels::residual_sums);
  for (Index number = 0; number < slab_count(); ++number) {
    if (!slabs_.is_mine(slabs_[number])) continue;
    const HostView<SquareSum> view(sums[number], HostView<SquareSum>::Access::read);
    for (Index i = 0; i < kernels::residual_sums; ++i) total[static_cast<std::size_t>(i)] += view(0, i);
  }
  sum_over_ranks(*runtime_, total);

  const auto norm = [&](kernels::ResidualSum which) { return total[which].root(); };
  Check check;
  check.scaled_residual =
      ratio(norm(kernels::residual2), grid_.operator_norm() * norm(kernels::solution2) + norm(kernels::rhs2));
  constexpr double eps = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
  check.reason = !std::isfinite(check.scaled_residual)   ? Reason::not_finite
                 : check.scaled_residual > most_eps * eps ? Reason::inaccurate
                                                         : Reason::solved;
  if (known) check.error = ratio(norm(kernels::error2), norm(kernels::known2));
  check.seconds = seconds_since(start);
  return check;
}

template class SlabbedProblem<float>;
template class SlabbedProblem<double>;

}  // namespace asterism::poisson
