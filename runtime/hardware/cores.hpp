/// \file
/// Which cores this process may use, and how many of them it should. Private to runtime/.
#pragma once

#include <sched.h>

#include <bitset>
#include <optional>
#include <string>
#include <vector>

#include "control_groups.hpp"

namespace asterism {

/// A core, by a processing unit of it that this process may run on.
struct Core {
  int number;   ///< the operating system's
  int logical;  ///< hwloc's, which StarPU has, too: neighbours follow each other
};

/// What this process finds when it first looks, before any thread of it is bound.
struct CoresFound {
  std::vector<Core> allowed;  ///< by `logical`: taskset, launchers and cpusets leave so many
  int visible = 1;            ///< those that a cpuset leaves, or all of the machine
  int installed = 1;          ///< of the machine
  bool in_a_row =
      true;  ///< no other core is between the allowed ones; otherwise StarPU takes all visible ones
  std::optional<CpuQuota> quota;
};
const CoresFound& cores_found();

/// By Core::number.
using CoreSet = std::bitset<CPU_SETSIZE>;

/// What a rank gets of the cores that it is allowed.
struct CoreShare {
  int first, count;  ///< in CoresFound::allowed
  bool own;          ///< no other rank gets them; otherwise the operating system says who runs where
};

/// Ranks of a node that are allowed the same cores, as those that no launcher has bound are, get consecutive ones,
/// equally many but for one. Where ranks are more than cores, or allowed only some cores in common, each gets the sum of
/// its parts of them, and at least one.
/// @param allowed of each rank of the node
CoreShare share_of_cores(const std::vector<CoreSet>& allowed, std::size_t rank);

/// The cores that this process should use, of those that it may.
struct CoresInUse {
  int count = 1;                 ///< threads that it should keep busy
  std::optional<CoreShare> own;  ///< nothing: others may use the same, and threads are not to be bound
  int ranks = 1, by_ranks = 1;   ///< of this node, and the cores that these may use together
  std::string reason;            ///< why not all of the machine's; empty: they are
};
CoresInUse cores_in_use();

/// What the ranks of a node have told each other.
struct Sharing {
  CoreShare share;
  int ranks;          ///< of this node
  int by_ranks;       ///< cores that any of them may use
  int quota_sharers;  ///< those of the group that has the quota
};
void share_cores(const Sharing& sharing);

}  // namespace asterism
