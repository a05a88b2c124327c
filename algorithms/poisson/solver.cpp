#include "solver.hpp"

namespace asterism::poisson {
namespace {

kernels::SlabArgs slab_args(const Grid& grid) {
  kernels::SlabArgs args{grid.a.y, grid.a.x, 1, 1, grid.interface(), grid.has_constants()};
  args.scale = 1 / round_trip(args);
  return args;
}

}  // namespace

template <class T>
Solver<T>::Solver(Runtime& runtime, const Problem& problem, const Settings& settings)
    : SlabbedProblem<T>(runtime, problem, settings,
                        [](const Machine& machine, const Grid& grid, const Settings& agreed) {
                          return choose_layout<T>(machine, grid, agreed, slab_args(grid));
                        }) {
  args_ = slab_args(grid_);
  args_.planes_at_once = layout_.planes_at_once;
  equally_spaced_ = problem.coordinates.empty();
  if (layout_.where == Where::cpu) kernels::cpu::plan_slabs<T>(args_);
  if constexpr (built_with_cuda)
    if (layout_.where == Where::cuda)
      runtime.on_each_worker(WorkerKind::cuda, [&] { kernels::cuda::plan_slabs<T>(args_); });
  make_tables();
  make_responses();
}

template <class T>
Hints Solver<T>::interface_hints(Slab s) const {
  Hints interface = layout_.interface == Where::cuda ? hints(s) : Hints{.where = layout_.interface};
  interface.streams = false;
  interface.priority = 1;  // short tasks that everything waits for: before the slabs that are queued already
  return interface;
}

template <class T>
Tiles<double> Solver<T>::interface_tiles(Index rows) const {
  if (!layout_.keeps_interface) return per_slab(rows, grid_.columns());
  std::vector<Tile<double>> tiles;
  for (Index number = 0; number < slab_count(); ++number) {
    const int gpu = std::max(0, hints(slab_number(number)).worker);  // -1 where there is but one
    tiles.push_back(Tile<double>::kept_on_gpu(*runtime_, rows, grid_.columns(), gpu, owner(number)));
  }
  return Tiles<double>(std::move(tiles));
}

template <class T>
void Solver<T>::make_tables() {
  const auto owner_of = [this](Index number, Index) { return owner(number); };
  const Index n = grid_.columns();
  const std::vector<double> mu = mode_eigenvalues();
  for (int rank = 0; rank < runtime_->ranks(); ++rank) modes_.push_back(this->mode_tiles(rank, mu, 0, n));
  work_ = one_per_rank(*runtime_, 1, layout_.scratch);

  means_ = args_.sets_mean ? Tiles<double>(*runtime_, heights(), 1, owner_of, {}) : Tiles<double>{};

  const kernels::InterfaceRows& rows = args_.interface;
  shown_ = interface_tiles(rows.shown);
  prefix_ = interface_tiles(grid_.slow.periodic() ? rows.joined : rows.prefix);
  first_ = interface_tiles(rows.beside);
  before_ = interface_tiles(rows.beside);
  if (grid_.slow.periodic()) {
    const auto owner_of_last = [this](Index problem, Index) { return owner((problem + 1) * layout_.slabs - 1); };
    before_start_ = Tiles<double>(*runtime_, grid_.batch * rows.beside, n, rows.beside, n, owner_of_last);
    after_end_ = Tiles<double>(*runtime_, grid_.batch * rows.beside, n, rows.beside, n, owner_of_last);
  }
}

/// Slabs of equal rows respond equally: with equal spacings those inside, and those at the ends of the axis.
template <class T>
std::tuple<int, Index> Solver<T>::kind_of(Slab s) const {
  const bool first = s.place == 0, last = s.place == layout_.slabs - 1;
  const Index kind = !equally_spaced_ ? s.place : (first ? 1 : 0) + (last ? 2 : 0);
  return {owner(s.number), kind};
}

template <class T>
void Solver<T>::make_responses() {
  if (!has_interface()) return;
  for (Index number = 0; number < slab_count(); ++number) {
    const Slab s = slab_number(number);
    const auto [found, is_new] = responses_.try_emplace(kind_of(s));
    if (!is_new) continue;
    found->second = Tile<double>(*runtime_, args_.interface.response, grid_.columns(), owner(number));
    codelets::respond({}, axis_[number], modes(s).mu, found->second, hints(s));
  }
}

/// Mode 0 of every plane is the plane's mean.
template <class T>
void Solver<T>::set_means(const Tiles<T>& f) {
  const std::vector<double> means = solution_means(f);
  for (Index number = 0; number < slab_count(); ++number)
    set(*runtime_, means_[number],
        [&](Index i, Index) { return means[static_cast<std::size_t>(first_plane(number) + i)]; });
}

template <class T>
Report Solver<T>::solve(Tiles<T>& f) {
  require_slabs(f);
  const Begun begun = begin();
  const bool streaming = layout_.mode == Mode::streaming, periodic = grid_.slow.periodic();
  const Index last = layout_.slabs - 1;
  const auto prefix_before = [&](Slab s) -> const Tile<double>& {
    return s.place == 0 ? modes(s).before_axis : prefix_[s.number - 1];
  };
  const auto before = [&](Slab s) -> const Tile<double>& {
    return has_interface() ? before_[s.number] : modes(s).before_axis;
  };
  const auto after = [&](Slab s) -> const Tile<double>& {
    if (s.place < last) return first_[s.number + 1];
    return periodic ? after_end_[s.number / layout_.slabs] : modes(s).after_axis;
  };
  const auto before_start = [&](Slab s) -> const Tile<double>& {
    return periodic ? before_start_[s.number / layout_.slabs] : modes(s).after_axis;
  };
  // On GPUs with slabs that pass through there is no room to spare: interface tiles that have no room of their own are given
  // up one by one as pass 2 goes back.
  const bool forgets = streaming && layout_.interface == Where::cuda && !layout_.keeps_interface;
  // A step of the chain of interface tasks waits in line behind the slabs that its GPU has begun, and all other GPUs wait
  // with it: so the chain of pass 2 goes first, all of it.
  const bool chain_crosses_gpus =
      has_interface() && layout_.interface == Where::cuda && layout_.lanes * runtime_->ranks() > 1;
  // A stream that was submitted whole would have StarPU fetch slabs until there is no room left for the task that is to
  // run next.
  const auto wait_for_turn = [&] {
    if (streaming) runtime_->wait_for_room(static_cast<std::size_t>(layout_.slabs_in_flight));
  };

  lift(f);
  if (args_.sets_mean) set_means(f);

  for (Index problem = 0; problem < grid_.batch; ++problem) {
    kernels::SlabArgs args = args_;
    const std::vector<Index> turns = this->turns(problem);

    // Pass 1: what every slab shows to the others. A single slab has no others.
    std::vector<bool> is_shown(turns.size());
    Index next = 0;  // the next slab to eliminate, from the first on
    for (std::size_t turn = 0; turn < turns.size() && has_interface(); ++turn) {
      const Slab s = slab(problem, turns[turn]);
      wait_for_turn();
      if (streaming) {
        codelets::reduce_slab<T>(args, f[s.number], axis_[s.number], modes(s).mu, shown_[s.number], mine(work_, s), hints(s));
        // Pass 2 begins with the last ones.
        if (static_cast<Index>(turn) < layout_.slabs - layout_.slabs_in_flight) f[s.number].wont_use();
      } else {
        codelets::transform_slab<T>(args, f[s.number], axis_[s.number], modes(s).mu, shown_[s.number], mine(work_, s),
                                    hints(s));
      }
      is_shown[static_cast<std::size_t>(s.place)] = true;
      for (; next < layout_.slabs && is_shown[static_cast<std::size_t>(next)]; ++next) {
        const Slab e = slab(problem, next);
        if (next < last || periodic)
          codelets::eliminate({}, shown_[e.number], response(e), prefix_before(e), prefix_[e.number], interface_hints(e));
      }
    }
    if (has_interface() && !streaming) args.content = kernels::Content::modes;
    if (periodic)
      codelets::close({}, prefix_[slab(problem, last).number], before_start_[problem], after_end_[problem],
                      interface_hints(slab(problem, last)));

    // Pass 2, from the last slab back: substitute, then solve every slab between its known neighbours.
    next = last;  // to substitute
    const auto substitute_down_to = [&](Index place) {
      for (; next >= place && has_interface(); --next) {
        const Slab e = slab(problem, next);
        codelets::substitute({}, shown_[e.number], response(e), prefix_before(e), before_start(e), after(e),
                             first_[e.number], before_[e.number], interface_hints(e));
        if (forgets) shown_[e.number].forget();
        if (forgets && next > 0) prefix_[e.number - 1].forget();
      }
    };
    if (chain_crosses_gpus) {
      substitute_down_to(0);
      for (Index place = 0; place < layout_.slabs; ++place) before_[slab(problem, place).number].wait();
    }
    for (std::size_t turn = turns.size(); turn-- > 0;) {
      const Slab s = slab(problem, turns[turn]);
      wait_for_turn();
      substitute_down_to(s.place);
      if (streaming) f[s.number].write_through();
      codelets::solve_slab<T>(args, f[s.number], axis_[s.number], modes(s).mu, before(s), after(s),
                              args.sets_mean ? means_[s.number] : modes(s).after_axis, front_[s.number], back_[s.number],
                              mine(work_, s), hints(s));
      if (streaming) {
        f[s.number].wont_use();
        if (forgets && has_interface()) before_[s.number].forget();
        if (forgets && s.place < last) first_[s.number + 1].forget();
      } else if (settings_.fetch_result) {
        f[s.number].fetch();
      }
    }
  }
  return finish(begun, f);
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
