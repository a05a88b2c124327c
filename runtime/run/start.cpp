#include "start.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "../hardware/cores.hpp"
#include "../kept/kept_files.hpp"
#include "../kept/spill_disk.hpp"
#include "../kept/trace.hpp"
#include "../ranks/launch.hpp"
#include "../ranks/ranks.hpp"
#include "environment.hpp"
#include "starpu_memory.hpp"

namespace asterism {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// Not made where it is missing: a mistyped name would be one more folder for somebody to wonder about.
void require_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw Error(fmt::format("spill folder {}: there is no such folder; make it, or name one that is there",
                            folder.string()));
}

void require_known_scheduler(const std::string& name) {
  // StarPU itself only warns about an unknown name and falls back to a scheduler that is slow with GPUs.
  const std::vector<std::string> names = schedulers();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error(fmt::format("unknown scheduler '{}'; there are {}", name, fmt::join(names, ", ")));
}

/// Waiting CPU workers spin: with many more of them than cores nothing moves.
int cpus_within_reason(const Options& options) {
  int asked = options.cpus;
  for (const char* variable : {"STARPU_NCPU", "STARPU_NCPUS"})
    if (const char* const value = std::getenv(variable); asked < 0 && value != nullptr)
      asked = std::atoi(value);
  const int cores = static_cast<int>(cores_found().allowed.size());
  if (asked <= 2 * cores) return options.cpus;
  if (launched_rank() == 0)
    fmt::print(stderr, "asterism: {} CPU workers are asked for: as many start as there are cores, {}\n",
               asked, cores);
  return cores;
}

/// Lets StarPU start no more CPU workers than there are cores to use, and those on these.
/// @param gpus at most so many will work
void take_cores(starpu_conf& conf, Environment& environment, int ranks, int gpus, bool for_submission) {
  const CoresFound& found = cores_found();
  const CoresInUse use = cores_in_use();
  const int seen = found.in_a_row ? static_cast<int>(found.allowed.size()) : found.visible;  // by StarPU
  if (conf.ncpus == -1) {
    if (ranks > 1 && use.count <= 2)  // StarPU would keep one for its MPI thread: few are better spent on computing
      conf.ncpus = use.count;
    else if (use.count < seen)
      conf.reserve_ncpus = std::max(conf.reserve_ncpus, 0) + seen - use.count;
    // Where no core is left to them, the thread that submits and CUDA's own now and then take one of a GPU's worker, which
    // then is late for its kernels: two GPUs at relaxation took up to a half longer.
    if (for_submission && gpus > 0 && use.count >= gpus + 4)
      conf.reserve_ncpus = std::max(conf.reserve_ncpus, 0) + 1;
  }
  if (!use.own || (use.own->count < seen && conf.ncpus > use.count)) {
    environment.suggest("STARPU_WORKERS_NOBIND", "1");  // bound ones would be on the same cores as others
  } else if (use.own->count < seen && std::getenv("STARPU_WORKERS_COREID") == nullptr) {
    std::vector<int> cores;
    for (int k = 0; k < use.own->count; ++k)
      cores.push_back(found.allowed[static_cast<std::size_t>(use.own->first + k)].logical);
    environment.suggest("STARPU_WORKERS_CPUID", fmt::format("{}", fmt::join(cores, " ")));
  }
}

/// Open MPI binds each of few ranks to a single core where it is not told otherwise, other launchers where they are told
/// so: a user who wonders how slow the program is may not know.
void tell_of_idle_cores(const starpu_conf& conf) {
  const std::optional<ranks::Launch>& by = ranks::launch();
  const CoresInUse use = cores_in_use();
  const int visible = cores_found().visible;
  static bool told = false;
  if (!by || launched_rank() > 0 || conf.ncpus != -1 || 2 * use.by_ranks > visible || std::exchange(told, true)) return;
  const std::string remedy =
      by->launcher == ranks::open_mpi
          ? fmt::format("mpirun uses more with --bind-to none, or with --map-by slot:PE={}", visible / use.ranks)
          : fmt::format("more are used where {} binds to more, or not at all", by->launcher);
  fmt::print(stderr, "asterism: processes of this node: {}, bound to {} of its {} cores; {}\n", use.ranks, use.by_ranks,
             visible, remedy);
}

/// GPUs that StarPU may find for this rank.
int gpus_within_reach(const Options& options) {
  const int wanted = options.gpus >= 0 ? options.gpus : first_number({"STARPU_NCUDA"}, -1);
  if (wanted == 0) return 0;
  if (const std::optional<ranks::GpuShare> ours = ranks::our_gpus(wanted)) return ours->count;
  const int there = gpus_installed();
  return wanted < 0 ? there : std::min(wanted, there);
}

/// Chooses a scheduler where the user has not. With GPUs one that weighs where data are and how long tasks take; on cores
/// alone, where all are alike, that costs more than it gains: there whoever is free takes the most urgent task.
/// @return why that one
const char* choose_scheduler(Options& options) {
  if (!options.scheduler.empty()) return "asked for";
  if (const char* const wanted = std::getenv("STARPU_SCHED"); wanted != nullptr) {
    options.scheduler = wanted;
    return "$STARPU_SCHED";
  }
  if (!options.preferences.scheduler.empty()) {
    options.scheduler = options.preferences.scheduler;
    return "preferred by the program";
  }
  const bool has_gpus = gpus_within_reach(options) > 0;
  options.scheduler = has_gpus ? "dmdas" : "prio";
  return has_gpus ? "there are GPUs" : "there are no GPUs";
}

/// Hands the options to StarPU: those that were set beat its environment variables, the others leave them alone.
starpu_conf configuration(Options& options, Environment& environment) {
  require_sound_environment();
  if (options.cpus == 0 && options.gpus == 0)
    throw Error("no worker: 0 CPUs and 0 GPUs were asked for; ask for at least one", Blame::machine);
  if (options.window == 0) throw Error("window is 0 tasks: at least 1 must be allowed in flight");
  require_known_scheduler(options.scheduler);
  environment.set("STARPU_SCHED", options.scheduler);
  if (const int cpus = cpus_within_reason(options); cpus >= 0)
    environment.set("STARPU_NCPU", std::to_string(cpus));
  if (options.gpus >= 0) environment.set("STARPU_NCUDA", std::to_string(options.gpus));
  // StarPU counts in MiB; rounding up keeps a tiny limit from becoming "no limit".
  const auto mebibytes = [](std::size_t bytes) { return std::to_string((bytes + mebibyte - 1) / mebibyte); };
  if (options.cpu_memory > 0)
    environment.set("STARPU_LIMIT_CPU_MEM", mebibytes(options.cpu_memory));
  else  // StarPU's own limit is nine tenths too, but of the whole machine: it does not know of containers
    environment.suggest("STARPU_LIMIT_CPU_MEM", mebibytes(physical_memory() / 10 * 9));
  if (options.gpu_memory > 0) environment.set("STARPU_LIMIT_CUDA_MEM", mebibytes(options.gpu_memory));
  environment.suggest("STARPU_CUDA_PIPELINE", std::to_string(options.preferences.tasks_on_gpu));
  // StarPU takes memory for small tiles in pieces of 32 MiB, of which none is given back while a tile lives in it:
  // where memory is so scarce, there would soon be no room for anything else. It does so on GPUs, and in main memory
  // where there are GPUs, or were any in an earlier Runtime of this process (worker_mask is never cleared).
  const auto scarce = [](std::size_t bytes) { return bytes > 0 && bytes < 1024 * mebibyte; };
  if (scarce(options.gpu_memory) || scarce(options.cpu_memory))
    environment.suggest("STARPU_SUBALLOCATOR", "0");
  // Whichever worker makes a task ready fetches its tiles at once, ahead of its turn. To make room it waits for others
  // to reach the disk, and cannot move them while it schedules: a single worker waits for ever. What is gained by
  // fetching ahead from a disk to cores is not to be seen; for GPUs it is.
  const bool spills = !options.spill.empty() || std::getenv("STARPU_DISK_SWAP") != nullptr;
  if (spills && gpus_within_reach(options) == 0) environment.suggest("STARPU_PREFETCH", "0");
  if (!options.trace.empty()) {
    environment.set("STARPU_FXT_TRACE", "1");
    environment.set("STARPU_FXT_PREFIX", options.trace.string());
    environment.set("STARPU_FXT_SUFFIX", trace::raw_prefix);
  }
  environment.suggest("STARPU_SILENT",
                      "1");  // its chatter on standard error would drown the program's own words
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.catch_signals = 0;  // the program's handlers are the program's business
  return conf;
}

void require_gpus(int asked) {
  const int there = static_cast<int>(starpu_cuda_worker_get_count());
  if (asked > there)
    throw Error(fmt::format("{} GPU{} asked for, {} found{}; see `asterism info`, or ask for fewer", asked,
                            asked == 1 ? "" : "s", there == 0 ? "none" : std::to_string(there),
#ifdef ASTERISM_WITH_CUDA
                            ""
#else
                            " (this build has no CUDA)"
#endif
                            ),
                Blame::machine);
}

/// What StarPU allocates for tasks comes and goes in waves of many megabytes. After each of them glibc gives the heap back to
/// the system, and to get its pages again takes as long as the tasks do. It keeps 64 MiB once a block of nearly 32 MiB has
/// come and gone (mallopt(3), M_MMAP_THRESHOLD), unless the user has told it what to keep. No page of that is touched.
void keep_heap() {
  void* volatile block = std::malloc((std::size_t{32} << 20) - (std::size_t{64} << 10));  // no compiler leaves it out
  std::free(block);
}

}  // namespace

void start_starpu(Runtime::State& state, bool& running) {
  Options& options = state.options;
  if (!options.spill.empty()) require_folder(options.spill);
  if (!options.trace.empty() && !ranks::can_trace())
    throw Error(
        "a trace needs all ranks that were launched, or one: leave Options::trace empty, or "
        "Options::communicator");
  if (!options.trace.empty()) trace::require_room(options.trace);
  Environment environment;
  state.scheduler_reason = choose_scheduler(options);
  starpu_conf conf = configuration(options, environment);
  tell_of_idle_cores(conf);
  take_cores(conf, environment, state.ranks, gpus_within_reach(options), options.preferences.core_for_submission);
  state.models.emplace(environment);
  // Where StarPU has memory of several NUMA nodes it chooses places itself.
  if (first_number({"STARPU_USE_NUMA"}, 0) == 0) give_starpu_huge_pages();
  if (const int status = ranks::start(conf, environment); status != 0)
    throw Error(fmt::format("StarPU found no worker to run on ({}): check --cpus, --gpus and `asterism info`",
                            std::strerror(-status)),
                Blame::machine);
  running = true;
  keep_heap();
  require_gpus(options.gpus);
  state.rest.emplace();
  if (!options.spill.empty()) register_spill_disk(state);
  state.tasks.count_workers(starpu_worker_get_count());
  state.workplaces = {{starpu_cpu_worker_get_count(), Runtime::State::capacity(MemoryKind::main)},
                      {starpu_cuda_worker_get_count(), Runtime::State::capacity(MemoryKind::gpu)}};
  starpu_profiling_status_set(options.trace.empty() ? STARPU_PROFILING_DISABLE : STARPU_PROFILING_ENABLE);
}

void end_starpu(Runtime::State& state) {
  state.rest.reset();
  ranks::stop();
}

}  // namespace asterism
