#include "decomposition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "../../algorithms/common/workers.hpp"

namespace asterism::tools {
namespace {

void require_subdomain_method(const LinearOptions& o) {
  const DecompositionOptions& d = o.decomposition;
  if (has_subdomains(o.method)) return;
  const auto refuse = [](const char* option) {
    throw Error(fmt::format("{}: it is of --solver dcg and dbds, which work on subdomains", option));
  };
  if (d.subdomains) refuse("--subdomains");
  if (d.overlap) refuse("--overlap");
  if (d.cut) refuse("--cut");
  if (d.factors == FactorPrecision::f32) refuse("--mixed");
  if (d.accelerate) refuse("--accelerate");
  if (d.patches) refuse("--coarse");
}

Index sum_of(const std::vector<Index>& list) { return std::accumulate(list.begin(), list.end(), Index{0}); }

void say_factors(Section& section, const LinearOptions& o, const StatedLinear& stated,
                 const decomposition::SchwarzFacts& facts) {
  const decomposition::FactorFacts& factors = facts.factors;
  const Precision precision =
      o.decomposition.factors == FactorPrecision::f32 ? Precision::f32 : stated.precision;
  section.line("factors");
  section.add("factor_precision", to_string(precision), to_string(precision));
  section.add("factor_entries", factors.fill, fmt::format(", {} entries", factors.fill));
  const Index most = std::ranges::max(factors.bytes);
  section.add("factor_bytes", factors.bytes,
              fmt::format(", {}{}", human_bytes(static_cast<double>(most)),
                          factors.bytes.size() > 1 ? " on a rank at most" : ""));
  section.add(
      "factor_bytes_predicted", factors.predicted,
      fmt::format(" ({} predicted)", human_bytes(static_cast<double>(std::ranges::max(factors.predicted)))));
  if (!facts.coarse) return;
  section.line("coarse");
  section.add("coarse_rows", facts.coarse_rows, fmt::format("{} patches", facts.coarse_rows));
  section.add("coarse_factor_entries", facts.coarse->fill,
              fmt::format(", {} entries in its factors", facts.coarse->fill));
}

}  // namespace

bool needs_symmetry(const LinearOptions& o) {
  if (!o.method || o.method == LinearMethod::cg || o.method == LinearMethod::dcg) return true;
  return o.method == LinearMethod::dbds && o.decomposition.accelerate == LinearMethod::cg;
}

void require_decomposition(const LinearOptions& o, const StatedLinear& stated) {
  const DecompositionOptions& d = o.decomposition;
  require_subdomain_method(o);
  if (!has_subdomains(o.method)) return;
  if (o.preconditioner.method != sparse::PreconditionerMethod::automatic)
    throw Error(
        fmt::format("--preconditioner {}: --solver dcg and dbds have subdomains instead; leave it away",
                    to_string(o.preconditioner)));
  if (o.preconditioner_precision)
    throw Error("--preconditioner-precision: --solver dbds has --mixed for its factors; leave it away");
  if (d.factors == FactorPrecision::f32 && stated.precision == Precision::f32)
    throw Error("--mixed: the arithmetic is in f32 (--precision), and so are the factors");
  if (o.method == LinearMethod::dbds) return;
  if (d.factors == FactorPrecision::f32 || d.accelerate || d.patches)
    throw Error("--mixed, --accelerate, --coarse: --solver dcg has no factors; --solver dbds has");
}

decomposition::SubdomainSettings subdomains_of(const Runtime& runtime, const LinearOptions& o,
                                               const std::vector<double>& shares) {
  const DecompositionOptions& d = o.decomposition;
  decomposition::SubdomainSettings settings{.count = d.subdomains.value_or(0),
                                            .cut = d.cut.value_or(decomposition::Cut::rows),
                                            .overlap = d.overlap.value_or(0),
                                            .shares = shares};
  if (settings.count == 0)
    settings.count = std::ranges::count(all_workers(runtime), Where::cpu, &Candidate::where);
  return settings;
}

decomposition::SchwarzSettings schwarz_of(const Runtime& runtime, const LinearOptions& o,
                                          const std::vector<double>& shares,
                                          sparse::MatrixClass matrix_class) {
  using enum decomposition::Combination;
  decomposition::SchwarzSettings settings;
  settings.subdomains = subdomains_of(runtime, o, shares);
  settings.combination = o.decomposition.accelerate == LinearMethod::cg ? symmetric : restricted;
  settings.patches = o.decomposition.patches.value_or(0);
  settings.factors.matrix_class = matrix_class;
  return settings;
}

void say_decomposition(Section& section, const LinearOptions& o, const StatedLinear& stated,
                       const DecompositionOutcome& outcome) {
  const DecompositionOptions& d = o.decomposition;
  const bool by_graph = d.cut == decomposition::Cut::graph;
  section.line("domains");
  section.add("subdomains", outcome.subdomains, counted(outcome.subdomains, "subdomain"));
  section.add("cut", by_graph ? "graph" : "rows", by_graph ? " by the graph" : " of rows");
  const Index overlap = d.overlap.value_or(0);
  section.add("overlap", overlap, fmt::format(", overlap {}", counted(overlap, by_graph ? "step" : "row")));
  if (outcome.facts)
    section.add("rows_with_overlap", sum_of(outcome.facts->rows),
                fmt::format(", {} rows in all", sum_of(outcome.facts->rows)));
  if (d.accelerate) section.add("accelerate", name(*d.accelerate), fmt::format(", {}", name(*d.accelerate)));
  section.add("bytes_between_ranks_each_time", outcome.bytes_between_ranks);
  if (outcome.facts) say_factors(section, o, stated, *outcome.facts);
}

std::string advice_on_subdomains(const LinearOptions& o) {
  if (o.method == LinearMethod::dcg)
    return "distributive conjugate gradients need not converge; --solver dbds does more surely, and faster with "
           "--accelerate cg";
  if (o.decomposition.factors == FactorPrecision::f32)
    return "factors in f32 may not do for this matrix; leave --mixed away, or add --accelerate cg";
  return "block relaxation need not converge, and takes long with many subdomains; more --overlap or --accelerate "
         "cg|bicgstab|gmres help, --coarse N too";
}

double rho_of_lines(Index n) { return 2 / (2 - std::cos(std::numbers::pi / static_cast<double>(n + 1))) - 1; }

}  // namespace asterism::tools
