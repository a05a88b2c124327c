#include "workers.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "../../runtime/collectives.hpp"

namespace asterism {

std::vector<int> first_with_gpus(const Runtime& runtime) {
  using Name = std::array<char, 1024>;
  std::string gpus;  // as StarPU names them, by the bus
  for (const Worker& worker : runtime.machine().workers)
    if (worker.kind == WorkerKind::cuda) gpus += worker.name + '\n';
  Name mine{};
  if (!gpus.empty()) (runtime.machine().host + '\n' + gpus).copy(mine.data(), mine.size() - 1);
  const std::vector<Name> names = gather(runtime, mine);
  std::vector<int> first;
  for (const Name& name : names)
    first.push_back(name[0] == 0 ? -1 : static_cast<int>(std::ranges::find(names, name) - names.begin()));
  return first;
}

std::vector<Candidate> all_workers(const Runtime& runtime) {
  const Machine machine = runtime.machine();
  const auto main_memory = static_cast<double>(machine.capacity(MemoryKind::main));
  const std::optional<std::size_t> at_once = tasks_in_memory(machine);
  struct OfRank {
    int gpus, cores;
    std::size_t gpu_memory;
    double memory_of_core, memory;  // where tasks' memory is limited one by one, or all together
    std::array<char, 256> host;
  };
  OfRank mine{machine.count(WorkerKind::cuda),   machine.count(WorkerKind::cpu),
              machine.capacity(MemoryKind::gpu), at_once ? main_memory / static_cast<double>(*at_once) : 0,
              at_once ? 0 : main_memory,         {}};
  machine.host.copy(mine.host.data(), mine.host.size());
  const std::vector<OfRank> all = gather(runtime, mine);
  std::vector<Candidate> workers;
  int rank = 0;
  for (const OfRank& its : all) {
    const auto node = static_cast<int>(std::ranges::find(all, its.host, &OfRank::host) - all.begin());
    for (int k = 0; k < its.gpus; ++k)
      workers.push_back({.rank = rank,
                         .where = Where::cuda,
                         .worker = k,
                         .memory = static_cast<double>(its.gpu_memory),
                         .alone = its.gpus == 1,
                         .node = node});
    for (int k = 0; k < its.cores; ++k)
      workers.push_back({.rank = rank,
                         .where = Where::cpu,
                         .worker = k,
                         .memory = its.memory_of_core,
                         .rank_memory = its.memory,
                         .alone = its.cores == 1,
                         .node = node});
    ++rank;
  }
  return workers;
}

double speed_of(const Candidate& worker) {
  return is_measured(worker) ? worker.speed : worker.where == Where::cuda ? 200e9 : 1e9;
}

std::optional<std::size_t> tasks_in_memory(const Machine& machine) {
  if (machine.capacity(MemoryKind::disk) == 0) return {};
  return machine.workers.size() + 1;  // and one whose tiles are on their way
}

}  // namespace asterism
