/// \file
/// What the subcommands that run the Poisson solver share.
#pragma once

#include <fmt/format.h>

#include <deque>

#include "../algorithms/poisson.hpp"
#include "../runtime/pause.hpp"
#include "options.hpp"

namespace asterism::tools {

inline const char* name(poisson::Mode mode) {
  return mode == poisson::Mode::streaming ? "streaming" : mode == poisson::Mode::incore ? "incore" : "auto";
}

/// --mode and --slab
inline void add_method_options(CLI::App& app, poisson::Settings& settings) {
  using poisson::Mode;
  add_choice_option<Mode, Mode>(
      app, "--mode", settings.mode,
      {{"auto", Mode::automatic}, {"incore", Mode::incore}, {"streaming", Mode::streaming}},
      "incore keeps the grid where it is worked on, streaming passes it through slab by slab, auto decides "
      "from the "
      "memories; default: auto")
      ->group("Method");
  add_parsed_option(
      app, "--slab", settings.slab_rows, [](const std::string& text) { return parse_whole<Index>(text, 1); },
      "rows of a slab, the piece of the grid that a task works on; default: from the memories")
      ->type_name("ROWS")
      ->group("Method");
}

/// Refuses a grid that has no place to be in, before anything is made for it.
/// @throw Error
template <class T>
void require_room(const Runtime& runtime, const poisson::Grid& grid) {
  const Options& options = runtime.options();
  const Index rows = (grid.rows + runtime.ranks() - 1) / runtime.ranks();
  const double bytes = static_cast<double>(rows) * static_cast<double>(grid.cols) * sizeof(T);
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

/// The grid of a solver as slabs, with the memory behind them: one piece of main memory, or, where there is a
/// folder to spill to, whatever the runtime makes of it.
template <class T>
class Slabs {
 public:
  Slabs(Runtime& runtime, const poisson::Solver<T>& solver) : runtime_(&runtime), layout_(solver.layout()) {
    if (!runtime.options().spill.empty()) {
      tiles_ = solver.own();
      return;
    }
    memory_ =
        PinnedBuffer(runtime, static_cast<std::size_t>(solver.row_count() * solver.grid().cols) * sizeof(T));
    tiles_ = solver.borrow(memory_.as<T>());
  }

  [[nodiscard]] Tiles<T>& tiles() { return tiles_; }

  /// Calls body(slab, its first row) for the slabs of this rank, from the first row of the grid to the last.
  template <class Body>
  void each(const Body& body) {
    for (Index c = 0; c < layout_.slabs; ++c)
      if (tiles_[c].owner() == runtime_->rank()) body(tiles_[c], c * layout_.slab_rows);
  }

  /// Calls body(view, its first row) for the same slabs, to read or write them from this thread. Where all of
  /// them are in main memory at a time, the workers sleep meanwhile.
  template <class Body>
  void each_on_host(typename HostView<T>::Access access, const Body& body) {
    if (memory_.bytes() == 0) {
      each([&](Tile<T>& slab, Index first_row) {
        body(HostView<T>(slab, access), first_row);
        slab.wont_use();
      });
      return;
    }
    std::deque<HostView<T>> views;
    each([&](Tile<T>& slab, Index) { views.emplace_back(slab, access); });
    const Pause pause;
    auto view = views.begin();
    each([&](Tile<T>&, Index first_row) { body(*view++, first_row); });
  }

  /// Puts f into the slabs by tasks; a solve then starts from main memory, wherever f was made.
  template <class Source>
  void fill(const Source& f) {
    each([&](Tile<T>& slab, Index first_row) {
      runtime_->wait_for_room(static_cast<std::size_t>(layout_.slabs_in_flight));
      if (layout_.mode == poisson::Mode::streaming) slab.write_through();
      f(first_row, slab);
      slab.wont_use();
    });
    runtime_->wait();
    if (memory_.bytes() > 0) each([](const Tile<T>& slab, Index) { slab.return_home(); });
  }

 private:
  Runtime* runtime_;
  poisson::Layout layout_;
  PinnedBuffer memory_;  // outlives the tiles over it
  Tiles<T> tiles_;
};

}  // namespace asterism::tools
