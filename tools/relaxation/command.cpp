#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "../../runtime/collectives.hpp"
#include "../../algorithms/poisson/problem.hpp"
#include "../../algorithms/relaxation/mlssor.hpp"
#include "../../algorithms/relaxation/solver.hpp"
#include "../../algorithms/wavefront/solver.hpp"
#include "../../runtime/pause.hpp"
#include "../../runtime/pinned_buffer.hpp"
#include "../cli/commands.hpp"
#include "../cli/progress.hpp"
#include "../files/model_rows.hpp"
#include "../files/npy.hpp"
#include "report.hpp"

namespace asterism::tools {
namespace {

/// Draws the progress line while what tells nothing, the solver or a search for tiles, is at work.
class WhileWorking {
 public:
  WhileWorking(Progress& progress, std::string what) {
    if (!progress.shows()) return;
    ticker_ = std::jthread([&progress, what = std::move(what), this](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      while (!wake_.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; })) {
        if (stop.stop_requested()) return;
        progress.update(what);
      }
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread ticker_;  // ends first
};

/// Puts residuals into the progress line, where there is one.
Observer told_to(Progress& progress) {
  if (!progress.shows()) return {};
  return [&progress](const IterationState& state) {
    progress.note(fmt::format("sweep {}, residual {:.2e}", state.iteration, state.residual));
  };
}

/// Refuses a grid that has no place to be in, before anything is made for it: f, u, and what the workers make
/// of them, which are u twice and f.
/// @throw Error
void require_room(const Runtime& runtime, const StatedRelaxation& stated, std::size_t element_bytes) {
  const double rows = std::ceil(static_cast<double>(stated.shape.front()) / runtime.ranks());
  const double bytes = 5 * rows * static_cast<double>(stated.row_size() * static_cast<Index>(element_bytes));
  const auto room = static_cast<double>(physical_memory());
  if (bytes > room)
    throw Error(
        fmt::format("a grid of {} takes {}{} (f, u and the workers' copies of them), main memory has {}; use "
                    "more ranks or --precision f32",
                    poisson::to_string(stated.shape), human_bytes(bytes),
                    runtime.ranks() > 1 ? " a rank" : "", human_bytes(room)),
        Blame::machine);
}

/// This rank's rows of a grid.
template <class T>
struct Rows {
  Index first, count, size;  ///< rows [first, first + count) of `size` unknowns
  PinnedBuffer memory;

  Rows(Runtime& runtime, Index first_row, Index row_count, Index row_size)
      : first(first_row),
        count(row_count),
        size(row_size),
        memory(runtime, static_cast<std::size_t>(std::max<Index>(1, row_count * row_size)) * sizeof(T)) {}
  [[nodiscard]] T* data() const { return memory.as<T>(); }
  void read(const NpyReader& reader) const { reader.read_rows(first, count, data(), size, Values::finite); }
};

grid::Model known_model(RelaxModel model) {
  return model == RelaxModel::random ? grid::Model::random : grid::Model::sine;
}

/// ||u - known|| / ||known|| of all ranks. Collective.
template <class T>
double error_of(const Runtime& runtime, const ModelRows& model, const Rows<T>& u) {
  const ModelRows::Squares mine = model.compare(u.first, u.count, u.data());
  std::vector sums{mine.error, mine.known};
  sum_over_ranks(runtime, sums);
  return ratio(sums[0].root(), sums[1].root());
}

// What the solvers chose.
template <class T>
RelaxChoice choice_of(const RelaxOptions& o, const relaxation::Solver<T>& solver) {
  const relaxation::Settings& settings = solver.settings();
  RelaxChoice choice{.omega = settings.omega,
                     .layout = {},
                     .stripes = static_cast<Index>(solver.stripes().size()),
                     .sweeps_per_task = settings.sweeps_per_task,
                     .check_every = settings.check_every};
  if (is_by_colours(o.method)) choice.layout = settings.arrangement;
  return choice;
}

template <class T>
RelaxChoice choice_of(const RelaxOptions&, const relaxation::mlssor::Solver<T>& solver) {
  const relaxation::mlssor::Settings& settings = solver.settings();
  return {.omega = settings.omega,
          .layout = {},
          .stripes = static_cast<Index>(solver.stripes().size()),
          .check_every = settings.check_every,
          .subdomain = settings.subdomain,
          .layers = settings.layers};
}

template <class T>
RelaxChoice choice_of(const RelaxOptions&, const wavefront::Solver<T>& solver) {
  return {.omega = solver.settings().omega,
          .layout = {},
          .check_every = solver.settings().check_every,
          .tiles = wavefront::TileChoice{.layout = solver.settings().layout}};
}

/// This rank's rows: all of them where the solver works on one rank alone.
template <class T, class Solver>
Rows<T> rows_of(Runtime& runtime, const StatedRelaxation& stated, const Solver& solver) {
  if constexpr (requires { solver.first_row(); })
    return {runtime, solver.first_row(), solver.row_count(), stated.row_size()};
  else
    return {runtime, 0, stated.shape.front(), stated.row_size()};
}

/// Arrays of given values move into f, for a solver that takes a number for each side: with zero there, the
/// node next to a side of value v has f - v / h^2.
template <class T>
void lift_sides(const StatedRelaxation& stated, T* f) {
  Index outer = 1;
  for (std::size_t a = 0; a < stated.shape.size(); ++a) {
    const Index n = stated.shape[a], inner = stated.unknowns() / outer / n;
    const double h = stated.lengths[a] / static_cast<double>(n + 1);
    for (const auto& [side, node] :
         {std::pair{&stated.sides[a].lower, Index{0}}, {&stated.sides[a].upper, n - 1}})
      for (std::size_t k = 0; k < side->values.size(); ++k) {
        const auto i = static_cast<Index>(k) / inner, j = static_cast<Index>(k) % inner;
        T& value = f[(i * n + node) * inner + j];
        value = static_cast<T>(static_cast<double>(value) - side->values[k] / (h * h));
      }
    outer *= n;
  }
}

/// Whether some side's values are an array that the method's solver cannot take.
bool lifts(const RelaxOptions& o, const StatedRelaxation& stated) {
  return o.method == RelaxMethod::wavefront &&
         std::any_of(stated.sides.begin(), stated.sides.end(), [](const Sides& sides) {
           return !sides.lower.values.empty() || !sides.upper.values.empty();
         });
}

template <class T, class Solver>
RelaxOutcome solve_by(Runtime& runtime, const RelaxOptions& o, const StatedRelaxation& stated,
                      Stopwatch& stopwatch, Progress& progress, Solver& solver) {
  std::optional<NpyWriter> writer = open_output(runtime, o.common.output, stated.shape, precision_of<T>);
  stopwatch.lap("setup");

  const Rows<T> u = rows_of<T>(runtime, stated, solver);
  const bool lifted = lifts(o, stated);
  std::optional<Rows<T>> f;
  if (stated.has_source() || lifted) f.emplace(rows_of<T>(runtime, stated, solver));
  stopwatch.lap("allocate");

  const ModelRows model(known_model(stated.model), o.common.seed, stated.shape, stated.lengths);
  {
    const Pause pause;  // the workers sleep while this thread and its own read or compute
    if (stated.source)
      f->read(*stated.source);
    else if (stated.has_source())
      model.fill(f->first, f->count, f->data());
    if (lifted) lift_sides(stated, f->data());
    if (stated.initial) u.read(*stated.initial);
  }
  stopwatch.lap("fill");

  RelaxOutcome outcome{.choice = choice_of(o, solver), .report = {}, .error = {}, .workers = {}};
  {
    const WhileWorking shown(progress, fmt::format("relaxing {}", poisson::to_string(stated.shape)));
    outcome.report = solver.solve(f ? f->data() : nullptr, u.data());
  }
  progress.note("");
  stopwatch.lap("solve");

  const Pause pause;
  if (stated.model_is_exact) {
    outcome.error = error_of(runtime, model, u);
    stopwatch.lap("check");
  }
  if (writer && has_result(outcome.report)) {
    progress.update("writing u");
    writer->write_rows(u.first, u.count, u.data(), u.size);
    commit_output(runtime, writer);
    stopwatch.lap("write");
  }
  outcome.report.traffic = traffic_of_all_ranks(runtime, outcome.report.traffic);
  outcome.workers = workers_of_all_ranks(runtime);
  return outcome;
}

relaxation::Settings settings_of(const RelaxOptions& o, const StatedRelaxation& stated) {
  using relaxation::Method;
  relaxation::Settings settings{
      .omega = o.omega, .sweeps = o.sweeps.value_or(0), .tolerance = stated.tolerance};
  settings.method = o.method == RelaxMethod::jacobi         ? Method::jacobi
                    : o.method == RelaxMethod::gauss_seidel ? Method::gauss_seidel
                    : o.method == RelaxMethod::ssor         ? Method::ssor
                                                            : Method::sor;
  settings.check_every = o.check_every.value_or(0);
  settings.sweeps_per_task = o.sweeps_per_task.value_or(0);
  settings.stripes = o.stripes.value_or(0);
  settings.arrangement = o.layout.value_or(settings.arrangement);
  if (o.blocking) settings.exchange = relaxation::Exchange::blocking;
  return settings;
}

relaxation::Problem plane_problem(const StatedRelaxation& stated) {
  return {.shape = stated.shape,
          .lengths = stated.lengths,
          .y_lower = stated.sides[0].lower,
          .y_upper = stated.sides[0].upper,
          .x_lower = stated.sides[1].lower,
          .x_upper = stated.sides[1].upper};
}

relaxation::mlssor::Settings layered_settings(const RelaxOptions& o, const StatedRelaxation& stated) {
  relaxation::mlssor::Settings settings;
  settings.subdomain = o.subdomain.value_or(settings.subdomain);
  settings.layers = o.layers.value_or(0);
  settings.alternate = !o.no_alternation;
  settings.omega = o.omega;
  settings.sweeps = o.sweeps.value_or(0);
  settings.tolerance = stated.tolerance;
  settings.check_every = o.check_every.value_or(0);
  settings.stripes = o.stripes.value_or(0);
  return settings;
}

wavefront::Problem any_dimensions(const StatedRelaxation& stated) {
  wavefront::Problem problem{.shape = stated.shape, .lengths = stated.lengths};
  const auto number = [](const relaxation::Side& side) { return side.values.empty() ? side.value : 0; };
  for (const Sides& sides : stated.sides) problem.sides.push_back({number(sides.lower), number(sides.upper)});
  return problem;
}

wavefront::Settings wavefront_settings(const RelaxOptions& o, const StatedRelaxation& stated) {
  wavefront::Settings settings;
  settings.omega = o.omega;
  settings.sweeps = o.sweeps.value_or(0);
  settings.tolerance = stated.tolerance;
  settings.check_every = o.check_every.value_or(0);
  return settings;
}

/// --tile and --threads, meant for the workers that there are.
wavefront::WavefrontLayout given_layout(const RelaxOptions& o, const StatedRelaxation& stated, bool on_gpu) {
  const std::size_t axes = stated.shape.size(), wanted = on_gpu ? axes + 1 : 2;
  if (o.tile->size() != wanted)
    throw Error(fmt::format("--tile {}: {} extents; {} are wanted, {}", fmt::join(*o.tile, "x"),
                            o.tile->size(), wanted,
                            on_gpu ? "sweeps x points along every axis (on a GPU)"
                                   : "sweeps x slices along the slowest axis (on CPUs)"));
  if (o.threads && !on_gpu)
    throw Error("--threads: they are those of a GPU's blocks, and there is no GPU worker");
  wavefront::WavefrontLayout layout;
  layout.tile.sweeps = o.tile->front();
  std::copy(o.tile->begin() + 1, o.tile->end(), layout.tile.points.end() - static_cast<std::ptrdiff_t>(axes));
  layout.threads = o.threads.value_or(0);
  return layout;
}

template <class T>
wavefront::TileChoice tiles_of(Runtime& runtime, const RelaxOptions& o, const StatedRelaxation& stated,
                               const wavefront::Settings& settings) {
  const bool on_gpu = runtime.machine().count(WorkerKind::cuda) > 0;
  if (o.tile) return {.layout = given_layout(o, stated, on_gpu), .origin = wavefront::LayoutOrigin::given};
  if (o.untuned) return {};
  const auto source =
      stated.has_source() || lifts(o, stated) ? wavefront::Source::given : wavefront::Source::none;
  Progress progress(o.common.verbosity);
  const WhileWorking shown(progress, "choosing tiles; the first time on this GPU what they cost is measured");
  return wavefront::choose_tiles<T>(runtime, any_dimensions(stated), settings, source);
}

template <class T>
RelaxOutcome solve_in_wavefronts(Runtime& runtime, const RelaxOptions& o, const StatedRelaxation& stated,
                                 Stopwatch& stopwatch, Progress& progress) {
  wavefront::Settings settings = wavefront_settings(o, stated);
  settings.observer = told_to(progress);
  wavefront::TileChoice tiles = tiles_of<T>(runtime, o, stated, settings);
  settings.layout = tiles.layout;
  wavefront::Solver<T> solver(runtime, any_dimensions(stated), settings);
  RelaxOutcome outcome = solve_by<T>(runtime, o, stated, stopwatch, progress, solver);
  tiles.layout = outcome.choice.tiles->layout;  // as it was cut to the grid
  outcome.choice.tiles = std::move(tiles);
  return outcome;
}

template <class T>
RelaxOutcome solve(Runtime& runtime, const RelaxOptions& o, const StatedRelaxation& stated,
                   Stopwatch& stopwatch) {
  require_room(runtime, stated, sizeof(T));
  Progress progress(runtime.rank() == 0 ? o.common.verbosity : Verbosity::quiet);
  const auto observed = [&](auto settings) {
    settings.observer = told_to(progress);
    return settings;
  };
  const auto by = [&](auto solver) {  // not copied: it is made where it is used
    return solve_by<T>(runtime, o, stated, stopwatch, progress, solver);
  };
  if (o.method == RelaxMethod::mlssor)
    return by(
        relaxation::mlssor::Solver<T>(runtime, plane_problem(stated), observed(layered_settings(o, stated))));
  if (o.method == RelaxMethod::wavefront)
    return solve_in_wavefronts<T>(runtime, o, stated, stopwatch, progress);
  return by(relaxation::Solver<T>(runtime, plane_problem(stated), observed(settings_of(o, stated))));
}

int run(const CLI::App& app, const RelaxOptions& o) {
  Stopwatch stopwatch;
  const Precision precision = precision_of_run(o);
  const StatedRelaxation stated = state_relaxation(o, precision);
  tell_replaced(o.common, {o.input, o.initial});
  if (!uses_seed(stated)) warn_without_effect(app, "--seed", "it is of --model random");
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    const RelaxOutcome outcome = precision == Precision::f32 ? solve<float>(runtime, o, stated, stopwatch)
                                                             : solve<double>(runtime, o, stated, stopwatch);
    const RelaxRun all{o, stated, precision, outcome, stopwatch};
    if (runtime.rank() == 0 && o.common.json)
      print_json(all);
    else if (runtime.rank() == 0 && o.common.verbosity == Verbosity::normal)
      print_text(all);
    return outcome.report.reason == Reason::solved ? 0 : 1;
  });
}

}  // namespace

Command add_relax(CLI::App& program) {
  auto options = std::make_shared<RelaxOptions>();
  CLI::App* app = program.add_subcommand(
      "relax", "relax u_xx + u_yy = f, u given on the sides: Jacobi, SOR and their kin");
  add_relax_options(*app, *options);
  add_common_options(*app, options->common);
  app->footer(
      "Examples:\n"
      "  asterism relax --grid 1023x1023\n"
      "  asterism relax F.npy -o U.npy --tolerance 1e-10\n"
      "  asterism relax --model laplace --method jacobi --sweeps 1000 --sweeps-per-task 8 --json\n"
      "  asterism relax F.npy --initial U0.npy -o U.npy --omega 1.9 --value-x 1.5,SIDE.npy\n"
      "  asterism relax --method mlssor --grid 2047x2047 --subdomain 32\n"
      "  asterism relax --method wavefront --grid 127x127x127\n"
      "  mpirun -np 4 asterism relax F.npy -o U.npy\n\n"
      "Exit status 1: the tolerance was not reached within --sweeps, or the residual grew or stood still.\n"
      "u is written all the same, unless it is not finite: --initial goes on from it.");
  return {app, [app, options] { return run(*app, *options); }};
}

}  // namespace asterism::tools
