/// \file
/// The machine as the runtime sees it, and the options that decide which part of it is used.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace asterism {

/// What a program would rather have of the machine, where nobody asks for something else.
struct Preferences {
  std::string scheduler = {};  ///< one of Machine::schedulers; empty: dmdas with GPUs, prio without
  /// Whether beside GPUs, of four cores or more that these leave over, one is kept for the thread that submits. Where that
  /// thread sleeps while tasks run, the core may as well compute.
  bool core_for_submission = true;
  /// Tasks that a GPU is given before it has done the first of them, up to 4, unless STARPU_CUDA_PIPELINE says so: so many may
  /// run there at a time whose kernels are launched aside (cuda::Aside).
  int tasks_on_gpu = 2;
};

/// Which part of the machine a Runtime uses. Fields left alone follow StarPU's environment variables, then its
/// defaults (all cores, all GPUs).
///
/// A process keeps as many threads busy as it may use cores: those of its affinity (taskset, launchers), of its cpuset, of
/// its control group's quota. Several ranks on one node divide it. Each takes, and is bound to, its part of the cores,
/// unless the launcher has bound it to some of its own; and its part of the GPUs: rank l of the L on a node with G >= L of
/// them takes those from l G / L up to but not (l + 1) G / L; where G < L, it shares GPU l G / L, and its memory, with
/// other ranks. Where `gpus` is larger than that part, a rank takes those that follow too. CUDA_VISIBLE_DEVICES and
/// STARPU_WORKERS_CUDAID override the division of the GPUs: then every rank takes all that they name.
struct Options {
  /// CPU workers; -1: as many as there are usable cores left over by the GPU workers and, beside those, by the thread that
  /// submits (Preferences). More than two for each usable core are told, and as many as there are cores start instead.
  int cpus = -1;
  int gpus = -1;               ///< GPUs (of each rank); -1: all of its part of the node
  std::size_t cpu_memory = 0;  ///< bytes of main memory that tiles owned by the runtime may take; 0: no limit
  std::size_t gpu_memory = 0;  ///< bytes of each GPU's memory that may be used; 0: nearly all
  std::string scheduler = {};  ///< one of Machine::schedulers; empty: $STARPU_SCHED, else the preferred one
  Preferences preferences = {};
  /// Folder, which is there, that tiles are evicted to when cpu_memory is full; empty: none. Each rank's files lie in a
  /// sub-folder asterism-HOST-PROCESS-XXXXXX, which is removed at the end, or by the next Runtime on that host after a
  /// kill. When the disk is full, who waits gets a Stall that says so.
  std::filesystem::path spill = {};
  std::size_t spill_bytes = 0;       ///< room in that folder; 0: all that is free there
  std::filesystem::path trace = {};  ///< folder for the trace, made where it is not there; empty: no trace
  /// Without progress on any rank for so long the watchdog gives a diagnosis; 0: never. A running kernel is progress,
  /// and so is whatever the program itself does, but not its waiting for tiles, tasks or other ranks.
  double stall_seconds = 120;
  /// The ranks that work together: `MPI_Comm_c2f(comm)` of an MPI_Comm; none: all that were launched. All ranks that are in
  /// it make a Runtime with it; others make one with their own communicator, or none. Rank numbers are those in it. The
  /// program has initialised MPI then, with MPI_THREAD_MULTIPLE, and ends it after the last Runtime.
  std::optional<int> communicator = {};
  std::size_t window = 2000;  ///< tasks submitted and not finished at a time; submission waits beyond
};

/// Whether this is a build with CUDA: `if constexpr (built_with_cuda)` in templates keeps what needs it out of others.
#ifdef ASTERISM_WITH_CUDA
inline constexpr bool built_with_cuda = true;
#else
inline constexpr bool built_with_cuda = false;
#endif

enum class WorkerKind { cpu, cuda };
enum class MemoryKind { main, gpu, disk };

struct Worker {
  std::string name;  ///< "CPU 0", "CUDA 0.0 (NVIDIA H200 ...)"
  WorkerKind kind;
  unsigned node;  ///< index of its memory in Machine::memories
};

struct Memory {
  std::string name;
  MemoryKind kind;
  std::size_t capacity;  ///< bytes that tiles may take there
  std::size_t used;      ///< bytes that tiles take there now
};

/// A directed link between two memories.
struct Link {
  unsigned from, to;        ///< indices in Machine::memories
  double bytes_per_second;  ///< as StarPU measured it when it first saw this machine
  double latency;           ///< seconds
};

/// Cores of a node, and how many of them this rank uses.
struct CoreCounts {
  int installed;       ///< in the machine
  int usable;          ///< by this process: see Options
  std::string reason;  ///< why not all; empty: they are
};

struct Machine {
  std::string host;
  CoreCounts cores;
  std::vector<Worker> workers;
  std::vector<Memory> memories;
  std::vector<Link> links;
  std::vector<std::string> schedulers;  ///< names that Options::scheduler may have
  std::string scheduler;                ///< the one in use
  /// Why: "asked for", "$STARPU_SCHED", "preferred by the program", "there are GPUs", "there are no GPUs".
  std::string scheduler_reason;
  /// Whether it chooses a worker as soon as a task is ready, by how long it should take. Otherwise whoever is free takes it.
  bool chooses_ahead = true;
  int rank = 0, ranks = 1;

  [[nodiscard]] int count(WorkerKind kind) const;
  /// The smallest capacity among memories of one kind that workers use; 0 when there is none.
  [[nodiscard]] std::size_t capacity(MemoryKind kind) const;
};

/// Versions and features that this build was compiled with, one line each ("StarPU 1.4.10", "CUDA 13.0", ...), and whether
/// what is loaded when first used is there.
std::vector<std::string> build_features();

/// "1.5 GiB": a number of bytes for people.
std::string human_bytes(double bytes);

/// CoreCounts::usable: as many threads this process should keep busy.
int usable_cores();

/// Physical memory of this machine (or of its control group) in bytes.
std::size_t physical_memory();

}  // namespace asterism
