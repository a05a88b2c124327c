/// \file
/// Lists in which nothing stands twice.
#pragma once

#include <algorithm>
#include <vector>

namespace asterism {

/// Sorts a list and leaves one of each.
template <class T>
void keep_each_once(std::vector<T>& list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace asterism
