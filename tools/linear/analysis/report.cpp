#include "report.hpp"

#include <fmt/format.h>

#include "../../../runtime/pause.hpp"
#include "../../cli/progress.hpp"

namespace asterism::tools {
namespace {

void say_size(Section& s, const MatrixAnalysis& a, const std::string& name) {
  s.line("matrix", name + ": ");
  s.say("rows", a.rows, "{} rows");
  s.add("columns", a.cols, a.cols == a.rows ? "" : fmt::format(" and {} columns", a.cols));
  s.say("entries", a.entries, ", {} entries");
  s.add("duplicates", a.duplicates,
        a.duplicates > 0 ? fmt::format(" ({} of the file have the place of another)", a.duplicates) : "");
  s.line("rows");
  s.add("entries_per_row", {{"least", a.facts.fewest}, {"mean", a.facts.mean}, {"most", a.facts.most}},
        fmt::format("{} to {} entries, {:.3g} on average", a.facts.fewest, a.facts.most, a.facts.mean));
  s.add("empty_rows", a.facts.empty.count,
        a.facts.empty.count > 0 ? fmt::format(", {} empty", a.facts.empty.count) : "");
}

void say_symmetry(Section& s, const MatrixAnalysis& a, const Numbering& number) {
  if (!a.symmetry) return;
  s.line("symmetry");
  s.add("symmetric_pattern", a.symmetry->structural(),
        a.symmetry->structural()
            ? "the pattern is symmetric"
            : fmt::format("the pattern is not symmetric: {} no mirror image",
                          a.symmetry->unpaired == 1 ? "1 entry has"
                                                    : fmt::format("{} entries have", a.symmetry->unpaired)));
  if (a.pattern) return;
  s.add("symmetric_values", a.symmetry->numerical(),
        a.symmetry->numerical()
            ? ", so are the values"
            : fmt::format(", {} differ, first ({}, {}) = {:g} and ({}, {}) = {:g}",
                          counted(a.symmetry->unequal, "pair"), number(a.symmetry->first_unequal->row),
                          number(a.symmetry->first_unequal->col), a.symmetry->first_unequal->upper,
                          number(a.symmetry->first_unequal->col), number(a.symmetry->first_unequal->row),
                          a.symmetry->first_unequal->lower));
}

void say_diagonal(Section& s, const MatrixAnalysis& a) {
  const sparse::Structure& facts = a.facts;
  s.line("diagonal");
  s.add("dominant_rows", facts.dominant, fmt::format("{} of {} rows are dominant", facts.dominant, a.rows));
  s.say("strictly_dominant_rows", facts.strictly_dominant, ", {} strictly");
  const auto say_rows = [&](const char* key, const sparse::FoundRows& rows, const char* what) {
    s.add(key, rows.count, rows.count > 0 ? fmt::format(", {} {}", rows.count, what) : "");
  };
  say_rows("missing_on_diagonal", facts.without_diagonal, "without an entry there");
  say_rows("not_positive_on_diagonal", facts.nonpositive_diagonal, "not positive");
}

void say_shape(Section& s, const MatrixAnalysis& a) {
  const sparse::Structure& facts = a.facts;
  if (!a.pattern) say_diagonal(s, a);
  s.line("bandwidth");
  s.add("bandwidth", {{"lower", facts.lower_bandwidth}, {"upper", facts.upper_bandwidth}},
        fmt::format("{} below the diagonal, {} above", facts.lower_bandwidth, facts.upper_bandwidth));
  s.say("diagonals", facts.diagonals, ", {} diagonals");
}

void say_colours(Section& s, const MatrixAnalysis& a) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ColourCount& colours : a.colours) {
    s.line(fmt::format("colours {}", colours.q),
           fmt::format("{} of {} to {} rows: rows up to {} apart differ", colours.colours,
                       colours.fewest_rows, colours.most_rows, counted(colours.q, "step")));
    all.push_back({{"q", colours.q},
                   {"colours", colours.colours},
                   {"fewest_rows", colours.fewest_rows},
                   {"most_rows", colours.most_rows}});
  }
  if (!a.colours.empty()) s.add("colours", all);
}

void say_condition(Section& s, const std::string& label, const std::string& key, const std::string& what,
                   const std::optional<Definiteness>& found) {
  if (!found) return;
  s.line(label);
  if (found->reason == Reason::indefinite)
    s.add(key, nullptr, "none: the matrix is not positive definite");
  else if (found->spectrum)
    s.add(key, found->spectrum->condition(),
          fmt::format("{:.3g} at least{} (eigenvalues from {:.3g} to {:.3g})", found->spectrum->condition(),
                      what, found->spectrum->least, found->spectrum->most));
}

void say_rate(Section& s, const DecompositionRate& rate) {
  s.line("dbds");
  s.add("subdomains", rate.subdomains, counted(rate.subdomains, "subdomain"));
  s.add("overlap", rate.overlap, fmt::format(", overlap {}: ", rate.overlap));
  s.add("rho", rate.rho,
        fmt::format("an iteration reduces the error {:.6f} times (rho, by power iteration)", rate.rho));
  if (rate.known) s.add("rho_known", *rate.known, fmt::format("; {:.6f} by theory", *rate.known));
}

}  // namespace

Section section_of(const MatrixAnalysis& a, const std::string& name, const Numbering& number,
                   const Recommendation& recommendation) {
  Section s;
  s.add("matrix", name);
  say_size(s, a, name);
  say_symmetry(s, a, number);
  say_shape(s, a);
  say_colours(s, a);
  say_condition(s, "condition", "condition_estimate", "", a.plain);
  say_condition(s, "scaled", "scaled_condition_estimate", " with the diagonal as preconditioner", a.scaled);
  if (a.decomposition) say_rate(s, *a.decomposition);
  s.line("advice");
  if (recommendation.preconditioner.empty())
    s.add("recommended", nullptr, recommendation.reason);
  else
    s.add("recommended", recommendation.preconditioner,
          fmt::format("--preconditioner {}: {}", recommendation.preconditioner, recommendation.reason));
  s.add("reason", recommendation.reason);
  return s;
}

void analyse(Runtime& runtime, const LinearOptions& o, const StatedLinear& stated) {
  Progress progress(runtime.rank() == 0 ? o.common.verbosity : Verbosity::quiet);
  const WhileWorking shown(progress, "analysing " + stated.matrix);
  StatedMatrix matrix;
  {
    const Pause pause;
    matrix = read_whole_matrix(runtime, o, stated);
  }
  MatrixAnalysis analysis = analysis_of(runtime, matrix, o.common.seed);
  if (o.method == LinearMethod::dbds) analysis.decomposition = rate_of_subdomains(runtime, matrix, o);
  const bool on_gpu = runtime.machine().count(WorkerKind::cuda) > 0;
  const Section section = section_of(analysis, stated.matrix, matrix.number, recommended(analysis, on_gpu));
  if (runtime.rank() == 0 && o.common.json)
    print_report(section.json());
  else if (runtime.rank() == 0 && o.common.verbosity == Verbosity::normal)
    fmt::print("{}", section.text());
}

}  // namespace asterism::tools
