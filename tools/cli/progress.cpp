#include "progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

namespace asterism::tools {
namespace {

constexpr const char* erase_line = "\r\x1b[K";

std::size_t terminal_columns() {
  struct winsize size {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(Verbosity verbosity)
    : shows_(verbosity == Verbosity::normal && ::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_) std::fputs(erase_line, stderr);
}

std::unique_lock<std::mutex> Progress::turn() {
  if (!shows_) return {};
  std::unique_lock lock(mutex_, std::try_to_lock);  // another thread is drawing: no need to wait for it
  const auto now = Clock::now();
  if (!lock || now < next_) return {};
  next_ = now + std::chrono::milliseconds(100);
  return lock;
}

void Progress::draw(std::string line) {
  drawn_ = true;
  // A line that wraps could not be erased.
  line.resize(std::min(line.size(), terminal_columns() - 1));
  std::fputs((erase_line + line).c_str(), stderr);
  std::fflush(stderr);
}

void Progress::update(double fraction, const std::string& what) {
  const auto mine = turn();
  if (!mine) return;
  fraction = std::clamp(fraction, 0.0, 1.0);
  const double elapsed = seconds();
  constexpr int width = 24;
  const auto full = static_cast<int>(fraction * width);
  std::string line =
      fmt::format("[{:=<{}}{:{}}] {:3.0f} %  {:.0f} s", "", full, "", width - full, 100 * fraction, elapsed);
  // An estimate from the first few per cent would be a guess.
  if (fraction > 0.05) line += fmt::format(", {:.0f} s left", elapsed * (1 - fraction) / fraction);
  draw(line + "  " + what);
}

void Progress::update(const std::string& what) {
  const auto mine = turn();
  if (!mine) return;
  const std::lock_guard lock(note_mutex_);
  draw(fmt::format("{:.0f} s  {}{}{}", seconds(), what, note_.empty() ? "" : ": ", note_));
}

void Progress::note(const std::string& state) {
  const std::lock_guard lock(note_mutex_);
  note_ = state;
}

WhileWorking::WhileWorking(Progress& progress, std::string what) {
  if (!progress.shows()) return;
  ticker_ = std::jthread([&progress, what = std::move(what), this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; })) {
      if (stop.stop_requested()) return;
      progress.update(what);
    }
  });
}

Observer told_to(Progress& progress, const std::string& unit) {
  if (!progress.shows()) return {};
  return [&progress, unit](const IterationState& state) {
    progress.note(fmt::format("{} {}, residual {:.2e}", unit, state.iteration, state.residual));
  };
}

}  // namespace asterism::tools
