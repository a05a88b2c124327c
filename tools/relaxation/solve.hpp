/// \file
/// The steps of `asterism relax`, the same for all of its solvers.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "../../algorithms/poisson/problem/problem.hpp"
#include "../../runtime/collectives.hpp"
#include "../../runtime/hardware/pinned_buffer.hpp"
#include "../../runtime/pause.hpp"
#include "../cli/progress.hpp"
#include "../files/model_rows.hpp"
#include "../files/npy/npy.hpp"
#include "report.hpp"
#include "settings.hpp"

namespace asterism::tools {

/// This rank's rows of a grid.
template <class T>
struct Rows {
  Index first, count, size;  ///< rows [first, first + count) of `size` unknowns
  PinnedBuffer memory;

  Rows(Runtime& runtime, Index first_row, Index row_count, Index row_size)
      : first(first_row),
        count(row_count),
        size(row_size),
        memory(runtime, static_cast<std::size_t>(std::max<Index>(1, row_count * row_size)) * sizeof(T)) {}
  [[nodiscard]] T* data() const { return memory.as<T>(); }
  void read(const NpyReader& reader) const { reader.read_rows(first, count, data(), size, Values::finite); }
};

/// This rank's rows: all of them where the solver works on one rank alone.
template <class T, class Solver>
Rows<T> rows_of(Runtime& runtime, const StatedRelaxation& stated, const Solver& solver) {
  if constexpr (requires { solver.first_row(); })
    return {runtime, solver.first_row(), solver.row_count(), stated.row_size()};
  else
    return {runtime, 0, stated.shape.front(), stated.row_size()};
}

/// ||u - known|| / ||known|| of all ranks. Collective.
template <class T>
double error_of(const Runtime& runtime, const ModelRows& model, const Rows<T>& u) {
  const ModelRows::Squares mine = model.compare(u.first, u.count, u.data());
  std::vector sums{mine.error, mine.known};
  sum_over_ranks(runtime, sums);
  return ratio(sums[0].root(), sums[1].root());
}

/// The model behind the right-hand side and the known solution, where there is one.
inline ModelRows model_rows(const RelaxOptions& options, const StatedRelaxation& stated) {
  return {stated.model == RelaxModel::random ? grid::Model::random : grid::Model::sine, options.common.seed,
          stated.shape, stated.lengths};
}

/// f with arrays of given values lifted into it, and the first guess. The workers sleep meanwhile.
/// @param f none: it is zero
template <class T>
void fill(const StatedRelaxation& stated, const ModelRows& model, bool lifted, std::optional<Rows<T>>& f,
          const Rows<T>& u) {
  const Pause pause;
  if (stated.source)
    f->read(*stated.source);
  else if (stated.has_source())
    model.fill(f->first, f->count, f->data());
  if (lifted) lift_sides(stated, f->data());
  if (stated.initial) u.read(*stated.initial);
}

/// Solves by `solver` and fills in all of the outcome but the solver's choices.
template <class T, class Solver>
void solve_by(Runtime& runtime, const RelaxOptions& o, const StatedRelaxation& stated, Solver& solver,
              Progress& progress, RelaxOutcome& outcome) {
  SolverRun& run = outcome.run;
  std::optional<NpyWriter> writer = open_output(runtime, o.common.output, stated.shape, precision_of<T>);
  run.stopwatch.lap("setup");

  const Rows<T> u = rows_of<T>(runtime, stated, solver);
  const bool lifted = lifts_sides(o, stated);
  std::optional<Rows<T>> f;
  if (stated.has_source() || lifted) f.emplace(rows_of<T>(runtime, stated, solver));
  run.stopwatch.lap("allocate");

  const ModelRows model = model_rows(o, stated);
  fill(stated, model, lifted, f, u);
  run.stopwatch.lap("fill");

  {
    const WhileWorking shown(progress, fmt::format("relaxing {}", poisson::to_string(stated.shape)));
    run.report = solver.solve(f ? f->data() : nullptr, u.data());
  }
  progress.note("");
  run.stopwatch.lap("solve");

  const Pause pause;
  if (stated.model_is_exact) {
    outcome.error = error_of(runtime, model, u);
    run.stopwatch.lap("check");
  }
  if (writer && run.has_result()) {
    progress.update("writing u");
    writer->write_rows(u.first, u.count, u.data(), u.size);
    commit_output(runtime, writer);
    run.stopwatch.lap("write");
  }
  run.sum_up(runtime, u.count);
}

}  // namespace asterism::tools
