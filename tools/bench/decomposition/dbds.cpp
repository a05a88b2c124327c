#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../../algorithms/common/stopwatch.hpp"
#include "../../../algorithms/decomposition/dbds.hpp"
#include "../../../algorithms/sparse/blocks/division.hpp"
#include "../../../algorithms/sparse/conjugate_gradients.hpp"
#include "../../../algorithms/sparse/models/models.hpp"
#include "../../../runtime/collectives.hpp"
#include "../../cli/commands.hpp"
#include "../../cli/report.hpp"
#include "../../linear/system.hpp"
#include "../figures.hpp"

namespace asterism::tools {
namespace {

using namespace decomposition;

struct DbdsBenchOptions {
  CommonOptions common;
  std::string model = "poisson2d:512x512";
  std::vector<Index> subdomains{2, 4, 8};
  std::vector<Index> overlaps{};  ///< rows; empty: none and n / 8
  double tolerance = 1e-10;
  Index max_iterations = 2000;
};

/// A row of the table.
struct DbdsRun {
  std::string method;
  Index subdomains = 0, overlap = 0, fill = 0;
  double partition = 0, factorise = 0, total = 0;
  Report report = {};
};

class DbdsBench {
 public:
  DbdsBench(Runtime& runtime, const DbdsBenchOptions& options, Figures& figures)
      : runtime_(runtime), options_(options), figures_(figures) {
    const sparse::MatrixModel model = sparse::parse_matrix_model(options.model);
    const auto [first, end] = sparse::rows_of_rank(model.rows(), runtime.rank(), runtime.ranks());
    a_ = sparse::model_rows(model, first, end);
    for (Index row = first; row < end; ++row) b_.push_back(random_number(options.common.seed, row));
  }

  void run() {
    figures_.print("\n{}: {} rows, b random, relative residual {:g}\n", options_.model, a_.total_rows,
                   options_.tolerance);
    figures_.print("{:<34} {:>5} {:>9} {:>8} {:>9} {:>9} {:>9} {:>6}  {}\n", "method", "P", "overlap",
                   "fill/row", "order s", "factors s", "total s", "iter.", "result");
    for (const char* preconditioner : {"diagonal", "mc-ilu0"}) run_krylov(preconditioner);
    run_dbds<double>("direct solver alone", {.subdomains = {.count = 1}});
    std::vector<Index> overlaps = options_.overlaps;
    if (overlaps.empty()) overlaps = {0, a_.total_rows / 8};
    for (const Index overlap : overlaps)
      for (const Index count : options_.subdomains) {
        if (count < 2 || overlap > a_.total_rows / count) continue;
        const SchwarzSettings settings{.subdomains = {.count = count, .overlap = overlap}};
        run_dbds<double>("DBDS", settings);
        run_dbds<float>("DBDS, mixed precision", settings);
      }
    for (const Index count : options_.subdomains) run_accelerated(count);
    figures_.note("runs", runs_);
  }

 private:
  [[nodiscard]] sparse::LinearSettings settings() const {
    sparse::LinearSettings settings;
    settings.tolerance = options_.tolerance;
    settings.max_iterations = options_.max_iterations;
    return settings;
  }

  void run_krylov(const char* preconditioner) {
    sparse::LinearSettings its = settings();
    its.preconditioner = sparse::parse_preconditioner(preconditioner);
    its.max_iterations = 0;
    asterism::Stopwatch watch;
    sparse::ConjugateGradients<double> solver(runtime_, a_, its);
    DbdsRun run{.method = fmt::format("conjugate gradients, {}", preconditioner)};
    solve(solver, watch, run);
    print(run);
  }

  template <class V>
  void run_dbds(const std::string& method, const SchwarzSettings& schwarz) {
    run_by_schwarz<Dbds<double>, V>(method, schwarz);
  }

  void run_accelerated(Index count) {
    run_by_schwarz<sparse::ConjugateGradients<double>, double>(
        "DBDS --accelerate cg --coarse 16", {.subdomains = {.count = count, .cut = Cut::graph, .overlap = 2},
                                             .combination = Combination::symmetric,
                                             .patches = 16});
  }

  template <class Solver, class V>
  void run_by_schwarz(const std::string& method, const SchwarzSettings& settings_of) {
    asterism::Stopwatch watch;
    const auto schwarz = std::make_shared<Schwarz<double, V>>(runtime_, a_, settings_of);
    Solver solver(runtime_, a_, settings(), schwarz);
    DbdsRun run{.method = method,
                .subdomains = settings_of.subdomains.count,
                .overlap = settings_of.subdomains.overlap};
    solve(solver, watch, run);
    const SchwarzFacts& facts = schwarz->facts();
    run.fill = facts.factors.fill;
    run.partition = facts.seconds_partition + facts.factors.seconds_order;
    run.factorise = facts.factors.seconds_factorise;
    print(run);
  }

  template <class Solver>
  void solve(Solver& solver, const asterism::Stopwatch& watch, DbdsRun& run) {
    std::vector<double> x(b_.size());
    run.report = solver.solve(b_.data(), x.data());
    run.total = watch.total();
  }

  void print(const DbdsRun& run) {
    const double fill = static_cast<double>(run.fill) / static_cast<double>(a_.total_rows);
    figures_.print("{:<34} {:>5} {:>9} {:>8.1f} {:>9.2f} {:>9.2f} {:>9.2f} {:>6}  {}\n", run.method,
                   run.subdomains, run.overlap, fill, run.partition, run.factorise, run.total,
                   run.report.iterations, to_string(run.report.reason));
    runs_.push_back({{"method", run.method},
                     {"subdomains", run.subdomains},
                     {"overlap", run.overlap},
                     {"fill_per_row", fill},
                     {"partition_seconds", run.partition},
                     {"factorise_seconds", run.factorise},
                     {"total_seconds", run.total},
                     {"iterations", run.report.iterations},
                     {"reason", to_string(run.report.reason)}});
  }

  Runtime& runtime_;
  const DbdsBenchOptions& options_;
  Figures& figures_;
  sparse::Csr<double> a_;
  std::vector<double> b_;
  nlohmann::ordered_json runs_ = nlohmann::ordered_json::array();
};

int run(const DbdsBenchOptions& o) {
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    Figures figures(runtime, o.common);
    add_ceilings(figures, measure_ceilings(runtime));
    figures.note("model", o.model);
    DbdsBench(runtime, o, figures).run();
    figures.finish();
    return 0;
  });
}

}  // namespace

Command add_bench_dbds(CLI::App& bench) {
  auto o = std::make_shared<DbdsBenchOptions>();
  CLI::App* app = bench.add_subcommand(
      "dbds", "solvers on subdomains beside conjugate gradients and a direct solver alone");
  OptionGroup problem(*app, "Problem");
  const auto parse_model = [](const std::string& text) {
    sparse::parse_matrix_model(text);
    return text;
  };
  problem.add("--model", o->model, parse_model, "NAME:SIZES",
              "a positive definite model of asterism linear; default: " + o->model);
  problem.add("--subdomains", o->subdomains, parse_counts, "P,...", "default: 2,4,8");
  problem.add("--overlap", o->overlaps, parse_counts, "ROWS,...", "default: none, and an eighth of all rows");
  problem.add("--tolerance", o->tolerance, parse_tolerance, "T", "relative residual; default: 1e-10");
  problem.add("--max-iterations", o->max_iterations, parse_count<>, "N", "on subdomains; default: 2000");
  add_seed_option(*app, o->common);
  add_machine_options(*app, o->common);
  return {app, [o] { return run(*o); }};
}

}  // namespace asterism::tools
