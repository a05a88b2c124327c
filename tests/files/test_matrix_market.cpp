// Matrix Market files: what the format allows is read.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "../support/sparse_entries.hpp"
#include "matrix_market_text.hpp"
#include "runtime/error.hpp"
#include "tools/files/matrices/matrix_file.hpp"
#include "tools/files/text/text_lines.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
namespace fs = std::filesystem;

namespace {

/// What a file of coordinates holds, word by word.
struct Oracle {
  std::string field, symmetry;
  Index rows = 0, cols = 0, in_file = 0;
  Entries entries;
};

Oracle oracle_of(const fs::path& path) {
  Oracle oracle;
  std::ifstream file(path);
  std::string line, word;
  std::getline(file, line);
  std::istringstream(line) >> word >> word >> word >> oracle.field >> oracle.symmetry;
  bool sized = false;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '%') continue;
    std::istringstream words(line);
    Index i = 0, j = 0;
    words >> i >> j >> word;
    if (!sized) {
      oracle.rows = i, oracle.cols = j, sized = true;
      continue;
    }
    const double value = oracle.field == "pattern" ? 1 : std::strtod(word.c_str(), nullptr);
    ++oracle.in_file;
    oracle.entries[{i - 1, j - 1}] += value;
    if (oracle.symmetry == "symmetric" && i != j) oracle.entries[{j - 1, i - 1}] += value;
  }
  return oracle;
}

fs::path test_data() {
  const char* const folder = std::getenv("ASTERISM_DATA");
  return folder == nullptr ? fs::path() : fs::path(folder) / "matrices";
}

}  // namespace

TEST_CASE("entries in any order, with comments, blank lines, tabs and ends of lines of both kinds") {
  const MatrixFile file = read_text(
      "%%matrixmarket MATRIX Coordinate REAL General\r\n% a comment\n\n   % another\r\n 2\t3 4 \r\n\n1 3 +2.5e0\r\n"
      "% in between\n2 1 -1\n   \n1\t1\t.5\r\n\t2 3 1e-3");
  CHECK(file.matrix.first_row == 0);
  CHECK(file.matrix.total_rows == 2);
  CHECK(file.matrix.cols == 3);
  CHECK(file.matrix.row_begin == Array<Index>{0, 2, 4});
  CHECK(file.matrix.columns == Array<Index>{0, 2, 0, 2});
  CHECK(file.matrix.values == Array<double>{.5, 2.5, -1, 1e-3});
  CHECK(file.field == Field::real);
  CHECK(file.symmetry == Symmetry::general);
  CHECK(file.duplicates == 0);
}

TEST_CASE("both triangles of symmetric and skew-symmetric files") {
  const MatrixFile file = read_text(symmetric + "3 3 4\n1 1 2\n3 1 -1\n3 3 5\n2 2 7\n");
  CHECK(file.symmetry == Symmetry::symmetric);
  CHECK(entries_of(file.matrix) ==
        Entries{{{0, 0}, 2}, {{0, 2}, -1}, {{1, 1}, 7}, {{2, 0}, -1}, {{2, 2}, 5}});
  const MatrixFile other = read_text(skew + "3 3 2\n3 1 -1\n2 1 4\n");
  CHECK(other.symmetry == Symmetry::skew_symmetric);
  CHECK(entries_of(other.matrix) == Entries{{{0, 1}, -4}, {{0, 2}, 1}, {{1, 0}, 4}, {{2, 0}, -1}});
}

TEST_CASE("integers, patterns, arrays, and matrices without entries") {
  const MatrixFile integer =
      read_text("%%MatrixMarket matrix coordinate integer general\n1 2 2\n1 1 -9007199254740992\n1 2 0\n");
  CHECK(integer.field == Field::integer);
  CHECK(entries_of(integer.matrix) == Entries{{{0, 0}, -0x1p53}, {{0, 1}, 0}});  // explicit zeros stay
  const MatrixFile pattern =
      read_text("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n");
  CHECK(pattern.field == Field::pattern);
  CHECK(entries_of(pattern.matrix) == Entries{{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}});

  const std::string array = "%%MatrixMarket matrix array real ";
  CHECK(entries_of(read_text(array + "general\n2 3\n1\n0\n% column 2\n3\n4\n\n0\n6\n").matrix) ==
        Entries{{{0, 0}, 1}, {{0, 1}, 3}, {{1, 1}, 4}, {{1, 2}, 6}});
  CHECK(entries_of(read_text(array + "symmetric\n3 3\n1\n2\n3\n4\n0\n6\n").matrix) ==
        Entries{{{0, 0}, 1}, {{0, 1}, 2}, {{0, 2}, 3}, {{1, 0}, 2}, {{1, 1}, 4}, {{2, 0}, 3}, {{2, 2}, 6}});
  CHECK(entries_of(read_text(array + "skew-symmetric\n3 3\n2\n3\n5\n").matrix) ==
        Entries{{{0, 1}, -2}, {{0, 2}, -3}, {{1, 0}, 2}, {{1, 2}, -5}, {{2, 0}, 3}, {{2, 1}, 5}});
  CHECK(entries_of(read_text(array + "skew-symmetric\n1 1\n").matrix).empty());
  CHECK(entries_of(read_text("%%MatrixMarket matrix array integer general\n1 2\n-3\n4\n").matrix) ==
        Entries{{{0, 0}, -3}, {{0, 1}, 4}});

  const MatrixFile none = read_text(general + "3 2 0\n");
  CHECK(none.matrix.rows() == 3);
  CHECK(entries_of(none.matrix).empty());
}

TEST_CASE("entries that are there twice are summed in their order, and counted") {
  const MatrixFile file = read_text(general + "2 2 6\n1 2 1e17\n1 1 3\n1 2 1\n2 2 5\n1 2 -1e17\n2 2 6\n");
  CHECK(file.duplicates == 3);
  CHECK(entries_of(file.matrix) == Entries{{{0, 0}, 3}, {{0, 1}, 0}, {{1, 1}, 11}});  // (1e17 + 1) - 1e17

  std::string many = general + "1 2 201\n1 2 1e17\n";  // more than any sort takes one by one
  for (int i = 0; i < 199; ++i) many += i % 2 == 0 ? "1 1 3\n" : "1 2 1\n";
  const MatrixFile row = read_text(many + "1 2 -1e17\n");
  CHECK(row.duplicates == 199);
  CHECK(entries_of(row.matrix) == Entries{{{0, 0}, 300}, {{0, 1}, 0}});

  const MatrixFile mirrored = read_text(symmetric + "2 2 5\n1 1 1\n2 1 2\n2 1 3\n1 1 4\n2 2 6\n");
  CHECK(mirrored.duplicates == 2);
  CHECK(entries_of(mirrored.matrix) == Entries{{{0, 0}, 5}, {{0, 1}, 5}, {{1, 0}, 5}, {{1, 1}, 6}});

  const Folder folder;
  store(folder / "a.mtx", general + "2 2 2\n2 1 1e308\n2 1 1e308\n");
  CHECK(message_of([&] { read_matrix(folder / "a.mtx"); }) ==
        (folder / "a.mtx").string() +
            ": the entries in row 2 and column 1 have the sum inf: every number must be finite");
}

TEST_CASE("numbers at the ends of what a double holds") {
  const MatrixFile file =
      read_text(general + "1 4 4\n1 1 1.7976931348623157e308\n1 2 -4.9e-324\n1 3 1e-400\n1 4 -0.0\n");
  CHECK(file.matrix.values[0] == std::numeric_limits<double>::max());
  CHECK(file.matrix.values[1] == -std::numeric_limits<double>::denorm_min());
  CHECK(file.matrix.values[2] == 0);
  CHECK(std::signbit(file.matrix.values[3]));
}

TEST_CASE("what is no file of text") {
  const Folder folder;
  const auto message = [](const fs::path& path) { return message_of([&] { read_matrix(path); }); };
  CHECK(message(folder / "none.mtx") ==
        (folder / "none.mtx").string() + ": cannot be opened: No such file or directory");
  CHECK(message(folder.path()) == folder.path().string() + ": is a folder, not a file of a matrix");
  store(folder / "empty.mtx", "");
  CHECK(message(folder / "empty.mtx") == (folder / "empty.mtx").string() + ": byte 0: the file is empty");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  message_has(message(folder / "pipe"), {"pipe: is not a regular file"});
  refused_text(general + "% " + std::string(TextLines::longest_line, 'x') + "\n1 1 0\n", 2,
               {"the line has more than 1048576 bytes"});
  refused_text(general + "1 1 1\n1 1 " + std::string(2 * TextLines::longest_line, '1'), 3,
               {"the line has more than"});
}

TEST_CASE("lines across the pieces in which a file is read") {
  // Comments of all lengths up to the longest shift where the pieces begin.
  constexpr Index rows = 60000;
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{13}, TextLines::longest_line / 2,
        TextLines::longest_line - 2, TextLines::longest_line - 1}) {
    if (left_out_when_sanitized(length > 0 && length <= TextLines::longest_line / 2)) continue;
    std::string content = general + "%" + std::string(length > 0 ? length - 1 : 0, 'c') + "\n" +
                          std::to_string(rows) + " " + std::to_string(rows) + " " + std::to_string(2 * rows) +
                          "\n";
    Entries entries;
    for (Index i = 0; i < rows; ++i)
      for (const Index j : {i, (7 * i + 3) % rows}) {
        const double value = static_cast<double>(i * 3 + j) / 8;
        content += std::to_string(i + 1) + " " + std::to_string(j + 1) + " " + std::to_string(value) + "\n";
        entries[{i, j}] += value;
      }
    const MatrixFile file = read_text(content);
    CHECK(entries_of(file.matrix) == entries);
    CHECK(file.duplicates == 2 * rows - static_cast<Index>(entries.size()));
    content.pop_back();
    content.back() = 'x';
    refused_text(content, 3 + 2 * rows, {"the value is '", "x', which is no number"});
    content.resize(content.rfind('\n') + 1);
    refused_text(content, 2 + 2 * rows, {"the file ends here, after 119999 of the 120000 entries announced"});
  }
}

TEST_CASE("truncated anywhere and changed anywhere, a file is read or refused") {
  const Folder folder;
  const std::string valid = symmetric + "% c\n3 3 4\n1 1 2.5\n3 1 -1e2\n3 3 5\n2 2 7\n";
  int reads = 0;
  const auto attempt = [&](const std::string& content) {
    store(folder / "a.mtx", content);
    try {
      entries_of(read_matrix(folder / "a.mtx").matrix);
      ++reads;
    } catch (const Error&) {
    }
  };
  for (std::size_t length = 0; length < valid.size(); ++length) attempt(valid.substr(0, length));
  CHECK(reads == 1);  // without the last end of a line
  for (std::size_t at = 0; at < valid.size(); ++at)
    for (const char c : std::string("\0 \n\r%0129-+.e/:x\xff", 17)) {
      std::string changed = valid;
      changed[at] = c;
      attempt(changed);
    }
  CHECK(reads > 100);
}

TEST_CASE("the Laplacian of a pattern is definite, whether or not its diagonal is there") {
  const MatrixFile file =
      read_text("%%MatrixMarket matrix coordinate pattern symmetric\n4 4 4\n1 1\n2 1\n3 1\n3 3\n");
  CHECK(entries_of(laplacian_of_pattern(file.matrix)) == Entries{{{0, 0}, 3},
                                                                 {{0, 1}, -1},
                                                                 {{0, 2}, -1},
                                                                 {{1, 0}, -1},
                                                                 {{1, 1}, 2},
                                                                 {{2, 0}, -1},
                                                                 {{2, 2}, 2},
                                                                 {{3, 3}, 1}});
  CHECK(message_of([&] { laplacian_of_pattern(csr_of(2, 3, {})); }) ==
        "a pattern of 2 x 3 has no Laplacian: it must be square");
}

TEST_CASE("every matrix of the test data is read" *
          SkipUnless(fs::exists(test_data()), "ASTERISM_DATA names no folder with matrices/")) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(test_data())) {
    if (entry.path().extension() != ".mtx") continue;
    CAPTURE(entry.path());
    ++files;
    if (left_out_when_sanitized(entry.file_size() > 1'000'000)) continue;
    const Oracle oracle = oracle_of(entry.path());
    const MatrixFile file = read_matrix(entry.path());
    CHECK(to_string(file.field) == oracle.field);
    CHECK(to_string(file.symmetry) == oracle.symmetry);
    CHECK(file.matrix.rows() == oracle.rows);
    CHECK(file.matrix.cols == oracle.cols);
    CHECK(file.matrix.entries() == static_cast<Index>(oracle.entries.size()));
    CHECK(entries_of(file.matrix) == oracle.entries);
    CHECK(file.duplicates == 0);
  }
  CHECK(files == 19);
}
