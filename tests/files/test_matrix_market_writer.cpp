// Matrix Market files that are written are what the format wants, and are read again bit for bit.

#include <doctest/doctest.h>

#include <bit>
#include <filesystem>
#include <limits>
#include <random>
#include <string>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "../support/sparse_entries.hpp"
#include "matrix_market_text.hpp"
#include "tools/files/matrices/matrix_file.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
namespace fs = std::filesystem;

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
