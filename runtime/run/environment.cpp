#include "environment.hpp"

#include <fmt/format.h>

#include <charconv>
#include <sstream>
#include <string_view>

#include "../error.hpp"

#ifdef ASTERISM_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace asterism {
namespace {

// All that StarPU 1.4 may read with cores, CUDA, MPI and a disk, less the prefix STARPU_.
constexpr const char* whole_numbers =
    "BACKOFF_MAX BACKOFF_MIN BUS_CALIBRATE BUS_STATS CALIBRATE CALIBRATE_MINIMUM CATCH_SIGNALS CODELET_PROFILING "
    "COMM_STATS CUDA_ONLY_FAST_ALLOC_OTHER_MEMNODES CUDA_PIPELINE CUDA_THREAD_PER_DEV CUDA_THREAD_PER_WORKER "
    "DATA_LOCALITY_ENFORCE DISABLE_ASYNCHRONOUS_COPY DISABLE_ASYNCHRONOUS_CUDA_COPY DISABLE_ASYNCHRONOUS_HIP_COPY "
    "DISABLE_ASYNCHRONOUS_MAX_FPGA_COPY DISABLE_ASYNCHRONOUS_MPI_MS_COPY DISABLE_ASYNCHRONOUS_OPENCL_COPY "
    "DISABLE_ASYNCHRONOUS_TCPIP_MS_COPY DISABLE_KERNELS DISABLE_PINNING DISK_SWAP_SIZE DISPLAY_BINDINGS "
    "ENABLE_CUDA_GPU_GPU_DIRECT ENABLE_MAP ENERGY_PROFILING EXPECTED_TRANSFER_TIME_WRITEBACK FXT_TRACE "
    "GENERATE_TRACE GLOBAL_ARBITER HISTORY_MAX_ERROR LIMIT_BANDWIDTH LIMIT_CPU_MEM LIMIT_CPU_NUMA_MEM "
    "LIMIT_CUDA_MEM LIMIT_MAX_SUBMITTED_TASKS LIMIT_MIN_SUBMITTED_TASKS MAIN_THREAD_BIND MAIN_THREAD_COREID "
    "MAIN_THREAD_CPUID MAX_MEMORY_USE MAX_PRIO MAX_WORKERSIZE MEMORY_STATS MINIMUM_AVAILABLE_MEM "
    "MINIMUM_CLEAN_BUFFERS MIN_PRIO MIN_WORKERSIZE MPI_CACHE MPI_CACHE_STATS MPI_COOP_SENDS MPI_DEBUG_LEVEL_MAX "
    "MPI_DEBUG_LEVEL_MIN MPI_DRIVER_CALL_FREQUENCY MPI_DRIVER_TASK_FREQUENCY MPI_EARLYDATA_ALLOCATE MPI_FAKE_RANK "
    "MPI_FAKE_SIZE MPI_GPUDIRECT MPI_MEM_THROTTLE MPI_NDETACHED_SEND MPI_NOBIND MPI_NREADY_PROCESS MPI_PRIORITIES "
    "MPI_PSM2 MPI_RECV_WAIT_FINALIZE MPI_REDUX_ARITY_THRESHOLD MPI_STATS MPI_THREAD_COREID MPI_THREAD_CPUID "
    "MPI_THREAD_MULTIPLE_SEND MPI_TRACE_SYNC_CLOCKS NCPU NCPUS NCUDA NHIP NMAX_FPGA NMPI_MS NOPENCL "
    "NTASKS_THRESHOLD NTCPIP_MS NTHREADS_PER_CORE NWORKER_PER_CUDA PCI_FLAT PERF_MODEL_HOMOGENEOUS_CPU PREFETCH "
    "RAND_SEED RESERVE_NCPU SCHED_READY SCHED_SORTED_ABOVE SCHED_SORTED_BELOW SILENT SIMGRID "
    "SINGLE_COMBINED_WORKER STATS SUBALLOCATOR SYNTHESIZE_ARITY_COMBINED_WORKER TARGET_AVAILABLE_MEM "
    "TARGET_CLEAN_BUFFERS TASK_BREAK_ON_EXEC TASK_BREAK_ON_POP TASK_BREAK_ON_PUSH TASK_BREAK_ON_SCHED "
    "TASK_PROGRESS TRACE_BUFFER_SIZE USE_NUMA WATCHDOG_CRASH WATCHDOG_DELAY WORKERS_GETBIND WORKERS_NOBIND "
    "WORKER_TREE";
constexpr const char* numbers = "IDLE_POWER SCHED_ALPHA SCHED_BETA SCHED_GAMMA WINDOW_TIME_SIZE";
constexpr const char* lists = "WORKERS_COREID WORKERS_CPUID WORKERS_CUDAID";

template <class T>
bool is_number(std::string_view text) {
  T value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc{} && end == text.data() + text.size();
}

bool is_whole_number(std::string_view text) { return text[0] != '-' && is_number<int>(text); }

bool is_list(std::string_view text) {
  return text[0] >= '0' && text[0] <= '9' && text.find_first_not_of("0123456789 ,-") == std::string_view::npos;
}

void require(const char* names, const char* what, bool (*fits)(std::string_view)) {
  std::istringstream stream(names);
  for (std::string name; stream >> name;) {
    name.insert(0, "STARPU_");
    const char* const value = std::getenv(name.c_str());
    if (value != nullptr && *value != '\0' && !fits(value))
      throw Error(
          fmt::format("{} is '{}' in the environment: it must be {}; set it so, or unset it", name, value, what));
  }
}

}  // namespace

int first_number(std::initializer_list<const char*> variables, int otherwise) {
  for (const char* variable : variables)
    if (const char* value = std::getenv(variable)) return std::atoi(value);
  return otherwise;
}

int gpus_installed() {
  int gpus = 0;
#ifdef ASTERISM_WITH_CUDA
  if (cudaGetDeviceCount(&gpus) != cudaSuccess) return 0;  // no driver
#endif
  return gpus;
}

void require_sound_environment() {
  require(whole_numbers, "a whole number from 0 on", is_whole_number);
  require(numbers, "a number", is_number<double>);
  require(lists, "a list of numbers like '0 1 2'", is_list);
}

}  // namespace asterism
