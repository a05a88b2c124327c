#include "rest.hpp"

#include <starpu.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace asterism {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds patience(1000), longest_nap(20'000);

thread_local bool has_worked = true;  // since it was looked at
thread_local Clock::time_point idle_since;

/// What StarPU calls in the thread of a worker whenever that has found no task.
unsigned rest(void* /*argument*/) {
  // A GPU's worker looks for the end of its kernels, too, and for what comes from other GPUs: it may not sleep.
  thread_local const bool may_sleep = starpu_worker_get_type(starpu_worker_get_id()) == STARPU_CPU_WORKER;
  const Clock::time_point now = Clock::now();
  if (std::exchange(has_worked, false)) idle_since = now;
  const Clock::duration idle = now - idle_since;
  if (may_sleep && idle > patience)
    std::this_thread::sleep_for(std::min<Clock::duration>(idle / 20, longest_nap));
  else
    std::this_thread::yield();
  return 1;  // StarPU may block the worker, which it does in other builds of it only
}

}  // namespace

Rest::Rest() : hook_(starpu_idle_hook_register(rest, nullptr)) {}

Rest::~Rest() {
  if (hook_ >= 0) starpu_idle_hook_deregister(hook_);
}

void Rest::task_ended() { has_worked = true; }

}  // namespace asterism
