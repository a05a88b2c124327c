#include "check.hpp"

#include <cmath>

#include "../../../runtime/collectives.hpp"
#include "../../common/set.hpp"

namespace asterism::poisson {
namespace {

using sums::SquareSum;

/// Takes a number off all values of a tile.
template <class T>
void subtract(const Tile<T>& tile, double number) {
  const HostView<T> view(tile, HostView<T>::Access::read_write);
  for (Index i = 0; i < view.rows(); ++i)
    for (Index j = 0; j < view.cols(); ++j)
      view(i, j) = static_cast<T>(static_cast<double>(view(i, j)) - number);
}

}  // namespace

template <class T>
SolutionCheck<T>::SolutionCheck(Runtime& runtime, const CheckedProblem<T>& problem,
                                const ModelProblems<T>& models, const std::optional<Known>& known)
    : runtime_(&runtime),
      problem_(problem),
      models_(&models),
      known_(known),
      sums_(problem.slabs.template per_slab<SquareSum>(1, grid::residual_sums)),
      zeros_(runtime, 1, problem.grid.columns()),
      work_(runtime, 1, grid::cuda::residual_scratch) {
  for (const Tile<T>& tile : zeros_) set(runtime, tile, [](Index, Index) { return 0; });
  // Where constants may be added to u, the one whose mean vanishes is found: the random u less its mean.
  if (known && known->model == grid::Model::random && problem.grid.has_constants())
    means_ = models.means_of(*known);
  if (known) return;  // a model's f needs no main memory
  const Index elements = problem.layout.slab_planes * problem.grid.columns();
  for (PinnedBuffer& buffer : buffers_)
    buffer = PinnedBuffer(runtime, static_cast<std::size_t>(elements) * sizeof(T));
}

template <class T>
const Tile<T>& SolutionCheck<T>::plane_beside(Slab s, Index step, const Tiles<T>& edges) const {
  const Border border = problem_.grid.slow.periodic() ? Border::periodic : Border::open;
  const std::optional<Slab> other = problem_.slabs.beside(s, step, border);
  return other ? edges[other->number] : problem_.slabs.mine(zeros_, s);
}

/// As solve() has had it, less its mean and with the given values in it.
template <class T>
const Tile<T>& SolutionCheck<T>::right_hand_side(Slab s, const Source& source) {
  const bool mine = problem_.slabs.is_mine(s);
  const Index planes = problem_.slabs.planes_of(s.place), columns = problem_.grid.columns();
  const int owner = problem_.slabs.owner(s.number);
  const PinnedBuffer& buffer = buffers_[s.number % 2];
  Tile<T>& f = f_[s.number % 2];
  f = Tile<T>();
  f = known_ ? Tile<T>(*runtime_, planes, columns, owner)
             : Tile<T>(*runtime_, mine ? buffer.as<T>() : nullptr, planes, columns, columns, owner);
  if (mine) source(s.number, f);
  const double mean =
      problem_.projected.empty() ? 0 : problem_.projected[static_cast<std::size_t>(s.problem)];
  const bool project = mine && mean != 0;
  if (project) f.wait();
  if (project && !runtime_->task_has_failed())
    subtract(f, mean);  // or a view would throw what wait() throws everywhere
  problem_.side_values.lift(s, f, problem_.axis[s.number], problem_.slabs.hints(s));
  return f;
}

template <class T>
void SolutionCheck<T>::submit(Slab s, const Tile<T>& u, const Tile<T>& f) const {
  grid::SlabProblem model{models_->problem(known_.value_or(Known{}), s),
                          problem_.slabs.first_in_problem(s.place), known_.has_value()};
  if (!means_.empty()) model.problem.mean = means_[static_cast<std::size_t>(s.problem)];
  grid::codelets::residual<T>(model,
                              {.u = u,
                               .before = plane_beside(s, -1, problem_.back),
                               .after = plane_beside(s, 1, problem_.front),
                               .f = f,
                               .axis = problem_.axis[s.number],
                               .sums = sums_[s.number],
                               .work = problem_.slabs.mine(work_, s)},
                              problem_.slabs.hints(s));
  if (problem_.layout.mode == Mode::streaming) u.wont_use();
}

/// The sums of all slabs.
template <class T>
std::vector<SquareSum> SolutionCheck<T>::total() const {
  std::vector<SquareSum> total(grid::residual_sums);
  for (Index number = 0; number < problem_.slabs.count(); ++number) {
    if (!problem_.slabs.is_mine(problem_.slabs[number])) continue;
    const HostView<SquareSum> view(sums_[number], HostView<SquareSum>::Access::read);
    for (Index i = 0; i < grid::residual_sums; ++i) total[static_cast<std::size_t>(i)] += view(0, i);
  }
  sum_over_ranks(*runtime_, total);
  return total;
}

template <class T>
Check SolutionCheck<T>::operator()(const Tiles<T>& u, const Source& source) {
  for (Index number = 0; number < problem_.slabs.count(); ++number) {
    const Slab s = problem_.slabs[number];
    submit(s, u[number], right_hand_side(s, source));
  }
  runtime_->wait();

  const std::vector<SquareSum> sums = total();
  const auto norm = [&](grid::ResidualSum which) { return sums[which].root(); };
  Check check;
  check.scaled_residual =
      ratio(norm(grid::residual2), problem_.grid.operator_norm() * norm(grid::solution2) + norm(grid::rhs2));
  check.reason = !std::isfinite(check.scaled_residual)            ? Reason::not_finite
                 : check.scaled_residual > most_eps * rounding<T> ? Reason::inaccurate
                                                                  : Reason::solved;
  if (known_) check.error = ratio(norm(grid::error2), norm(grid::known2));
  check.seconds = watch_.lap();
  return check;
}

template class SolutionCheck<float>;
template class SolutionCheck<double>;

}  // namespace asterism::poisson
