#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace asterism::tools {
namespace {

const char* solver_name(Method method) {
  return method == Method::gemm ? "fast Poisson, dense transforms (DFPS)" : "fast Poisson, two passes";
}

/// "u_xx + u_yy - 2 u = f"
std::string equation(const poisson::Problem& problem) {
  std::string text = problem.shape.size() == 3 ? "u_xx + u_yy + u_zz" : "u_xx + u_yy";
  const double lambda = problem.lambda;
  if (lambda != 0) text += fmt::format(" {} {:g} u", lambda < 0 ? '-' : '+', std::abs(lambda));
  return text + " = f";
}

/// "z periodic, y dirichlet to neumann, x neumann; cell-centred"; empty where all is as it is by default.
std::string conditions(const poisson::Problem& problem) {
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

}  // namespace

nlohmann::ordered_json as_json(const StatedProblem& stated, std::uint64_t seed) {
  const poisson::Problem& problem = stated.problem;
  nlohmann::ordered_json j;
  j["dimensions"] = stated.dimensions();
  j["grid"] = problem.shape;
  if (problem.batch > 1) j["batch"] = problem.batch;
  j["lengths"] = problem.lengths;
  for (std::size_t a = 0; a < problem.ends.size(); ++a)
    j["conditions"][axis_name(problem, a)] = {name(problem.ends[a].lower.condition),
                                              name(problem.ends[a].upper.condition)};
  j["centering"] = name(problem.centering);
  j["lambda"] = problem.lambda;
  if (!stated.reader) j["model"] = name(stated.model);
  if (!stated.reader && stated.model == grid::Model::random) j["seed"] = seed;
  return j;
}

void print_json(const PoissonRun& run) {
  const PoissonOutcome& outcome = run.outcome;
  nlohmann::ordered_json j;
  j["solver"] = solver_name(run.method);
  j["method"] = name(run.method);
  j["mode"] = name(outcome.layout.mode);
  j.update(as_json(run.stated, run.options.seed));
  j["precision"] = to_string(run.precision);
  j["unknowns"] = count_unknowns(run.stated.problem);
  j["seconds"] = as_json(run.stopwatch);
  if (outcome.check) {  // NaN and infinity, which JSON has not, become null
    j["scaled_residual"] = outcome.check->scaled_residual;
    if (outcome.check->error) j["error"] = *outcome.check->error;
  }
  if (outcome.condition) j["condition"] = *outcome.condition;
  j["workers"] = as_json(outcome.workers);
  j["bytes"] = as_json(outcome.report.traffic);
  j["slabs"] = outcome.slabs;
  if (outcome.blocks > 0) j["blocks"] = outcome.blocks;
  j["reason"] = to_string(outcome.report.reason);
  print_report(j);
}

void print_text(const PoissonRun& run, const std::string& input) {
  const poisson::Problem& problem = run.stated.problem;
  const PoissonOutcome& outcome = run.outcome;
  const bool sine = run.stated.model == grid::Model::sine;
  const double millions = static_cast<double>(count_unknowns(problem)) / 1e6;
  const Index planes = outcome.layout.slab_planes;

  fmt::print("problem    {}, {}: {}{} unknowns ({:.4g} million) in {}\n", equation(problem),
             run.stated.reader ? input : fmt::format("model {}", name(run.stated.model)),
             problem.batch > 1 ? fmt::format("{} problems of ", problem.batch) : "",
             poisson::to_string(problem.shape), millions, to_string(run.precision));
  if (const std::string text = conditions(problem); !text.empty()) fmt::print("conditions {}\n", text);
  const std::string blocks =
      outcome.blocks > 0 ? fmt::format(", {} block{} of modes", outcome.blocks, plural(outcome.blocks)) : "";
  fmt::print("method     {}, {}: {} slab{} of {} {}{}{}\n", solver_name(run.method),
             name(outcome.layout.mode), outcome.slabs, plural(outcome.slabs), planes,
             run.stated.dimensions() == 3 ? "plane" : "row", plural(planes), blocks);
  print_workers_and_seconds(outcome.workers, run.stopwatch);
  fmt::print("speed      {:.1f} million unknowns per second of solving\n",
             millions / outcome.report.seconds.at("solve"));
  print_moved(outcome.report.traffic);
  if (outcome.check)
    fmt::print("residual   {:.2e} scaled, {:.2f} eps\n", shown(outcome.check->scaled_residual),
               shown(outcome.check->scaled_residual / roundoff(run.precision)));
  if (outcome.condition)
    fmt::print("condition  {:.2e}, by the eigenvalue nearest to lambda{}\n", *outcome.condition,
               *outcome.condition * roundoff(run.precision) > 1e-3 ? ": u has few digits, if any" : "");
  if (outcome.check && outcome.check->error)
    fmt::print("error      {:.2e} relative to the exact solution of the {} equation{}\n",
               shown(*outcome.check->error), sine ? "differential" : "difference",
               outcome.error_lacks_mean ? " without its mean" : "");
  if (!run.options.output.empty() && outcome.has_result())
    fmt::print("written    {}\n", run.options.output.string());
  fmt::print("result     {}{}\n", to_string(outcome.report.reason),
             outcome.report.reason == Reason::inaccurate
                 ? fmt::format(": the residual is above {} eps", poisson::most_eps)
                 : "");
}

}  // namespace asterism::tools
