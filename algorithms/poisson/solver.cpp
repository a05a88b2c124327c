#include "solver.hpp"

#include <atomic>
#include <iterator>

#include "../common/set.hpp"
#include "slabs/speeds.hpp"

namespace asterism::poisson {
namespace {

/// In three dimensions two axes are transformed; what they round is seen undiluted where the third hardly counts in A.
transforms::Care care_of(const Grid& grid) {
  constexpr double little = 0.45;  // of a cube 0.5
  const grid::Axis& y = grid.a.y;
  const grid::Axis& x = grid.a.x;
  if (!is_transformed(y) || !is_transformed(x)) return transforms::Care::usual;
  return grid.slow.per_h2() < little * (y.per_h2() + x.per_h2()) ? transforms::Care::most : transforms::Care::more;
}

SlabArgs slab_args(const Grid& grid) {
  SlabArgs args{grid.a.y, grid.a.x, 1, 1, grid.interface(), grid.slow.periodic(), grid.has_constants()};
  args.care = care_of(grid);
  return args;
}

/// Those of the layout, and the plans of the transforms made for them, whose bias is taken off with their factor: all of u
/// would be too large or too small by it.
template <class T>
SlabArgs planned_args(Runtime& runtime, const Grid& grid, const Layout& layout) {
  SlabArgs args = slab_args(grid);
  args.planes_at_once = layout.planes_at_once;
  std::atomic<double> bias = 0;  // of GPUs of a rank, any one's
  if (layout.where == Where::cpu) bias = cpu::plan_slabs<T>(args);
  if constexpr (built_with_cuda)
    if (layout.where == Where::cuda)
      runtime.on_each_worker(WorkerKind::cuda, [&] { bias = cuda::plan_slabs<T>(args); });
  args.scale = static_cast<double>(1 / (round_trip(args) * (1 + static_cast<long double>(bias))));
  return args;
}

std::vector<ModeTiles> modes_of_ranks(Runtime& runtime, const Grid& grid) {
  const std::vector<double> mu = mode_eigenvalues(grid);
  std::vector<ModeTiles> modes;
  for (int rank = 0; rank < runtime.ranks(); ++rank)
    modes.push_back(mode_tiles(runtime, grid, rank, mu, 0, grid.columns()));
  return modes;
}

}  // namespace

template <class T>
Solver<T>::Solver(Runtime& runtime, const Problem& problem, const Settings& settings)
    : SlabbedProblem<T>(
          runtime, problem, settings,
          [](const Machine& machine, const RankedMachine& all, const Grid& grid, const Settings& agreed) {
            return choose_layout<T>(machine, all, grid, agreed, slab_args(grid));
          },
          [&](const Grid& grid, const Layout& layout, std::vector<Candidate>& workers) {
            const SlabArgs args = planned_args<T>(runtime, grid, layout);
            measure_slabs<T>(runtime, grid, layout, args, workers);
          }),
      args_(planned_args<T>(runtime, grid_, layout_)),
      modes_(modes_of_ranks(runtime, grid_)),
      stream_(runtime, layout_, settings, slabs_),
      means_(args_.sets_mean ? slabs_.per_plane(1) : Tiles<double>{}),
      interface_(runtime, grid_, layout_, slabs_, axis_, modes_) {}

template <class T>
Report Solver<T>::solve(Tiles<T>& f) {
  require_slabs(f);
  const Begun begun = begin();
  lift(f);
  if (means() == Means::first) take_means(f);

  for (Index problem = 0; problem < grid_.batch; ++problem) {
    const std::vector<Slab> turns = slabs_.turns(problem);
    stream_.begin(turns);
    interface_.begin(problem);

    // Pass 1, from both ends to the middle: what every slab shows to the others. A single slab has no others.
    if (interface_.exist()) {
      for (const Slab s : turns) {
        stream_.wait_for_room();
        transform_and_reduce(s, f[s.number]);
        interface_.eliminate(s);
      }
      interface_.close();
    }
    if (means() == Means::first) set_means(turns, solution_means(problem));

    // Pass 2, from the middle back: every slab between its neighbours. These are known a turn ahead, so that nothing keeps
    // the slab from coming.
    interface_.substitute_down_to(turns.back());
    for (auto s = turns.rbegin(); s != turns.rend(); ++s) {
      stream_.wait_for_room();
      if (const auto next = std::next(s); next != turns.rend()) interface_.substitute_down_to(*next);
      solve_and_transform_back(*s, f[s->number]);
    }
  }
  const Report report = finish(begun, f);
  if (means() == Means::in_task) look_at_mean();
  return report;
}

template <class T>
void Solver<T>::transform_and_reduce(Slab s, const Tile<T>& f) {
  const Tile<double>& mu = slabs_.mine(modes_, s).mu;
  const Tile<double>&axis = axis_[s.number], &shown = interface_.shown(s);
  if (stream_.keeps_all())
    codelets::transform_slab<T>(
        args_, {.f = f, .axis = axis, .mu = mu, .shown = shown, .work = stream_.work(s)}, slabs_.hints(s));
  else
    codelets::reduce_slab<T>(args_, {.f = f, .axis = axis, .mu = mu, .shown = shown, .work = stream_.work(s)},
                             slabs_.hints(s));
  stream_.reduced(s, f);
}

template <class T>
void Solver<T>::solve_and_transform_back(Slab s, const Tile<T>& f) {
  const ModeTiles& modes = slabs_.mine(modes_, s);
  const Tile<double>&axis = axis_[s.number],
        &given_means = means() == Means::first ? means_[s.number] : modes.after_axis, &work = stream_.work(s);
  SlabArgs args = args_;
  if (interface_.exist() && stream_.keeps_all()) args.content = Content::modes;
  if (means() == Means::in_task) args.mean_system = &mean_system();
  stream_.to_be_solved(f);
  if (interface_.exist() || !args.is_periodic)
    codelets::solve_slab<T>(args,
                            {.f = f,
                             .axis = axis,
                             .mu = modes.mu,
                             .before = interface_.before(s),
                             .after = interface_.after(s),
                             .means = given_means,
                             .work = work},
                            slabs_.hints(s));
  else
    codelets::solve_ring_slab<T>(args,
                                 {.f = f,
                                  .axis = axis,
                                  .mu = modes.mu,
                                  .response = interface_.response(s),
                                  .means = given_means,
                                  .work = work},
                                 slabs_.hints(s));
  stream_.solved(f);
  interface_.forget_around(s);
}

/// Mode 0 of every plane is the plane's mean.
template <class T>
void Solver<T>::set_means(const std::vector<Slab>& slabs, const double* of_planes) {
  for (const Slab s : slabs)
    set(*runtime_, means_[s.number],
        [&, first = slabs_.first_in_problem(s.place)](Index i, Index) { return of_planes[first + i]; });
}

template <class T>
Report solve(Runtime& runtime, const Problem& problem, T* f, const Settings& settings) {
  if (runtime.ranks() > 1)
    throw Error("poisson::solve works on one rank's memory; with several ranks use poisson::Solver");
  Solver<T> solver(runtime, problem, settings);
  Tiles<T> slabs = solver.borrow(f);
  return solver.solve(slabs);
}

template class Solver<float>;
template class Solver<double>;
template Report solve(Runtime&, const Problem&, float*, const Settings&);
template Report solve(Runtime&, const Problem&, double*, const Settings&);

}  // namespace asterism::poisson
