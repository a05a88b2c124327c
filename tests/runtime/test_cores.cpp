// How many cores a process may use: what control groups, taskset and the other ranks of its node leave of them.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "../support/child.hpp"
#include "../support/skip.hpp"
#include "runtime/collectives.hpp"
#include "runtime/hardware/control_groups.hpp"
#include "runtime/hardware/cores.hpp"
#include "runtime/run.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

namespace {

/// A file system as the kernel shows its control groups, below a folder.
class Groups {
 public:
  explicit Groups(const std::string& name) : root(fresh_folder(name)) {}

  const Groups& file(const std::string& path, const std::string& text) const {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
    return *this;
  }
  [[nodiscard]] double cores() const {
    const auto quota = cpu_quota(root);
    return quota ? quota->cores : 0;
  }
  [[nodiscard]] std::string folder() const {
    const auto quota = cpu_quota(root);
    return quota ? quota->folder.lexically_relative(root).string() : "";
  }

  const fs::path root;
};

constexpr const char* version_2 =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

CoreSet set_of(const std::vector<int>& cores) {
  CoreSet set;
  for (const int core : cores) set.set(static_cast<std::size_t>(core));
  return set;
}

std::string text(const CoreShare& share) {
  return fmt::format("{} from {}, {}", share.count, share.first, share.own ? "own" : "shared");
}

std::vector<int> numbers(int first, int end) {
  std::vector<int> all(static_cast<std::size_t>(end - first));
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// Cores that the calling thread may run on.
std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

const int cores_here = static_cast<int>(affinity().size());

Words without_choices() {
  return {"-u", "STARPU_NCPU", "-u", "STARPU_NCPUS", "-u", "STARPU_WORKERS_NOBIND", "STARPU_NCUDA=0"};
}

}  // namespace

TEST_CASE("cores: quotas of control groups, version 2") {
  const Groups groups("version_2");
  groups.file("proc/self/mountinfo", version_2);
  groups.file("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  groups.file("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n");
  CHECK(groups.cores() == 0);
  CHECK(memory_limit(groups.root) == no_limit);
  groups.file("sys/fs/cgroup/slurm/job_7/cpu.max", "250000 100000\n");  // of the job, for all its steps
  CHECK(groups.cores() == 2.5);
  CHECK(groups.folder() == "sys/fs/cgroup/slurm/job_7");
  groups.file("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "50000 50000\n");
  CHECK(groups.cores() == 1);
  CHECK(groups.folder() == "sys/fs/cgroup/slurm/job_7/step_0");
  groups.file("sys/fs/cgroup/slurm/job_8/cpu.max", "1000 100000\n");  // another's
  CHECK(groups.cores() == 1);
  groups.file("sys/fs/cgroup/slurm/memory.max", "9000000\n").file("sys/fs/cgroup/slurm/job_7/memory.max", "max\n");
  CHECK(memory_limit(groups.root) == 9000000);
}

TEST_CASE("cores: quotas as they are seen from within a container") {
  const Groups own("own_namespace");  // the container's group is the top of what it sees
  own.file("proc/self/mountinfo", version_2).file("proc/self/cgroup", "0::/\n");
  own.file("sys/fs/cgroup/cpu.max", "400000 100000\n");
  CHECK(own.cores() == 4);
  CHECK(own.folder() == "sys/fs/cgroup");
  own.file("proc/self/cgroup", "0::/../../other\n");  // moved out of it
  CHECK(own.cores() == 4);

  const Groups part("part_of_hierarchy");  // the group has the host's name, and the mount begins at it
  part.file("proc/self/mountinfo",
            "40 30 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
            "41 30 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  part.file("proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc/inner\n1:name=systemd:/docker/abc\n");
  part.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
  part.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  part.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "123456\n");
  CHECK(part.cores() == 3);
  CHECK(memory_limit(part.root) == 123456);
  part.file("sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_quota_us", "50000\n");
  part.file("sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_period_us", "100000\n");
  CHECK(part.cores() == 0.5);
  part.file("sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_quota_us", "-1\n");  // no limit
  CHECK(part.cores() == 3);
}

TEST_CASE("cores: no quota where nothing is said of one") {
  const Groups groups("nothing_said");
  CHECK(groups.cores() == 0);
  CHECK(memory_limit(groups.root) == no_limit);
  groups.file("proc/self/mountinfo", "nonsense\n\n22 1 8:1 / / rw - ext4 /dev/sda rw\n");
  groups.file("proc/self/cgroup", "nonsense\n0:\n");
  CHECK(groups.cores() == 0);
  groups.file("proc/self/mountinfo", version_2).file("sys/fs/cgroup/cpu.max", "garbage\n");
  CHECK(groups.cores() == 0);
  groups.file("sys/fs/cgroup/cpu.max", "");
  CHECK(groups.cores() == 0);
}

TEST_CASE("cores: ranks of a node divide them") {
  const CoreSet all = set_of(numbers(0, 16));
  for (const int ranks : {1, 2, 3, 4, 5, 7, 16}) {
    CAPTURE(ranks);
    const std::vector<CoreSet> unbound(static_cast<std::size_t>(ranks), all);
    int next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const CoreShare share = share_of_cores(unbound, static_cast<std::size_t>(rank));
      CHECK(share.own);
      CHECK(share.first == next);  // none twice, none left over
      CHECK(share.count >= 16 / ranks);
      CHECK(share.count <= (16 + ranks - 1) / ranks);
      next += share.count;
    }
    CHECK(next == 16);
  }
  const auto shares = [](const std::vector<CoreSet>& allowed) {
    std::vector<std::string> all_of_them;
    for (std::size_t rank = 0; rank < allowed.size(); ++rank)
      all_of_them.push_back(text(share_of_cores(allowed, rank)));
    return all_of_them;
  };
  using Texts = std::vector<std::string>;
  // A launcher has bound them.
  CHECK(shares({set_of({0, 1}), set_of({2, 3, 4})}) == Texts{"2 from 0, own", "3 from 0, own"});
  // Two of three share theirs.
  CHECK(shares({set_of({0}), set_of({1, 3, 5}), set_of({1, 3, 5})}) ==
        Texts{"1 from 0, own", "1 from 0, own", "2 from 1, own"});
  // More ranks than cores.
  CHECK(shares({set_of({0, 1}), set_of({0, 1}), set_of({0, 1})}) ==
        Texts{"1 from 0, shared", "1 from 0, shared", "1 from 0, shared"});
  // Some cores in common.
  CHECK(shares({set_of({0, 1, 2, 3}), set_of({2, 3, 4, 5})}) == Texts{"3 from 0, shared", "3 from 0, shared"});
}

TEST_CASE("cores: a child" * doctest::skip()) {
  Runtime runtime;
  const Machine machine = runtime.machine();
  std::vector<int> bound;  // cores of this rank's workers, one after the other
  for (int worker = 0; worker < machine.count(WorkerKind::cpu); ++worker)
    runtime.on_worker(WorkerKind::cpu, worker, [&] {
      for (const int core : affinity()) bound.push_back(core);
    });
  const std::vector<int> all = gather_lists(runtime, bound);
  const std::vector<int> workers = gather(runtime, machine.count(WorkerKind::cpu));
  const std::vector<int> usable = gather(runtime, machine.cores.usable);
  if (runtime.rank() == 0)
    MESSAGE(fmt::format("bound to [{}], workers [{}], usable [{}], {}", fmt::join(all, " "), fmt::join(workers, " "),
                        fmt::join(usable, " "), machine.cores.reason));
}

TEST_CASE("cores: ranks that nobody has bound get cores of their own" *
          SkipUnless(cores_here >= 2, "two cores")) {
  const char* const mpiexec = std::getenv("ASTERISM_MPIEXEC");
  const Words two_ranks = without_choices() + Words{"OMPI_MCA_hwloc_base_binding_policy=none",
                                                    mpiexec != nullptr ? mpiexec : "mpirun", "-np", "2"};
  const std::vector<int> cores = affinity();
  const Words on_two_cores{"taskset", "-c", fmt::format("{},{}", cores[0], cores[1])};
  const Child child = run_in_child("cores: a child", two_ranks + on_two_cores);
  const std::string each = fmt::format("bound to [{} {}], workers [1 1], usable [1 1], ", cores[0], cores[1]);
  CHECK_MESSAGE(child.text.find(each) != std::string::npos, child.text);
  CHECK_MESSAGE(child.text.find("2 ranks share 2") != std::string::npos, child.text);
  CHECK_MESSAGE(child.text.find("asterism: ") == std::string::npos, child.text);
}

TEST_CASE("cores: what a launcher or taskset leaves, and a hint where that is little" *
          SkipUnless(cores_here >= 2, "two cores")) {
  const std::string last = std::to_string(affinity().back());
  const Words on_one_core{"taskset", "-c", last};
  const Child bound = run_in_child("cores: a child", without_choices() + on_one_core);
  CHECK_MESSAGE(bound.text.find("bound to [" + last + "], workers [1], usable [1], ") != std::string::npos, bound.text);
  CHECK_MESSAGE(bound.text.find("taskset or a launcher has bound this process to 1") != std::string::npos, bound.text);
  CHECK_MESSAGE(bound.text.find("asterism: ") == std::string::npos, bound.text);  // asked for

  const Words one_of_open_mpi{"OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0"};
  const Child hinted = run_in_child("cores: a child", without_choices() + one_of_open_mpi + on_one_core);
  for (const char* words : {"asterism: processes of this node: 1, bound to 1 of its ",
                            " cores; mpirun uses more with --bind-to none, or with --map-by slot:PE="})
    CHECK_MESSAGE(hinted.text.find(words) != std::string::npos, hinted.text);
  const Child chosen =
      run_in_child("cores: a child", without_choices() + one_of_open_mpi + Words{"STARPU_NCPU=1"} + on_one_core);
  CHECK_MESSAGE(chosen.text.find("asterism: ") == std::string::npos, chosen.text);
}

TEST_CASE("cores: with others between them" *
          SkipUnless(affinity().size() >= 2 && affinity()[0] == 0 && affinity()[1] == 1, "cores 0 and 1")) {
  // hwloc is told of two packages that have every other core: StarPU by itself would take all four.
  const Words packages{"HWLOC_SYNTHETIC=pack:2 core:2 pu:1(indexes=0,2,1,3)", "HWLOC_THISSYSTEM=1"};
  const Child child =
      run_in_child("cores: a child", without_choices() + packages + Words{"taskset", "-c", "0,1"});
  CHECK_MESSAGE(child.text.find("bound to [0 1], workers [2], usable [2], ") != std::string::npos, child.text);
}

namespace {

/// A control group with a quota, of version 2 or 1, while it lives. No folder: it could not be made.
class QuotaGroup {
 public:
  QuotaGroup(int microseconds, int period) {
    const std::string name = "asterism-test-" + std::to_string(getpid());
    for (const char* top : {"/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
      std::error_code failed;
      if (!fs::create_directory(fs::path(top) / name, failed)) continue;
      folder = fs::path(top) / name;
      if (fs::exists(folder / "cpu.max")) {
        std::ofstream(folder / "cpu.max") << microseconds << " " << period;
      } else {
        std::ofstream(folder / "cpu.cfs_period_us") << period;
        std::ofstream(folder / "cpu.cfs_quota_us") << microseconds;
      }
      double found = 0;
      std::ifstream(folder / (fs::exists(folder / "cpu.max") ? "cpu.max" : "cpu.cfs_quota_us")) >> found;
      if (found == microseconds) return;
      end();
    }
  }
  QuotaGroup(const QuotaGroup&) = delete;
  QuotaGroup& operator=(const QuotaGroup&) = delete;
  ~QuotaGroup() { end(); }

  fs::path folder;

 private:
  void end() {
    std::error_code busy;
    for (int k = 0; k < 200 && !folder.empty(); ++k) {  // until the kernel has seen its last process off
      if (fs::remove(folder, busy) || !fs::exists(folder)) folder.clear();
      else ::usleep(5000);
    }
  }
};

}  // namespace

TEST_CASE("cores: a real quota" * SkipUnless(cores_here >= 2 && !QuotaGroup(150000, 100000).folder.empty(),
                                             "two cores, and control groups that can be made")) {
  const QuotaGroup group(150000, 100000);
  REQUIRE_FALSE(group.folder.empty());
  const std::string enter = "echo $$ > " + (group.folder / "cgroup.procs").string() + " && exec \"$@\"";
  const Words in_group = without_choices() + Words{"sh", "-c", enter, "sh"};
  const Child child = run_in_child("cores: a child", in_group);
  CHECK_MESSAGE(child.text.find("workers [1], usable [1], ") != std::string::npos, child.text);
  const std::string reason = "the control group " + group.folder.string() + " gives the time of 1.5";
  CHECK_MESSAGE(child.text.find(reason) != std::string::npos, child.text);
  // Not bound: other containers on this machine would choose the same core.
  const std::string anywhere = fmt::format("bound to [{}], ", fmt::join(affinity(), " "));
  CHECK_MESSAGE(child.text.find(anywhere) != std::string::npos, child.text);
}
