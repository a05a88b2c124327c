#include "norms.hpp"

#include <fmt/format.h>

#include <cmath>
#include <mutex>

#include "../../../runtime/collectives.hpp"
#include "../../../runtime/error.hpp"

namespace asterism::sparse {

double root_of_sum(const Runtime& runtime, const std::vector<double>& mine) {
  double sum = 0;
  for (const double of_unit : gather_lists(runtime, mine)) sum += of_unit;
  return std::sqrt(sum);
}

template <class T>
Largest largest_of(const Runtime& runtime, const Partition::Range& mine, const T* b, const T* x) {
  Largest largest;
  std::mutex mutex;
  agree(runtime, [&] {
    const auto look = [&](Index first, Index end) {
      Largest here;
      for (Index i = first; i < end; ++i) {
        if (!std::isfinite(b[i]) || !std::isfinite(x[i]))
          throw Error(fmt::format("{} has {} in row {} (the first is 0): all numbers must be finite",
                                  std::isfinite(b[i]) ? "the first guess" : "the right-hand side",
                                  std::isfinite(b[i]) ? x[i] : b[i], mine.first + i));
        here.b = std::max(here.b, std::abs(static_cast<double>(b[i])));
        here.x = std::max(here.x, std::abs(static_cast<double>(x[i])));
      }
      const std::lock_guard lock(mutex);
      largest = {std::max(largest.b, here.b), std::max(largest.x, here.x)};
    };
    in_parts(mine.count(), 0, look, least_copied);
  });
  const std::vector<Largest> all = gather(runtime, largest);
  return {std::ranges::max(all, {}, &Largest::b).b, std::ranges::max(all, {}, &Largest::x).x};
}

template Largest largest_of(const Runtime&, const Partition::Range&, const float*, const float*);
template Largest largest_of(const Runtime&, const Partition::Range&, const double*, const double*);

}  // namespace asterism::sparse
