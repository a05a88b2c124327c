// Arrays against std::vector, below and beyond the size from which they are in huge pages.

#include "algorithms/common/array.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
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
