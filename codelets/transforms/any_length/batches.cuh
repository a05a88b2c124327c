/// \file
/// A thread's share of the points of lines, several at a time.
#pragma once

#include <type_traits>

#include "../inlined.hpp"
#include "plan.hpp"

namespace asterism::transforms {

/// Numbers i = 0 ... count - 1 for each of `lines` lines, a power of two with those that are not present. The
/// number of threads is a multiple of 32.
struct BatchShare {
  int count, lines, present;
  bool side_by_side;  ///< then neighbouring threads take neighbouring lines, else neighbouring numbers
  int thread, threads;
};

/// At a time, of `count` numbers of T: cores look ahead by themselves, and keep one number in registers.
template <class T>
constexpr int batch_of(int count) {
  return std::is_same_v<T, Scalar<T>> ? count : 1;
}

/// What `gather` finds for a line and i goes to `use`; `batch` of them are gathered at a time, so that so many loads
/// are under way. Gathers some more than once. A thread stays with a line: what depends on it alone is found once.
template <int batch, class Gather, class Use>
ASTERISM_INLINED void in_batches(const BatchShare& share, Gather gather, Use use) {
  const int at_once = share.lines < 32 ? share.lines : 32, step = share.threads / at_once,
            first_line = share.side_by_side ? share.thread % at_once : share.thread / step,
            first = share.side_by_side ? share.thread / at_once : share.thread % step;
  for (int line = first_line; line < share.present; line += at_once)
    for (int i = first; i < share.count; i += batch * step) {
      if constexpr (batch == 1) {
        use(line, i, gather(line, i));
      } else {
        decltype(gather(0, 0)) found[batch];
        ASTERISM_UNROLL
        for (int b = 0; b < batch; ++b) found[b] = gather(line, i + b * step < share.count ? i + b * step : i);
        ASTERISM_UNROLL
        for (int b = 0; b < batch; ++b)
          if (i + b * step < share.count) use(line, i + b * step, found[b]);
      }
    }
}

}  // namespace asterism::transforms
