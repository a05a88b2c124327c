// What a sparse matrix is like: against counts by hand, and against loops over a dense matrix.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "../support/messages.hpp"
#include "../support/sparse_entries.hpp"
#include "algorithms/sparse/graph/structure.hpp"

using namespace asterism;
using namespace asterism::sparse;
using namespace asterism::test;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Entries random_entries(Index rows, Index cols, int count, unsigned seed) {
  std::mt19937 engine(seed);
  Entries entries;
  for (int i = 0; i < count; ++i) {
    const auto row = static_cast<Index>(engine() % static_cast<unsigned>(rows));
    const auto col = static_cast<Index>(engine() % static_cast<unsigned>(cols));
    entries[{row, col}] = static_cast<double>(engine() % 7) - 2;
  }
  return entries;
}

double value_at(const Entries& entries, Index row, Index col) {
  const auto found = entries.find({row, col});
  return found == entries.end() ? 0 : found->second;
}

/// By loops over all rows and columns.
void check_against_dense(Index rows, Index cols, const Entries& entries) {
  Index dominant = 0, strictly = 0, lower = 0, upper = 0, without = 0, nonpositive = 0, empty = 0;
  Index fewest = cols, most = 0;
  std::set<Index> diagonals;
  for (Index i = 0; i < rows; ++i) {
    Index count = 0;
    double others = 0;
    for (Index j = 0; j < cols; ++j) {
      if (!entries.contains({i, j})) continue;
      ++count;
      diagonals.insert(j - i);
      lower = std::max(lower, i - j);
      upper = std::max(upper, j - i);
      if (i != j) others += std::abs(value_at(entries, i, j));
    }
    fewest = std::min(fewest, count);
    most = std::max(most, count);
    empty += count == 0;
    if (i >= cols) continue;
    without += !entries.contains({i, i});
    nonpositive += entries.contains({i, i}) && value_at(entries, i, i) <= 0;
    dominant += std::abs(value_at(entries, i, i)) >= others;
    strictly += std::abs(value_at(entries, i, i)) > others;
  }
  const Structure structure = structure_of(csr_of(rows, cols, entries));
  CHECK(structure.fewest == fewest);
  CHECK(structure.most == most);
  CHECK(structure.mean == static_cast<double>(entries.size()) / static_cast<double>(rows));
  CHECK(structure.empty.count == empty);
  CHECK(structure.lower_bandwidth == lower);
  CHECK(structure.upper_bandwidth == upper);
  CHECK(structure.diagonals == static_cast<Index>(diagonals.size()));
  CHECK(structure.without_diagonal.count == without);
  CHECK(structure.nonpositive_diagonal.count == nonpositive);
  CHECK(structure.dominant == dominant);
  CHECK(structure.strictly_dominant == strictly);
}

void check_symmetry_against_dense(Index n, const Entries& entries, double tolerance) {
  Index unpaired = 0, unequal = 0;
  std::optional<std::pair<Index, Index>> first_unpaired, first_unequal;
  for (Index i = 0; i < n; ++i)
    for (Index j = i + 1; j < n; ++j) {
      const double a = value_at(entries, i, j), b = value_at(entries, j, i);
      if (entries.contains({i, j}) != entries.contains({j, i})) {
        ++unpaired;
        if (!first_unpaired) first_unpaired = {i, j};
      }
      if (std::abs(a - b) > tolerance * std::max(std::abs(a), std::abs(b))) {
        ++unequal;
        if (!first_unequal) first_unequal = {i, j};
      }
    }
  const auto check = check_symmetry(csr_of(n, n, entries), tolerance);
  CHECK(check.unpaired == unpaired);
  CHECK(check.unequal == unequal);
  const auto same = [&](const auto& pair, const auto& first) {
    REQUIRE(pair.has_value() == first.has_value());
    if (!pair) return;
    CHECK(pair->row == first->first);
    CHECK(pair->col == first->second);
    CHECK(pair->upper == value_at(entries, pair->row, pair->col));
    CHECK(pair->lower == value_at(entries, pair->col, pair->row));
  };
  same(check.first_unpaired, first_unpaired);
  same(check.first_unequal, first_unequal);
}

}  // namespace

TEST_CASE("a small matrix by hand") {
  const auto matrix = csr_of(
      5, 5, {{{0, 0}, 4}, {{0, 1}, -4}, {{0, 4}, 0}, {{2, 1}, 1}, {{3, 0}, 1}, {{3, 3}, -3}, {{4, 4}, 0}});
  const Structure structure = structure_of(matrix);
  CHECK(structure.fewest == 0);
  CHECK(structure.most == 3);
  CHECK(structure.mean == 7. / 5);
  CHECK(structure.empty.count == 1);
  CHECK(structure.empty.first == 1);
  CHECK(structure.lower_bandwidth == 3);
  CHECK(structure.upper_bandwidth == 4);
  CHECK(structure.diagonals == 5);  // -3, -1, 0, 1, 4
  CHECK(structure.without_diagonal.count == 2);
  CHECK(structure.without_diagonal.first == 1);
  CHECK(structure.nonpositive_diagonal.count == 2);
  CHECK(structure.nonpositive_diagonal.first == 3);
  CHECK(structure.dominant == 4);  // all but row 2
  CHECK(structure.strictly_dominant == 1);
  CHECK(is_square(matrix));
  CHECK(!is_square(csr_of(2, 3, {})));
}

TEST_CASE("a NaN on the diagonal is not above 0") {
  const Structure structure = structure_of(csr_of(2, 2, {{{0, 0}, 1}, {{1, 1}, not_a_number}}));
  CHECK(structure.nonpositive_diagonal.count == 1);
  CHECK(structure.nonpositive_diagonal.first == 1);
  CHECK(structure.dominant == 1);
}

TEST_CASE("random matrices against loops over all rows and columns") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const Index rows = 1 + seed % 13, cols = 1 + seed * 5 % 11;
    check_against_dense(rows, cols, random_entries(rows, cols, static_cast<int>(seed * 3), seed));
  }
}

TEST_CASE("symmetry of random matrices against loops over all pairs") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const Index n = 1 + seed % 13;
    Entries entries = random_entries(n, n, static_cast<int>(seed), seed);
    check_symmetry_against_dense(n, entries, 0);
    check_symmetry_against_dense(n, entries, 0.6);
    const Entries once = entries;
    for (const auto& [place, value] : once) entries[{place.second, place.first}] = value;
    check_symmetry_against_dense(n, entries, 0);
    CHECK(check_symmetry(csr_of(n, n, entries), 0).structural());
  }
}

TEST_CASE("symmetric in structure, in numbers, within a tolerance") {
  Entries entries{{{0, 0}, 1}, {{0, 2}, 2}, {{2, 0}, 2}, {{1, 2}, 3}, {{2, 1}, 3 * (1 + 1e-12)}};
  const auto check = [&](double tolerance) { return check_symmetry(csr_of(3, 3, entries), tolerance); };
  CHECK(check(0).structural());
  CHECK(!check(0).numerical());
  CHECK(check(0).first_unequal->row == 1);
  CHECK(check(0).first_unequal->col == 2);
  CHECK(check(0).first_unequal->upper == 3);
  CHECK(check(0).first_unequal->lower == 3 * (1 + 1e-12));
  CHECK(check(2e-12).numerical());
  entries[{0, 1}] = 0;  // an explicit zero: what is not there is 0, too
  CHECK(!check(2e-12).structural());
  CHECK(check(2e-12).numerical());
  CHECK(check(2e-12).first_unpaired->row == 0);
  CHECK(check(2e-12).first_unpaired->col == 1);
  entries[{2, 0}] = not_a_number;
  CHECK(check(1).unequal == 1);
  entries[{2, 0}] = entries[{0, 2}] = infinity;
  CHECK(check(1).unequal == 1);
}

TEST_CASE("the first number that is not finite") {
  CHECK(!first_not_finite(csr_of(3, 3, {{{0, 0}, 1}, {{2, 2}, -1e308}})));
  const auto bad = first_not_finite(csr_of(4, 3, {{{0, 0}, 1}, {{2, 1}, -infinity}, {{3, 2}, not_a_number}}));
  REQUIRE(bad);
  CHECK(bad->row == 2);
  CHECK(bad->col == 1);
  CHECK(bad->value == -infinity);
}

TEST_CASE("other precisions, no entries, and what is refused") {
  Csr<float> single;
  single.total_rows = single.cols = 1;
  single.row_begin = {0, 1};
  single.columns = {0};
  single.values = {2.f};
  CHECK(structure_of(single).strictly_dominant == 1);
  CHECK(check_symmetry(single, 0).numerical());
  CHECK(!first_not_finite(single));

  const Structure none = structure_of(csr_of(0, 0, {}));
  CHECK(none.fewest == 0);
  CHECK(none.empty.first == -1);
  CHECK(structure_of(csr_of(2, 2, {})).empty.count == 2);

  CHECK(message_of([] { static_cast<void>(check_symmetry(csr_of(2, 3, {}), 0)); }) ==
        "a matrix of 2 x 3 is not square, so that nothing mirrors its entries");
  auto part = csr_of(2, 2, {});
  part.total_rows = 4;
  part.first_row = 1;
  const std::string message = "rows 1 to 3 of a matrix of 4 are here: its structure is that of all";
  CHECK(message_of([&] { static_cast<void>(structure_of(part)); }) == message);
  CHECK(message_of([&] { static_cast<void>(check_symmetry(part, 0)); }) == message);
  CHECK(message_of([&] { static_cast<void>(first_not_finite(part)); }) == message);
}
