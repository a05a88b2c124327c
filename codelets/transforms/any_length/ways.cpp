#include "ways.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace asterism::transforms {

const Ways& ways_of(Transform kind, Index length) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<bool, Index>, Ways>;
  const bool is_first = is_first_kind(kind);
  const Index N = length < 1 ? 0 : fft_length(kind, length);
  const std::scoped_lock lock(mutex);
  const auto [at, is_new] = known.try_emplace({is_first, N});
  Ways& ways = at->second;
  if (!is_new) return ways;
  ways.plain = N > 1 ? static_cast<int>(fft_plan_size(N).numbers) : 0;
  if (!is_first) return ways;
  const auto work = [](const SymmetricWay& way) { return way.size.numbers * way.size.passes; };
  for (const SymmetricWay& way : symmetric_ways(N)) {
    if (!way.has_butterflies() && N < least_without_means && !is_padded(ways.plain, N)) continue;
    if (SymmetricWay& best = way.has_butterflies() ? ways.butterflies : ways.halved;
        best.divisor == 0 || work(way) < work(best))
      best = way;
  }
  return ways;
}

}  // namespace asterism::transforms
