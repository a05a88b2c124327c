/// \file
/// A thread's share of the points of lines, several at a time.
#pragma once

#include "inlined.hpp"
#include "plan.hpp"

namespace asterism::transforms::cuda {

/// Numbers i = 0 ... count - 1 for each of `lines` lines, which are a power of two with those that are not present.
struct BatchShare {
  Divisor count;
  int log_lines, present;
  bool side_by_side;  ///< then neighbouring threads take neighbouring lines, else neighbouring numbers
  int thread, threads;
};

/// What `gather` finds for a line and i goes to `use`; `batch` of them are gathered at a time, so that so many loads
/// are under way. Gathers some twice.
template <int batch, class Gather, class Use>
ASTERISM_INLINED void in_batches(const BatchShare& share, Gather gather, Use use) {
  const unsigned count = share.count.divisor, all = count << share.log_lines,
                 threads = static_cast<unsigned>(share.threads);
  for (unsigned first = static_cast<unsigned>(share.thread); first < all; first += batch * threads) {
    int line[batch], place[batch];
    bool present[batch];
    decltype(gather(0, 0)) found[batch];
    ASTERISM_UNROLL
    for (int b = 0; b < batch; ++b) {
      const unsigned wanted = first + static_cast<unsigned>(b) * threads, i = wanted < all ? wanted : first,
                     before = share.log_lines == 0 ? 0 : share.count.quotient(i);
      line[b] = static_cast<int>(share.side_by_side ? i & ((1U << share.log_lines) - 1) : before);
      place[b] = static_cast<int>(share.side_by_side ? i >> share.log_lines : i - before * count);
      present[b] = wanted < all && line[b] < share.present;
      line[b] = line[b] < share.present ? line[b] : 0;
      found[b] = gather(line[b], place[b]);
    }
    ASTERISM_UNROLL
    for (int b = 0; b < batch; ++b)
      if (present[b]) use(line[b], place[b], found[b]);
  }
}

}  // namespace asterism::transforms::cuda
