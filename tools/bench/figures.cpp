#include "figures.hpp"

#include <fmt/format.h>

#include <chrono>

#include "../cli/report.hpp"

namespace asterism::tools {

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Figures::add(const std::string& key, const std::string& what, double value, const std::string& unit) {
  figures_[key] = value;
  if (!json_ && !silent_) fmt::print("{:<66} {:>12.4g} {}\n", what, shown(value), unit);
}

void Figures::finish() const {
  if (json_ && !silent_) print_report(figures_);
}

void require_one_rank(const Runtime& runtime) {
  if (runtime.ranks() > 1) throw Error("this benchmark runs on one rank; start it without mpirun");
}

Bandwidth measure_ceilings(Runtime& runtime) {
  Bandwidth raw;
  for (int rank = 0; rank < runtime.ranks(); ++rank) {
    if (rank == runtime.rank()) raw = measure_bandwidth(runtime);
    runtime.barrier();
  }
  return raw;
}

void add_ceilings(Figures& figures, const Bandwidth& raw) {
  const auto speed = [&](const char* key, const std::string& what, double bytes_per_second) {
    figures.add(key, what, bytes_per_second / 1e9, "GB/s");
  };
  if (raw.host_copy > 0)
    speed("host_copy", "main memory, plain copy by all CPU workers (read + write)", raw.host_copy);
  if (raw.host_triad > 0)
    speed("host_triad", "main memory, STREAM triad by all CPU workers (3 x 8 bytes counted)", raw.host_triad);
  if (raw.to_device == 0) return;
  const std::string gpu = raw.gpus > 1 ? "the first GPU" : "the GPU";
  speed("link_to_device", fmt::format("link, raw copies, to {} alone", gpu), raw.to_device);
  speed("link_from_device", fmt::format("link, raw copies, from {} alone", gpu), raw.from_device);
  speed("link_both_ways", "link, raw copies, both at once, each way", raw.both_ways);
  figures.note("gpus", raw.gpus);
  const std::string all = raw.gpus > 1 ? fmt::format("all {} GPUs at once", raw.gpus) : "the GPU";
  speed("all_to_device", fmt::format("raw CUDA pipeline, to {}", all), raw.all_to_device);
  speed("all_both_ways", fmt::format("raw CUDA pipeline, through {}, each way", all), raw.all_both_ways);
  speed("device_copy", "GPU memory, plain copy (read + write)", raw.device_copy);
}

void add_bench_options(CLI::App& app, CommonOptions& common, int& repeats, const std::string& what) {
  OptionGroup(app, "Method").add("--repeats", repeats, parse_count<int>, "N", what);
  add_machine_options(app, common);
  add_trace_option(app, common);
}

}  // namespace asterism::tools
