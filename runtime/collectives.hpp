/// \file
/// What ranks tell each other on the host. Every rank has to make the same calls in the same order; they wait for each
/// other. With one rank all of these return at once. What tasks compute travels as tiles instead.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "ports.hpp"
#include "runtime.hpp"

namespace asterism {

namespace detail {

/// What can be told: bytes that mean the same on every rank.
template <class T>
concept Tellable = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

/// `count` elements of every rank, which may differ, one rank's after the other's.
/// @param resize resize(n): memory for n elements
void gather(const Runtime& runtime, const void* mine, Index count, std::size_t element_bytes,
            const std::function<void*(Index)>& resize);
void broadcast(const Runtime& runtime, void* value, std::size_t bytes);

}  // namespace detail

/// The lists of all ranks, one after the other in the order of ranks, on every rank. They may differ in length.
/// @tparam List a std::vector, or what has its data(), size() and resize()
template <class List>
requires detail::Tellable<typename List::value_type> List gather_lists(const Runtime& runtime,
                                                                       const List& mine) {
  List all;
  detail::gather(runtime, mine.data(), static_cast<Index>(mine.size()), sizeof(typename List::value_type),
                 [&](Index count) {
                   all.resize(static_cast<std::size_t>(count));
                   return all.data();
                 });
  return all;
}

/// Every rank's value, by the number of the rank, on every rank.
template <detail::Tellable T>
std::vector<T> gather(const Runtime& runtime, const T& mine) {
  return gather_lists(runtime, std::vector<T>{mine});
}

/// Rank 0's value, on every rank.
template <detail::Tellable T>
T broadcast(const Runtime& runtime, T value) {
  detail::broadcast(runtime, &value, sizeof(T));
  return value;
}
std::string broadcast(const Runtime& runtime, std::string text);

/// Whether it is so on any rank.
bool any(const Runtime& runtime, bool mine);

/// Adds up what the ranks have, element by element, in the order of ranks: the same bits on every rank and in every run.
/// @param values `count` of them, as many on every rank; becomes the sums. T has +=.
template <detail::Tellable T>
void sum_over_ranks(const Runtime& runtime, T* values, Index count) {
  const std::vector<T> all = gather_lists(runtime, std::vector<T>(values, values + count));
  for (Index i = 0; i < count; ++i) {
    values[i] = all[static_cast<std::size_t>(i)];
    for (Index r = 1; r < runtime.ranks(); ++r) values[i] += all[static_cast<std::size_t>(r * count + i)];
  }
}
template <detail::Tellable T>
void sum_over_ranks(const Runtime& runtime, std::vector<T>& values) {
  sum_over_ranks(runtime, values.data(), static_cast<Index>(values.size()));
}

/// Calls body on every rank. Where it throws on one, all throw that error, with the number of the rank, unless all ranks
/// have the same: for what may fail on some ranks only (a file, memory), before others wait for them.
void agree(const Runtime& runtime, const std::function<void()>& body);

}  // namespace asterism
