#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "../../runtime/codelet.hpp"
#include "../../runtime/hardware/pinned_buffer.hpp"
#include "../../runtime/tile.hpp"
#include "../cli/commands.hpp"
#include "figures.hpp"

namespace asterism::tools {
namespace {

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
    add_ceilings(figures, measure_ceilings(runtime));

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

}  // namespace

Command add_bench(CLI::App& program) {
  CLI::App* app = add_subcommands(program, "bench", "measure the machine and the solvers on it");

  auto stream = std::make_shared<StreamOptions>();
  CLI::App* stream_app =
      add_subcommand(*app, "stream", "the link between main memory and GPU, by raw copies and by tasks");
  const auto parse_chunk = [](const std::string& text) {
    const std::size_t bytes = parse_size(text);
    if (bytes < 1024) throw Error(fmt::format("{} bytes: a chunk has at least 1K", bytes));
    return bytes;
  };
  OptionGroup problem(*stream_app, "Problem");
  problem.add("--chunk", stream->chunk, parse_chunk, "SIZE", "size of a chunk; default: 256M");
  problem.add("--chunks", stream->chunks, parse_count<>, "N", "how many; default: 64");
  add_machine_options(*stream_app, stream->common);
  add_trace_option(*stream_app, stream->common);

  const Command others[] = {add_bench_poisson(*app), add_bench_methods(*app), add_bench_jacobi(*app),
                            add_bench_relax(*app),   add_bench_mlssor(*app),  add_bench_tile_model(*app),
                            add_bench_linear(*app),  add_bench_qap(*app),     add_bench_dbds(*app),
                            add_bench_tasks(*app),  add_bench_defaults(*app)};
  return {app, [=] {
            for (const Command& command : others)
              if (is_given(*command.app)) return command.run();
            return bench_stream(*stream);
          }};
}

}  // namespace asterism::tools
