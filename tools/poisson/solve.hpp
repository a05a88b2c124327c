/// \file
/// The steps of `asterism poisson`, by either solver.
#pragma once

#include <optional>

#include "../cli/progress.hpp"
#include "../files/npy/npy.hpp"
#include "report.hpp"
#include "slabs.hpp"

namespace asterism::tools {

/// A solver of type Solver<T>, its grid, and the problem's f.
template <template <class> class Solver, class T>
class PoissonSolve {
 public:
  PoissonSolve(Runtime& runtime, const PoissonOptions& options, const StatedPoisson& stated)
      : stated_(stated),
        solver_(runtime, stated.problem, settings_of(options, stated)),
        known_{stated.model, options.common.seed},
        progress_(runtime.rank() == 0 ? options.common.verbosity : Verbosity::quiet) {
    warn_of_unused_mean(solver_, options.method.settings);
  }

  void allocate(Runtime& runtime) { slabs_.emplace(runtime, solver_); }

  void fill() {
    if (!stated_.reader) {
      slabs_->fill([this](Index slab, Tile<T>& f) { right_hand_side(slab, f); });
      return;
    }
    slabs_->each_on_host(Access::write, [this](Index slab, const HostView<T>& f) {
      show("reading f", slab);
      read(slab, f);
    });
  }

  void solve(PoissonOutcome& outcome) {
    show("solving", 0);
    outcome.layout = solver_.layout();
    outcome.slabs = solver_.slab_count();
    outcome.run.report = solver_.solve(slabs_->tiles());
    outcome.condition = solver_.grid().condition();
    outcome.error_lacks_mean = solver_.grid().has_constants() && stated_.model == grid::Model::random;
    if constexpr (requires { solver_.block_count(); }) outcome.blocks = solver_.block_count();
  }

  poisson::Check check() {
    const auto shown_rhs = [this](Index slab, Tile<T>& f) {
      show("checking the residual", slab);
      right_hand_side(slab, f);
    };
    return solver_.check(slabs_->tiles(), shown_rhs,
                         stated_.model_is_exact ? std::optional(known_) : std::nullopt);
  }

  void write(const NpyWriter& writer) {
    slabs_->each_on_host(Access::read, [&](Index slab, const HostView<T>& u) {
      show("writing u", slab);
      writer.write_rows(solver_.first_plane(slab), u.rows(), u.row(0), u.ld());
    });
  }

  /// This rank's, of all problems of a batch.
  [[nodiscard]] Index slices() const { return solver_.plane_count(); }

 private:
  using Access = typename HostView<T>::Access;

  static poisson::Settings settings_of(const PoissonOptions& options, const StatedPoisson& stated) {
    poisson::Settings settings = options.method.settings;
    settings.source_rounding = stated.rounding;
    return settings;
  }

  void right_hand_side(Index slab, Tile<T>& f) {
    if (stated_.reader)
      read(slab, HostView<T>(f, Access::write));
    else
      solver_.fill(slab, f, known_);
  }
  void read(Index slab, const HostView<T>& f) const {
    stated_.reader->read_rows(solver_.first_plane(slab), f.rows(), f.row(0), f.ld(), Values::finite);
  }
  void show(const char* what, Index slab) {
    progress_.update(static_cast<double>(slab) / static_cast<double>(solver_.slab_count()), what);
  }

  const StatedPoisson& stated_;
  Solver<T> solver_;
  typename Solver<T>::Known known_;
  Progress progress_;
  std::optional<Slabs<T>> slabs_;
};

}  // namespace asterism::tools
