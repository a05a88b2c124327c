#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "../algorithms/poisson.hpp"
#include "commands.hpp"
#include "npy.hpp"
#include "poisson_slabs.hpp"
#include "progress.hpp"

namespace asterism::tools {
namespace {

using Clock = std::chrono::steady_clock;

/// The wall time of the parts of a run, in the order they happen.
class Stopwatch {
 public:
  /// Ends the part that runs now and gives it its name.
  void lap(const std::string& part) {
    const auto now = Clock::now();
    laps_.emplace_back(part, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& laps() const { return laps_; }
  [[nodiscard]] double total() const { return std::chrono::duration<double>(last_ - start_).count(); }

 private:
  Clock::time_point start_ = Clock::now(), last_ = start_;
  std::vector<std::pair<std::string, double>> laps_;
};

struct PoissonOptions {
  CommonOptions common;
  std::string input;
  std::optional<GridShape> shape;
  std::optional<kernels::Model> model;
  std::optional<Lengths> lengths;
  poisson::Settings settings;
  bool check = true;
};

/// A problem as the options state it, complete and consistent.
struct Problem {
  std::optional<NpyReader> reader;  ///< f comes from here, or else from the model
  kernels::ModelProblem model;
  poisson::Grid grid;
  Precision precision;
};

Problem state_problem(const PoissonOptions& o) {
  Problem p;
  GridShape shape = o.shape.value_or(GridShape{4095, 4095});
  p.precision = o.common.precision.value_or(Precision::f64);
  if (!o.input.empty()) {
    if (o.model) throw Error(fmt::format("{} and --model: f comes from either, leave one away", o.input));
    p.reader.emplace(o.input);
    const NpyHeader& header = p.reader->header();
    if (o.shape && (o.shape->rows != header.rows() || o.shape->cols != header.cols()))
      throw Error(fmt::format("{} holds {} x {} values, --grid says {} x {}; leave --grid away", o.input,
                              header.rows(), header.cols(), o.shape->rows, o.shape->cols));
    shape = {header.rows(), header.cols()};
    p.precision = o.common.precision.value_or(header.precision);
  }
  const kernels::Model model = o.model.value_or(kernels::Model::sine);
  const bool sine = !p.reader && model == kernels::Model::sine;
  if (sine && o.lengths)
    throw Error(
        "--lengths does not go with the model sine, which lives on (-1,1)^2; --model random takes lengths");
  const Lengths lengths = o.lengths.value_or(sine ? Lengths{2, 2} : Lengths{1, 1});
  p.grid = {shape.rows, shape.cols, lengths.y, lengths.x};
  const double corner = sine ? -1 : 0;
  p.model = {model, o.common.seed, shape.rows, shape.cols, corner, corner, p.grid.hx(), p.grid.hy()};
  return p;
}

/// The output file, which all ranks write into and rank 0 makes and commits.
std::optional<NpyWriter> open_output(const Runtime& runtime, const PoissonOptions& o, const Problem& p) {
  if (o.common.output.empty()) return std::nullopt;
  std::optional<NpyWriter> writer;
  if (runtime.rank() == 0)
    writer.emplace(o.common.output, p.precision, std::vector<Index>{p.grid.rows, p.grid.cols});
  const std::string temporary = runtime.from_first_rank(writer ? writer->temporary().string() : "");
  if (!writer) writer.emplace(NpyWriter::attach(temporary));
  return writer;
}

struct Outcome {
  poisson::Layout layout;
  Report report;
  std::optional<poisson::Check> check;
  int cpus = 0, gpus = 0, ranks = 1;
};

/// What this rank knows of its own only, summed over all ranks.
void sum_over_ranks(const Runtime& runtime, Outcome& outcome) {
  const Machine machine = runtime.machine();
  Traffic& traffic = outcome.report.traffic;
  double sums[] = {static_cast<double>(traffic.to_device), static_cast<double>(traffic.from_device),
                   static_cast<double>(machine.count(WorkerKind::cpu)),
                   static_cast<double>(machine.count(WorkerKind::cuda))};
  runtime.sum_over_ranks(sums, std::size(sums));
  traffic.to_device = static_cast<std::int64_t>(sums[0]);
  traffic.from_device = static_cast<std::int64_t>(sums[1]);
  outcome.cpus = static_cast<int>(sums[2]);
  outcome.gpus = static_cast<int>(sums[3]);
  outcome.ranks = runtime.ranks();
}

template <class T>
Outcome solve(Runtime& runtime, const PoissonOptions& o, const Problem& p, Stopwatch& stopwatch) {
  Progress progress(runtime.rank() == 0 ? o.common.verbosity : Verbosity::quiet);
  const auto show = [&](const char* what, Index row) {
    progress.update(static_cast<double>(row) / static_cast<double>(p.grid.rows), what);
  };
  require_room<T>(runtime, p.grid);
  poisson::Solver<T> solver(runtime, p.grid, o.settings);
  std::optional<NpyWriter> writer = open_output(runtime, o, p);
  stopwatch.lap("setup");

  Slabs<T> slabs(runtime, solver);
  stopwatch.lap("allocate");

  using Access = typename HostView<T>::Access;
  const auto read = [&](const HostView<T>& f, Index first_row) {
    p.reader->read_rows(first_row, f.rows(), f.row(0), f.ld(), Values::finite);
  };
  const auto rhs = [&](Index first_row, Tile<T>& f) {
    if (p.reader)
      read(HostView<T>(f, Access::write), first_row);
    else
      codelets::model_rhs<T>({p.model, first_row}, f, {.where = solver.layout().where});
  };
  if (p.reader)
    slabs.each_on_host(Access::write, [&](const HostView<T>& f, Index first_row) {
      show("reading f", first_row);
      read(f, first_row);
    });
  else
    slabs.fill(rhs);
  stopwatch.lap("fill");

  show("solving", 0);
  Outcome outcome{solver.layout(), solver.solve(slabs.tiles()), {}};
  stopwatch.lap("solve");

  if (o.check) {
    outcome.check = solver.check(
        slabs.tiles(),
        [&](Index first_row, Tile<T>& f) {
          show("checking the residual", first_row);
          rhs(first_row, f);
        },
        p.reader ? nullptr : &p.model);
    if (!std::isfinite(outcome.check->scaled_residual)) outcome.report.reason = Reason::not_finite;
    stopwatch.lap("check");
  }
  if (writer && outcome.report.reason == Reason::solved) {
    slabs.each_on_host(Access::read, [&](const HostView<T>& u, Index first_row) {
      show("writing u", first_row);
      writer->write_rows(first_row, u.rows(), u.row(0), u.ld());
    });
    if (runtime.rank() > 0) writer.reset();
    runtime.barrier();
    if (writer) writer->commit();
    stopwatch.lap("write");
  }
  sum_over_ranks(runtime, outcome);
  return outcome;
}

void print_json(const Problem& p, const Outcome& r, const Stopwatch& stopwatch) {
  nlohmann::ordered_json j;
  j["solver"] = "fast Poisson, two passes";
  j["mode"] = name(r.layout.mode);
  j["grid"] = {p.grid.rows, p.grid.cols};
  j["precision"] = to_string(p.precision);
  j["unknowns"] = p.grid.rows * p.grid.cols;
  for (const auto& [part, seconds] : stopwatch.laps()) j["seconds"][part] = seconds;
  j["seconds"]["total"] = stopwatch.total();
  if (r.check) {  // NaN and infinity, which JSON has not, become null
    j["scaled_residual"] = r.check->scaled_residual;
    if (r.check->error) j["error"] = *r.check->error;
  }
  j["workers"] = {{"cpu", r.cpus}, {"cuda", r.gpus}, {"ranks", r.ranks}};
  j["bytes"] = {{"to_device", r.report.traffic.to_device}, {"from_device", r.report.traffic.from_device}};
  j["slabs"] = r.layout.slabs;
  j["reason"] = to_string(r.report.reason);
  fmt::print("{}\n", j.dump(2));
}

void print_text(const PoissonOptions& o, const Problem& p, const Outcome& r, const Stopwatch& stopwatch) {
  const bool sine = p.model.model == kernels::Model::sine;
  const double millions = static_cast<double>(p.grid.rows) * static_cast<double>(p.grid.cols) / 1e6;
  const auto bytes = [](std::int64_t count) { return human_bytes(static_cast<double>(count)); };
  const auto plural = [](auto count) { return count == 1 ? "" : "s"; };

  fmt::print("problem    u_xx + u_yy = f, {}: {} x {} unknowns ({:.4g} million) in {}\n",
             p.reader ? o.input
             : sine   ? "model sine"
                      : "model random",
             p.grid.rows, p.grid.cols, millions, to_string(p.precision));
  fmt::print("method     fast Poisson, two passes, {}: {} slab{} of {} row{}\n", name(r.layout.mode),
             r.layout.slabs, plural(r.layout.slabs), r.layout.slab_rows, plural(r.layout.slab_rows));
  fmt::print("workers    {} CPU, {} CUDA, {} rank{}\n", r.cpus, r.gpus, r.ranks, plural(r.ranks));
  fmt::print("seconds    ");
  for (const auto& [part, seconds] : stopwatch.laps()) fmt::print("{} {:.3f}, ", part, seconds);
  fmt::print("total {:.3f}\n", stopwatch.total());
  fmt::print("speed      {:.1f} million unknowns per second of solving\n",
             millions / r.report.seconds.at("solve"));
  const Traffic& moved = r.report.traffic;
  if (moved.to_device + moved.from_device > 0)
    fmt::print("moved      {} to GPUs, {} back\n", bytes(moved.to_device), bytes(moved.from_device));
  if (r.check)
    fmt::print("residual   {:.2e} scaled, {:.2f} eps\n", r.check->scaled_residual,
               r.check->scaled_residual / roundoff(p.precision));
  if (r.check && r.check->error)
    fmt::print("error      {:.2e} relative to the exact solution of the {} equation\n", *r.check->error,
               sine ? "differential" : "difference");
  if (!o.common.output.empty() && r.report.reason == Reason::solved)
    fmt::print("written    {}\n", o.common.output.string());
  fmt::print("result     {}\n", to_string(r.report.reason));
}

int run(const PoissonOptions& o) {
  Stopwatch stopwatch;
  const Problem problem = state_problem(o);
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    const Outcome outcome = problem.precision == Precision::f32
                                ? solve<float>(runtime, o, problem, stopwatch)
                                : solve<double>(runtime, o, problem, stopwatch);
    if (runtime.rank() == 0 && o.common.json)
      print_json(problem, outcome, stopwatch);
    else if (runtime.rank() == 0 && o.common.verbosity == Verbosity::normal)
      print_text(o, problem, outcome, stopwatch);
    return outcome.report.reason == Reason::solved ? 0 : 1;
  });
}

}  // namespace

Command add_poisson(CLI::App& program) {
  using kernels::Model;
  auto options = std::make_shared<PoissonOptions>();
  CLI::App* app =
      program.add_subcommand("poisson", "solve u_xx + u_yy = f on a rectangle, u = 0 on its border");
  app->add_option(
         "F.npy", options->input,
         "f at the interior nodes, rows along y, columns along x, as numpy.save writes it; without a file: "
         "--model")
      ->type_name("");
  add_choice_option<std::optional<Model>, Model>(*app, "--model", options->model,
                                                 {{"sine", Model::sine}, {"random", Model::random}},
                                                 "a problem whose solution is known: sine (f = -2 pi^2 "
                                                 "sin(pi x) sin(pi y) on (-1,1)^2) or random (u drawn from "
                                                 "--seed, f its discrete Laplacian); default: sine")
      ->group("Problem");
  add_parsed_option(*app, "--grid", options->shape, parse_grid,
                    "interior nodes of a model, rows x columns; default: 4095x4095")
      ->type_name("MxN")
      ->group("Problem");
  add_parsed_option(*app, "--lengths", options->lengths, parse_lengths,
                    "sides of the rectangle along y and x; spacings are length / (nodes + 1); default: 1x1")
      ->type_name("LYxLX")
      ->group("Problem");
  add_method_options(*app, options->settings);
  app->add_flag_callback(
         "--no-check", [options] { options->check = false; },
         "do not compute the residual, which reads f once more")
      ->group("Method");
  add_common_options(*app, options->common);
  app->footer(
      "Examples:\n"
      "  asterism poisson --model sine --grid 4095x4095\n"
      "  asterism poisson F.npy -o U.npy\n"
      "  asterism poisson F.npy -o U.npy --gpu-memory 4G --mode streaming --json\n"
      "  asterism poisson F.npy -o U.npy --memory 8G --spill /scratch\n"
      "  mpirun -np 4 asterism poisson --model random --grid 16383x16383\n\n"
      "Extents n with n + 1 a product of small primes (4095, 49151) are transformed fastest.");
  return {app, [options] { return run(*options); }};
}

}  // namespace asterism::tools
