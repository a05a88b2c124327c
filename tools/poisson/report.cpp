#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace asterism::tools {
namespace {

const char* solver_name(PoissonMethod method) {
  return method == PoissonMethod::gemm ? "fast Poisson, dense transforms (DFPS)" : "fast Poisson, two passes";
}

/// "z periodic, y dirichlet to neumann, x neumann; cell-centred"; empty where all is as it is by default.
std::string conditions_text(const poisson::Problem& problem) {
  using enum poisson::Condition;
  std::vector<std::string> axes;
  bool usual = problem.centering == poisson::Centering::node;
  for (std::size_t a = 0; a < problem.ends.size(); ++a) {
    const poisson::Condition lower = problem.ends[a].lower.condition, upper = problem.ends[a].upper.condition;
    usual = usual && lower == dirichlet && upper == dirichlet;
    axes.push_back(fmt::format("{} {}{}{}", axis_name(problem, a), name(lower), lower == upper ? "" : " to ",
                               lower == upper ? "" : name(upper)));
  }
  return usual ? "" : fmt::format("{}; {}-centred", fmt::join(axes, ", "), name(problem.centering));
}

/// The solver's mode, and how it cut the grid.
Section choices_section(const PoissonOutcome& outcome, std::size_t dimensions) {
  Section choices;
  choices.say("mode", name(outcome.layout.mode), ", {}");
  choices.add("slabs", outcome.slabs,
              fmt::format(": {} of {}", counted(outcome.slabs, "slab"),
                          counted(outcome.layout.slab_planes, dimensions == 3 ? "plane" : "row")));
  if (outcome.blocks > 0)
    choices.add("blocks", outcome.blocks, fmt::format(", {} of modes", counted(outcome.blocks, "block")));
  return choices;
}

Section speed_section(const PoissonOutcome& outcome, Index unknowns) {
  Section speed;
  speed.line("speed",
             fmt::format("{:.1f} million unknowns per second of solving",
                         static_cast<double>(unknowns) / 1e6 / outcome.run.report.seconds.at("solve")));
  return speed;
}

Section accuracy_section(const StatedPoisson& stated, const PoissonOutcome& outcome) {
  Section accuracy;
  const double eps = roundoff(outcome.run.precision);
  if (const auto& check = outcome.check)
    say_residual(accuracy, check->scaled_residual,
                 fmt::format("{:.2f} eps", shown(check->scaled_residual / eps)));
  if (const auto condition = outcome.condition) {
    accuracy.line("condition");
    accuracy.say("condition", *condition, "{:.2e}, by the eigenvalue nearest to lambda");
    if (*condition * eps > 1e-3) accuracy.remark(": u has few digits, if any");
  }
  if (outcome.check && outcome.check->error)
    say_error(accuracy, *outcome.check->error,
              stated.model == grid::Model::sine ? Exact::differential_equation : Exact::difference_equation,
              outcome.error_lacks_mean ? " without its mean" : "");
  return accuracy;
}

}  // namespace

Section problem_section(const PoissonProblemOptions& options, const StatedPoisson& stated,
                        Precision precision, std::uint64_t seed) {
  const poisson::Problem& problem = stated.problem;
  GridStatement statement{.equation = equation_text(stated.dimensions(), problem.lambda),
                          .shape = problem.shape,
                          .batch = problem.batch,
                          .lengths = problem.lengths,
                          .conditions = {},
                          .input = options.grid.input,
                          .model = name(stated.model),
                          .seed = {},
                          .precision = precision,
                          .values = values_along(options.grid, stated.dimensions())};
  for (const poisson::Ends& ends : problem.ends)
    statement.conditions.emplace_back(name(ends.lower.condition), name(ends.upper.condition));
  if (!stated.reader && stated.model == grid::Model::random) statement.seed = seed;
  Section section = problem_section(statement);
  if (const std::string text = conditions_text(problem); !text.empty()) section.line("conditions", text);
  section.add("centering", name(problem.centering));
  section.add("lambda", problem.lambda);
  return section;
}

SolverReport report_of(const PoissonOptions& options, const StatedPoisson& stated,
                       const PoissonOutcome& outcome) {
  const PoissonMethod method = options.method.method;
  return {.solver = solver_name(method),
          .method = name(method),
          .run = outcome.run,
          .problem = problem_section(options.problem, stated, outcome.run.precision, options.common.seed),
          .choices = choices_section(outcome, stated.dimensions()),
          .speed = speed_section(outcome, count_unknowns(stated.problem)),
          .accuracy = accuracy_section(stated, outcome),
          .output = options.common.output,
          .verdict = outcome.run.report.reason == Reason::inaccurate
                         ? fmt::format(": the residual is above {} eps", poisson::most_eps)
                         : ""};
}

}  // namespace asterism::tools
