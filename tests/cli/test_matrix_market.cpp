// Matrix Market files: what the format allows is read, all else is refused with file, line and token, and what is written
// is read again bit for bit.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "../support/sparse_entries.hpp"
#include "runtime/error.hpp"
#include "tools/files/matrices/matrix_file.hpp"
#include "tools/files/matrices/text_lines.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
namespace fs = std::filesystem;

namespace {

const std::string general = "%%MatrixMarket matrix coordinate real general\n";
const std::string symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
const std::string skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n";

MatrixFile read(const std::string& content) {
  const Folder folder;
  store(folder / "a.mtx", content);
  return read_matrix(folder / "a.mtx");
}

/// Reads such a file: its message names it and the line, and has all words.
void refused(const std::string& content, Index line, std::initializer_list<const char*> words) {
  const Folder folder;
  const fs::path path = folder / "a.mtx";
  store(path, content);
  const std::string message = message_of([&] { read_matrix(path); });
  CAPTURE(content.substr(0, 200));
  CAPTURE(message);
  CHECK(message.find(path.string() + ": line " + std::to_string(line) + ": ") == 0);
  message_has(message, words);
}

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
  const MatrixFile file = read(
      "%%matrixmarket MATRIX Coordinate REAL General\r\n% a comment\n\n   % another\r\n 2\t3 4 \r\n\n1 3 +2.5e0\r\n"
      "% in between\n2 1 -1\n   \n1\t1\t.5\r\n\t2 3 1e-3");
  CHECK(file.matrix.first_row == 0);
  CHECK(file.matrix.total_rows == 2);
  CHECK(file.matrix.cols == 3);
  CHECK(file.matrix.row_begin == std::vector<Index>{0, 2, 4});
  CHECK(file.matrix.columns == std::vector<Index>{0, 2, 0, 2});
  CHECK(file.matrix.values == std::vector<double>{.5, 2.5, -1, 1e-3});
  CHECK(file.field == Field::real);
  CHECK(file.symmetry == Symmetry::general);
  CHECK(file.duplicates == 0);
}

TEST_CASE("both triangles of symmetric and skew-symmetric files") {
  const MatrixFile file = read(symmetric + "3 3 4\n1 1 2\n3 1 -1\n3 3 5\n2 2 7\n");
  CHECK(file.symmetry == Symmetry::symmetric);
  CHECK(entries_of(file.matrix) ==
        Entries{{{0, 0}, 2}, {{0, 2}, -1}, {{1, 1}, 7}, {{2, 0}, -1}, {{2, 2}, 5}});
  const MatrixFile other = read(skew + "3 3 2\n3 1 -1\n2 1 4\n");
  CHECK(other.symmetry == Symmetry::skew_symmetric);
  CHECK(entries_of(other.matrix) == Entries{{{0, 1}, -4}, {{0, 2}, 1}, {{1, 0}, 4}, {{2, 0}, -1}});
}

TEST_CASE("integers, patterns, arrays, and matrices without entries") {
  const MatrixFile integer =
      read("%%MatrixMarket matrix coordinate integer general\n1 2 2\n1 1 -9007199254740992\n1 2 0\n");
  CHECK(integer.field == Field::integer);
  CHECK(entries_of(integer.matrix) == Entries{{{0, 0}, -0x1p53}, {{0, 1}, 0}});  // explicit zeros stay
  const MatrixFile pattern = read("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n");
  CHECK(pattern.field == Field::pattern);
  CHECK(entries_of(pattern.matrix) == Entries{{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}});

  const std::string array = "%%MatrixMarket matrix array real ";
  CHECK(entries_of(read(array + "general\n2 3\n1\n0\n% column 2\n3\n4\n\n0\n6\n").matrix) ==
        Entries{{{0, 0}, 1}, {{0, 1}, 3}, {{1, 1}, 4}, {{1, 2}, 6}});
  CHECK(entries_of(read(array + "symmetric\n3 3\n1\n2\n3\n4\n0\n6\n").matrix) ==
        Entries{{{0, 0}, 1}, {{0, 1}, 2}, {{0, 2}, 3}, {{1, 0}, 2}, {{1, 1}, 4}, {{2, 0}, 3}, {{2, 2}, 6}});
  CHECK(entries_of(read(array + "skew-symmetric\n3 3\n2\n3\n5\n").matrix) ==
        Entries{{{0, 1}, -2}, {{0, 2}, -3}, {{1, 0}, 2}, {{1, 2}, -5}, {{2, 0}, 3}, {{2, 1}, 5}});
  CHECK(entries_of(read(array + "skew-symmetric\n1 1\n").matrix).empty());
  CHECK(entries_of(read("%%MatrixMarket matrix array integer general\n1 2\n-3\n4\n").matrix) ==
        Entries{{{0, 0}, -3}, {{0, 1}, 4}});

  const MatrixFile none = read(general + "3 2 0\n");
  CHECK(none.matrix.rows() == 3);
  CHECK(entries_of(none.matrix).empty());
}

TEST_CASE("entries that are there twice are summed in their order, and counted") {
  const MatrixFile file = read(general + "2 2 6\n1 2 1e17\n1 1 3\n1 2 1\n2 2 5\n1 2 -1e17\n2 2 6\n");
  CHECK(file.duplicates == 3);
  CHECK(entries_of(file.matrix) == Entries{{{0, 0}, 3}, {{0, 1}, 0}, {{1, 1}, 11}});  // (1e17 + 1) - 1e17
  const MatrixFile mirrored = read(symmetric + "2 2 5\n1 1 1\n2 1 2\n2 1 3\n1 1 4\n2 2 6\n");
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
      read(general + "1 4 4\n1 1 1.7976931348623157e308\n1 2 -4.9e-324\n1 3 1e-400\n1 4 -0.0\n");
  CHECK(file.matrix.values[0] == std::numeric_limits<double>::max());
  CHECK(file.matrix.values[1] == -std::numeric_limits<double>::denorm_min());
  CHECK(file.matrix.values[2] == 0);
  CHECK(std::signbit(file.matrix.values[3]));
}

TEST_CASE("first lines that say something else") {
  const char* const must = "the first line must be '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'";
  refused("1 1 1\n1 1 1\n", 1, {"it begins with '1', not with '%%MatrixMarket'", must});
  refused("%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n", 1, {"'%MatrixMarket'", must});
  refused("\n" + general + "1 1 0\n", 1, {"begins with ''", must});
  refused("%%MatrixMarket\n1 1 0\n", 1, {"the end of the line stands where 'matrix' is wanted", must});
  refused("%%MatrixMarket vector array real general\n1\n1\n", 1, {"'vector' stands where 'matrix'", must});
  refused("%%MatrixMarket matrix sparse real general\n", 1,
          {"'sparse' stands where 'coordinate' or 'array'", must});
  refused("%%MatrixMarket matrix coordinate real\n1 1 1\n1 1 1\n", 1,
          {"the end of the line stands where 'general', 'symmetric' or 'skew-symmetric' is wanted", must});
  refused("%%MatrixMarket matrix coordinate double general\n", 1,
          {"'double' stands where 'real', 'integer' or 'pattern'", must});
  refused("%%MatrixMarket matrix coordinate Complex general\n", 1,
          {"'Complex': matrices of complex numbers", must});
  refused("%%MatrixMarket matrix coordinate real Hermitian\n", 1,
          {"'Hermitian': matrices of complex numbers", must});
  refused("%%MatrixMarket matrix coordinate real general general\n", 1,
          {"'general' is one word too many", must});
  refused("%%MatrixMarket matrix array pattern general\n", 1, {"an 'array' has every value", must});
  refused("%%MatrixMarket matrix coordinate pattern skew-symmetric\n", 1, {"has no signs", must});
  refused(std::string("\0\x01\xff", 3), 1, {"'\\x00\\x01\\xff'", must});
}

TEST_CASE("sizes that are wrong, or not there") {
  refused(general, 1, {"the file ends before its sizes, 'rows columns entries'"});
  refused(general + "% nothing\n\n", 3, {"ends before its sizes"});
  refused(general + "% a\n2 2\n1 1 1\n", 3, {"the number of entries is missing"});
  refused("%%MatrixMarket matrix array real general\n2\n", 2, {"the number of columns is missing"});
  refused("%%MatrixMarket matrix array real general\n2 2 4\n", 2,
          {"'4' is too much", "'rows columns' alone"});
  refused(general + "2 2 1 7\n1 1 1\n", 2, {"'7' is too much", "'rows columns entries' alone"});
  refused(general + "0 2 0\n", 2, {"the number of rows is '0', which is not in 1 to"});
  refused(general + "2 -2 0\n", 2, {"the number of columns is '-2', which is not in 1 to"});
  refused(general + "2 2 -1\n", 2, {"the number of entries is '-1'"});
  refused(general + "2.0 2 1\n", 2, {"the number of rows is '2.0', which is no whole number"});
  refused(general + "2 x 1\n", 2, {"the number of columns is 'x', which is no whole number"});
  refused(general + "99999999999999999999 2 1\n", 2, {"'99999999999999999999', which is beyond 64 bits"});
  refused(symmetric + "2 3 1\n1 1 1\n", 2, {"a symmetric matrix of 2 x 3: it must be square"});
  refused(skew + "2 3 1\n1 1 1\n", 2, {"a skew-symmetric matrix of 2 x 3"});
  refused("%%MatrixMarket matrix array real general\n4294967296 4294967296\n1\n", 2,
          {"4294967296 x 4294967296 are more numbers than can be counted"});
  refused("%%MatrixMarket matrix array real symmetric\n6074001000 6074001000\n1\n", 2, {"can be counted"});
}

TEST_CASE("more entries are announced than the file has room for: nothing is allocated for them") {
  refused(
      general + "1000000 1000000 1000000000\n1 1 1\n", 2,
      {"1000000000 entries are announced, which take at least 6 bytes each: 6 bytes are left of the file's 79"});
  refused("%%MatrixMarket matrix coordinate pattern general\n9 9 9223372036854775806\n1 1\n", 2,
          {"9223372036854775806 entries", "at least 4 bytes each: 4 bytes are left"});
  refused("%%MatrixMarket matrix array real general\n1000000 1000000\n1\n", 2,
          {"1000000000000 entries", "2 bytes each"});
  refused(general + "9 9 2\n1 1 1\n1 1", 2, {"2 entries are announced"});
  CHECK(read(general + "9 9 2\n1 1 1\n1 2 1").matrix.entries() == 2);  // the last end of a line may lack

  const Folder folder;
  store(folder / "a.mtx", general + "1000000000000000 1 1\n1 1 1\n");
  try {
    read_matrix(folder / "a.mtx");
    CHECK(false);
  } catch (const Error& error) {
    CHECK(error.blame() == Blame::machine);
    message_has(error.what(),
                {"a.mtx: 1000000000000000 rows take 7.45e+06 GiB of main memory, this machine has"});
  }
}

TEST_CASE("entries that are wrong") {
  refused(general + "2 3 1\n0 1 1.\n", 3, {"the row is '0', which is not in 1 to 2"});
  refused(general + "2 3 1\n1 0 1.\n", 3, {"the column is '0', which is not in 1 to 3"});
  refused(general + "2 3 1\n% c\n\n3 1 1.\n", 5, {"the row is '3', which is not in 1 to 2"});
  refused(general + "2 3 2\n1 1 1.\n1 4 1.\n", 4, {"the column is '4', which is not in 1 to 3"});
  refused(general + "2 3 1\n-1 1 1.\n", 3, {"the row is '-1', which is not in 1 to 2"});
  refused(general + "2 3 1\n1.5 1 1.\n", 3, {"the row is '1.5', which is no whole number"});
  refused(general + "2 3 1\n1 1e0 1.\n", 3, {"the column is '1e0', which is no whole number"});
  refused(general + "2 3 1\n1 99999999999999999999 1\n", 3,
          {"the column is '99999999999999999999', which is beyond 64 bits"});
  refused(general + "2 3 1\nrow 1 1.\n", 3, {"the row is 'row', which is no whole number"});
  refused(general + "2 3 1\n1      \n", 3, {"the column is missing"});
  refused(general + "2 3 1\n1 1   \n", 3, {"the value is missing"});
  refused(general + "2 3 1\n1 1 x\n", 3, {"the value is 'x', which is no number"});
  refused(general + "2 3 1\n1 1 1.5D+3\n", 3, {"the value is '1.5D+3', which is no number"});
  refused(general + "2 3 1\n1 1 1,5\n", 3, {"the value is '1,5', which is no number"});
  refused(general + "2 3 1\n1 1 +-1\n", 3, {"the value is '+-1', which is no number"});
  refused(general + "2 3 1\n1 1 nan\n", 3, {"the value is 'nan': every number must be finite"});
  refused(general + "2 3 1\n1 1 -Inf\n", 3, {"the value is '-Inf': every number must be finite"});
  refused(general + "2 3 1\n1 1 1e999\n", 3, {"the value '1e999' is too large for a double"});
  refused(general + "2 3 1\n1 1 1 2\n", 3, {"'2' is too much: the line has 'row column value' alone"});
  refused(general + "2 3 1\n1 1 1 % a comment\n", 3, {"'%' is too much"});
  refused(general + "2 3 1\n1 1 " + std::string(50, '7') + "x\n", 3,
          {("'" + std::string(40, '7') + "'...").c_str()});
  refused("%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1 1\n", 3,
          {"'1' is too much", "'row column' alone"});
  refused("%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 1 1.5\n", 3,
          {"the value is '1.5', which is no whole"});
  refused("%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 1 9007199254740993\n", 3,
          {"the value is '9007199254740993', which is not in -9007199254740992 to 9007199254740992"});
  refused("%%MatrixMarket matrix array real general\n2 1\n1\nx\n", 4, {"the value is 'x'"});
  refused("%%MatrixMarket matrix array real general\n2 1\n1 2\n3\n", 3, {"'2' is too much", "'value' alone"});
}

TEST_CASE("entries of the other triangle are refused: they would count twice") {
  refused(symmetric + "3 3 2\n1 1 1\n2 3 1\n", 4,
          {"the entry '2 3' lies above the diagonal, where a symmetric file has none"});
  refused(skew + "3 3 2\n2 1 1\n1 2 1\n", 4,
          {"the entry '1 2' lies above the diagonal, where a skew-symmetric file"});
  refused(skew + "3 3 2\n2 1 1\n3 3 0\n", 4, {"the entry '3 3' lies on the diagonal"});
}

TEST_CASE("too few entries, and too many") {
  refused(general + "2 2 3\n1 1 1.0000000\n% c\n1 2 2\n", 5,
          {"the file ends here, after 2 of the 3 entries announced"});
  refused(general + "2 2 1\n1 1 1\n\n% c\n1 2 2\n", 6, {"'1' follows the 1 entries announced"});
  refused(general + "2 2 0\nend\n", 3, {"'end' follows the 0 entries announced"});
  refused("%%MatrixMarket matrix array real general\n2 2\n1.000\n2\n3\n", 5, {"after 3 of the 4 entries"});
  CHECK(read(general + "2 2 1\n1 1 1\n\n% the end\n\n").matrix.entries() == 1);
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
  refused(general + "% " + std::string(TextLines::longest_line, 'x') + "\n1 1 0\n", 2,
          {"the line has more than 1048576 bytes"});
  refused(general + "1 1 1\n1 1 " + std::string(2 * TextLines::longest_line, '1'), 3,
          {"the line has more than"});
}

TEST_CASE("lines across the pieces in which a file is read") {
  // Comments of all lengths up to the longest shift where the pieces begin.
  constexpr Index rows = 60000;
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{13}, TextLines::longest_line / 2,
        TextLines::longest_line - 2, TextLines::longest_line - 1}) {
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
    const MatrixFile file = read(content);
    CHECK(entries_of(file.matrix) == entries);
    CHECK(file.duplicates == 2 * rows - static_cast<Index>(entries.size()));
    content.pop_back();
    content.back() = 'x';
    refused(content, 3 + 2 * rows, {"the value is '", "x', which is no number"});
    content.resize(content.rfind('\n') + 1);
    refused(content, 2 + 2 * rows, {"the file ends here, after 119999 of the 120000 entries announced"});
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

TEST_CASE("a matrix that is written is what the format wants, and is read again bit for bit") {
  const Folder folder;
  const Entries entries{{{0, 0}, 4}, {{0, 2}, -1. / 3}, {{2, 0}, -1. / 3}, {{2, 2}, 1e300}};
  write_matrix_market(folder / "a.mtx", csr_of(3, 3, entries), Symmetry::general);
  CHECK(load(folder / "a.mtx") ==
        general + "3 3 4\n1 1 4\n1 3 -0.3333333333333333\n3 1 -0.3333333333333333\n3 3 1e+300\n");
  write_matrix_market(folder / "a.mtx", csr_of(3, 3, entries), Symmetry::symmetric);
  CHECK(load(folder / "a.mtx") == symmetric + "3 3 3\n1 1 4\n3 1 -0.3333333333333333\n3 3 1e+300\n");
  const MatrixFile file = read_matrix(folder / "a.mtx");
  CHECK(file.symmetry == Symmetry::symmetric);
  CHECK(entries_of(file.matrix) == entries);
  CHECK(folder.entries() == 1);

  std::mt19937_64 engine(3);
  Entries many;  // more than is written at a time, of all exponents
  for (int i = 0; i < 100000; ++i) {
    const auto bits = (engine() & 0x800fffffffffffff) | (engine() % 0x7ff) << 52;
    const auto row = static_cast<Index>(engine() % 5000), col = static_cast<Index>(engine() % 70);
    many[{row, col}] = std::bit_cast<double>(bits);
  }
  write_matrix_market(folder / "b.mtx", csr_of(5000, 70, many), Symmetry::general);
  const MatrixFile again = read_matrix(folder / "b.mtx");
  CHECK(entries_of(again.matrix) == many);
  CHECK(again.matrix.cols == 70);
}

TEST_CASE("what cannot be written leaves the old file") {
  const Folder folder;
  const fs::path path = folder / "a.mtx";
  store(path, "old");
  const auto message = [&](const sparse::Csr<double>& matrix, Symmetry symmetry) {
    return message_of([&] { write_matrix_market(path, matrix, symmetry); });
  };
  const auto one = csr_of(2, 2, {{{0, 0}, 1}});
  message_has(message(csr_of(1, 1, {{{0, 0}, std::numeric_limits<double>::quiet_NaN()}}), Symmetry::general),
              {"a.mtx: cannot be written: a number is nan"});
  message_has(message(one, Symmetry::skew_symmetric), {"a.mtx", "not as skew-symmetric"});
  auto part = one;
  part.total_rows = 3;
  message_has(message(part, Symmetry::general), {"a.mtx: rows 0 to 2 are here, all 3 are written"});
  CHECK(load(path) == "old");
  CHECK(folder.entries() == 1);
  message_has(message_of([&] { write_matrix_market(folder / "no" / "a.mtx", one, Symmetry::general); }),
              {"cannot be written"});
}

TEST_CASE("the Laplacian of a pattern is definite, whether or not its diagonal is there") {
  const MatrixFile file =
      read("%%MatrixMarket matrix coordinate pattern symmetric\n4 4 4\n1 1\n2 1\n3 1\n3 3\n");
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
