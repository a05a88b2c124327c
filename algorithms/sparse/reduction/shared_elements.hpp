/// \file
/// Some elements of vectors, and rows of matrices, that every rank is told by the one that has them.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "../../../runtime/collectives.hpp"
#include "../../common/partition.hpp"
#include "../../common/team.hpp"

namespace asterism::sparse {

/// What is told of them comes in their order. All that is done with it is collective.
class SharedElements {
 public:
  SharedElements() = default;
  /// @param mine those of this rank, ascending; the ranks' follow each other
  SharedElements(const Runtime& runtime, std::vector<Index> mine)
      : runtime_(&runtime), mine_(std::move(mine)), all_(gather_lists(runtime, mine_)) {}

  [[nodiscard]] const std::vector<Index>& all() const { return all_; }
  /// Of one of them, in all().
  [[nodiscard]] Index place(Index element) const {
    return std::lower_bound(all_.begin(), all_.end(), element) - all_.begin();
  }

  /// @param value value(element), of this rank's
  template <class T, class ValueOf>
  [[nodiscard]] std::vector<T> tell(const ValueOf& value) const {
    std::vector<T> values;
    values.reserve(mine_.size());
    for (const Index element : mine_) values.push_back(value(element));
    return gather_lists(*runtime_, values);
  }

  /// Several values of each, and where those of each begin.
  template <class T>
  struct Lists {
    std::vector<Index> begin;
    std::vector<T> values;
    [[nodiscard]] std::span<const T> of(Index place) const {
      const auto first = static_cast<std::size_t>(begin[static_cast<std::size_t>(place)]);
      return std::span(values).subspan(
          first, static_cast<std::size_t>(begin[static_cast<std::size_t>(place) + 1]) - first);
    }
  };
  /// @param list list(element): a span, of this rank's
  template <class T, class ListOf>
  [[nodiscard]] Lists<T> tell_lists(const ListOf& list) const {
    Lists<T> lists{{0}, {}};
    std::vector<T> values;
    for (const Index element : mine_) {
      const std::span<const T> its = list(element);
      values.insert(values.end(), its.begin(), its.end());
    }
    lists.values = gather_lists(*runtime_, values);
    for (const Index size : tell<Index>(
             [&](Index element) { return static_cast<Index>(std::span<const T>(list(element)).size()); }))
      lists.begin.push_back(lists.begin.back() + size);
    return lists;
  }

 private:
  const Runtime* runtime_ = nullptr;
  std::vector<Index> mine_, all_;
};

/// From one division of elements into ranges, one of each rank, to another in the same order of ranks. With several
/// ranks: collective.
class Redivision {
 public:
  using Range = Partition::Range;
  Redivision() = default;
  Redivision(const Runtime& runtime, Range from, Range to)
      : from_(from), to_(to), leaving_(runtime, outside(from, to)) {}

  /// Whether any element changes its rank.
  [[nodiscard]] bool moves_any() const { return !leaving_.all().empty(); }

  /// @param value value(element), of this rank's @param to its elements in the other division
  template <class T, class ValueOf>
  void move(const ValueOf& value, T* to) const {
    const std::vector<T> told = leaving_.tell<T>(value);
    const auto take = [&](Index first, Index end) {
      for (Index i = first; i < end; ++i) {
        const Index element = to_.first + i;
        to[i] = stays(element) ? value(element) : told[static_cast<std::size_t>(leaving_.place(element))];
      }
    };
    in_parts(to_.count(), 0, take, least_copied);
  }

  /// Lists of elements; they, and what they are of, have to live as long as the result.
  template <class T, class ListOf>
  class Lists {
   public:
    Lists(const Redivision& division, ListOf list)
        : division_(division), list_(std::move(list)), told_(division.leaving_.tell_lists<T>(list_)) {}
    /// Of an element of this rank in the other division.
    [[nodiscard]] std::span<const T> of(Index element) const {
      return division_.stays(element) ? list_(element) : told_.of(division_.leaving_.place(element));
    }

   private:
    const Redivision& division_;
    ListOf list_;
    SharedElements::Lists<T> told_;
  };
  /// @param list list(element): a span, of this rank's
  template <class T, class ListOf>
  [[nodiscard]] Lists<T, ListOf> lists(ListOf list) const {
    return {*this, std::move(list)};
  }

 private:
  [[nodiscard]] bool stays(Index element) const { return from_.first <= element && element < from_.end; }

  static std::vector<Index> outside(Range range, Range other) {
    std::vector<Index> elements;
    for (Index i = range.first; i < std::min(range.end, other.first); ++i) elements.push_back(i);
    for (Index i = std::max(range.first, other.end); i < range.end; ++i) elements.push_back(i);
    return elements;
  }

  Range from_, to_;
  SharedElements leaving_;
};

}  // namespace asterism::sparse
