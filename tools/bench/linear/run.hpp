/// \file
/// Conjugate gradients on a matrix, timed in two ways: so many iterations, and to a solution.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../../../algorithms/sparse/conjugate_gradients.hpp"
#include "../figures.hpp"
#include "bytes.hpp"
#include "options.hpp"

namespace asterism::tools {

struct LinearRun {
  sparse::PreconditionerChoice preconditioner;
  std::string refusal;  ///< why there was no run, if so
  std::string format;   ///< of all blocks, or "mixed"
  Index blocks = 0;
  std::map<std::string, double> setup = {};  ///< seconds, the faster of both times

  // To a solution.
  Reason reason = Reason::solved;
  Index iterations = 0;
  double solve_seconds = 0;  ///< with b on its way to the workers, and x back
  double residual = 0;       ///< ||b - A x|| / ||b||

  // So many iterations.
  Index timed_iterations = 0;
  double seconds_per_iteration = 0;
  double timed_residual = 0;
  std::optional<CgBytes> bytes = {};  ///< of one; without an own preconditioner, or with a diagonal

  [[nodiscard]] double setup_seconds() const {
    double sum = 0;
    for (const auto& [name, seconds] : setup) sum += seconds;
    return sum;
  }
};

namespace linear_run {

/// Time that is enough to be measured.
constexpr double seconds_of_run = 0.3;

inline std::string format_of(const sparse::LinearFacts& facts) {
  const bool alike =
      std::ranges::all_of(facts.formats, [&](auto format) { return format == facts.formats.front(); });
  return alike && !facts.formats.empty() ? format_name(facts.formats.front()) : "mixed";
}

/// What is said of a solver that is ready.
inline void note_facts(const sparse::LinearFacts& facts, LinearRun& run) {
  run.preconditioner = facts.preconditioner.choice;
  run.format = format_of(facts);
  run.blocks = static_cast<Index>(facts.blocks.size());
  const auto total = [](const std::map<std::string, double>& seconds) {
    double sum = 0;
    for (const auto& [name, value] : seconds) sum += value;
    return sum;
  };
  if (run.setup.empty() || total(facts.seconds) < total(run.setup)) run.setup = facts.seconds;
}

struct Solve {
  sparse::LinearReport report;
  double seconds = 0;
};

/// From x = 0, b = 1.
template <class T, class V>
Solve solve_ones(Runtime& runtime, sparse::ConjugateGradients<T, V>& solver) {
  const std::vector<T> b(static_cast<std::size_t>(solver.row_count()), 1);
  std::vector<T> x(b.size());
  Solve done;
  runtime.wait();
  done.seconds = seconds_of([&] { done.report = solver.solve(b.data(), x.data()); });
  return done;
}

/// @return seconds that an iteration took
template <class T, class V>
double reach_tolerance(Runtime& runtime, sparse::ConjugateGradients<T, V>& solver, int repeats,
                       LinearRun& run) {
  constexpr double enough = 2;
  double seconds = 0;
  Solve best{{}, std::numeric_limits<double>::infinity()};
  for (int i = 0; i < repeats && seconds < enough; ++i) {
    Solve solve = solve_ones(runtime, solver);
    seconds += solve.seconds;
    if (solve.seconds < best.seconds) best = std::move(solve);
  }
  run.reason = best.report.reason;
  run.iterations = best.report.iterations;
  run.residual = best.report.true_residual;
  run.solve_seconds = best.seconds;
  return best.report.seconds["sweeps"] / static_cast<double>(std::max<Index>(run.iterations, 1));
}

/// Whole tens; beyond twice those to a solution r would soon be too small for its squares.
inline Index chosen_iterations(const LinearRun& run, double seconds_of_iteration) {
  constexpr Index ten = 10, most = 1000;
  const auto tens = [=](Index iterations) { return std::max((iterations + ten - 1) / ten * ten, ten); };
  return std::min({tens(static_cast<Index>(seconds_of_run / std::max(seconds_of_iteration, 1e-7))),
                   tens(2 * run.iterations), most});
}

template <class T, class V>
void time_iterations(Runtime& runtime, sparse::ConjugateGradients<T, V>& solver, int repeats,
                     LinearRun& run) {
  run.seconds_per_iteration = std::numeric_limits<double>::infinity();
  solve_ones(runtime, solver);  // to warm up
  for (int i = 0; i < repeats; ++i) {
    const Solve solve = solve_ones(runtime, solver);
    run.timed_iterations = solve.report.iterations;
    run.timed_residual = solve.report.true_residual;
    run.seconds_per_iteration = std::min(
        run.seconds_per_iteration,
        solve.report.seconds.at("sweeps") / static_cast<double>(std::max<Index>(run.timed_iterations, 1)));
  }
}

}  // namespace linear_run

/// @param a all rows
template <class T, class V>
LinearRun run_linear(Runtime& runtime, const sparse::Csr<T>& a, const LinearBenchOptions& o,
                     const sparse::PreconditionerChoice& choice, std::optional<sparse::Format> format) {
  using Solver = sparse::ConjugateGradients<T, V>;
  LinearRun run{.preconditioner = choice, .refusal = {}, .format = format_name(format)};
  sparse::LinearSettings settings{.preconditioner = choice,
                                  .tolerance = o.tolerance,
                                  .max_iterations = o.max_iterations,
                                  .format = format,
                                  .workers = o.workers};
  double seconds_of_iteration = 0;
  try {
    Solver solver(runtime, a, settings);
    linear_run::note_facts(solver.facts(), run);
    seconds_of_iteration = linear_run::reach_tolerance(runtime, solver, o.repeats, run);
  } catch (const Error& error) {
    if (error.blame() != Blame::input) throw;
    run.refusal = error.what();
  }
  if (!run.refusal.empty() || (run.reason != Reason::solved && run.reason != Reason::iteration_limit))
    return run;

  settings.tolerance = 0;
  settings.max_iterations =
      o.iterations > 0 ? o.iterations : linear_run::chosen_iterations(run, seconds_of_iteration);
  Solver solver(runtime, a, settings);
  linear_run::note_facts(solver.facts(), run);
  linear_run::time_iterations(runtime, solver, o.repeats, run);
  run.bytes = bytes_of_iteration(solver.facts(), a.rows(), sizeof(T), sizeof(V));
  return run;
}

}  // namespace asterism::tools
