#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "../algorithms/poisson.hpp"
#include "commands.hpp"
#include "npy.hpp"
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
  GridShape shape{4095, 4095};
  if (o.shape) shape = *o.shape;
  p.precision = o.common.precision.value_or(Precision::f64);
  if (!o.input.empty()) {
    if (o.model) throw Error("either an input file or --model, not both");
    p.reader.emplace(o.input);
    const NpyHeader& header = p.reader->header();
    if (o.shape && (o.shape->rows != header.rows() || o.shape->cols != header.cols()))
      throw Error(fmt::format("{} holds {} x {} values, --grid says {} x {}; leave --grid away", o.input, header.rows(),
                              header.cols(), o.shape->rows, o.shape->cols));
    shape = {header.rows(), header.cols()};
    p.precision = o.common.precision.value_or(header.precision);
  }
  const kernels::Model model = o.model.value_or(kernels::Model::sine);
  const bool sine = !p.reader && model == kernels::Model::sine;
  if (sine && o.lengths)
    throw Error("--lengths does not go with the model sine, which is a problem on (-1,1)^2");
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
  if (runtime.rank() == 0) writer.emplace(o.common.output, p.precision, std::vector<Index>{p.grid.rows, p.grid.cols});
  const std::string temporary = runtime.from_first_rank(writer ? writer->temporary().string() : "");
  if (!writer) writer.emplace(NpyWriter::attach(temporary));
  return writer;
}

struct Outcome {
  poisson::Layout layout;
  Report report;
  std::optional<poisson::Check> check;
  Stopwatch stopwatch;
  int cpus = 0, gpus = 0, ranks = 1;
};

template <class T>
Outcome solve(Runtime& runtime, const PoissonOptions& o, const Problem& p, Stopwatch stopwatch) {
  Progress progress(runtime.rank() == 0 ? o.common.verbosity : Verbosity::quiet);
  const Machine machine = runtime.machine();
  poisson::Solver<T> solver(runtime, p.grid, o.settings);
  const poisson::Layout& layout = solver.layout();
  std::optional<NpyWriter> writer = open_output(runtime, o, p);
  stopwatch.lap("setup");

  // With a disk to spill to, the runtime owns the grid and moves it about; otherwise it lies in one piece of memory.
  const bool spills = !runtime.options().spill.empty();
  const PinnedBuffer memory(runtime, spills ? 0 : static_cast<std::size_t>(solver.row_count() * p.grid.cols) * sizeof(T));
  Tiles<T> slabs = spills ? solver.own() : solver.borrow(memory.as<T>());
  stopwatch.lap("allocate");

  const auto rhs = [&](Index first_row, Tile<T>& f) {
    if (p.reader) {
      const HostView<T> view(f, HostView<T>::Access::write);
      p.reader->read_rows(first_row, view.rows(), view.row(0), view.ld(), Values::finite);
    } else {
      codelets::model_rhs<T>({p.model, first_row}, f, {.where = layout.where});
    }
  };
  const auto each_slab = [&](const char* what, auto body) {
    for (Index c = 0; c < layout.slabs; ++c) {
      progress.update(static_cast<double>(c) / static_cast<double>(layout.slabs), what);
      if (slabs[c].owner() == runtime.rank()) body(slabs[c], c * layout.slab_rows);
    }
  };
  each_slab(p.reader ? "reading f" : "making f", [&](Tile<T>& slab, Index first_row) {
    if (!p.reader && !spills) slab.write_through();
    rhs(first_row, slab);
    slab.wont_use();
  });
  runtime.wait();
  if (!spills)  // the solve starts from main memory, wherever f was made
    each_slab("making f", [](const Tile<T>& slab, Index) { slab.return_home(); });
  stopwatch.lap("fill");

  Outcome outcome;
  progress.update(0, "solving");
  outcome.report = solver.solve(slabs);
  stopwatch.lap("solve");

  if (o.check) {
    progress.update(0, "checking the residual");
    outcome.check = solver.check(slabs, rhs, p.reader ? nullptr : &p.model);
    outcome.report.residual_history = {outcome.check->scaled_residual};
    if (!std::isfinite(outcome.check->scaled_residual)) outcome.report.reason = Reason::not_finite;
    stopwatch.lap("check");
  }
  if (writer && outcome.report.reason == Reason::solved) {
    each_slab("writing u", [&](const Tile<T>& slab, Index first_row) {
      const HostView<T> view(slab, HostView<T>::Access::read);
      writer->write_rows(first_row, view.rows(), view.row(0), view.ld());
    });
    if (runtime.rank() > 0) writer.reset();
    runtime.barrier();
    if (writer) writer->commit();
    stopwatch.lap("write");
  }

  double bytes[] = {static_cast<double>(outcome.report.traffic.to_device),
                    static_cast<double>(outcome.report.traffic.from_device),
                    static_cast<double>(machine.count(WorkerKind::cpu)),
                    static_cast<double>(machine.count(WorkerKind::cuda))};
  runtime.sum_over_ranks(bytes, 4);
  outcome.report.traffic.to_device = static_cast<std::int64_t>(bytes[0]);
  outcome.report.traffic.from_device = static_cast<std::int64_t>(bytes[1]);
  outcome.cpus = static_cast<int>(bytes[2]);
  outcome.gpus = static_cast<int>(bytes[3]);
  outcome.ranks = runtime.ranks();
  outcome.layout = layout;
  outcome.stopwatch = stopwatch;
  return outcome;
}

double unknowns(const Problem& p) { return static_cast<double>(p.grid.rows) * static_cast<double>(p.grid.cols); }

const char* mode_name(poisson::Mode mode) { return mode == poisson::Mode::streaming ? "streaming" : "incore"; }

void print_json(const Problem& p, const Outcome& r) {
  nlohmann::ordered_json j;
  j["solver"] = "fast Poisson, two passes";
  j["mode"] = mode_name(r.layout.mode);
  j["grid"] = {p.grid.rows, p.grid.cols};
  j["precision"] = to_string(p.precision);
  j["unknowns"] = p.grid.rows * p.grid.cols;
  for (const auto& [part, seconds] : r.stopwatch.laps()) j["seconds"][part] = seconds;
  j["seconds"]["total"] = r.stopwatch.total();
  if (r.check) {
    // JSON has no NaN: null says that there is no such number.
    j["scaled_residual"] = r.check->scaled_residual;
    if (r.check->error) j["error"] = *r.check->error;
  }
  j["workers"] = {{"cpu", r.cpus}, {"cuda", r.gpus}, {"ranks", r.ranks}};
  j["bytes"] = {{"to_device", r.report.traffic.to_device}, {"from_device", r.report.traffic.from_device}};
  j["slabs"] = r.layout.slabs;
  j["reason"] = to_string(r.report.reason);
  fmt::print("{}\n", j.dump(2));
}

void print_text(const PoissonOptions& o, const Problem& p, const Outcome& r) {
  const double eps = p.precision == Precision::f32 ? 0x1p-24 : 0x1p-53;
  const char* source = p.reader ? o.input.c_str() : p.model.model == kernels::Model::sine ? "model sine" : "model random";
  fmt::print("problem    u_xx + u_yy = f, {}: {} x {} unknowns ({:.4g} million) in {}\n", source, p.grid.rows,
             p.grid.cols, unknowns(p) / 1e6, to_string(p.precision));
  fmt::print("method     fast Poisson, two passes, {}: {} slab{} of {} rows\n",
             r.layout.mode == poisson::Mode::streaming ? "streaming" : "in core", r.layout.slabs,
             r.layout.slabs == 1 ? "" : "s", r.layout.slab_rows);
  fmt::print("workers    {} CPU, {} CUDA, {} rank{}\n", r.cpus, r.gpus, r.ranks, r.ranks == 1 ? "" : "s");
  std::string times;
  for (const auto& [part, seconds] : r.stopwatch.laps()) times += fmt::format("{} {:.3f}, ", part, seconds);
  fmt::print("seconds    {}total {:.3f}\n", times, r.stopwatch.total());
  const double seconds = r.report.seconds.at("solve");
  fmt::print("speed      {:.1f} million unknowns per second\n", unknowns(p) / seconds / 1e6);
  if (r.report.traffic.to_device + r.report.traffic.from_device > 0)
    fmt::print("moved      {} to GPUs, {} back\n", human_bytes(static_cast<double>(r.report.traffic.to_device)),
               human_bytes(static_cast<double>(r.report.traffic.from_device)));
  if (r.check) {
    fmt::print("residual   {:.2e} scaled, {:.2f} eps\n", r.check->scaled_residual, r.check->scaled_residual / eps);
    if (r.check->error)
      fmt::print("error      {:.2e} relative to the exact solution of the {} equation\n", *r.check->error,
                 p.model.model == kernels::Model::sine ? "differential" : "difference");
  }
  if (!o.common.output.empty() && r.report.reason == Reason::solved)
    fmt::print("written    {}\n", o.common.output.string());
  fmt::print("result     {}\n", to_string(r.report.reason));
}

int run(const PoissonOptions& o) {
  const Stopwatch stopwatch;
  const Problem problem = state_problem(o);
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    const Outcome outcome = problem.precision == Precision::f32 ? solve<float>(runtime, o, problem, stopwatch)
                                                                : solve<double>(runtime, o, problem, stopwatch);
    if (runtime.rank() == 0) {
      if (o.common.json)
        print_json(problem, outcome);
      else if (o.common.verbosity == Verbosity::normal)
        print_text(o, problem, outcome);
    }
    return outcome.report.reason == Reason::solved ? 0 : 1;
  });
}

}  // namespace

Command add_poisson(CLI::App& program) {
  auto options = std::make_shared<PoissonOptions>();
  CLI::App* app = program.add_subcommand("poisson", "solve u_xx + u_yy = f on a rectangle, u = 0 on its border");
  app->add_option("F.npy", options->input,
                  "f at the interior nodes, m rows (along y) x n columns (along x); without a file: --model")
      ->type_name("");
  add_parsed_option(*app, "--grid", options->shape, parse_grid, "interior nodes, rows x columns; default: 4095x4095")
      ->type_name("MxN")
      ->group("Problem");
  app->add_option_function<std::string>(
         "--model",
         [options](const std::string& name) {
           if (name == "sine")
             options->model = kernels::Model::sine;
           else if (name == "random")
             options->model = kernels::Model::random;
           else
             throw Error(fmt::format("--model: '{}' is no model; there are sine and random", name));
         },
         "a problem whose solution is known: sine (f = -2 pi^2 sin(pi x) sin(pi y) on (-1,1)^2) or random (u drawn "
         "from --seed, f its discrete Laplacian); default: sine")
      ->type_name("NAME")
      ->group("Problem");
  add_parsed_option(*app, "--lengths", options->lengths, parse_lengths,
                    "sides of the rectangle along y and x; spacings are length / (nodes + 1); default: 1x1")
      ->type_name("LYxLX")
      ->group("Problem");
  app->add_option_function<std::string>(
         "--mode",
         [options](const std::string& name) {
           if (name == "auto")
             options->settings.mode = poisson::Mode::automatic;
           else if (name == "incore")
             options->settings.mode = poisson::Mode::incore;
           else if (name == "streaming")
             options->settings.mode = poisson::Mode::streaming;
           else
             throw Error(fmt::format("--mode: '{}' is no mode; there are auto, incore and streaming", name));
         },
         "incore keeps the grid where it is worked on, streaming passes it through slab by slab, auto decides from the "
         "memories; default: auto")
      ->type_name("NAME")
      ->group("Method");
  app->add_option_function<Index>(
         "--slab",
         [options](const Index& rows) {
           if (rows < 1) throw Error(fmt::format("--slab: {} rows: a slab needs at least 1", rows));
           options->settings.slab_rows = rows;
         },
         "rows of a slab; default: from the memories")
      ->type_name("ROWS")
      ->group("Method");
  app->add_flag_callback("--no-check", [options] { options->check = false; }, "leave the residual out")
      ->group("Method");
  add_common_options(*app, options->common);
  app->footer(
      "Examples:\n"
      "  asterism poisson --model sine --grid 4095x4095\n"
      "  asterism poisson F.npy -o U.npy\n"
      "  asterism poisson F.npy -o U.npy --gpu-memory 4G --mode streaming --json\n"
      "  mpirun -np 4 asterism poisson --model random --grid 16383x16383\n\n"
      "Extents n with n + 1 a product of small primes (4095, 49151) are transformed fastest.");
  return {app, [options] { return run(*options); }};
}

}  // namespace asterism::tools
