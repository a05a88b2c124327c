#include "machine.hpp"

#include <fftw3.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "../run/state.hpp"
#include "control_groups.hpp"
#include "cores.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "../loaded/cublas.hpp"
#endif

namespace asterism {
namespace {

MemoryKind kind_of(unsigned node) {
  switch (starpu_node_get_kind(node)) {
    case STARPU_CUDA_RAM:
      return MemoryKind::gpu;
    case STARPU_DISK_RAM:
      return MemoryKind::disk;
    default:
      return MemoryKind::main;
  }
}

std::size_t capacity_of(unsigned node) {
  const starpu_ssize_t limit = starpu_memory_get_total(node);
  if (limit > 0) return static_cast<std::size_t>(limit);
  return kind_of(node) == MemoryKind::main ? physical_memory() : std::numeric_limits<std::size_t>::max();
}

#ifdef ASTERISM_WITH_CUDA
/// What this program was built with need not be what it finds.
std::string about_cublas() {
  try {
    cuda::cublas();
    return fmt::format("cuBLAS {}, loaded when first used", CUBLAS_VER_MAJOR);
  } catch (const Error& missing) {
    return missing.what();
  }
}
#endif

}  // namespace

std::vector<std::string> schedulers() {
  std::vector<std::string> names;
  for (starpu_sched_policy** policy = starpu_sched_get_predefined_policies(); *policy != nullptr; ++policy)
    names.emplace_back((*policy)->policy_name);
  std::erase(names, "graph_test");  // begins when it is told that the whole graph is there
  return names;
}

int Machine::count(WorkerKind kind) const {
  return static_cast<int>(
      std::count_if(workers.begin(), workers.end(), [kind](const Worker& w) { return w.kind == kind; }));
}

std::size_t Machine::capacity(MemoryKind kind) const {
  std::size_t smallest = 0;
  for (const Memory& memory : memories)
    if (memory.kind == kind) smallest = smallest == 0 ? memory.capacity : std::min(smallest, memory.capacity);
  return smallest;
}

Machine Runtime::State::machine() const {
  Machine m;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  m.host = name.data();
  const CoresInUse use = cores_in_use();
  m.cores = {cores_found().installed, use.count, use.reason};
  m.rank = rank;
  m.ranks = ranks;
  m.scheduler = options.scheduler;
  m.scheduler_reason = scheduler_reason;
  constexpr std::array for_whoever_is_free{"prio", "eager", "lws", "ws"};
  m.chooses_ahead = std::ranges::find(for_whoever_is_free, m.scheduler) == for_whoever_is_free.end();
  m.schedulers = schedulers();
  for (unsigned w = 0; w < starpu_worker_get_count(); ++w) {
    starpu_worker_get_name(static_cast<int>(w), name.data(), name.size());
    m.workers.push_back({name.data(),
                         starpu_worker_get_type(static_cast<int>(w)) == STARPU_CUDA_WORKER ? WorkerKind::cuda
                                                                                           : WorkerKind::cpu,
                         starpu_worker_get_memory_node(w)});
  }
  const unsigned nodes = starpu_memory_nodes_get_count();
  for (unsigned node = 0; node < nodes; ++node) {
    starpu_memory_node_get_name(node, name.data(), name.size());
    m.memories.push_back({name.data(), kind_of(node), capacity_of(node), starpu_memory_get_used(node)});
  }
  for (unsigned from = 0; from < nodes; ++from)
    for (unsigned to = 0; to < nodes; ++to) {
      const double bandwidth = starpu_transfer_bandwidth(from, to) * 1e6;  // StarPU counts in MB/s
      if (from != to && std::isfinite(bandwidth) && bandwidth > 0)
        m.links.push_back({from, to, bandwidth, starpu_transfer_latency(from, to) * 1e-6});
    }
  return m;
}

std::size_t Runtime::State::capacity(MemoryKind kind) {
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  for (unsigned node = 0; node < starpu_memory_nodes_get_count(); ++node)
    if (kind_of(node) == kind) smallest = std::min(smallest, capacity_of(node));
  return smallest;
}

Traffic Runtime::State::traffic() const {
  const std::lock_guard lock(traffic_mutex);
  Traffic t;
  for (int bus = 0; bus < starpu_bus_get_count(); ++bus) {
    starpu_profiling_bus_info info{};
    starpu_bus_get_profiling_info(bus, &info);  // reads StarPU's counter and sets it to zero
    const auto from = static_cast<unsigned>(starpu_bus_get_src(bus));
    const auto to = static_cast<unsigned>(starpu_bus_get_dst(bus));
    const std::int64_t bytes = bytes_by_link[{from, to}] += info.transferred_bytes;
    if (kind_of(to) == MemoryKind::gpu) t.to_device += bytes;
    if (kind_of(from) == MemoryKind::gpu) t.from_device += bytes;
    if (kind_of(to) == MemoryKind::disk) t.to_disk += bytes;
    if (kind_of(from) == MemoryKind::disk) t.from_disk += bytes;
  }
  t.between_ranks = bytes_from_ranks;
  return t;
}

Traffic Traffic::operator-(const Traffic& earlier) const {
  return {to_device - earlier.to_device, from_device - earlier.from_device, to_disk - earlier.to_disk,
          from_disk - earlier.from_disk, between_ranks - earlier.between_ranks};
}

std::string to_string(Reason reason) {
  switch (reason) {
    case Reason::solved:
      return "solved";
    case Reason::iteration_limit:
      return "iteration limit";
    case Reason::stagnation:
      return "stagnation";
    case Reason::divergence:
      return "divergence";
    case Reason::indefinite:
      return "not positive definite";
    case Reason::breakdown:
      return "breakdown";
    case Reason::zero_pivot:
      return "zero pivot";
    case Reason::not_finite:
      return "not finite";
    case Reason::inaccurate:
      return "inaccurate";
  }
  return "?";
}

std::vector<std::string> build_features() {
  int version[3] = {};
  starpu_get_version(&version[0], &version[1], &version[2]);
  return {
      fmt::format("StarPU {}.{}.{}", version[0], version[1], version[2]),
#ifdef STARPU_USE_FXT
      "FxT traces: yes",
#else
      "FxT traces: no",
#endif
      ranks::mpi_library(),
#ifdef ASTERISM_WITH_CUDA
      fmt::format("CUDA {}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10),
      about_cublas(),
#else
      "CUDA: no",
#endif
      fmt::format("hwloc {}.{}", HWLOC_API_VERSION >> 16, HWLOC_API_VERSION >> 8 & 0xff),
      std::string(fftw_version),
  };
}

std::string human_bytes(double bytes) {
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} {}", bytes, units[unit])
                   : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::size_t physical_memory() {
  const std::size_t installed =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::min(installed, memory_limit());
}

}  // namespace asterism
