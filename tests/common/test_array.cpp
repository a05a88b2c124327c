// Arrays against std::vector, below and beyond the size from which they are in huge pages.

#include "algorithms/common/array.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

using namespace asterism;

namespace {

constexpr std::size_t few = 1000, many = huge_page / sizeof(Index) + 12345;

std::vector<Index> ascending(std::size_t count) {
  std::vector<Index> numbers(count);
  std::iota(numbers.begin(), numbers.end(), Index{7});
  return numbers;
}

bool same(const Array<Index>& array, const std::vector<Index>& expected) {
  return std::ranges::equal(array, expected);
}

}  // namespace

TEST_CASE("an array grows as a vector does, and keeps what it has") {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, few, many}) {
    CAPTURE(count);
    const std::vector<Index> expected = ascending(count);
    Array<Index> pushed;
    for (const Index number : expected) pushed.push_back(number);
    CHECK(same(pushed, expected));
    Array<Index> appended(expected.begin(), expected.end());
    CHECK(appended == pushed);
    const std::vector<Index> more{1, 2, 3};
    std::vector<Index> longer = expected;
    longer.insert(longer.end(), more.begin(), more.end());
    appended.append(more.begin(), more.end());
    CHECK(same(appended, longer));
    CHECK(!(appended == pushed));
    appended.resize(longer.size() + many, 9);
    longer.resize(longer.size() + many, 9);
    CHECK(same(appended, longer));
    appended.resize(count);
    CHECK(same(appended, expected));
    appended.assign(more.begin(), more.end());
    CHECK(same(appended, more));
    CHECK(appended.front() == 1);
    CHECK(appended.back() == 3);
  }
}

TEST_CASE("copies of an array are its own, and what it moved from is empty") {
  for (const std::size_t count : {few, many}) {
    CAPTURE(count);
    const std::vector<Index> expected = ascending(count);
    Array<Index> array(expected.begin(), expected.end());
    Array<Index> copy = array;
    CHECK(copy == array);
    copy[count / 2] = -1;
    CHECK(same(array, expected));
    Array<Index> taken = std::move(array);
    CHECK(same(taken, expected));
    CHECK(array.empty());
    array = copy;
    CHECK(array == copy);
    copy = {copy.begin(), copy.begin() + 3};
    CHECK(same(copy, ascending(3)));
  }
}

TEST_CASE("large arrays begin where a huge page does") {
  CHECK(reinterpret_cast<std::uintptr_t>(Array<char>(huge_page).data()) % huge_page == 0);
}

// What one frees the next may get, whole or in parts; nobody else may have it at the same time.
TEST_CASE("large arrays of several threads that come and go keep what is written to them") {
  constexpr int threads = 4;
  std::vector<char> is_right(threads, 1);
  in_team(threads, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    std::vector<std::pair<Array<Index>, Index>> all;
    for (Index turn = 0; turn < 300; ++turn) {
      // From one huge page to more than is kept of freed ones, at rare turns.
      const std::size_t pages = turn % 97 == 96 ? 40 : 1 + random() % 9;
      const Index mark = turn * threads + thread;
      Array<Index> array(pages * huge_page / sizeof(Index) - random() % 1000);
      array.front() = array[array.size() / 2] = array.back() = mark;
      all.emplace_back(std::move(array), mark);
      if (all.size() > 6) {
        auto& [ended, its_mark] = all[random() % all.size()];
        if (ended.front() != its_mark || ended[ended.size() / 2] != its_mark || ended.back() != its_mark)
          is_right[static_cast<std::size_t>(thread)] = 0;
        std::swap(all.back().first, ended);
        std::swap(all.back().second, its_mark);
        all.pop_back();
      }
    }
  });
  CHECK(is_right == std::vector<char>(threads, 1));
}

TEST_CASE("a large array has the memory of one that was freed, and what is left of that serves another") {
  // As much as is kept: nothing else is, afterwards.
  Array<char>(32 * huge_page);
  const void* whole = nullptr;
  {
    const Array<char> freed(5 * huge_page);
    whole = freed.data();
  }
  const Array<char> first(3 * huge_page), second(2 * huge_page);
  CHECK(static_cast<const void*>(first.data()) == whole);
  CHECK(static_cast<const void*>(second.data()) == static_cast<const char*>(whole) + 3 * huge_page);
}
