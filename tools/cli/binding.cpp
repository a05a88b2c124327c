#include "binding.hpp"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <string>

namespace asterism::tools {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Whether mpirun was told what to bind to, or which processing units to take: its options reach its processes as variables.
bool has_been_asked() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = lower(*variable), name = text.substr(0, text.find('='));
    if (!name.starts_with("ompi_mca_") && !name.starts_with("prte_mca_")) continue;
    for (const char* const word : {"bind", "cpu", "rank_file", "rankfile"})
      if (name.find(word) != std::string::npos) return true;
    const bool takes_units = text.find("pe=", name.size()) != std::string::npos;  // slot:PE=8
    if (name.find("mapping_policy") != std::string::npos && takes_units) return true;
  }
  return false;
}

using Topology = std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)>;

Topology topology() {
  hwloc_topology_t machine = nullptr;
  hwloc_topology_init(&machine);
  hwloc_topology_load(machine);
  return {machine, hwloc_topology_destroy};
}

Bitmap bitmap() { return {hwloc_bitmap_alloc(), hwloc_bitmap_free}; }

/// Whether `mine` is what mpirun binds to by itself, of what it may use: of few ranks each to a core, one after the other, of
/// more to parts of the machine.
bool is_default(hwloc_topology_t machine, hwloc_const_bitmap_t mine, hwloc_const_bitmap_t launchers, int local_rank) {
  const Bitmap part = bitmap();
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_CORE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_NUMANODE, HWLOC_OBJ_PACKAGE}) {
    int number = 0;
    for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(machine, type, object)) != nullptr;) {
      hwloc_bitmap_and(part.get(), object->cpuset, launchers);
      if (hwloc_bitmap_iszero(part.get()) != 0) continue;
      const bool is_its_turn = type != HWLOC_OBJ_CORE || number == local_rank;
      if (is_its_turn && hwloc_bitmap_isequal(part.get(), mine) != 0) return true;
      ++number;
    }
  }
  return false;
}

}  // namespace

void leave_default_binding() {
  const char* const local_rank = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  if (local_rank == nullptr || has_been_asked()) return;
  const Topology machine = topology();
  const Bitmap mine = bitmap(), launchers = bitmap();
  if (hwloc_get_cpubind(machine.get(), mine.get(), HWLOC_CPUBIND_THREAD) != 0 ||
      hwloc_get_proc_cpubind(machine.get(), getppid(), launchers.get(), HWLOC_CPUBIND_THREAD) != 0)
    return;
  if (hwloc_bitmap_isincluded(mine.get(), launchers.get()) == 0 ||
      hwloc_bitmap_isequal(mine.get(), launchers.get()) != 0)
    return;
  if (is_default(machine.get(), mine.get(), launchers.get(), std::atoi(local_rank)))
    hwloc_set_cpubind(machine.get(), launchers.get(), HWLOC_CPUBIND_THREAD);
}

}  // namespace asterism::tools
