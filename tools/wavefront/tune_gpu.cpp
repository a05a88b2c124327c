#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../../algorithms/wavefront/tiles/choice.hpp"
#include "../bench/figures.hpp"
#include "tile_points.hpp"
#include "tune.hpp"

namespace asterism::tools {
namespace {

void print_costs(const wavefront::KnownCosts& known, int multiprocessors) {
  const wavefront::tile_model::Costs& costs = known.costs;
  if (known.seconds > 0)
    fmt::print("costs        measured in {:.1f} s, {}\n", known.seconds,
               known.file.empty() ? "not kept (no folder for that)" : "kept in " + known.file.string());
  else
    fmt::print("costs        from {}; --anew measures them again\n", known.file.string());
  fmt::print("  {:<34} {:>10.3f} us\n", "kernel", costs.kernel * 1e6);
  for (const auto& [threads, seconds] : costs.thread)
    fmt::print("  {:<34} {:>10.4f} us\n", fmt::format("barrier of {} threads", threads), seconds * 1e6);
  for (const auto& [blocks, seconds] : costs.block)
    fmt::print("  {:<34} {:>10.3f} us\n", fmt::format("barrier of {} blocks", blocks), seconds * 1e6);
  fmt::print("  {:<34} {:>10.2f}\n", "a border tile, in full tiles", costs.border);
  fmt::print("  {:<34} {:>10.4f} us\n", "a column of a border tile", costs.turn * 1e6);
  fmt::print("  {:<34} {:>10.4f} us\n", "a column of a tile, by a thread", costs.column * 1e6);
  fmt::print("  {:<34} {:>10.4f} us\n", "32 strands of tiles", costs.strands * 1e6);
  fmt::print("  threads  tiles on each of {} SMs  error of the fit  ns for each\n", multiprocessors);
  for (const wavefront::tile_model::TileCosts& c : costs.tiles) {
    std::string terms;
    for (std::size_t k = 0; k < wavefront::tile_model::terms; ++k)
      if (c.coefficients[k] > 0)
        terms += fmt::format("{}{} {:.3g}", terms.empty() ? "" : ", ",
                             name(static_cast<wavefront::tile_model::Term>(k)), c.coefficients[k] * 1e9);
    fmt::print("  {:>7}  {:>22}  {:>14.1f} %  {}\n", c.threads, c.tiles_beside, 100 * c.error, terms);
  }
}

/// Refuses a problem of so many bytes that the GPU has no room for. @throw Error
void require_room_on_gpu(const Runtime& runtime, const TuneOptions& o, double bytes) {
  const auto capacity = static_cast<double>(runtime.machine().capacity(MemoryKind::gpu));
  if (bytes > capacity)
    throw Error(fmt::format("{} unknowns take {}, and the GPU has {}: wavefronts run where all of them are; "
                            "tune a smaller grid, or CPUs (--gpus 0)",
                            fmt::join(o.grid, " x "), human_bytes(bytes), human_bytes(capacity)),
                Blame::machine);
}

/// What the model chose, and how long that takes.
struct GpuSearch {
  wavefront::tile_model::Choice choice = {};
  double seconds = 0;   ///< of the search
  double measured = 0;  ///< seconds of a run
};

Section report_of(const TuneOptions& o, Precision precision, const GpuSearch& search,
                  const wavefront::KnownCosts& known, const std::string& gpu, int multiprocessors) {
  const wavefront::WavefrontLayout& layout = search.choice.layout;
  const std::vector<Index> points = points_of(layout.tile, o.grid.size());
  const int each = layout.blocks / multiprocessors;
  Section report = start_of_report(o, precision, "cuda");
  report.add("gpu", gpu);
  report.line("layout");
  report.add("layout",
             {{"sweeps", layout.tile.sweeps},
              {"points", points},
              {"threads", layout.threads},
              {"blocks", layout.blocks},
              {"blocks_per_sm", each}},
             fmt::format("tiles of {} sweeps x {} points; {} blocks of {} threads, {} on each of {} SMs",
                         layout.tile.sweeps, fmt::join(points, " x "), layout.blocks, layout.threads, each,
                         multiprocessors));
  report.line("predicted");
  report.say("predicted_seconds", search.choice.seconds, "{:.4g} s");
  report.line("measured");
  report.say("measured_seconds", search.measured, "{:.4g} s");
  const double error = search.choice.seconds / search.measured - 1;
  report.add("error", error, fmt::format(": {:+.1f} % from there to the prediction", 100 * error));
  report.line("search");
  report.say("search_seconds", search.seconds, "{:.2f} s");
  report.say("layouts", search.choice.layouts, " for {} layouts");
  report.add("costs_seconds", known.seconds);
  report.add("costs_file", known.file.string());
  report.add("costs", nlohmann::ordered_json::parse(wavefront::costs_as_json(known.costs)));
  return report;
}

}  // namespace

template <class T>
int tune_gpu(Runtime& runtime, const TuneOptions& o, wavefront::WavefrontArgs args) {
  require_room_on_gpu(runtime, o,
                      static_cast<double>(wavefront::wavefront_rows(args)) *
                          static_cast<double>(wavefront::wavefront_cols(args)) * sizeof(T) *
                          (args.has_source ? 2 : 1));
  const wavefront::tile_model::Probe<T> probe(runtime, args.dimensions, args.has_source);
  const wavefront::KnownCosts known =
      wavefront::costs_of(probe, o.anew ? wavefront::Remembering::anew : wavefront::Remembering::as_kept);
  GpuSearch search;
  search.seconds = seconds_of([&] { search.choice = wavefront::search_and_keep(probe, known, args); });
  search.measured = probe.run(args, {search.choice.layout}, 5).at(0);
  const int multiprocessors = probe.gpu().multiprocessors;
  const Section report = report_of(o, precision_of<T>, search, known, probe.gpu().name, multiprocessors);
  if (o.common.json) {
    print_report(report.json());
    return 0;
  }
  fmt::print("wavefront SOR, {}, on {}\n{}", problem_text(o, precision_of<T>), probe.gpu().name,
             report.text(tune_label_width));
  print_costs(known, multiprocessors);
  return 0;
}

template int tune_gpu<float>(Runtime&, const TuneOptions&, wavefront::WavefrontArgs);
template int tune_gpu<double>(Runtime&, const TuneOptions&, wavefront::WavefrontArgs);

}  // namespace asterism::tools
