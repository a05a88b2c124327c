// Failures and cancellations: how the tasks of all ranks are kept from beginning.

#include "../run/state.hpp"

namespace asterism {

const Failure& Runtime::State::fail(const std::string& task, const std::string& reason) {
  const Failure mine{task, reason, Blame::task};
  std::unique_lock lock(mutex);
  if (const Failure* const known = failure; known != nullptr && !known->cancelled) return *known;
  if (ranks > 1 && ranks::has_pulses()) {
    if (!to_stop || to_stop->cancelled) to_stop = mine;
    changed.wait(lock, [&] { return stalled || !to_stop; });
  }
  if (const Failure* const known = failure; known == nullptr || known->cancelled) stop(mine);
  return *failure;
}

void Runtime::State::cancel() {
  Failure why{"that was to write a tile", "it was cancelled before it began", Blame::task};
  why.cancelled = true;
  const std::lock_guard lock(mutex);
  if (ranks == 1 || !ranks::has_pulses())
    stop(why);
  else if (failure == nullptr && !to_stop)
    to_stop = why;
}

void Runtime::State::stop(const Failure& why) {
  if (const Failure* const known = failure; known == nullptr || (known->cancelled && !why.cancelled))
    failure = &failures.emplace_back(why);
}

void Runtime::State::wait_while_held() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return stalled || holds == 0; });
}

void Runtime::State::carry_stops() {
  if (to_stop && !stop_said) {
    ++holds;
    ranks::say_hold();
    stop_said = true;
  }
  while (ranks::hold_came()) ++holds;
  bool known = false;
  while (const std::optional<Failure> why = ranks::stop_came()) {
    stop(*why);
    --holds;
    known = true;
  }
  if (stop_said && ranks::all_hold()) {
    ranks::say_stop(*to_stop);
    stop(*to_stop);
    --holds;
    to_stop.reset();
    stop_said = false;
    known = true;
  }
  if (known) changed.notify_all();
}

}  // namespace asterism
