#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "state.hpp"

namespace asterism {

// StarPU retries for ever when a task's data do not fit where it should run, or when somebody never gives a tile back.
// No task can be cancelled, so all that can be done is to notice and to say what is stuck. A rank that waits for the
// work of another is not stuck: with several ranks the watchdogs tell each other, by pulses, that theirs makes
// progress.
void Runtime::State::watch() {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  const Seconds patience(options.stall_seconds > 0 ? options.stall_seconds : std::numeric_limits<double>::infinity());
  const Seconds pause = std::min(patience / 20, Seconds(1));  // others may be less patient, and want to hear from us
  std::uint64_t seen = 0;
  std::int64_t seen_bytes = 0;
  auto last_change = Clock::now();

  std::unique_lock lock(mutex);
  while (!end.wait_for(lock, pause, [&] { return ending; })) {
    const Traffic t = traffic();
    const std::int64_t bytes = t.to_device + t.from_device + t.to_disk + t.from_disk;
    const bool idle = waiting == 0 || executing > 0;
    const bool moved = progress != seen || bytes != seen_bytes;
    seen = progress;
    seen_bytes = bytes;
    bool others_moved = false;
    if (ranks > 1) {
      const bool busy = moved || executing > 0 || (waiting == 0 && meeting == 0);
      lock.unlock();
      if (busy) ranks::send_pulse();
      others_moved = ranks::pulse_came();
      lock.lock();
    }
    if (idle || moved || others_moved) {
      last_change = Clock::now();
    } else if (Clock::now() - last_change > patience) {
      stall = diagnose();
      stalled = true;
      changed.notify_all();
      return;
    }
  }
}

std::string Runtime::State::diagnose() const {
  std::string text = fmt::format("no progress for {:.0f} s{} with {} task{} waiting", options.stall_seconds,
                                 ranks > 1 ? " on any rank" : "", in_flight.size(), in_flight.size() == 1 ? "" : "s");
  if (!in_flight.empty()) {
    const detail::TaskRecord& oldest = in_flight.front();
    text += fmt::format("; the oldest is {} with tiles", oldest.name());
    for (const auto& tile : oldest.tiles)
      text += fmt::format(" {} x {} ({}{})", tile->shape.rows, tile->shape.cols,
                          human_bytes(static_cast<double>(tile->bytes())),
                          tile->host_views > 0 ? ", held by a HostView of this program" : "");
  }
  for (const Memory& memory : machine().memories)
    text += fmt::format("; {}: {} of {} in use", memory.name, human_bytes(static_cast<double>(memory.used)),
                        human_bytes(static_cast<double>(memory.capacity)));
  return text + ". Release the tiles that the task waits for, use smaller tiles, or allow more memory.";
}

}  // namespace asterism
