/// \file
/// What containers, batch systems and services allow a process of its machine: Linux' control groups, versions 1 and 2.
/// Private to runtime/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace asterism {

/// A limit of a group's processor time, all its processes together.
struct CpuQuota {
  double cores;                  ///< seconds of processor time a second
  std::filesystem::path folder;  ///< the group that has it
};

/// The smallest among those of this process's group and of the groups that this one is in; none where none has any.
/// @param root where proc/ and sys/ are
std::optional<CpuQuota> cpu_quota(const std::filesystem::path& root = "/");

/// The smallest memory limit, in bytes, among those of the same groups; the largest number where none has any.
std::size_t memory_limit(const std::filesystem::path& root = "/");

}  // namespace asterism
