/// \file
/// Small tiles with numbers in them, for tests of what tasks do with several.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "runtime/codelet.hpp"

namespace asterism::test {

inline const Codelet set{"test_numbered_set", +[](const double& value, Out<double> x) {
                           for (Index i = 0; i < x.rows; ++i) std::fill_n(x.row(i), x.cols, value);
                         }};

inline double value(const Tile<double>& tile) { return HostView<double>(tile, HostView<double>::Access::read)(0, 0); }

/// Tiles of one element with the values 1, 2, ..., count.
inline std::vector<Tile<double>> numbered(Runtime& runtime, int count) {
  std::vector<Tile<double>> tiles;
  for (int k = 1; k <= count; ++k) set(k, tiles.emplace_back(runtime, 1, 1));
  return tiles;
}

/// What a call throws; empty: nothing.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace asterism::test
