#include "runtime.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>

#include "collectives.hpp"
#include "detail/ending.hpp"
#include "detail/environment.hpp"
#include "detail/state.hpp"
#include "detail/trace.hpp"
#include "kept/kept_files.hpp"
#include "kept/spill_disk.hpp"

namespace asterism {
namespace {

std::atomic<Runtime::State*> current = nullptr;
std::atomic<bool> trace_is_lost = false;

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
    if (const char* const value = std::getenv(variable); asked < 0 && value != nullptr) asked = std::atoi(value);
  const int cores = cores_allowed();
  if (asked <= 2 * cores) return options.cpus;
  if (launched_rank() == 0)
    fmt::print(stderr, "asterism: {} CPU workers are asked for: as many start as there are cores, {}\n", asked, cores);
  return cores;
}

/// GPUs that StarPU may find.
int gpus_within_reach(const Options& options) {
  return options.gpus >= 0 ? options.gpus : first_number({"STARPU_NCUDA"}, gpus_installed());
}

/// Hands the options to StarPU: those that were set beat its environment variables, the others leave them alone.
starpu_conf configuration(Options& options, Environment& environment) {
  require_sound_environment();
  if (options.cpus == 0 && options.gpus == 0)
    throw Error("no worker: 0 CPUs and 0 GPUs were asked for; ask for at least one", Blame::machine);
  if (options.window == 0) throw Error("window is 0 tasks: at least 1 must be allowed in flight");
  if (options.scheduler.empty()) {
    const char* const wanted = std::getenv("STARPU_SCHED");
    options.scheduler = wanted != nullptr ? wanted : "dmdas";
  }
  require_known_scheduler(options.scheduler);
  environment.set("STARPU_SCHED", options.scheduler);
  if (const int cpus = cpus_within_reason(options); cpus >= 0) environment.set("STARPU_NCPU", std::to_string(cpus));
  if (options.gpus >= 0) environment.set("STARPU_NCUDA", std::to_string(options.gpus));
  // StarPU counts in MiB; rounding up keeps a tiny limit from becoming "no limit".
  const auto mebibytes = [](std::size_t bytes) { return std::to_string((bytes + mebibyte - 1) / mebibyte); };
  if (options.cpu_memory > 0)
    environment.set("STARPU_LIMIT_CPU_MEM", mebibytes(options.cpu_memory));
  else  // StarPU's own limit is nine tenths too, but of the whole machine: it does not know of containers
    environment.suggest("STARPU_LIMIT_CPU_MEM", mebibytes(physical_memory() / 10 * 9));
  if (options.gpu_memory > 0) environment.set("STARPU_LIMIT_CUDA_MEM", mebibytes(options.gpu_memory));
  // StarPU takes memory for small tiles in pieces of 32 MiB, of which none is given back while a tile lives in it:
  // where memory is so scarce, there would soon be no room for anything else. It does so on GPUs, and in main memory
  // where there are GPUs, or were any in an earlier Runtime of this process (worker_mask is never cleared).
  const auto scarce = [](std::size_t bytes) { return bytes > 0 && bytes < 1024 * mebibyte; };
  if (scarce(options.gpu_memory) || scarce(options.cpu_memory)) environment.suggest("STARPU_SUBALLOCATOR", "0");
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
  environment.suggest("STARPU_SILENT", "1");  // its chatter on standard error would drown the program's own words
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.catch_signals = 0;  // the program's handlers are the program's business
  return conf;
}

void end_starpu(Runtime::State& state) {
  state.rest.reset();
  if (state.ranks > 1)
    ranks::stop();
  else
    starpu_shutdown();
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

bool met_before_start = false;

/// Lets no rank start where one cannot. Collective.
std::optional<Failure> meet_before_start(const std::optional<Failure>& mine) {
  met_before_start = true;
  return ranks::agree_on_failure(mine);
}

/// The first line of `statement` that `first` does not have, and what it has there.
std::string difference(const std::string& statement, const std::string& first) {
  std::istringstream mine(statement), theirs(first);
  std::string line, other;
  do {
    line.clear();
    other.clear();
    std::getline(mine, line);
    std::getline(theirs, other);
  } while (line == other);
  const auto quoted = [](const std::string& text) { return text.empty() ? "nothing" : "\"" + text + "\""; };
  return quoted(line) + " for " + quoted(other);
}

/// In the destructor of a Runtime that an exception ends: the other ranks would wait for this one for ever.
void leave_by_exception(Runtime::State& state) {
  const std::shared_ptr<Error::Note> note = Error::newest();
  if (note && note->thrown_by == ThrownBy::all_ranks) return;
  state.leave(note ? note->message
                   : "this rank left its Runtime by an exception that is not an asterism::Error; use asterism::run to be "
                     "told what it says",
              static_cast<int>(note ? note->blame : Blame::task));
  if (note) note->thrown_by = ThrownBy::all_ranks;
}

/// Checks the options, starts StarPU with them, and checks that it is what was asked for.
void start(Runtime::State& state, bool& running) {
  Options& options = state.options;
  if (!options.spill.empty()) require_folder(options.spill);
  if (!options.trace.empty()) trace::require_room(options.trace);
  Environment environment;
  starpu_conf conf = configuration(options, environment);
  state.models.emplace(environment);
  if (const int status = state.ranks > 1 ? ranks::start(conf, environment) : starpu_init(&conf); status != 0)
    throw Error(fmt::format("StarPU found no worker to run on ({}): check --cpus, --gpus and `asterism info`",
                            std::strerror(-status)),
                Blame::machine);
  running = true;
  require_gpus(options.gpus);
  state.rest.emplace();
  if (!options.spill.empty()) register_spill_disk(state);
  state.of_workers = std::vector<TasksOfWorker>(starpu_worker_get_count() + 1);
  state.workplaces = {{starpu_cpu_worker_get_count(), Runtime::State::capacity(MemoryKind::main)},
                      {starpu_cuda_worker_get_count(), Runtime::State::capacity(MemoryKind::gpu)}};
  starpu_profiling_status_set(options.trace.empty() ? STARPU_PROFILING_DISABLE : STARPU_PROFILING_ENABLE);
}

}  // namespace

Runtime::State* current_runtime() { return current; }

bool trace_failed() { return trace_is_lost; }

Runtime::Runtime(const Options& options) : state_(std::make_unique<State>()) {
  if (current != nullptr)
    throw Error(current.load()->stalled ? "a Runtime has stalled and cannot be ended: end the process"
                                        : "a Runtime exists already: StarPU can run once at a time in a process");
  State& s = *state_;
  s.options = options;
  trace_is_lost = false;
  if (ranks::launched_ranks() > 1) {
    ranks::connect(s.rank, s.ranks);
    if (const std::optional<Failure> refusal = meet_before_start({})) throw error_on_all_ranks(*refusal);
  }
  std::optional<Failure> failure;
  bool running = false;
  try {
    start(s, running);
  } catch (const Error& error) {
    failure = {"start", error.what(), error.blame()};
  } catch (const std::exception& error) {
    failure = {"start", error.what(), Blame::machine};
  }
  if (s.ranks > 1) failure = ranks::agree_on_failure(failure);  // nobody waits for a rank that could not start
  if (failure) {
    if (running) end_starpu(s);
    throw error_on_all_ranks(*failure);
  }
  current = &s;
  if (s.ranks > 1) ranks::start_pulses();
  if (options.stall_seconds > 0 || s.ranks > 1) state_->watchdog = std::thread([&s] { s.watch(); });
}

Runtime::~Runtime() {
  State& s = *state_;
  if (s.unwinds()) leave_by_exception(s);
  try {
    if (!s.stalled) wait();  // whoever waited was thrown the stall already
  } catch (const std::exception& error) {
    if (s.ranks == 1 || (s.rank == 0 && !s.stalled)) fmt::print(stderr, "asterism: {}\n", error.what());
  }
  if (s.stalled && s.ranks > 1) s.leave(s.stall, static_cast<int>(Blame::machine));  // the others would wait for ever
  for (const auto tiles = state_->tiles; detail::TileState* tile : tiles) tile->end_with_runtime();
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->end.notify_all();
  if (state_->watchdog.joinable()) state_->watchdog.join();
  if (state_->stalled) {
    static_cast<void>(state_.release());  // StarPU's threads still refer to it, and nothing can stop them
    return;
  }
  current = nullptr;
  if (state_->ranks > 1) ranks::end_pulses();
  const trace::Summary summary = trace::summarise(*state_);
  end_starpu(*state_);
  try {
    trace::write(state_->options.trace, summary);
  } catch (const std::exception& error) {
    fmt::print(stderr, "asterism: trace: {}\n", error.what());
    trace_is_lost = true;
  }
}

void Runtime::wait() {
  State& s = *state_;
  {
    std::unique_lock lock(s.mutex);
    s.wait_until(lock, [&] { return s.in_flight() == 0 && s.looks == 0 && !s.to_stop; }, 1);
  }
  State::drop_tasks(s.take_ended_tasks());
  {
    const Meeting meeting(s);
    if (s.ranks > 1)
      ranks::wait_for_all();
    else
      starpu_task_wait_for_all();  // our count falls in the tasks' callbacks, a moment before StarPU is done with them
  }
  if (s.holds > 0) {  // of a rank that has passed here: what it wants is on its way
    std::unique_lock lock(s.mutex);
    s.wait_until(lock, [&] { return s.holds == 0; });
  }
  s.end_left_behind();

  const Failure* failure = s.failure.exchange(nullptr);
  if (s.ranks > 1) failure = s.agree_on_failure(failure);
  ++s.period;
  if (failure != nullptr && !failure->cancelled) throw task_failure(*failure, ThrownBy::all_ranks);
}

const Failure* Runtime::State::agree_on_failure(const Failure* known) {
  const Meeting with_others(*this);
  const bool mine = known != nullptr && !known->cancelled && known->rank < 0;
  const std::optional<Failure> agreed = ranks::agree_on_failure(mine ? std::optional(*known) : std::nullopt);
  if (!agreed) return known;
  const std::lock_guard lock(mutex);
  known = &failures.emplace_back(*agreed);
  for (detail::TileState* tile : tiles)
    if (tile->written_in == period) tile->lost = known;
  return known;
}

void Runtime::State::end_left_behind() {
  std::vector<std::shared_ptr<detail::TileState>> left;
  {
    const std::lock_guard lock(mutex);
    left.swap(left_behind);
  }
  for (const auto& tile : left) tile->end();
}

bool Runtime::task_has_failed() const {
  const Failure* const failure = state_->failure;
  return failure != nullptr && !failure->cancelled;
}

void Runtime::cancel() { state_->cancel(); }

bool Runtime::cancelled() const {
  const Failure* const failure = state_->failure;
  return failure != nullptr && failure->cancelled;
}

void Runtime::wait_for_room(std::size_t tasks) {
  std::unique_lock lock(state_->mutex);
  state_->wait_until(lock, [&] { return state_->in_flight() < tasks + state_->beside_streams; });
}

Machine Runtime::machine() const { return state_->machine(); }
const Options& Runtime::options() const { return state_->options; }
int Runtime::rank() const { return state_->rank; }
int Runtime::ranks() const { return state_->ranks; }
Traffic Runtime::traffic() const { return state_->traffic(); }

void Runtime::barrier() const {
  const Meeting meeting(*state_);
  if (state_->ranks > 1) ranks::barrier();
}

void Runtime::require_alike(const std::string& statement) const {
  if (ranks() == 1) return;
  const std::string first = broadcast(*this, statement);
  std::optional<Failure> failure;
  if (statement != first)
    failure = {"", "was given other things than rank 0: " + difference(statement, first) + "; start all ranks alike",
               Blame::input};
  const Meeting meeting(*state_);
  failure = ranks::agree_on_failure(failure);  // never the same on all ranks: rank 0 has none
  if (failure)
    throw Error(fmt::format("rank {} {}", failure->rank, failure->reason), failure->blame, ThrownBy::all_ranks);
}

namespace {

/// A body that workers run, and what it throws there.
class Call {
 public:
  explicit Call(const std::function<void()>& body) : body_(body) {}

  static void run(void* argument) noexcept {
    auto& call = *static_cast<Call*>(argument);
    try {
      call.body_();
    } catch (const std::exception& error) {
      call.fail(error.what());
    } catch (...) {
      call.fail(no_standard_exception);
    }
  }
  void rethrow() const {
    if (failure_) throw TaskFailure("on a worker", *failure_);
  }

 private:
  void fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    failure_ = reason;
  }

  const std::function<void()>& body_;
  std::mutex mutex_;
  std::optional<std::string> failure_;
};

}  // namespace

void Runtime::on_each_worker(WorkerKind kind, const std::function<void()>& body) {
  Call call(body);
  starpu_execute_on_each_worker_ex(Call::run, &call, kind == WorkerKind::cpu ? STARPU_CPU : STARPU_CUDA,
                                   "on_each_worker");
  call.rethrow();
}

void Runtime::on_worker(WorkerKind kind, int number, const std::function<void()>& body) {
  const bool cpu = kind == WorkerKind::cpu;
  const int worker =
      number < 0 ? -1 : starpu_worker_get_by_type(cpu ? STARPU_CPU_WORKER : STARPU_CUDA_WORKER, number);
  if (worker < 0)
    throw Error(fmt::format("there is no {} worker {}", cpu ? "CPU" : "CUDA", number), Blame::machine);
  Call call(body);
  auto id = static_cast<unsigned>(worker);
  starpu_execute_on_specific_workers(Call::run, &call, 1, &id, "on_worker");
  call.rethrow();
}

Error error_on_all_ranks(const Failure& failure) {
  const std::string rank = failure.rank < 0 ? "" : fmt::format("rank {}: ", failure.rank);
  return Error(rank + failure.reason, failure.blame, ThrownBy::all_ranks);
}

TaskFailure task_failure(const Failure& failure, ThrownBy ranks) {
  return TaskFailure(failure.task, failure.reason, ranks,
                     failure.rank < 0 ? "" : fmt::format(" on rank {}", failure.rank));
}

Error agreed(const Error& error) {
  if (ranks::launched_ranks() == 1 || met_before_start) return error;
  int rank = 0, ranks = 1;
  ranks::connect(rank, ranks);
  return error_on_all_ranks(*meet_before_start(Failure{"start", error.what(), error.blame()}));
}

void Runtime::State::give_up(const std::string& reason) {
  const std::lock_guard lock(mutex);
  if (stalled) return;
  stall = reason;
  stalled = true;
  changed.notify_all();
}

}  // namespace asterism
