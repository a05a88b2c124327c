#include "control_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace asterism {
namespace {

namespace fs = std::filesystem;

bool has_name(const std::string& names, const std::string& name) {
  return fmt::format(",{},", names).find(fmt::format(",{},", name)) != std::string::npos;
}

/// A line of /proc/self/mountinfo.
struct Mount {
  std::string top, point, type, options;  // top: what of the file system is mounted
};
std::vector<Mount> mounts(const fs::path& root) {
  std::vector<Mount> all;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, source;
    Mount mount;
    words >> word >> word >> word >> mount.top >> mount.point;
    while (words >> word && word != "-") continue;  // options, any number of them
    if (words >> mount.type >> source >> mount.options) all.push_back(mount);
  }
  return all;
}

/// This process's group in a hierarchy: of version 1, that with a controller, or of version 2 ("").
std::string own_group(const fs::path& root, const std::string& controller) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // NUMBER:CONTROLLERS:GROUP
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : has_name(controllers, controller))
      return line.substr(second + 1);
  }
  return "/";
}

/// A group outside of what this process's namespace shows of the hierarchy is named by a way out of it.
bool lists_parent(const fs::path& group) {
  return std::find(group.begin(), group.end(), "..") != group.end();
}

/// The folders of that group and of those that it is in, as far as they can be seen.
std::vector<fs::path> groups(const fs::path& root, const std::string& controller) {
  std::vector<fs::path> folders;
  const fs::path own = own_group(root, controller);
  for (const Mount& mount : mounts(root)) {
    const bool right = controller.empty() ? mount.type == "cgroup2"
                                          : mount.type == "cgroup" && has_name(mount.options, controller);
    if (!right) continue;
    const fs::path point = root / fs::path(mount.point).relative_path();
    // In a container the mounted part of the hierarchy may begin below what the group is named from, or elsewhere.
    const fs::path below = own.lexically_relative(mount.top);
    const bool inside = !below.empty() && below != "." && *below.begin() != ".." && !lists_parent(own);
    for (fs::path folder = inside ? point / below : point;; folder = folder.parent_path()) {
      folders.push_back(folder);
      if (folder == point) break;
    }
  }
  return folders;
}

/// The words of a small file; none where there is none.
std::vector<std::string> words_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  return words;
}

/// No number: 0.
double number_in(const std::vector<std::string>& words, std::size_t k) {
  return k < words.size() ? std::strtod(words[k].c_str(), nullptr) : 0;
}

}  // namespace

std::optional<CpuQuota> cpu_quota(const fs::path& root) {
  std::optional<CpuQuota> smallest;
  const auto consider = [&](double microseconds, double period, const fs::path& folder) {
    if (microseconds <= 0 || period <= 0) return;  // "max", -1: no limit
    const double cores = microseconds / period;
    if (!smallest || cores < smallest->cores) smallest = CpuQuota{cores, folder};
  };
  for (const fs::path& folder : groups(root, "")) {
    const std::vector<std::string> both = words_of(folder / "cpu.max");
    consider(number_in(both, 0), number_in(both, 1), folder);
  }
  for (const fs::path& folder : groups(root, "cpu"))
    consider(number_in(words_of(folder / "cpu.cfs_quota_us"), 0),
             number_in(words_of(folder / "cpu.cfs_period_us"), 0), folder);
  return smallest;
}

std::size_t memory_limit(const fs::path& root) {
  double smallest = std::numeric_limits<double>::infinity();
  const auto consider = [&](const fs::path& file) {
    if (const double bytes = number_in(words_of(file), 0); bytes > 0) smallest = std::min(smallest, bytes);
  };
  for (const fs::path& folder : groups(root, "")) consider(folder / "memory.max");
  for (const fs::path& folder : groups(root, "memory")) consider(folder / "memory.limit_in_bytes");
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  return smallest < static_cast<double>(none) ? static_cast<std::size_t>(smallest) : none;
}

}  // namespace asterism
