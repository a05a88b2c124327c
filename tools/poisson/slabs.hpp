/// \file
/// What the subcommands that run the Poisson solvers share.
#pragma once

#include <fmt/format.h>

#include <deque>

#include "../../algorithms/poisson/slabbed_problem.hpp"
#include "../../runtime/pause.hpp"
#include "stated_problem.hpp"

namespace asterism::tools {

/// Refuses a grid that has no place to be in, before anything is made for it.
/// @throw Error
template <class T>
void require_room(const Runtime& runtime, const poisson::Problem& problem) {
  const Options& options = runtime.options();
  const Index unknowns = count_unknowns(problem), planes = problem.batch * problem.shape.front();
  const Index mine = parts(planes, runtime.ranks());
  const double bytes = static_cast<double>(mine * (unknowns / planes)) * sizeof(T);
  const auto require = [&](std::size_t room, const char* where, const char* suggestion) {
    if (bytes > static_cast<double>(room))
      throw Error(fmt::format("the grid takes {}{}, {} {}; {}", human_bytes(bytes),
                              runtime.ranks() > 1 ? " a rank" : "", where,
                              human_bytes(static_cast<double>(room)), suggestion),
                  Blame::machine);
  };
  if (!options.spill.empty()) {
    require(runtime.machine().capacity(MemoryKind::disk), "--spill has", "name a folder on a larger disk");
    return;
  }
  require(physical_memory(), "main memory has", "use more ranks, or --memory with --spill DIR");
  if (options.cpu_memory > 0)
    require(options.cpu_memory, "--memory allows", "allow more, or add --spill DIR");
}

/// Warns where --project-mean has no effect.
template <class T>
void warn_of_unused_mean(const poisson::SlabbedProblem<T>& solver, const poisson::Settings& settings) {
  if (settings.mean == poisson::Mean::project && !solver.grid().has_constants())
    warn(
        "--project-mean has no effect: f need not have a mean of zero, for an end is Dirichlet or lambda is "
        "not 0");
}

/// The grid of a solver as slabs, with the memory behind them: one piece of main memory, or, where there is a
/// folder to spill to, whatever the runtime makes of it. Slabs are counted through the whole batch.
template <class T>
class Slabs {
 public:
  /// \param solver outlives this.
  Slabs(Runtime& runtime, const poisson::SlabbedProblem<T>& solver) : runtime_(&runtime), solver_(&solver) {
    if (!runtime.options().spill.empty()) {
      tiles_ = solver.own();
      return;
    }
    memory_ = PinnedBuffer(
        runtime, static_cast<std::size_t>(solver.plane_count() * solver.grid().columns()) * sizeof(T));
    tiles_ = solver.borrow(memory_.as<T>());
  }

  [[nodiscard]] Tiles<T>& tiles() { return tiles_; }
  /// What is behind this rank's slabs; empty where the runtime has it.
  [[nodiscard]] const PinnedBuffer& memory() const { return memory_; }

  /// Calls body(number, slab) for the slabs of this rank, in order.
  template <class Body>
  void each(const Body& body) {
    for (Index number = 0; number < solver_->slab_count(); ++number)
      if (tiles_[number].owner() == runtime_->rank()) body(number, tiles_[number]);
  }

  /// Calls body(number, view) for the same slabs, to read or write them from this thread. Where all of them
  /// are in main memory at a time, the workers sleep meanwhile.
  template <class Body>
  void each_on_host(typename HostView<T>::Access access, const Body& body) {
    if (memory_.bytes() == 0) {
      each([&](Index number, Tile<T>& slab) {
        body(number, HostView<T>(slab, access));
        slab.wont_use();
      });
      return;
    }
    std::deque<HostView<T>> views;
    each([&](Index, Tile<T>& slab) { views.emplace_back(slab, access); });
    const Pause pause;
    auto view = views.begin();
    each([&](Index number, Tile<T>&) { body(number, *view++); });
  }

  /// Puts f into the slabs by tasks; a solve then starts from main memory, wherever f was made.
  void fill(const typename poisson::SlabbedProblem<T>::Source& f) {
    const poisson::Layout& layout = solver_->layout();
    each([&](Index number, Tile<T>& slab) {
      runtime_->wait_for_room(static_cast<std::size_t>(layout.slabs_in_flight));
      if (layout.mode == poisson::Mode::streaming) slab.write_through();
      f(number, slab);
      slab.wont_use();
    });
    runtime_->wait();
    if (memory_.bytes() > 0) each([](Index, const Tile<T>& slab) { slab.return_home(); });
  }

 private:
  Runtime* runtime_;
  const poisson::SlabbedProblem<T>* solver_;
  PinnedBuffer memory_;  // outlives the tiles over it
  Tiles<T> tiles_;
};

}  // namespace asterism::tools
