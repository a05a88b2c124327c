#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "report.hpp"

namespace asterism::tools {
namespace {

void print_text(const Machine& machine) {
  fmt::print("asterism {} on {}\n\nbuilt with\n", ASTERISM_VERSION, machine.host);
  for (const std::string& feature : build_features()) fmt::print("  {}\n", feature);
  const CoreCounts& cores = machine.cores;
  fmt::print("\ncores\n  {} to use, of {}{}\n", cores.usable, cores.installed,
             cores.reason.empty() ? "" : ": " + cores.reason);
  fmt::print("\nworkers\n");
  for (const Worker& worker : machine.workers)
    fmt::print("  {:<40} works in {}\n", worker.name, machine.memories[worker.node].name);
  fmt::print("\nmemories\n");
  for (const Memory& memory : machine.memories)
    fmt::print("  {:<40} {}\n", memory.name, human_bytes(static_cast<double>(memory.capacity)));
  if (!machine.links.empty()) fmt::print("\nlinks, as StarPU measured them when it first saw this machine\n");
  for (const Link& link : machine.links)
    fmt::print("  {:<40} {:8.2f} GB/s {:8.2f} us\n",
               machine.memories[link.from].name + " -> " + machine.memories[link.to].name,
               link.bytes_per_second / 1e9, link.latency * 1e6);
  fmt::print("\nschedulers (in use: {}, {})\n ", machine.scheduler, machine.scheduler_reason);
  for (const std::string& scheduler : machine.schedulers) fmt::print(" {}", scheduler);
  fmt::print("\n");
}

const char* name_of(MemoryKind kind) {
  return kind == MemoryKind::gpu ? "gpu" : kind == MemoryKind::disk ? "disk" : "main";
}

void print_json(const Machine& machine) {
  nlohmann::ordered_json j;
  j["host"] = machine.host;
  j["features"] = build_features();
  j["cores"] = {{"installed", machine.cores.installed},
                {"usable", machine.cores.usable},
                {"reason", machine.cores.reason}};
  j["workers"] = nlohmann::json::array();
  for (const Worker& worker : machine.workers)
    j["workers"].push_back({{"name", worker.name},
                            {"kind", worker.kind == WorkerKind::cuda ? "cuda" : "cpu"},
                            {"memory", worker.node}});
  for (const Memory& memory : machine.memories)
    j["memories"].push_back({{"name", memory.name}, {"kind", name_of(memory.kind)}, {"bytes", memory.capacity}});
  j["links"] = nlohmann::json::array();
  for (const Link& link : machine.links)
    j["links"].push_back({{"from", link.from},
                          {"to", link.to},
                          {"bytes_per_second", link.bytes_per_second},
                          {"latency", link.latency}});
  j["scheduler"] = machine.scheduler;
  j["scheduler_reason"] = machine.scheduler_reason;
  j["schedulers"] = machine.schedulers;
  print_report(j);
}

}  // namespace

Command add_info(CLI::App& program) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app = add_subcommand(program, "info", "show the machine as the runtime sees it");
  add_machine_options(*app, *options);
  return {app, [options] {
            return with_runtime(options->runtime, [&](Runtime& runtime) {
              const Machine machine = runtime.machine();
              if (runtime.rank() == 0) options->json ? print_json(machine) : print_text(machine);
              return 0;
            });
          }};
}

}  // namespace asterism::tools
