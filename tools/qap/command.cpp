#include <fmt/format.h>

#include <memory>
#include <utility>

#include "../../runtime/collectives.hpp"
#include "../cli/commands.hpp"
#include "../cli/progress.hpp"
#include "instance_file.hpp"
#include "interruption.hpp"
#include "report.hpp"

namespace asterism::tools {
namespace {

struct StatedQap {
  qap::Problem problem;
  std::optional<Solution> start;
};

StatedQap read(const QapOptions& o) {
  if (o.instance.empty())
    throw Error("an instance is missing: `asterism qap INSTANCE.dat`; see `asterism qap --help`");
  if (o.settings.tenure && !o.settings.tenures.empty())
    throw Error("--tenures and --tenure both say how long moves stay tabu; give one of them");
  StatedQap stated;
  stated.problem = read_instance(o.instance);
  if (!o.start.empty()) stated.start = read_solution(o.start, stated.problem);
  return stated;
}

QapOutcome solve(Runtime& runtime, const QapOptions& o, const StatedQap& stated) {
  QapOutcome outcome;
  outcome.n = stated.problem.n;
  outcome.start = stated.start;
  outcome.facts = facts_of(stated.problem);
  std::optional<PermutationFile> file;
  agree(runtime, [&] {
    if (runtime.rank() == 0 && !o.common.output.empty()) file.emplace(o.common.output);
  });
  qap::SearchSettings settings = o.settings;
  settings.seed = o.common.seed;
  if (stated.start) settings.start = stated.start->permutation;
  const Interruption interruption;
  settings.interrupted = &Interruption::wanted;
  Progress progress(runtime.rank() == 0 ? o.common.verbosity : Verbosity::quiet);
  settings.on_generation = [&](const qap::SearchState& state) {
    progress.note(fmt::format("cost {}, generation {}, {:.3g} moves per second", state.cost, state.generation,
                              state.moves_per_second));
  };
  const Traffic before = runtime.traffic();
  outcome.run.stopwatch.lap("setup");
  {
    const WhileWorking shown(progress, "searching");
    outcome.search = search(runtime, stated.problem, settings);
  }
  outcome.run.stopwatch.lap("search");
  outcome.verified = cost_of(stated.problem, outcome.search.permutation) == outcome.search.cost;
  outcome.run.report.traffic = runtime.traffic() - before;
  outcome.run.report.iterations = outcome.search.iterations;
  outcome.run.report.seconds["to_best"] = outcome.search.seconds_to_best;
  agree(runtime, [&] {
    if (file) file->write(outcome.search.permutation, outcome.search.cost);
  });
  outcome.run.stopwatch.lap("write");
  const Index islands = o.settings.islands, ranks = runtime.ranks(), rank = runtime.rank();
  outcome.run.sum_up(runtime,
                     ((rank + 1) * islands + ranks - 1) / ranks - (rank * islands + ranks - 1) / ranks);
  return outcome;
}

constexpr const char* qap_footer =
    "Examples:\n"
    "  asterism qap sko100a.dat --time 60 -o OUT.sln\n"
    "  asterism qap tai60a.dat --start OUT.sln --search rots --target 7205962\n"
    "  asterism qap nug30.dat --generations 20 --seed 3 --json\n"
    "  mpirun -np 4 asterism qap sko100a.dat --islands 16 --time 60\n\n"
    "The cost is the sum of a[i][j] b[p(i)][p(j)], a the first matrix, b the second. Ctrl-C ends a search like\n"
    "its time does: the best so far is written and told, with exit status 0; a second one ends the program at once.";

}  // namespace

Command add_qap(CLI::App& program) {
  auto options = std::make_shared<QapOptions>();
  CLI::App* app =
      add_subcommand(program, "qap", "search good solutions of a quadratic assignment problem: tabu search");
  add_qap_options(*app, *options);
  add_footer(*app, qap_footer);
  return {app, [options] {
            const StatedQap stated = read(*options);
            fit_machine_to_search(options->common.runtime, options->settings);
            return with_runtime(options->common.runtime, [&](Runtime& runtime) {
              return tell(runtime, options->common, report_of(*options, solve(runtime, *options, stated)));
            });
          }};
}

}  // namespace asterism::tools
