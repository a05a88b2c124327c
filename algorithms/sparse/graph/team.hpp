/// \file
/// Loops over rows by several threads, for what is done once before a solver begins.
#pragma once

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "../../../runtime/ports.hpp"

namespace asterism::sparse {

/// As many threads as there are cores where none are asked for (0).
inline int team_size(int threads) {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Calls work(thread) in so many threads, one of them the caller's.
/// @throw what the first of them threw that did, when all have ended
template <class Work>
void in_team(int threads, const Work& work) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(threads));
  const auto guarded = [&](int thread) noexcept {
    try {
      work(thread);
    } catch (...) {
      failures[static_cast<std::size_t>(thread)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(guarded, thread);
    guarded(0);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

/// How many threads pay for so many rows, of so many there are (0: of all cores).
inline int threads_for(Index rows, int threads) {
  constexpr Index least_rows = 1024;  // a thread's: to start it takes as long as some hundreds of rows
  return static_cast<int>(std::clamp<Index>(rows / least_rows, 1, team_size(threads)));
}

/// Calls body(first, end) for parts of [0, rows) of about equal size, by up to so many threads (0: all cores).
template <class Body>
void in_parts(Index rows, int threads, const Body& body) {
  const int parts = threads_for(rows, threads);
  in_team(parts, [&](int part) { body(rows * part / parts, rows * (part + 1) / parts); });
}

}  // namespace asterism::sparse
