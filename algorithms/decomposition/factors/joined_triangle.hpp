/// \file
/// The triangles of several blocks as one, for a GPU.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "../../../codelets/decomposition/factorise.hpp"
#include "../../../runtime/error.hpp"
#include "../../common/team.hpp"

namespace asterism::decomposition {

template <class V>
struct JoinedTriangle {
  std::vector<std::int32_t> begins;
  std::unique_ptr<std::int32_t[]> places;
  std::unique_ptr<V[]> values;
  std::vector<std::int32_t> order;  ///< of rows: by levels

  /// By all cores. @param parts by rows, with levels; they come one behind the other
  /// @throw Error: more entries than 32-bit numbers count
  void join(std::span<const Triangle<V>> parts);
  [[nodiscard]] Triangle<V> view() const {
    const std::size_t entries = begins.empty() ? 0 : static_cast<std::size_t>(begins.back());
    return {begins, {places.get(), entries}, {values.get(), entries}};
  }
};

template <class V>
void JoinedTriangle<V>::join(std::span<const Triangle<V>> parts) {
  struct Place {
    std::size_t row = 0, entry = 0;
  };
  std::vector<Place> firsts;
  Place end;
  std::size_t levels = 0;
  for (const Triangle<V>& part : parts) {
    firsts.push_back(end);
    end.row += part.levels.size();
    end.entry += part.places.size();
    for (const std::int32_t level : part.levels)
      levels = std::max(levels, static_cast<std::size_t>(level) + 1);
  }
  if (end.entry > std::numeric_limits<std::int32_t>::max())
    throw Error("factors on a GPU have more than 2^31 entries in a triangle: let cores solve (--gpus 0)");
  begins.resize(end.row + 1);
  places = std::make_unique_for_overwrite<std::int32_t[]>(end.entry);
  values = std::make_unique_for_overwrite<V[]>(end.entry);
  one_by_one(parts.size(), 0, [&](std::size_t k) {
    const Triangle<V>& part = parts[k];
    const auto [row, entry] = firsts[k];
    const auto move_by = [](std::size_t distance) {
      return [distance](std::int32_t place) { return place + static_cast<std::int32_t>(distance); };
    };
    std::ranges::transform(part.begins.subspan(1), &begins[row + 1], move_by(entry));
    std::ranges::transform(part.places, &places[entry], move_by(row));
    std::ranges::copy(part.values, &values[entry]);
  });
  std::vector<std::size_t> next(levels + 1);
  for (const Triangle<V>& part : parts)
    for (const std::int32_t level : part.levels) ++next[static_cast<std::size_t>(level) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  order.resize(end.row);
  std::int32_t row = 0;
  for (const Triangle<V>& part : parts)
    for (const std::int32_t level : part.levels) order[next[static_cast<std::size_t>(level)]++] = row++;
}

}  // namespace asterism::decomposition
