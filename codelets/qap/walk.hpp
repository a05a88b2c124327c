/// \file
/// Tabu walks: what is kept of one between tasks, and its rules.
#pragma once

#include <cstdint>

#include "../../runtime/ports.hpp"

namespace asterism::qap {

/// What a tabu list forbids.
enum class TabuRule : std::int32_t {
  pair,        ///< to swap two positions again (the multistart search's)
  assignment,  ///< to bring both facilities back to positions that they had (Taillard's robust tabu search)
};

/// For how many iterations a move stays tabu: a random number in this range.
struct TenureRange {
  std::int64_t least = 0, most = 0;
};

/// A past move, on the list until iteration `until_r` (and `until_s`: of the rule of assignments).
struct TabuEntry {
  std::int32_t r, s;              ///< the positions that were swapped, r < s
  std::int32_t p_r, p_s;          ///< the facilities there before
  std::int64_t until_r, until_s;  ///< the first iterations at which they are allowed again
};

/// What comes first in a walk.
struct WalkHead {
  std::int64_t cost, best_cost;
  std::int64_t iterations;      ///< made so far
  std::int64_t best_iteration;  ///< how many had been made when the best was found
  std::int64_t least_tenure, most_tenure;
  std::uint64_t stream;  ///< of random numbers
  std::int64_t planned;  ///< iterations that the next task makes
  std::int64_t made;     ///< those that the last one has made
  double temperature;    ///< of tempering, in costs
  TabuRule rule;         ///< of its list
};

/// A walk: a row of a tile of bytes. The list has the last most_tenure moves: that of iteration i is entry i modulo
/// their number.
class WalkView {
 public:
  /// @param capacity entries that there is room for, at least as many as the longest tenure
  ASTERISM_HOST_DEVICE WalkView(unsigned char* row, Index n, Index capacity)
      : row_(row), n_(n), capacity_(capacity) {}

  [[nodiscard]] ASTERISM_HOST_DEVICE WalkHead& head() const { return *reinterpret_cast<WalkHead*>(row_); }
  [[nodiscard]] ASTERISM_HOST_DEVICE TabuEntry* list() const {
    return reinterpret_cast<TabuEntry*>(row_ + sizeof(WalkHead));
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE std::int32_t* permutation() const {
    return reinterpret_cast<std::int32_t*>(list() + capacity_);
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE std::int32_t* best() const { return permutation() + n_; }

  /// Bytes of a row, a multiple of eight.
  static constexpr Index bytes(Index n, Index capacity) {
    return static_cast<Index>(sizeof(WalkHead)) + capacity * static_cast<Index>(sizeof(TabuEntry)) + 8 * n;
  }

 private:
  unsigned char* row_;
  Index n_, capacity_;
};

/// A random number for each counter: splitmix64 (Steele, Lea, Flood 2014).
ASTERISM_HOST_DEVICE inline std::uint64_t random_bits(std::uint64_t stream, std::uint64_t counter) {
  std::uint64_t z = stream + (counter + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// Evenly from 0 up to but not `count`, which is below 2^32.
ASTERISM_HOST_DEVICE inline std::int64_t random_below(std::uint64_t stream, std::uint64_t counter,
                                                      std::int64_t count) {
  return static_cast<std::int64_t>(
      ((random_bits(stream, counter) >> 32) * static_cast<std::uint64_t>(count)) >> 32);
}

/// For how many iterations what iteration `iteration` has moved is forbidden. @param which 0: r, 1: s
ASTERISM_HOST_DEVICE inline std::int64_t tenure(const WalkHead& head, std::int64_t iteration, int which) {
  const std::int64_t choices = head.most_tenure - head.least_tenure + 1;
  if (choices <= 1) return head.least_tenure;
  return head.least_tenure +
         random_below(head.stream, 2 * static_cast<std::uint64_t>(iteration) + which, choices);
}

/// The entry of a move that iteration `iteration` makes.
ASTERISM_HOST_DEVICE inline TabuEntry entry_of(const WalkHead& head, std::int64_t iteration, std::int32_t r,
                                               std::int32_t s, std::int32_t p_r, std::int32_t p_s) {
  return {
      r, s, p_r, p_s, iteration + 1 + tenure(head, iteration, 0), iteration + 1 + tenure(head, iteration, 1)};
}

/// Two positions, r < s.
struct Pair {
  std::int32_t r, s;
};

/// What is forbidden until when, and which entry says so: a table of n x n, by two positions, or by position and
/// facility.
struct Stamp {
  std::int64_t until;
  std::int32_t entry;  ///< twice its place in the list, and one more where it is about s
};

/// The list of a walk at work: its entries, and the table that says which of them still hold.
struct TabuList {
  TabuRule rule;
  Index n;
  TabuEntry* entries;
  Stamp* stamps;  ///< n x n, {} at first

  [[nodiscard]] ASTERISM_HOST_DEVICE Stamp& stamp(Index position, Index other) const {
    return stamps[position * n + other];
  }
  /// Adds the move of an iteration.
  ASTERISM_HOST_DEVICE void add(const TabuEntry& entry, std::int32_t place) const {
    entries[place] = entry;
    if (rule == TabuRule::pair) {
      stamp(entry.r, entry.s) = {entry.until_r, 2 * place};
    } else {
      stamp(entry.r, entry.p_r) = {entry.until_r, 2 * place};
      stamp(entry.s, entry.p_s) = {entry.until_s, 2 * place + 1};
    }
  }
  /// The move that an entry forbids at iteration `now`, once for each move; r is -1 where there is none.
  /// @param about 0: of the entry's r, 1: of its s @param p,inverse the permutation as it is
  ASTERISM_HOST_DEVICE Pair forbidden(std::int32_t place, int about, std::int64_t now, const std::int32_t* p,
                                      const std::int32_t* inverse) const {
    constexpr Pair none{-1, -1};
    const TabuEntry& e = entries[place];
    if (rule == TabuRule::pair) {
      const Stamp& its = stamp(e.r, e.s);
      return about == 0 && its.entry == 2 * place && its.until > now ? Pair{e.r, e.s} : none;
    }
    const std::int32_t position = about == 0 ? e.r : e.s, facility = about == 0 ? e.p_r : e.p_s;
    const Stamp& its = stamp(position, facility);
    if (its.entry != 2 * place + about || its.until <= now) return none;
    const std::int32_t other = inverse[facility];
    if (position >= other || stamp(other, p[position]).until <= now) return none;
    return {position, other};
  }
};

}  // namespace asterism::qap
