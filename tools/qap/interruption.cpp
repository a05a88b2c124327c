#include "interruption.hpp"

#include <array>
#include <atomic>
#include <csignal>

namespace asterism::tools {
namespace {

constexpr std::array signals{SIGINT, SIGTERM};
std::atomic<bool> is_wanted{false};
static_assert(std::atomic<bool>::is_always_lock_free);
std::array<struct sigaction, signals.size()> before;

void restore() {
  for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before[i], nullptr);
}

extern "C" void remember_wish(int) {
  is_wanted = true;
  restore();
}

}  // namespace

Interruption::Interruption() {
  is_wanted = false;
  struct sigaction action {};
  action.sa_handler = remember_wish;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN)
      ::sigaction(signals[i], &action, nullptr);  // a run under nohup stays so
  }
}

Interruption::~Interruption() { restore(); }

bool Interruption::wanted() { return is_wanted; }

}  // namespace asterism::tools
