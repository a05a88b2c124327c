#include "runtime.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>

#include "state.hpp"
#include "trace.hpp"

namespace asterism {
namespace {

Runtime::State* current = nullptr;

void set_variable(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

constexpr std::size_t mebibyte = std::size_t{1} << 20;

void require_writable_folder(const std::filesystem::path& folder, const char* what) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  if (!std::filesystem::is_directory(folder, ignored) || access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(fmt::format("{} folder {}: cannot be created or written; name a folder that can", what,
                            folder.string()));
}

void require_known_scheduler(const std::string& name) {
  // StarPU itself only warns about an unknown name and falls back to a scheduler that is slow with GPUs.
  std::string known;
  for (starpu_sched_policy** policy = starpu_sched_get_predefined_policies(); *policy != nullptr; ++policy) {
    if (name == (*policy)->policy_name) return;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", (*policy)->policy_name);
  }
  throw Error(fmt::format("unknown scheduler '{}'; StarPU knows {}", name, known));
}

/// Hands the options to StarPU: those that were set beat its environment variables, the others leave them alone.
starpu_conf configuration(const Options& options, std::string& scheduler) {
  if (options.cpus == 0 && options.gpus == 0)
    throw Error("no worker: 0 CPUs and 0 GPUs were asked for; ask for at least one", Blame::machine);
  if (!options.scheduler.empty()) set_variable("STARPU_SCHED", options.scheduler);
  const char* from_environment = std::getenv("STARPU_SCHED");
  scheduler = from_environment != nullptr ? from_environment : "dmdas";
  if (options.cpus >= 0) set_variable("STARPU_NCPU", std::to_string(options.cpus));
  if (options.gpus >= 0) set_variable("STARPU_NCUDA", std::to_string(options.gpus));
  // StarPU counts in MiB; rounding up keeps a tiny limit from becoming "no limit".
  const auto mebibytes = [](std::size_t bytes) { return std::to_string((bytes + mebibyte - 1) / mebibyte); };
  if (options.cpu_memory > 0) set_variable("STARPU_LIMIT_CPU_MEM", mebibytes(options.cpu_memory));
  if (options.gpu_memory > 0) set_variable("STARPU_LIMIT_CUDA_MEM", mebibytes(options.gpu_memory));
  if (!options.trace.empty()) {
    set_variable("STARPU_FXT_TRACE", "1");
    set_variable("STARPU_FXT_PREFIX", options.trace.string());
    set_variable("STARPU_FXT_SUFFIX", trace::raw_prefix);
    set_variable("STARPU_GENERATE_TRACE", "0");
  }
  // Idle chatter of the library on standard error would drown the tool's own.
  setenv("STARPU_SILENT", "1", 0);
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.sched_policy_name = scheduler.c_str();
  conf.catch_signals = 0;  // the program's handlers are the program's business
  return conf;
}

void end_starpu(int ranks) {
  if (ranks > 1)
    ranks::stop();
  else
    starpu_shutdown();
}

void register_spill(const Options& options) {
  std::size_t room = options.spill_bytes;
  if (room == 0) room = std::filesystem::space(options.spill).available / 10 * 9;
  if (room < STARPU_DISK_SIZE_MIN)
    throw Error(fmt::format("spill folder {}: {} of room, at least 16 MiB are needed", options.spill.string(),
                            human_bytes(static_cast<double>(room))));
  std::string folder = options.spill.string();
  if (starpu_disk_register(&starpu_disk_unistd_ops, folder.data(), static_cast<starpu_ssize_t>(room)) < 0)
    throw Error(fmt::format("spill folder {}: StarPU cannot use it as a disk", folder), Blame::machine);
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

}  // namespace

Runtime::State* current_runtime() { return current; }

Runtime::Runtime(const Options& options) : state_(std::make_unique<State>()) {
  if (current != nullptr) throw Error("a Runtime exists already: StarPU can run once at a time in a process");
  if (!options.spill.empty()) require_writable_folder(options.spill, "spill");
  if (!options.trace.empty()) require_writable_folder(options.trace, "trace");
  state_->options = options;

  std::string& scheduler = state_->options.scheduler;
  starpu_conf conf = configuration(options, scheduler);
  require_known_scheduler(scheduler);
  const bool several = ranks::launched_ranks() > 1;
  const int status = several ? ranks::start(conf, state_->rank, state_->ranks) : starpu_init(&conf);
  if (status != 0)
    throw Error(fmt::format("StarPU found no worker to run on ({}): check --cpus, --gpus and `asterism info`",
                            std::strerror(-status)),
                Blame::machine);
  try {
    require_gpus(options.gpus);
    if (!options.spill.empty()) register_spill(state_->options);
  } catch (...) {
    end_starpu(state_->ranks);
    throw;
  }
  if (!options.trace.empty()) starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
  current = state_.get();
  if (options.stall_seconds > 0) state_->watchdog = std::thread([this] { state_->watch(); });
}

Runtime::~Runtime() {
  try {
    wait();
  } catch (const std::exception& error) {
    fmt::print(stderr, "asterism: {}\n", error.what());
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->changed.notify_all();
  if (state_->watchdog.joinable()) state_->watchdog.join();
  current = nullptr;
  if (state_->stalled) {
    static_cast<void>(state_.release());  // StarPU's threads still refer to it, and nothing can stop them
    return;
  }
  const trace::Summary summary = trace::summarise(*state_);
  end_starpu(state_->ranks);
  try {
    trace::write(state_->options.trace, summary);
  } catch (const std::exception& error) {
    fmt::print(stderr, "asterism: trace: {}\n", error.what());
  }
}

void Runtime::wait() {
  State& s = *state_;
  {
    std::unique_lock lock(s.mutex);
    s.wait_until(lock, [&] { return s.in_flight.empty(); });
  }
  if (s.ranks > 1)
    ranks::wait_for_all();
  else
    starpu_task_wait_for_all();  // our count falls in the tasks' callbacks, a moment before StarPU is done with them

  ranks::Failure failure;
  {
    const std::lock_guard lock(s.mutex);
    if (s.failure) failure = {s.failure->task, s.failure->reason, static_cast<int>(s.failure->blame)};
    s.failure.reset();
    s.failed = false;
  }
  if (s.ranks > 1) failure = ranks::agree_on_failure(failure);
  if (!failure.task.empty()) throw TaskFailure(failure.task, failure.reason);
}

Machine Runtime::machine() const { return state_->machine(); }
const Options& Runtime::options() const { return state_->options; }
int Runtime::rank() const { return state_->rank; }
int Runtime::ranks() const { return state_->ranks; }
Traffic Runtime::traffic() const { return state_->traffic(); }

void Runtime::sum_over_ranks(double* values, Index count) const {
  if (state_->ranks > 1) ranks::sum(values, count);
}

std::string Runtime::from_first_rank(std::string text) const {
  if (state_->ranks > 1) ranks::broadcast(text);
  return text;
}

void Runtime::barrier() const {
  if (state_->ranks > 1) ranks::barrier();
}

void Runtime::on_each_worker(WorkerKind kind, const std::function<void()>& body) {
  struct Call {
    const std::function<void()>* body;
    State* state;
  } call{&body, state_.get()};
  starpu_execute_on_each_worker_ex(
      [](void* argument) noexcept {
        const auto* c = static_cast<const Call*>(argument);
        try {
          (*c->body)();
        } catch (const std::exception& error) {
          c->state->fail("worker preparation", error.what(), Blame::task);
        }
      },
      &call, kind == WorkerKind::cpu ? STARPU_CPU : STARPU_CUDA, "prepare");
  wait();
}

void Runtime::State::fail(const std::string& task, const std::string& reason, Blame blame) {
  const std::lock_guard lock(mutex);
  if (!failure) failure = Failure{task, reason, blame};
  failed = true;
}

void Runtime::State::task_ended(detail::TaskRecord& record) {
  const std::lock_guard lock(mutex);
  if (starpu_profiling_task_info* info = record.task->profiling_info) {
    const double seconds = starpu_timing_timespec_delay_us(&info->start_time, &info->end_time) * 1e-6;
    for (TaskTimes::Sum* sum : {&times.by_codelet[record.core->name()], &times.by_worker[info->workerid]}) {
      ++sum->count;
      sum->seconds += seconds;
    }
  }
  if (record.started) --executing;
  ++progress;
  in_flight.erase(record.self);
  changed.notify_all();
}

}  // namespace asterism
