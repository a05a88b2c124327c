#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/analysis.hpp"

namespace asterism::tools {
namespace {

const char* solver_name(LinearMethod method) {
  switch (method) {
    case LinearMethod::cg:
      return "conjugate gradients";
    case LinearMethod::bicgstab:
      return "BiCGStab";
    case LinearMethod::gmres:
      return "GMRES";
    case LinearMethod::dcg:
      return "distributive conjugate gradients";
    case LinearMethod::dbds:
      return "distributed block direct solver";
  }
  return "";
}

bool uses_gpus(const sparse::LinearFacts& facts) {
  return std::ranges::any_of(facts.blocks, [](const Part& block) { return block.where == Where::cuda; });
}

std::string right_hand_side_text(const LinearOptions& o, const StatedLinear& stated, Index columns) {
  const std::string many = columns > 1 ? counted(columns, "right-hand side") + " of " : "b from ";
  if (!o.right_hand_side.empty()) return many + o.right_hand_side;
  switch (stated.rhs) {
    case RightHandSide::ones:
      return "b = ones";
    case RightHandSide::random:
      return fmt::format("b random, seed {}", o.common.seed);
    case RightHandSide::ones_solution:
      return "b = A * ones";
  }
  return "";
}

Section problem_section(const LinearOptions& o, const StatedLinear& stated, const LinearOutcome& outcome) {
  const auto columns = static_cast<Index>(outcome.columns.size());
  Section section;
  section.line("problem", fmt::format("A x = b, {}: {} unknowns, {} entries in {}, {}", stated.matrix,
                                      outcome.rows, outcome.entries, to_string(stated.precision),
                                      right_hand_side_text(o, stated, columns)));
  section.add(o.model ? "model" : "matrix", stated.matrix);
  if (o.right_hand_side.empty())
    section.add("rhs", name(stated.rhs));
  else
    section.add("right_hand_side", o.right_hand_side);
  if (uses_seed(o, stated)) section.add("seed", o.common.seed);
  section.add("precision", to_string(stated.precision));
  section.add("unknowns", outcome.rows);
  section.add("n", outcome.rows);
  section.add("entries", outcome.entries);
  if (outcome.duplicates > 0) section.add("duplicates", outcome.duplicates);
  section.add("right_hand_sides", columns);
  return section;
}

void say_colours(Section& section, const std::vector<Index>& rows) {
  if (rows.empty()) return;
  constexpr std::size_t most_told = 8;
  section.add("colours", rows.size(),
              fmt::format(", {}", counted(static_cast<Index>(rows.size()), "colour")));
  section.add("rows_of_colours", rows,
              rows.size() <= most_told
                  ? fmt::format(" of {} rows", fmt::join(rows, " + "))
                  : fmt::format(" of {} to {} rows", std::ranges::min(rows), std::ranges::max(rows)));
}

void say_preconditioner(Section& section, const LinearOptions& o, const StatedLinear& stated,
                        const LinearOutcome& outcome) {
  const sparse::PreconditionerFacts& facts = outcome.facts.preconditioner;
  section.line("precond.");
  section.add("preconditioner", to_string(facts.choice), to_string(facts.choice));
  section.add("preconditioner_precision", to_string(stated.preconditioner_precision),
              stated.preconditioner_precision == stated.precision
                  ? ""
                  : " in " + to_string(stated.preconditioner_precision));
  if (o.preconditioner.method == sparse::PreconditionerMethod::automatic) section.remark(" (auto)");
  say_colours(section, facts.rows_of_colours);
  if (facts.grains_in_order)
    section.add("stages", facts.stages, fmt::format(", grains at the same time in {} stages", facts.stages));
  else if (facts.stages > 0 && facts.rows_of_colours.empty())
    section.add("levels", facts.stages, ", " + counted(facts.stages, "level"));
  if (facts.entries > 0 && outcome.entries > 0)
    section.say("fill", static_cast<double>(facts.entries) / static_cast<double>(outcome.entries),
                ", fill {:.3g}");
  section.add("reduced_rows", facts.reduced_rows,
              facts.reduced_rows > 0 ? fmt::format(", reduced to {} rows", facts.reduced_rows) : "");
  section.add("shift", facts.shift,
              facts.shift > 0 ? fmt::format(", diagonal times 1 + {:.3g}", facts.shift) : "");
}

nlohmann::ordered_json blocks_json(const sparse::LinearFacts& facts) {
  nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
  for (std::size_t b = 0; b < facts.blocks.size(); ++b) {
    const Part& block = facts.blocks[b];
    nlohmann::ordered_json j{{"first_row", block.first},
                             {"rows", block.size},
                             {"rank", block.rank},
                             {"worker", block.where == Where::cuda ? "cuda" : "cpu"}};
    if (b < facts.formats.size()) j["format"] = name(facts.formats[b]);
    blocks.push_back(std::move(j));
  }
  return blocks;
}

void say_storage(Section& section, const sparse::LinearFacts& facts) {
  std::set<std::string> names;
  for (const sparse::Format format : facts.formats) names.insert(name(format));
  section.line("storage");
  section.add("formats", names, fmt::format("{}", fmt::join(names, ", ")));
  section.say("bytes_per_row", facts.bytes_per_row, ", {:.3g} bytes a row");
  section.add("blocks", blocks_json(facts), ", " + counted(static_cast<Index>(facts.blocks.size()), "block"));
  section.add("bytes_exchanged", facts.bytes_exchanged);
}

bool uses_gmres(const LinearOptions& o, const LinearOutcome& outcome) {
  return outcome.chosen.method == LinearMethod::gmres || o.decomposition.accelerate == LinearMethod::gmres;
}

Section choices_section(const LinearOptions& o, const StatedLinear& stated, const LinearOutcome& outcome) {
  Section section;
  if (uses_gmres(o, outcome)) {
    const Index restart = o.restart.value_or(sparse::LinearSettings{}.restart);
    section.add("restart", restart,
                o.decomposition.accelerate ? "" : fmt::format(" of {}", counted(restart, "vector")));
  }
  if (outcome.facts.reductions)
    section.add("reductions", name(*outcome.facts.reductions),
                o.reductions == sparse::Reductions::two
                    ? ""
                    : fmt::format(", reductions {}", name(*outcome.facts.reductions)));
  if (!outcome.chosen.because.empty())
    section.add("solver_because", outcome.chosen.because, fmt::format(", as {}", outcome.chosen.because));
  section.say("tolerance", stated.tolerance, ", tolerance {:g}");
  if (o.max_iterations)
    section.add("max_iterations", *o.max_iterations,
                fmt::format(", at most {}", counted(*o.max_iterations, "iteration")));
  if (o.check_every) section.add("check_every", *o.check_every);
  if (outcome.decomposition)
    say_decomposition(section, o, stated, *outcome.decomposition);
  else
    say_preconditioner(section, o, stated, outcome);
  say_storage(section, outcome.facts);
  return section;
}

Section speed_section(const LinearOutcome& outcome) {
  const Report& report = outcome.run.report;
  const auto sweeps = report.seconds.find("sweeps");
  const double seconds = sweeps == report.seconds.end() ? 0 : sweeps->second;
  Section section;
  say_iterations(section, "iteration", report.iterations,
                 report.iterations > 0 ? seconds / static_cast<double>(report.iterations) : 0);
  const sparse::LinearReport& hardest = outcome.columns[hardest_of(outcome.columns)];
  section.add("restarts", hardest.restarts,
              hardest.restarts > 0 ? ", " + counted(hardest.restarts, "restart") : "");
  return section;
}

nlohmann::ordered_json history_json(const Report& report) {
  nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < report.residual_history.size(); ++i)
    pairs.push_back({report.residual_iterations[i], report.residual_history[i]});
  return pairs;
}

nlohmann::ordered_json columns_json(const std::vector<sparse::LinearReport>& columns) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const sparse::LinearReport& column : columns)
    all.push_back({{"iterations", column.iterations},
                   {"true_residual", column.true_residual},
                   {"residual_history", history_json(column)},
                   {"reason", to_string(column.reason)}});
  return all;
}

void say_spectrum(Section& section, const sparse::LinearReport& report) {
  if (!report.spectrum) return;
  const sparse::SpectrumEstimate& s = *report.spectrum;
  section.line("condition");
  section.add("condition_estimate", s.condition(),
              fmt::format("{:.3g} at least, with the preconditioner (eigenvalues from {:.3g} to {:.3g})",
                          s.condition(), s.least, s.most));
  section.add("spectrum", std::vector{s.least, s.most});
}

Section accuracy_section(const LinearOptions& o, const LinearOutcome& outcome) {
  const sparse::LinearReport& hardest = outcome.columns[hardest_of(outcome.columns)];
  Section section;
  say_spectrum(section, hardest);
  if (hardest.residual_history.empty())
    say_residual(section, std::nan(""), std::nullopt);
  else
    say_residual(section, hardest.residual_history.back(),
                 fmt::format("{:.2e} computed anew from x, {:.2e} before the first iteration",
                             shown(hardest.true_residual), shown(hardest.residual_history.front())));
  section.add("true_residual", hardest.residual_history.empty() ? std::nan("") : hardest.true_residual);
  section.add("residual_history", history_json(hardest));
  if (outcome.columns.size() > 1) section.add("columns", columns_json(outcome.columns));
  if (outcome.error) say_error(section, *outcome.error, Exact::linear_system);
  if (const auto& breakdown = outcome.facts.preconditioner.breakdown)
    section.add("breakdown", {{"row", outcome.number(breakdown->row)}, {"pivot", breakdown->pivot}});
  if (const std::string words = explanation_of(o, outcome); !words.empty()) section.add("explanation", words);
  if (const std::vector<std::string> warnings = warnings_of(outcome); !warnings.empty())
    section.add("warnings", warnings);
  return section;
}

std::string breakdown_text(const LinearOptions& o, const LinearOutcome& outcome) {
  const sparse::Breakdown& breakdown = *outcome.facts.preconditioner.breakdown;
  return fmt::format(
      "the factorisation {} has the pivot {:.3g} in row {}{}; {}",
      to_string(outcome.facts.preconditioner.choice), breakdown.pivot, outcome.number(breakdown.row),
      outcome.number.words(),
      o.shift == sparse::DiagonalShift::none
          ? "--shift auto tries again with a larger diagonal, or choose another --preconditioner"
          : "no larger diagonal helps; choose another --preconditioner");
}

std::string indefinite_text(const LinearOutcome& outcome) {
  if (outcome.decomposition)
    return "negative curvature: the matrix is not positive definite, as --accelerate cg needs it; bicgstab and gmres do "
           "not";
  using enum sparse::PreconditionerMethod;
  const sparse::PreconditionerChoice& choice = outcome.facts.preconditioner.choice;
  const bool surely_definite = choice.method == none || choice.method == diagonal || choice.method == ic0;
  if (surely_definite)
    return "negative curvature: the matrix is not positive definite; conjugate gradients are for those that are";
  return fmt::format(
      "negative curvature: the matrix is not positive definite, or the preconditioner {} is not; --preconditioner "
      "diagonal tells which: where it fails, too, it is the matrix",
      to_string(choice));
}

}  // namespace

std::size_t hardest_of(const std::vector<sparse::LinearReport>& columns) {
  const auto unsolved = std::ranges::find_if(
      columns, [](const sparse::LinearReport& column) { return column.reason != Reason::solved; });
  const auto it = unsolved != columns.end()
                      ? unsolved
                      : std::ranges::max_element(columns, {}, &sparse::LinearReport::iterations);
  return static_cast<std::size_t>(it - columns.begin());
}

Report summary_of(const std::vector<sparse::LinearReport>& columns) {
  Report summary = columns[hardest_of(columns)];
  summary.iterations = 0;
  summary.seconds.clear();
  summary.traffic = {};
  for (const sparse::LinearReport& column : columns) {
    summary.iterations += column.iterations;
    for (const auto& [part, seconds] : column.seconds) summary.seconds[part] += seconds;
    summary.traffic.to_device += column.traffic.to_device;
    summary.traffic.from_device += column.traffic.from_device;
    summary.traffic.to_disk += column.traffic.to_disk;
    summary.traffic.from_disk += column.traffic.from_disk;
    summary.traffic.between_ranks += column.traffic.between_ranks;
  }
  return summary;
}

std::string explanation_of(const LinearOptions& o, const LinearOutcome& outcome) {
  switch (outcome.run.report.reason) {
    case Reason::zero_pivot:
      return breakdown_text(o, outcome);
    case Reason::indefinite:
      return indefinite_text(outcome);
    case Reason::breakdown:
      return outcome.chosen.method == LinearMethod::bicgstab
                 ? "BiCGStab has nothing to divide by; --solver gmres cannot break down so, or choose another "
                   "--preconditioner"
                 : "what A makes of the residual does not reach b: A, or A M^-1, is singular or nearly so";
    case Reason::divergence:
      return outcome.decomposition ? advice_on_subdomains(o) : "";
    case Reason::stagnation:
      if (outcome.decomposition) return advice_on_subdomains(o);
      return "the residual no longer falls: rounding does not allow the tolerance, or the preconditioner is too weak";
    case Reason::inaccurate:
      return "the residual of the iteration fell below the tolerance, that of x did not: rounding does not allow it";
    default:
      return "";
  }
}

std::vector<std::string> warnings_of(const LinearOutcome& outcome) {
  std::vector<std::string> warnings;
  if (outcome.duplicates > 0)
    warnings.push_back(
        fmt::format("{} of the file {} the place of another: they were added",
                    outcome.duplicates == 1 ? "1 entry" : fmt::format("{} entries", outcome.duplicates),
                    outcome.duplicates == 1 ? "has" : "have"));
  const std::vector<Index>& rows = outcome.facts.preconditioner.rows_of_colours;
  const Index fewest = rows.empty() ? rows_to_fill_a_gpu : std::ranges::min(rows);
  const bool is_reduced = outcome.facts.preconditioner.reduced_rows > 0;
  if (!is_reduced && fewest < rows_to_fill_a_gpu && uses_gpus(outcome.facts))
    warnings.push_back(fmt::format(
        "of {} colours the smallest has {} rows: a GPU has nothing to do for most of the time with fewer than {}; a "
        "polynomial preconditioner, chebyshev:4 say, has no colours",
        rows.size(), fewest, rows_to_fill_a_gpu));
  return warnings;
}

SolverReport report_of(const LinearOptions& o, const StatedLinear& stated, const LinearOutcome& outcome) {
  const std::string words = explanation_of(o, outcome);
  return {.solver = solver_name(outcome.chosen.method),
          .method = name(outcome.chosen.method),
          .run = outcome.run,
          .problem = problem_section(o, stated, outcome),
          .choices = choices_section(o, stated, outcome),
          .speed = speed_section(outcome),
          .accuracy = accuracy_section(o, outcome),
          .output = o.common.output,
          .solution = "x",
          .unfinished = ", as it is",
          .verdict = words.empty() ? "" : ": " + words};
}

}  // namespace asterism::tools
