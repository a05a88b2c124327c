#include <fmt/format.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "../../cli/commands.hpp"
#include "../../cli/report.hpp"
#include "baselines.hpp"

namespace asterism::tools {
namespace {

template <class T>
sparse::Csr<T> matrix_of(const sparse::MatrixModel& model) {
  sparse::Csr<double> a = sparse::model_matrix(model);
  if constexpr (std::is_same_v<T, double>)
    return a;
  else
    return {a.first_row,
            a.total_rows,
            a.cols,
            std::move(a.row_begin),
            std::move(a.columns),
            {a.values.begin(), a.values.end()}};
}

LinearCeiling ceiling_of(const Machine& machine, const Bandwidth& raw, sparse::Workers workers) {
  const int gpus = machine.count(WorkerKind::cuda);
  if (gpus == 0) return {raw.host_triad, "triad"};
  const double copies = raw.device_copy * gpus;
  if (workers == sparse::Workers::fastest || machine.count(WorkerKind::cpu) == 0) return {copies, "copy"};
  return {copies + raw.host_triad, "both"};
}

/// All runs with a matrix, the baselines behind the first format of their preconditioner.
template <class T, class V>
nlohmann::ordered_json bench_model(Runtime& runtime, const LinearBenchOptions& o, const NamedModel& model,
                                   const LinearCeiling& ceiling, const Figures& figures) {
  const sparse::Csr<T> a = matrix_of<T>(model.model);
  figures.print("\n{}: {} rows, {} entries\n", model.name, a.rows(), a.entries());
  print_linear_head(figures, ceiling);
  Baselines<T> baselines(runtime, a, o.repeats);
  auto runs = nlohmann::ordered_json::array(), others = nlohmann::ordered_json::array();
  for (const sparse::PreconditionerChoice& choice : o.preconditioners) {
    bool first = true;
    for (const auto& format : o.formats) {
      const LinearRun run = run_linear<T, V>(runtime, a, o, choice, format);
      print(figures, run, ceiling);
      runs.push_back(as_json(run, ceiling));
      if (!std::exchange(first, false)) continue;
      for (const BaselineRun& other : baselines.beside(run)) {
        print(figures, other, ceiling);
        others.push_back(as_json(other, ceiling));
      }
    }
  }
  return {{"model", model.name},
          {"rows", a.rows()},
          {"entries", a.entries()},
          {"runs", runs},
          {"baselines", others}};
}

void print_notes(const Figures& figures, const LinearBenchOptions& o) {
  figures.print(
      "\nConjugate gradients, b = 1, x = 0 at first; best of {}. Set-up: all that is done before b is known.\n"
      "us/iter.: of so many iterations as take 0.3 s, without the way to and from the workers. Bytes by the\n"
      "model of compressed rows with indices of 32 bits, and as our kernels move them; where caches or a GPU's\n"
      "registers keep them from step to step, the share may be above 1. Solution: relative residual {:g}.\n",
      o.repeats, o.tolerance);
}

template <class T, class V>
int bench_linear(Runtime& runtime, const LinearBenchOptions& o) {
  require_one_rank(runtime);
  Figures figures(runtime, o.common);
  const Bandwidth raw = measure_ceilings(runtime);
  add_ceilings(figures, raw);
  const Machine machine = runtime.machine();
  const LinearCeiling ceiling = ceiling_of(machine, raw, o.workers);
  figures.note("precision", to_string(precision_of<T>));
  figures.note("preconditioner_precision", to_string(precision_of<V>));
  figures.note("workers",
               as_json(Workers{machine.count(WorkerKind::cpu), machine.count(WorkerKind::cuda), 1}));
  figures.note("ceiling", {{"name", ceiling.name}, {"gbytes_per_second", ceiling.bytes_per_second / 1e9}});
  figures.note("tolerance", o.tolerance);
  print_notes(figures, o);
  nlohmann::ordered_json about;
  for (const auto& [name, words] : baselines_here(machine)) {
    figures.print("Baseline {}.\n", words);
    about[name] = words;
  }
  figures.note("about_baselines", about);
  auto models = nlohmann::ordered_json::array();
  for (const NamedModel& model : o.models)
    models.push_back(bench_model<T, V>(runtime, o, model, ceiling, figures));
  figures.note("models", models);
  figures.finish();
  return 0;
}

int run(const LinearBenchOptions& o) {
  const Precision precision = o.common.precision.value_or(Precision::f64),
                  of_preconditioner = o.preconditioner_precision.value_or(precision);
  if (precision == Precision::f32 && of_preconditioner == Precision::f64)
    throw Error(
        "--preconditioner-precision f64 in an iteration in f32 would be lost; leave it out, or say --precision f64");
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    if (precision == Precision::f32) return bench_linear<float, float>(runtime, o);
    if (of_preconditioner == Precision::f32) return bench_linear<double, float>(runtime, o);
    return bench_linear<double, double>(runtime, o);
  });
}

}  // namespace

Command add_bench_linear(CLI::App& bench) {
  auto options = std::make_shared<LinearBenchOptions>();
  CLI::App* app = add_subcommand(
      bench, "linear", "conjugate gradients beside what memory allows, cuSPARSE + cuBLAS and Eigen");
  add_linear_bench(*app, *options);
  return {app, [options] { return run(*options); }};
}

}  // namespace asterism::tools
