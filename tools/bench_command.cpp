#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>

#include "../runtime/bandwidth.hpp"
#include "commands.hpp"
#include "poisson_slabs.hpp"

namespace asterism::tools {
namespace {

using Json = nlohmann::ordered_json;

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// What was measured, for people (line by line) or for programs (one object at the end); from rank 0 only.
class Figures {
 public:
  Figures(const Runtime& runtime, const CommonOptions& options)
      : json_(options.json), silent_(runtime.rank() > 0) {}
  void add(const std::string& key, const std::string& what, double value, const std::string& unit) {
    figures_[key] = value;
    if (!json_ && !silent_) fmt::print("{:<58} {:>12.4g} {}\n", what, value, unit);
  }
  void note(const std::string& key, const Json& value) { figures_[key] = value; }
  void finish() const {
    if (json_ && !silent_) fmt::print("{}\n", figures_.dump(2));
  }

 private:
  bool json_, silent_;
  Json figures_;
};

void add_ceilings(Figures& figures, const Bandwidth& raw) {
  if (raw.host_copy > 0)
    figures.add("host_copy", "main memory, plain copy by all CPU workers (read + write)", raw.host_copy / 1e9,
                "GB/s");
  if (raw.to_device == 0) return;
  figures.add("link_to_device", "link, raw copies, to the GPU alone", raw.to_device / 1e9, "GB/s");
  figures.add("link_from_device", "link, raw copies, from the GPU alone", raw.from_device / 1e9, "GB/s");
  figures.add("link_both_ways", "link, raw copies, both at once, each way", raw.both_ways / 1e9, "GB/s");
  figures.add("device_copy", "GPU memory, plain copy (read + write)", raw.device_copy / 1e9, "GB/s");
}

// Tasks that do nothing but want their tiles where they run: the cost of the streaming itself.
void stay(const NoArgs&, InOut<float>) {}
void stay_on_gpu(Stream, const NoArgs&, InOut<float>) {}
void look(const NoArgs&, In<float>, Out<float>) {}
void look_on_gpu(Stream, const NoArgs&, In<float>, Out<float>) {}
const Codelet pass_through{"pass_through_f32", stay, stay_on_gpu};
const Codelet pass_up{"pass_up_f32", look, look_on_gpu};

struct StreamOptions {
  CommonOptions common;
  std::size_t chunk = std::size_t{256} << 20;
  Index chunks = 64;
};

int bench_stream(const StreamOptions& o) {
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    const bool gpu = runtime.machine().count(WorkerKind::cuda) > 0;
    const Hints hints{.where = gpu ? Where::cuda : Where::cpu};
    Figures figures(runtime, o.common);
    const Bandwidth raw = measure_bandwidth(runtime);
    add_ceilings(figures, raw);

    const Index rows = 256, cols = static_cast<Index>(o.chunk / sizeof(float)) / rows;
    const PinnedBuffer buffer(runtime, static_cast<std::size_t>(o.chunks * rows * cols) * sizeof(float));
    Tiles<float> chunks(runtime, o.chunks * rows, cols, rows, cols, {},
                        [&](Index i, Index) { return buffer.as<float>() + i * rows * cols; });
    Tiles<float> results(runtime, o.chunks, 1, 1, 1);
    for (Index c = 0; c < o.chunks; ++c) chunks[c].write_through();
    const double bytes = static_cast<double>(buffer.bytes());

    const auto up = [&] {
      for (Index c = 0; c < o.chunks; ++c) {
        pass_up({}, chunks[c], results[c], hints);
        chunks[c].wont_use();
      }
      runtime.wait();
    };
    const auto through = [&] {
      for (Index c = 0; c < o.chunks; ++c) {
        pass_through({}, chunks[c], hints);
        chunks[c].wont_use();
      }
      runtime.wait();
      for (Index c = 0; c < o.chunks; ++c) HostView<float>(chunks[c], HostView<float>::Access::read);
    };
    const auto best = [&](const std::function<void()>& body) {
      double seconds = std::numeric_limits<double>::infinity();
      for (int i = 0; i < 3; ++i) {
        for (Index c = 0; c < o.chunks; ++c) chunks[c].return_home();  // those that still lie on the device
        const double elapsed = seconds_of(body);
        if (i > 0) seconds = std::min(seconds, elapsed);  // the first run allocates on the device
      }
      return seconds;
    };
    figures.add("tasks_to_device",
                fmt::format("tasks, {} chunks of {}, to the worker alone", o.chunks,
                            human_bytes(static_cast<double>(o.chunk))),
                bytes / best(up) / 1e9, "GB/s");
    figures.add("tasks_both_ways", "tasks, the same chunks there and back, each way",
                bytes / best(through) / 1e9, "GB/s");
    figures.finish();
    return 0;
  });
}

struct PoissonBenchOptions {
  CommonOptions common;
  GridShape shape{4095, 4095};
  poisson::Settings settings;
  bool resident = false;
  int repeats = 3;
};

template <class T>
int bench_poisson(Runtime& runtime, const PoissonBenchOptions& o) {
  Figures figures(runtime, o.common);
  const poisson::Grid grid{o.shape.rows, o.shape.cols};
  poisson::Settings settings = o.settings;
  settings.fetch_result = !o.resident;
  require_room<T>(runtime, grid);
  const Bandwidth raw = measure_bandwidth(runtime);
  poisson::Solver<T> solver(runtime, grid, settings);
  const poisson::Layout& layout = solver.layout();
  std::optional<Slabs<T>> slabs;
  const double allocate = seconds_of([&] { slabs.emplace(runtime, solver); });
  const kernels::ModelProblem model{
      kernels::Model::random, o.common.seed, grid.rows, grid.cols, 0, 0, grid.hx(), grid.hy()};
  const auto rhs = [&](Index first_row, Tile<T>& f) {
    codelets::model_rhs<T>({model, first_row}, f, {.where = layout.where});
  };

  double best = std::numeric_limits<double>::infinity();
  Report report;
  for (int i = 0; i < o.repeats; ++i) {
    if (o.resident)
      slabs->each([&](Tile<T>& slab, Index first_row) { rhs(first_row, slab); });
    else
      slabs->fill(rhs);
    runtime.wait();
    runtime.barrier();
    const Report r = solver.solve(slabs->tiles());
    if (r.seconds.at("solve") < best) report = r, best = r.seconds.at("solve");
  }
  const poisson::Check check = solver.check(slabs->tiles(), rhs, &model);

  constexpr Precision precision = precision_of<T>;
  const double cells = static_cast<double>(grid.rows) * static_cast<double>(grid.cols);
  const double grid_bytes = cells * sizeof(T);
  figures.note("grid", {grid.rows, grid.cols});
  figures.note("precision", to_string(precision));
  figures.note("mode", name(layout.mode));
  figures.note("slabs", layout.slabs);
  figures.note("slab_rows", layout.slab_rows);
  add_ceilings(figures, raw);
  figures.add("allocate_seconds", "allocation of the grid in main memory", allocate, "s");
  figures.add("solve_seconds",
              fmt::format("solve {} x {} {}, {}, {} slabs, best of {}", grid.rows, grid.cols,
                          to_string(precision), name(layout.mode), layout.slabs, o.repeats),
              best, "s");
  figures.add("gcells_per_second", "speed", cells / best / 1e9, "Gcell/s");
  if (layout.where == Where::cuda && !o.resident) {
    const double bound = 2 * grid_bytes / raw.to_device;
    figures.add("bytes_to_device", "moved to the GPU, in grids",
                static_cast<double>(report.traffic.to_device) / grid_bytes, "");
    figures.add("bytes_from_device", "moved back, in grids",
                static_cast<double>(report.traffic.from_device) / grid_bytes, "");
    figures.add("bound_seconds", "bound 2 N / link (to the GPU alone)", bound, "s");
    figures.add("times_bound", "solve time over that bound", best / bound, "");
  } else {
    const double copy = layout.where == Where::cuda ? raw.device_copy : raw.host_copy;
    figures.add("bytes_per_cell", "bytes per cell that plain copying moves in that time", copy * best / cells,
                "");
  }
  figures.add("scaled_residual_eps", "scaled residual", check.scaled_residual / roundoff(precision), "eps");
  figures.finish();
  return 0;
}

}  // namespace

Command add_bench(CLI::App& program) {
  CLI::App* app = program.add_subcommand("bench", "measure the machine and the solvers on it");
  app->require_subcommand(1);

  auto stream = std::make_shared<StreamOptions>();
  CLI::App* stream_app =
      app->add_subcommand("stream", "the link between main memory and GPU, by raw copies and by tasks");
  const auto parse_chunk = [](const std::string& text) {
    const std::size_t bytes = parse_size(text);
    if (bytes < 1024) throw Error(fmt::format("{} bytes: a chunk has at least 1K", bytes));
    return bytes;
  };
  add_parsed_option(*stream_app, "--chunk", stream->chunk, parse_chunk, "size of a chunk; default: 256M")
      ->type_name("SIZE")
      ->group("Problem");
  add_parsed_option(
      *stream_app, "--chunks", stream->chunks,
      [](const std::string& text) { return parse_whole<Index>(text, 1); }, "how many; default: 64")
      ->type_name("N")
      ->group("Problem");
  add_machine_options(*stream_app, stream->common);
  add_trace_option(*stream_app, stream->common);

  auto poisson = std::make_shared<PoissonBenchOptions>();
  CLI::App* poisson_app =
      app->add_subcommand("poisson", "the fast Poisson solver beside what link or memory allow");
  add_parsed_option(*poisson_app, "--grid", poisson->shape, parse_grid, "rows x columns; default: 4095x4095")
      ->type_name("MxN")
      ->group("Problem");
  add_problem_options(*poisson_app, poisson->common);
  add_method_options(*poisson_app, poisson->settings);
  poisson_app
      ->add_flag("--resident", poisson->resident,
                 "f and u stay in the workers' memory: time per solve without transfers")
      ->group("Method");
  add_parsed_option(
      *poisson_app, "--repeats", poisson->repeats,
      [](const std::string& text) { return parse_whole<int>(text, 1); },
      "solves, of which the fastest counts; default: 3")
      ->type_name("N")
      ->group("Method");
  add_machine_options(*poisson_app, poisson->common);
  add_trace_option(*poisson_app, poisson->common);

  return {app, [=] {
            if (stream_app->parsed()) return bench_stream(*stream);
            return with_runtime(poisson->common.runtime, [&](Runtime& runtime) {
              return poisson->common.precision.value_or(Precision::f64) == Precision::f32
                         ? bench_poisson<float>(runtime, *poisson)
                         : bench_poisson<double>(runtime, *poisson);
            });
          }};
}

}  // namespace asterism::tools
