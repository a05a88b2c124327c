#include "report.hpp"

#include <fmt/format.h>

namespace asterism::tools {
namespace {

const char* words_of(qap::Symmetry symmetry) {
  switch (symmetry) {
    case qap::Symmetry::both:
      return "symmetric";
    case qap::Symmetry::one:
      return "one matrix symmetric";
    case qap::Symmetry::none:
      return "asymmetric";
  }
  return "";
}

const char* words_of(qap::Ending ending) {
  switch (ending) {
    case qap::Ending::target:
      return "the target was reached";
    case qap::Ending::optimal:
      return "no permutation costs less";
    case qap::Ending::generations:
      return "all generations were made";
    case qap::Ending::time:
      return "the time was over";
    case qap::Ending::stopped:
      return "interrupted";
  }
  return "";
}

std::string solver_name(qap::Method method) {
  switch (method) {
    case qap::Method::automatic:
      return "multistart and robust tabu search";
    case qap::Method::multistart:
      return "parallel multistart tabu search";
    case qap::Method::robust:
      return "robust tabu search";
    case qap::Method::tempering:
      return "parallel tempering";
  }
  return "";
}

Section problem_section(const QapOptions& o, const QapOutcome& outcome) {
  Section section;
  section.line("problem", fmt::format("quadratic assignment, {}: {} locations, {}{}", o.instance.string(),
                                      outcome.n, words_of(outcome.facts.symmetry),
                                      outcome.facts.has_diagonals ? ", diagonals" : ""));
  section.add("instance", o.instance.string());
  section.add("n", outcome.n);
  section.add("symmetry", words_of(outcome.facts.symmetry));
  section.add("diagonals", outcome.facts.has_diagonals);
  section.add("seed", o.common.seed);
  if (!outcome.start) return section;
  section.line("start", fmt::format("{}: cost {}, {}", o.start.string(), outcome.start->cost,
                                    words_of(outcome.start->convention)));
  section.add("start", o.start.string());
  section.add("start_cost", outcome.start->cost);
  section.add("start_convention", words_of(outcome.start->convention));
  return section;
}

Section choices_section(const QapOptions& o, const qap::SearchReport& search) {
  Section section;
  section.say("islands", o.settings.islands, ", {} islands");
  section.say("walks", search.walks, ", {} walks");
  section.say("batches", search.batches, " in {} batches");
  section.add("element_bits", search.form.bits, fmt::format(", {} bits", search.form.bits));
  section.add("longest_walk", search.longest);
  return section;
}

Section speed_section(const qap::SearchReport& search) {
  Section section;
  section.line("walked");
  section.say("generations", search.generations, "{} generations");
  section.say("iterations", search.iterations, ", {} iterations");
  section.say("moves_per_second", search.seconds > 0 ? search.moves / search.seconds : 0.0,
              ", {:.3g} moves per second");
  return section;
}

Section cost_section(const QapOutcome& outcome) {
  const qap::SearchReport& search = outcome.search;
  Section section;
  section.line("cost");
  section.say("cost", search.cost, "{}");
  section.say("seconds_to_best", search.seconds_to_best, ", found after {:.3f} s");
  section.add("verified", outcome.verified,
              outcome.verified ? ", verified" : ", which is not that of its permutation");
  section.add("least_possible_cost", outcome.facts.least_cost);
  std::vector<std::int32_t> from_one;
  for (const std::int32_t facility : search.permutation) from_one.push_back(facility + 1);
  section.add("permutation", from_one);
  section.add("history", search.history);
  section.add("ending", to_string(search.ending));
  return section;
}

}  // namespace

SolverReport report_of(const QapOptions& options, const QapOutcome& outcome) {
  SolverReport report{.solver = solver_name(options.settings.method),
                      .method = name(options.settings.method)};
  report.run = outcome.run;
  report.problem = problem_section(options, outcome);
  report.choices = choices_section(options, outcome.search);
  report.speed = speed_section(outcome.search);
  report.accuracy = cost_section(outcome);
  report.output = options.common.output;
  report.solution = "p";
  report.verdict = fmt::format(": {}", words_of(outcome.search.ending));
  return report;
}

}  // namespace asterism::tools
