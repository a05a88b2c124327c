#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../../algorithms/wavefront/tile_choice.hpp"
#include "../bench/figures.hpp"
#include "../cli/report.hpp"
#include "tile_points.hpp"
#include "tune.hpp"

namespace asterism::tools {
namespace {

void print_costs(const wavefront::KnownCosts& known, int multiprocessors) {
  const tile_model::Costs& costs = known.costs;
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
  for (const tile_model::TileCosts& c : costs.tiles) {
    std::string terms;
    for (std::size_t k = 0; k < tile_model::terms; ++k)
      if (c.coefficients[k] > 0)
        terms += fmt::format("{}{} {:.3g}", terms.empty() ? "" : ", ", name(static_cast<tile_model::Term>(k)),
                             c.coefficients[k] * 1e9);
    fmt::print("  {:>7}  {:>22}  {:>14.1f} %  {}\n", c.threads, c.tiles_beside, 100 * c.error, terms);
  }
}

}  // namespace

template <class T>
int tune_gpu(Runtime& runtime, const TuneOptions& o, kernels::WavefrontArgs args) {
  const double bytes = static_cast<double>(kernels::wavefront_rows(args)) *
                       static_cast<double>(kernels::wavefront_cols(args)) * sizeof(T) *
                       (args.has_source ? 2 : 1);
  const auto capacity = static_cast<double>(runtime.machine().capacity(MemoryKind::gpu));
  if (bytes > capacity)
    throw Error(fmt::format("{} unknowns take {}, and the GPU has {}: wavefronts run where all of them are; "
                            "tune a smaller grid, or CPUs (--gpus 0)",
                            fmt::join(o.grid, " x "), human_bytes(bytes), human_bytes(capacity)),
                Blame::machine);
  const tile_model::Probe<T> probe(runtime, args.dimensions, args.has_source);
  const wavefront::KnownCosts known =
      wavefront::costs_of(probe, o.anew ? wavefront::Remembering::anew : wavefront::Remembering::as_kept);
  tile_model::Choice choice;
  const double search_seconds = seconds_of([&] { choice = wavefront::search_and_keep(probe, known, args); });
  const double measured = probe.run(args, {choice.layout}, 5).at(0);
  args.layout = choice.layout;
  if (runtime.rank() > 0) return 0;

  const int each = choice.layout.blocks / probe.gpu().multiprocessors;
  const double error = choice.seconds / measured - 1;
  if (o.common.json) {
    nlohmann::ordered_json j = start_of_report(o, precision_of<T>, "cuda");
    j["gpu"] = probe.gpu().name;
    j["layout"] = {{"sweeps", choice.layout.tile.sweeps},
                   {"points", points_of(args.layout.tile, o.grid.size())},
                   {"threads", choice.layout.threads},
                   {"blocks", choice.layout.blocks},
                   {"blocks_per_sm", each}};
    j["predicted_seconds"] = choice.seconds;
    j["measured_seconds"] = measured;
    j["error"] = error;
    j["search_seconds"] = search_seconds;
    j["layouts"] = choice.layouts;
    j["costs_seconds"] = known.seconds;
    j["costs_file"] = known.file.string();
    j["costs"] = nlohmann::ordered_json::parse(wavefront::costs_as_json(known.costs));
    print_report(j);
    return 0;
  }
  fmt::print("wavefront SOR, {}, on {}\n", problem_text(o, precision_of<T>), probe.gpu().name);
  fmt::print("layout       tiles of {} sweeps x {} points; {} blocks of {} threads, {} on each of {} SMs\n",
             choice.layout.tile.sweeps, fmt::join(points_of(args.layout.tile, o.grid.size()), " x "),
             choice.layout.blocks, choice.layout.threads, each, probe.gpu().multiprocessors);
  fmt::print("predicted    {:.4g} s\nmeasured     {:.4g} s: {:+.1f} % from there to the prediction\n",
             choice.seconds, measured, 100 * error);
  fmt::print("search       {:.2f} s for {} layouts\n", search_seconds, choice.layouts);
  print_costs(known, probe.gpu().multiprocessors);
  return 0;
}

template int tune_gpu<float>(Runtime&, const TuneOptions&, kernels::WavefrontArgs);
template int tune_gpu<double>(Runtime&, const TuneOptions&, kernels::WavefrontArgs);

}  // namespace asterism::tools
