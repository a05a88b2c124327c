/// \file
/// Options with changes, and whether a Runtime that started with them works.
#pragma once

#include "runtime/codelet.hpp"

namespace asterism::test {

template <class Change>
Options with(Change change) {
  Options options;
  change(options);
  return options;
}

inline void cpu_increment(const NoArgs&, InOut<int> x) { ++*x.data; }
inline const Codelet<NoArgs, InOut<int>> increment{"test_increment", cpu_increment};

/// Whether a task changes a tile as it should.
inline bool works(Runtime& runtime) {
  int value = 41;
  {
    const Tile<int> tile(runtime, &value, 1, 1, 1);
    increment({}, tile);
  }
  return value == 42;
}

}  // namespace asterism::test
