// Matrix Market files that are wrong are refused with file, line and token.

#include <doctest/doctest.h>

#include <string>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "matrix_market_text.hpp"
#include "runtime/error.hpp"
#include "tools/files/matrices/matrix_file.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;

TEST_CASE("first lines that say something else") {
  const char* const must = "the first line must be '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'";
  refused_text("1 1 1\n1 1 1\n", 1, {"it begins with '1', not with '%%MatrixMarket'", must});
  refused_text("%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n", 1, {"'%MatrixMarket'", must});
  refused_text("\n" + general + "1 1 0\n", 1, {"begins with ''", must});
  refused_text("%%MatrixMarket\n1 1 0\n", 1, {"the end of the line stands where 'matrix' is wanted", must});
  refused_text("%%MatrixMarket vector array real general\n1\n1\n", 1,
               {"'vector' stands where 'matrix'", must});
  refused_text("%%MatrixMarket matrix sparse real general\n", 1,
               {"'sparse' stands where 'coordinate' or 'array'", must});
  refused_text(
      "%%MatrixMarket matrix coordinate real\n1 1 1\n1 1 1\n", 1,
      {"the end of the line stands where 'general', 'symmetric' or 'skew-symmetric' is wanted", must});
  refused_text("%%MatrixMarket matrix coordinate double general\n", 1,
               {"'double' stands where 'real', 'integer' or 'pattern'", must});
  refused_text("%%MatrixMarket matrix coordinate Complex general\n", 1,
               {"'Complex': matrices of complex numbers", must});
  refused_text("%%MatrixMarket matrix coordinate real Hermitian\n", 1,
               {"'Hermitian': matrices of complex numbers", must});
  refused_text("%%MatrixMarket matrix coordinate real general general\n", 1,
               {"'general' is one word too many", must});
  refused_text("%%MatrixMarket matrix array pattern general\n", 1, {"an 'array' has every value", must});
  refused_text("%%MatrixMarket matrix coordinate pattern skew-symmetric\n", 1, {"has no signs", must});
  refused_text(std::string("\0\x01\xff", 3), 1, {"'\\x00\\x01\\xff'", must});
}

TEST_CASE("sizes that are wrong, or not there") {
  refused_text(general, 1, {"the file ends before its sizes, 'rows columns entries'"});
  refused_text(general + "% nothing\n\n", 3, {"ends before its sizes"});
  refused_text(general + "% a\n2 2\n1 1 1\n", 3, {"the number of entries is missing"});
  refused_text("%%MatrixMarket matrix array real general\n2\n", 2, {"the number of columns is missing"});
  refused_text("%%MatrixMarket matrix array real general\n2 2 4\n", 2,
               {"'4' is too much", "'rows columns' alone"});
  refused_text(general + "2 2 1 7\n1 1 1\n", 2, {"'7' is too much", "'rows columns entries' alone"});
  refused_text(general + "0 2 0\n", 2, {"the number of rows is '0', which is not in 1 to"});
  refused_text(general + "2 -2 0\n", 2, {"the number of columns is '-2', which is not in 1 to"});
  refused_text(general + "2 2 -1\n", 2, {"the number of entries is '-1'"});
  refused_text(general + "2.0 2 1\n", 2, {"the number of rows is '2.0', which is no whole number"});
  refused_text(general + "2 x 1\n", 2, {"the number of columns is 'x', which is no whole number"});
  refused_text(general + "99999999999999999999 2 1\n", 2,
               {"'99999999999999999999', which is beyond 64 bits"});
  refused_text(symmetric + "2 3 1\n1 1 1\n", 2, {"a symmetric matrix of 2 x 3: it must be square"});
  refused_text(skew + "2 3 1\n1 1 1\n", 2, {"a skew-symmetric matrix of 2 x 3"});
  refused_text("%%MatrixMarket matrix array real general\n4294967296 4294967296\n1\n", 2,
               {"4294967296 x 4294967296 are more numbers than can be counted"});
  refused_text("%%MatrixMarket matrix array real symmetric\n6074001000 6074001000\n1\n", 2,
               {"can be counted"});
}

TEST_CASE("more entries are announced than the file has room for: nothing is allocated for them") {
  refused_text(
      general + "1000000 1000000 1000000000\n1 1 1\n", 2,
      {"1000000000 entries are announced, which take at least 6 bytes each: 6 bytes are left of the file's 79"});
  refused_text("%%MatrixMarket matrix coordinate pattern general\n9 9 9223372036854775806\n1 1\n", 2,
               {"9223372036854775806 entries", "at least 4 bytes each: 4 bytes are left"});
  refused_text("%%MatrixMarket matrix array real general\n1000000 1000000\n1\n", 2,
               {"1000000000000 entries", "2 bytes each"});
  refused_text(general + "9 9 2\n1 1 1\n1 1", 2, {"2 entries are announced"});
  CHECK(read_text(general + "9 9 2\n1 1 1\n1 2 1").matrix.entries() == 2);  // the last end of a line may lack

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
  refused_text(general + "2 3 1\n0 1 1.\n", 3, {"the row is '0', which is not in 1 to 2"});
  refused_text(general + "2 3 1\n1 0 1.\n", 3, {"the column is '0', which is not in 1 to 3"});
  refused_text(general + "2 3 1\n% c\n\n3 1 1.\n", 5, {"the row is '3', which is not in 1 to 2"});
  refused_text(general + "2 3 2\n1 1 1.\n1 4 1.\n", 4, {"the column is '4', which is not in 1 to 3"});
  refused_text(general + "2 3 1\n-1 1 1.\n", 3, {"the row is '-1', which is not in 1 to 2"});
  refused_text(general + "2 3 1\n1.5 1 1.\n", 3, {"the row is '1.5', which is no whole number"});
  refused_text(general + "2 3 1\n1 1e0 1.\n", 3, {"the column is '1e0', which is no whole number"});
  refused_text(general + "2 3 1\n1 99999999999999999999 1\n", 3,
               {"the column is '99999999999999999999', which is beyond 64 bits"});
  refused_text(general + "2 3 1\nrow 1 1.\n", 3, {"the row is 'row', which is no whole number"});
  refused_text(general + "2 3 1\n1      \n", 3, {"the column is missing"});
  refused_text(general + "2 3 1\n1 1   \n", 3, {"the value is missing"});
  refused_text(general + "2 3 1\n1 1 x\n", 3, {"the value is 'x', which is no number"});
  refused_text(general + "2 3 1\n1 1 1.5D+3\n", 3, {"the value is '1.5D+3', which is no number"});
  refused_text(general + "2 3 1\n1 1 1,5\n", 3, {"the value is '1,5', which is no number"});
  refused_text(general + "2 3 1\n1 1 +-1\n", 3, {"the value is '+-1', which is no number"});
  refused_text(general + "2 3 1\n1 1 nan\n", 3, {"the value is 'nan': every number must be finite"});
  refused_text(general + "2 3 1\n1 1 -Inf\n", 3, {"the value is '-Inf': every number must be finite"});
  refused_text(general + "2 3 1\n1 1 1e999\n", 3, {"the value '1e999' is too large for a double"});
  refused_text(general + "2 3 1\n1 1 1 2\n", 3, {"'2' is too much: the line has 'row column value' alone"});
  refused_text(general + "2 3 1\n1 1 1 % a comment\n", 3, {"'%' is too much"});
  refused_text(general + "2 3 1\n1 1 " + std::string(50, '7') + "x\n", 3,
               {("'" + std::string(40, '7') + "'...").c_str()});
  refused_text("%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1 1\n", 3,
               {"'1' is too much", "'row column' alone"});
  refused_text("%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 1 1.5\n", 3,
               {"the value is '1.5', which is no whole"});
  refused_text("%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 1 9007199254740993\n", 3,
               {"the value is '9007199254740993', which is not in -9007199254740992 to 9007199254740992"});
  refused_text("%%MatrixMarket matrix array real general\n2 1\n1\nx\n", 4, {"the value is 'x'"});
  refused_text("%%MatrixMarket matrix array real general\n2 1\n1 2\n3\n", 3,
               {"'2' is too much", "'value' alone"});
}

TEST_CASE("entries of the other triangle are refused: they would count twice") {
  refused_text(symmetric + "3 3 2\n1 1 1\n2 3 1\n", 4,
               {"the entry '2 3' lies above the diagonal, where a symmetric file has none"});
  refused_text(skew + "3 3 2\n2 1 1\n1 2 1\n", 4,
               {"the entry '1 2' lies above the diagonal, where a skew-symmetric file"});
  refused_text(skew + "3 3 2\n2 1 1\n3 3 0\n", 4, {"the entry '3 3' lies on the diagonal"});
}

TEST_CASE("too few entries, and too many") {
  refused_text(general + "2 2 3\n1 1 1.0000000\n% c\n1 2 2\n", 5,
               {"the file ends here, after 2 of the 3 entries announced"});
  refused_text(general + "2 2 1\n1 1 1\n\n% c\n1 2 2\n", 6, {"'1' follows the 1 entries announced"});
  refused_text(general + "2 2 0\nend\n", 3, {"'end' follows the 0 entries announced"});
  refused_text("%%MatrixMarket matrix array real general\n2 2\n1.000\n2\n3\n", 5,
               {"after 3 of the 4 entries"});
  CHECK(read_text(general + "2 2 1\n1 1 1\n\n% the end\n\n").matrix.entries() == 1);
}
