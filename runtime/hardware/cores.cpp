#include "cores.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "machine.hpp"

namespace asterism {
namespace {

std::mutex sharing_mutex;
std::optional<Sharing> shared;  // nothing: this process is alone on its node

CoresFound look_for_cores() {
  CoresFound found;
  found.quota = cpu_quota();
  hwloc_topology_t topology = nullptr;
  hwloc_topology_init(&topology);
  hwloc_topology_load(topology);
  const std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)> end(topology, hwloc_topology_destroy);
  const std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)> mine(hwloc_bitmap_alloc(),
                                                                       hwloc_bitmap_free);
  if (hwloc_get_cpubind(topology, mine.get(), HWLOC_CPUBIND_THREAD) != 0) hwloc_bitmap_fill(mine.get());
  // Where the system tells of no cores, each processing unit is one.
  const bool tells_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t type = tells_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  found.visible = std::max(1, hwloc_get_nbobjs_by_type(topology, type));
  const int units = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
  found.installed =
      std::max(found.visible, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) * found.visible / units);
  int first = 0, last = -1;
  for (int core = 0; core < found.visible; ++core) {
    const hwloc_obj_t object = hwloc_get_obj_by_type(topology, type, static_cast<unsigned>(core));
    for (hwloc_obj_t unit = nullptr; (unit = hwloc_get_next_obj_inside_cpuset_by_type(
                                          topology, object->cpuset, HWLOC_OBJ_PU, unit)) != nullptr;)
      if (hwloc_bitmap_isset(mine.get(), unit->os_index) != 0) {
        if (found.allowed.empty()) first = core;
        last = core;
        found.allowed.push_back({static_cast<int>(unit->os_index), static_cast<int>(unit->logical_index)});
        break;
      }
  }
  if (found.allowed.empty()) found.allowed.push_back({0, 0});  // bound to what hwloc does not see
  found.in_a_row = last - first + 1 == static_cast<int>(found.allowed.size());
  return found;
}

}  // namespace

const CoresFound& cores_found() {
  static const CoresFound found = look_for_cores();
  return found;
}

CoreShare share_of_cores(const std::vector<CoreSet>& allowed, std::size_t rank) {
  const CoreSet& mine = allowed[rank];
  const int cores = static_cast<int>(mine.count());
  const auto end = allowed.begin() + static_cast<std::ptrdiff_t>(rank);
  const int alike = static_cast<int>(std::count(allowed.begin(), allowed.end(), mine));
  const int before = static_cast<int>(std::count(allowed.begin(), end, mine));
  const bool crossed = std::any_of(allowed.begin(), allowed.end(), [&](const CoreSet& other) {
    return other != mine && (other & mine).any();
  });
  if (!crossed && cores >= alike) {
    const int first = before * cores / alike;
    return {first, (before + 1) * cores / alike - first, true};
  }
  double parts = 0;
  for (std::size_t core = 0; core < mine.size(); ++core)
    if (mine[core])
      parts += 1. / static_cast<double>(std::count_if(allowed.begin(), allowed.end(),
                                                      [&](const CoreSet& other) { return other[core]; }));
  return {0, std::max(1, static_cast<int>(parts + 1e-9)), false};
}

CoresInUse cores_in_use() {
  const CoresFound& found = cores_found();
  const int allowed = static_cast<int>(found.allowed.size());
  const std::lock_guard lock(sharing_mutex);
  const Sharing now = shared.value_or(Sharing{{0, allowed, true}, 1, allowed, 1});
  CoresInUse use{
      now.share.count, now.share.own ? std::optional(now.share) : std::nullopt, now.ranks, now.by_ranks, {}};
  const auto because = [&](const std::string& reason) {
    use.reason += (use.reason.empty() ? "" : "; ") + reason;
  };
  if (found.visible < found.installed) because(fmt::format("the cpuset has {}", found.visible));
  if (allowed < found.visible)
    because(fmt::format("taskset or a launcher has bound this process to {}", allowed));
  if (now.share.count < allowed) because(fmt::format("{} ranks share {}", now.ranks, allowed));
  if (found.quota) {
    const int quota = std::max(1, static_cast<int>(found.quota->cores / now.quota_sharers + 1e-9));
    if (quota < use.count) {
      use.count = quota;
      use.own.reset();  // processor time, wherever it is spent
      const std::string sharers = now.quota_sharers > 1 ? fmt::format(" to {} ranks", now.quota_sharers) : "";
      because(fmt::format("the control group {} gives the time of {:.3g}{}", found.quota->folder.string(),
                          found.quota->cores, sharers));
    }
  }
  return use;
}

void share_cores(const Sharing& sharing) {
  const std::lock_guard lock(sharing_mutex);
  shared = sharing;
}

int usable_cores() { return cores_in_use().count; }

}  // namespace asterism
