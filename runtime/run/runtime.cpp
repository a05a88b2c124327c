#include "../runtime.hpp"

#include <fmt/format.h>

#include <exception>

#include "../hardware/cores.hpp"
#include "../kept/trace.hpp"
#include "ending.hpp"
#include "environment.hpp"
#include "start.hpp"
#include "state.hpp"

namespace asterism {
namespace {

std::atomic<Runtime::State*> current = nullptr;
std::atomic<bool> trace_is_lost = false;

bool met_before_start = false;

/// Lets no rank start where one cannot. Collective.
std::optional<Failure> meet_before_start(const std::optional<Failure>& mine,
                                         const std::optional<int>& communicator, int& rank, int& ranks) {
  met_before_start = true;
  const std::optional<Failure> refusal = ranks::connect(communicator, rank, ranks);
  return ranks::agree_on_failure(mine ? mine : refusal);
}

/// How long a thread that waits looks before it sleeps. To wake takes it tens of microseconds: as long as short tasks on
/// cores, and much of what a solve takes in a GPU's memory, where workers leave it a core of its own.
std::chrono::microseconds looking_time(std::size_t cores) {
  const bool has_own_core = starpu_cuda_worker_get_count() > 0 && starpu_worker_get_count() < cores;
  return std::chrono::microseconds(has_own_core ? 2000 : 40);
}

/// Short tasks have ended before this thread could fall asleep: where it has a core that they do not need, it looks for a
/// moment. Whoever else needs that core gets it meanwhile.
/// @param tasks tasks() are still to end
template <class Tasks>
void look_for_a_while(Tasks tasks) {
  static const auto cores = cores_found().allowed.size();
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto end = now() + looking_time(cores);
  for (std::size_t left = tasks(); left > 0 && left < cores && now() < end; left = tasks())
    std::this_thread::yield();
}

/// In the destructor of a Runtime that an exception ends: the other ranks would wait for this one for ever.
/// @param note of the exception; nullptr: it is none of ours
void leave_by_exception(Runtime::State& state, const std::shared_ptr<Error::Note>& note) {
  if (note && note->thrown_by == ThrownBy::all_ranks) return;
  state.leave(
      note
          ? note->message
          : "this rank left its Runtime by an exception that is not an asterism::Error; use asterism::run to be "
            "told what it says",
      static_cast<int>(note ? note->blame : Blame::task));
  if (note) note->thrown_by = ThrownBy::all_ranks;
}

}  // namespace

Runtime::State* current_runtime() { return current; }

bool trace_failed() { return trace_is_lost; }

Runtime::Runtime(const Options& options) : state_(std::make_unique<State>()) {
  if (current != nullptr)
    throw Error(current.load()->stalled
                    ? "a Runtime has stalled and cannot be ended: end the process"
                    : "a Runtime exists already: StarPU can run once at a time in a process");
  State& s = *state_;
  s.options = options;
  trace_is_lost = false;
  if (ranks::may_have_others() || options.communicator)
    if (const std::optional<Failure> refusal = meet_before_start({}, options.communicator, s.rank, s.ranks)) {
      ranks::disconnect();
      throw error_on_all_ranks(*refusal);
    }
  std::optional<Failure> failure;
  bool running = false;
  try {
    start_starpu(s, running);
  } catch (const Error& error) {
    failure = {"start", error.what(), error.blame()};
  } catch (const std::exception& error) {
    failure = {"start", error.what(), Blame::machine};
  }
  if (s.ranks > 1)
    failure = ranks::agree_on_failure(failure);  // nobody waits for a rank that could not start
  if (failure) {
    if (running) end_starpu(s);
    ranks::disconnect();
    throw error_on_all_ranks(*failure);
  }
  current = &s;
  if (s.ranks > 1) {
    ranks::connect_gpus();
    ranks::start_pulses();
  }
  if (options.stall_seconds > 0 || s.ranks > 1) state_->watchdog = std::thread([&s] { s.watch(); });
}

Runtime::~Runtime() {
  State& s = *state_;
  const std::shared_ptr<Error::Note> passing = s.exception_passes() ? Error::newest() : nullptr;
  if (s.unwinds()) leave_by_exception(s, passing);
  try {
    if (!s.stalled) wait();  // whoever waited was thrown the stall already
  } catch (const std::exception& error) {
    const bool mine = s.ranks == 1 || (s.rank == 0 && !s.stalled);
    const bool is_told = passing && passing->message == error.what();  // by whoever catches it
    if (mine && !is_told) fmt::print(stderr, "asterism: {}\n", error.what());
  }
  if (s.stalled && s.ranks > 1)
    s.leave(s.stall, static_cast<int>(Blame::machine));  // the others would wait for ever
  for (const auto tiles = state_->tiles; detail::TileState * tile : tiles) tile->end_with_runtime();
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
#ifdef ASTERISM_WITH_CUDA
  state_->end_cuda_workers();
#endif
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
  ranks::disconnect();
}

void Runtime::wait() {
  State& s = *state_;
  look_for_a_while([&] { return static_cast<std::size_t>(s.tasks.in_flight()); });
  {
    std::unique_lock lock(s.mutex);
    s.wait_until(
        lock, [&] { return s.tasks.in_flight() == 0 && s.awaited == 0 && !s.to_stop; }, 1);
  }
  SubmittedTasks::drop(s.tasks.take_ended());
  {
    const Meeting meeting(s);
    if (s.ranks > 1)
      ranks::wait_for_all();
    else  // our count falls in the tasks' callbacks, a moment before StarPU is done with them
      look_for_a_while([] { return static_cast<std::size_t>(starpu_task_nsubmitted()); }),
          starpu_task_wait_for_all();
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
  state_->wait_until(lock,
                     [&] { return state_->tasks.in_flight() < tasks + state_->tasks.beside_streams(); });
}

Machine Runtime::machine() const { return state_->machine(); }
const Options& Runtime::options() const { return state_->options; }
int Runtime::rank() const { return state_->rank; }
int Runtime::ranks() const { return state_->ranks; }
Traffic Runtime::traffic() const { return state_->traffic(); }

#ifndef ASTERISM_WITH_CUDA
bool Runtime::gpus_see_each_other() const { return false; }
#endif

Error error_on_all_ranks(const Failure& failure) {
  const std::string rank = failure.rank < 0 ? "" : fmt::format("rank {}: ", failure.rank);
  return Error(rank + failure.reason, failure.blame, ThrownBy::all_ranks);
}

TaskFailure task_failure(const Failure& failure, ThrownBy ranks) {
  return TaskFailure(failure.task, failure.reason, ranks,
                     failure.rank < 0 ? "" : fmt::format(" on rank {}", failure.rank));
}

Error agreed(const Error& error) {
  if (!ranks::may_have_others() || met_before_start) return error;
  int rank = 0, ranks = 1;
  const std::optional<Failure> first =
      meet_before_start(Failure{"start", error.what(), error.blame()}, std::nullopt, rank, ranks);
  ranks::disconnect();
  return error_on_all_ranks(*first);
}

void Runtime::State::give_up(const std::string& reason) {
  const std::lock_guard lock(mutex);
  if (stalled) return;
  stall = reason;
  stalled = true;
  changed.notify_all();
}

}  // namespace asterism
