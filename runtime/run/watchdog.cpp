// Whether there is progress, and what is stuck where there is none.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "state.hpp"

namespace asterism {
namespace {

constexpr std::chrono::duration<double> between_looks(0.25), patience_of_exceptions(0.3);

}  // namespace

// StarPU retries for ever when a task's data do not fit where it should run, or when somebody never gives a tile back.
// No task can be cancelled, so all that can be done is to notice and to say what is stuck. A rank that waits for the
// work of another is not stuck: with several ranks the watchdogs tell each other, by pulses, that theirs makes
// progress.
void Runtime::State::watch() {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  const Seconds patience(options.stall_seconds > 0 ? options.stall_seconds
                                                   : std::numeric_limits<double>::infinity());
  const Seconds pause =
      std::min(patience / 20, between_looks);  // others may be less patient, and want to hear from us
  const Seconds blink = ranks > 1 ? std::min(pause, Seconds(0.1)) : pause;  // farewells are not kept waiting
  std::uint64_t seen = 0;
  std::int64_t seen_bytes = 0;
  auto last_change = Clock::now(), last_look = last_change;

  std::unique_lock lock(mutex);
  while (!end.wait_for(lock, blink, [&] { return ending; })) {
    if (ranks > 1) carry_farewells();
    if (ranks > 1) carry_stops();
    if (stalled || Clock::now() - last_look < pause) continue;
    last_look = Clock::now();
    const Traffic t = traffic();
    const std::int64_t bytes = t.to_device + t.from_device + t.to_disk + t.from_disk;
    const bool meets = meeting > 0 && ranks::has_pulses();
    const bool idle = (waiting == 0 && !meets) || tasks.executing() > 0;
    const std::uint64_t progress = tasks.submitted() + tasks.begun() + tasks.ended() + views_ended;
    const bool moved = progress != seen || bytes != seen_bytes;
    seen = progress;
    seen_bytes = bytes;
    bool others_moved = false;
    if (ranks > 1) {
      const bool busy = moved || tasks.executing() > 0 || (waiting == 0 && meeting == 0);
      lock.unlock();
      if (busy) ranks::send_pulse();
      others_moved = ranks::pulse_came();
      lock.lock();
    }
    // All ranks are impatient at the same time: first those that can name a task.
    const Seconds wait = (unwinding > 0 ? std::min(patience, patience_of_exceptions) : patience) +
                         (ranks > 1 && tasks.in_flight() == 0 ? Seconds(1) + 2 * pause : Seconds(0));
    if (idle || moved || others_moved) {
      last_change = Clock::now();
    } else if (Clock::now() - last_change > wait) {
      stall = diagnose();
      stalled = true;
      if (meets) farewell = stall;  // nothing wakes the thread that is in the meeting
      changed.notify_all();
    }
  }
}

std::string Runtime::State::diagnose() {
  const std::uint64_t waiting_tasks = tasks.in_flight();
  std::string text =
      fmt::format("no progress for {:.0f} s{} with {} task{} waiting", options.stall_seconds,
                  ranks > 1 ? " on any rank" : "", waiting_tasks, waiting_tasks == 1 ? "" : "s");
  if (meeting > 0 && waiting_tasks == 0)
    return text +
           ": this rank waits for the others, which do something else; call what is collective on all ranks";
  tasks.look_at_oldest([&](const detail::TaskRecord& oldest) {
    text += fmt::format("; the oldest is {} with tiles", oldest.name());
    for (const auto& [tile, access] : oldest.buffers.all)
      text += fmt::format(" {} x {} ({}{})", tile->shape.rows, tile->shape.cols,
                          human_bytes(static_cast<double>(tile->bytes())),
                          tile->host_views > 0 ? ", held by a HostView of this program" : "");
  });
  for (const Memory& memory : machine().memories)
    text += fmt::format("; {}: {} of {} in use", memory.name, human_bytes(static_cast<double>(memory.used)),
                        human_bytes(static_cast<double>(memory.capacity)));
  text += ". Release the tiles that the task waits for, use smaller tiles, or allow more memory";
  return text + (ranks > 1 ? "; and submit the same tasks on every rank, in the same order." : ".");
}

}  // namespace asterism
