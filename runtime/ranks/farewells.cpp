// Ranks that cannot go on: which of them tells why, and how all end.

#include <fmt/format.h>

#include <thread>

#include "../run/ending.hpp"
#include "../run/state.hpp"

namespace asterism {
namespace {

constexpr std::chrono::seconds no_answer(10);  // after so long a rank that cannot go on acts by itself

}  // namespace

void Runtime::State::carry_farewells() {
  const auto now = std::chrono::steady_clock::now();
  if (farewell && !said) {
    ranks::say_farewell(*farewell);
    said = now;
  }
  ranks::answer_farewells();
  if (!said || answer) return;
  answer = ranks::answer_to_farewell();
  if (!answer && now - *said > no_answer) answer = ranks::Answer::tell;
  if (!answer) return;
  changed.notify_all();
  if (stalled && meeting > 0) follow(*answer, *farewell, static_cast<int>(Blame::machine));
}

void Runtime::State::leave(const std::string& text, int status) {
  std::unique_lock lock(mutex);
  if (!farewell) farewell = text;
  changed.wait(lock, [&] { return answer.has_value(); });
  lock.unlock();
  follow(*answer, text, status);
}

void Runtime::State::follow(ranks::Answer decided, const std::string& text, int status) const {
  using ranks::Answer;
  if (decided == Answer::together && !stalled) return;
  if (decided == Answer::tell || (decided == Answer::together && rank == 0))
    fmt::print(stderr, "asterism (rank {}): {}\n", rank, text);
  else
    std::this_thread::sleep_for(no_answer);  // the one that tells ends this one, too
  end_all_ranks(status);
}

}  // namespace asterism
