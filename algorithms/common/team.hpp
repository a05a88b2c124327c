/// \file
/// Loops by several threads on the host, for what is done once: set-ups, files, models. What lasts longer is tasks.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <vector>

#include "../../runtime/hardware/machine.hpp"
#include "../../runtime/ports.hpp"

namespace asterism {

/// Elements that are only copied or looked at, and rows of a matrix that are looked at, for which another thread pays.
inline constexpr Index least_copied = Index{1} << 16, least_rows_seen = Index{1} << 14;

/// As many threads as there are cores to use where none are asked for (0).
inline int team_size(int threads) { return threads > 0 ? threads : usable_cores(); }

/// What a thread of a team does; it throws nothing. @param thread its number, from 0
using TeamWork = std::function<void(int thread)>;

/// In so many threads, one of them the caller's; the others are the same ones as before where they have nothing to do.
void work_in_team(int threads, const TeamWork& work);

/// Calls work(thread) in so many threads, one of them the caller's.
/// @throw what the first of them threw that did, when all have ended
template <class Work>
void in_team(int threads, const Work& work) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(threads));
  work_in_team(threads, [&](int thread) noexcept {
    try {
      work(thread);
    } catch (...) {
      failures[static_cast<std::size_t>(thread)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

/// Calls work(step, thread) for each of the steps in so many threads; all of them end a step before one begins the
/// next.
/// @throw as in_team(); no step follows one that has failed
template <class Work>
void in_steps(int threads, Index steps, const Work& work) {
  std::barrier<> barrier(threads);
  std::atomic<bool> failed = false;
  in_team(threads, [&](int thread) {
    for (Index step = 0; step < steps; ++step) {
      if (!failed) try {
          work(step, thread);
        } catch (...) {
          failed = true;
          barrier.arrive_and_drop();
          throw;
        }
      if (threads > 1) barrier.arrive_and_wait();
    }
  });
}

/// How many threads pay for so many elements, of so many there are (0: of all cores).
/// @param least elements for which another thread pays: to start it takes as long as some hundreds of rows of a matrix
inline int threads_for(Index elements, int threads, Index least = 1024) {
  return static_cast<int>(std::clamp<Index>(elements / least, 1, team_size(threads)));
}

/// Calls body(first, end) for parts of [0, elements) of about equal size, by up to so many threads (0: all cores).
/// @throw the failure of the lowest part that failed
template <class Body>
void in_parts(Index elements, int threads, const Body& body, Index least = 1024) {
  const int parts = threads_for(elements, threads, least);
  in_team(parts, [&](int part) { body(elements * part / parts, elements * (part + 1) / parts); });
}

/// Calls body(k) for all k < count, which last unequally long, by up to so many threads (0: all cores).
/// @throw as in_team(); others that wait for their turn are left out then
template <class Body>
void one_by_one(std::size_t count, int threads, const Body& body) {
  std::atomic<std::size_t> next = 0;
  const auto most = static_cast<int>(std::clamp<std::size_t>(count, 1, 1024));
  in_team(std::min(team_size(threads), most), [&](int) {
    try {
      for (std::size_t k = next++; k < count; k = next++) body(k);
    } catch (...) {
      next = count;
      throw;
    }
  });
}

}  // namespace asterism
