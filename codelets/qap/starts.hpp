/// \file
/// Permutations that walks start from.
#pragma once

#include <cstdint>
#include <utility>

#include "walk.hpp"

namespace asterism::qap {

/// Random numbers one after the other.
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t stream, std::uint64_t drawn = 0) : stream_(stream), drawn_(drawn) {}
  /// Evenly from 0 up to but not `count`.
  std::int64_t below(std::int64_t count) { return random_below(stream_, drawn_++, count); }
  std::uint64_t bits() { return random_bits(stream_, drawn_++); }
  [[nodiscard]] std::uint64_t drawn() const { return drawn_; }

 private:
  std::uint64_t stream_, drawn_;
};

/// Glover's diversification (1998), as in algorithm 5.1 of [Czapinski 2014]: every offset-th number of p, from offset
/// - 1 on, then from offset - 2 on, and so forth. With an offset of 1 it is p itself.
inline void diversify(std::int32_t offset, Index n, const std::int32_t* p, std::int32_t* diversified) {
  Index position = 0;
  for (Index start = offset; start-- > 0;)
    for (Index i = start; i < n; i += offset) diversified[position++] = p[i];
}

/// Every order is as likely as any other (Fisher, Yates).
inline void shuffle(RandomNumbers& random, Index n, std::int32_t* p) {
  for (Index i = n - 1; i > 0; --i) std::swap(p[i], p[random.below(i + 1)]);
}

/// Moves the facilities of about `count` random positions around.
inline void kick(RandomNumbers& random, Index count, Index n, std::int32_t* p) {
  Index last = random.below(n);
  for (Index i = 1; i < count; ++i) {
    const Index next = random.below(n);
    std::swap(p[last], p[next]);
    last = next;
  }
}

}  // namespace asterism::qap
