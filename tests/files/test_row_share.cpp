// Ranks that read the same file: each gets its rows, together they have the matrix.

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "../support/sparse_entries.hpp"
#include "tools/files/matrices/matrix_file.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;

namespace {

/// A file of 200 rows, some without entries, with entries that are there twice.
std::string random_file(const std::string& symmetry) {
  std::mt19937 engine(5);
  const Index rows = 200, entries = 1500;
  std::string text = "%%MatrixMarket matrix coordinate integer " + symmetry + "\n200 200 1500\n";
  for (Index i = 0; i < entries; ++i) {
    auto row = static_cast<Index>(engine() % static_cast<unsigned>(rows)) / 3 * 3;
    auto col = static_cast<Index>(engine() % 30);
    if (symmetry != "general" && row < col) std::swap(row, col);
    if (symmetry == "skew-symmetric" && row == col) ++row;
    text +=
        std::to_string(row + 1) + " " + std::to_string(col + 1) + " " + std::to_string(engine() % 9) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("all parts together are the matrix, duplicates are counted once") {
  const Folder folder;
  for (const char* symmetry : {"general", "symmetric", "skew-symmetric"}) {
    CAPTURE(symmetry);
    store(folder / "a.mtx", random_file(symmetry));
    const MatrixFile whole = read_matrix(folder / "a.mtx");
    CHECK(whole.duplicates > 0);
    for (Index parts = 1; parts <= 7; ++parts) {
      CAPTURE(parts);
      Entries entries;
      Index next_row = 0, duplicates = 0;
      for (Index part = 0; part < parts; ++part) {
        const MatrixFile share = read_matrix(folder / "a.mtx", equal_entries(part, parts));
        CHECK(share.matrix.first_row == next_row);
        CHECK(share.matrix.total_rows == 200);
        CHECK(share.matrix.cols == 200);
        next_row += share.matrix.rows();
        duplicates += share.duplicates;
        entries.merge(entries_of(share.matrix));
      }
      CHECK(next_row == 200);
      CHECK(duplicates == whole.duplicates);
      CHECK(entries == entries_of(whole.matrix));
    }
  }
}

TEST_CASE("parts have about equal numbers of entries") {
  const std::vector<Index> row_begin{0, 0, 4, 5, 6, 7, 8, 8};
  const auto is = [&](Index part, Index parts, Index first, Index end) {
    const RowRange range = equal_entries(part, parts)(row_begin);
    return range.first == first && range.end == end;
  };
  CHECK(is(0, 1, 0, 7));
  CHECK(is(0, 2, 0, 2));  // four entries each, rows without any at the ends
  CHECK(is(1, 2, 2, 7));
  CHECK(is(0, 3, 0, 2));  // from entries 2 and 5 on
  CHECK(is(1, 3, 2, 3));
  CHECK(is(2, 3, 3, 7));
  CHECK(is(0, 4, 0, 2));  // row 1 has what two parts should
  CHECK(is(1, 4, 2, 2));
  CHECK(is(2, 4, 2, 4));
  CHECK(is(3, 4, 4, 7));
  CHECK(message_of([] { equal_entries(2, 2); }) == "part 2 of 2: parts are numbered from 0");
  CHECK(message_of([] { equal_entries(-1, 2); }) == "part -1 of 2: parts are numbered from 0");
}

TEST_CASE("rows that the caller chooses, and numbers in other rows") {
  const Folder folder;
  store(folder / "a.mtx",
        "%%MatrixMarket matrix coordinate real symmetric\n4 4 5\n1 1 1\n2 2 2\n3 3 3\n4 1 5\n4 4 bad\n");
  std::vector<Index> seen;
  const auto rows = [&](Index first, Index end) {
    return read_matrix(folder / "a.mtx", [&, first, end](std::span<const Index> row_begin) {
      seen.assign(row_begin.begin(), row_begin.end());
      return RowRange{first, end};
    });
  };
  const MatrixFile file = rows(0, 3);
  CHECK(seen == std::vector<Index>{0, 2, 3, 4, 6});
  CHECK(entries_of(file.matrix) == Entries{{{0, 0}, 1}, {{0, 3}, 5}, {{1, 1}, 2}, {{2, 2}, 3}});
  CHECK(entries_of(rows(1, 2).matrix) == Entries{{{1, 1}, 2}});
  CHECK(entries_of(rows(2, 2).matrix).empty());
  message_has(message_of([&] { rows(3, 4); }), {"a.mtx: line 7: the value is 'bad'"});
  CHECK(message_of([&] { rows(2, 5); }) ==
        (folder / "a.mtx").string() + ": rows 2 to 5 are wanted, the matrix has 4");
  message_has(message_of([&] { rows(2, 1); }), {"rows 2 to 1 are wanted"});
  message_has(message_of([&] { rows(-1, 1); }), {"rows -1 to 1 are wanted"});
}

TEST_CASE("the Laplacian of a part of a pattern is that part of the Laplacian") {
  const Folder folder;
  store(folder / "a.mtx", random_file("symmetric"));
  const Entries whole = entries_of(laplacian_of_pattern(read_matrix(folder / "a.mtx").matrix));
  Entries parts;
  for (const Index part : {0, 1, 2})
    parts.merge(
        entries_of(laplacian_of_pattern(read_matrix(folder / "a.mtx", equal_entries(part, 3)).matrix)));
  CHECK(parts == whole);
}
