// Vectors in files: NumPy's and Matrix Market's are read alike, and what is written is read again bit for bit.

#include <doctest/doctest.h>

#include <filesystem>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "tools/files/matrices/vector_file.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
namespace fs = std::filesystem;

namespace {

const std::string array = "%%MatrixMarket matrix array real general\n";

std::string npy_of(const std::string& shape, const std::string& data, const std::string& type = "<f8") {
  return npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }", data);
}

Vectors read(const std::string& content) {
  const Folder folder;
  store(folder / "b", content);
  return read_vectors(folder / "b");
}

void refused(const std::string& content, std::initializer_list<const char*> words) {
  const Folder folder;
  store(folder / "b", content);
  const std::string message = message_of([&] { read_vectors(folder / "b"); });
  CHECK(message.find((folder / "b").string() + ": ") == 0);
  message_has(message, words);
}

}  // namespace

TEST_CASE("several vectors are row-major here, column by column in Matrix Market files") {
  const std::vector<double> values{1, 4, 2, 5, 3, 6.5};
  for (const Vectors& vectors :
       {read(array + "3 2\n1\n2\n3\n4\n5\n6.5\n"), read(npy_of("(3, 2)", bytes(values))),
        read(npy_of("(3, 2)", bytes<float>({1, 4, 2, 5, 3, 6.5}), "<f4"))}) {
    CHECK(vectors.rows == 3);
    CHECK(vectors.cols == 2);
    CHECK(vectors.values == values);
  }
}

TEST_CASE("a single vector") {
  for (const Vectors& vectors :
       {read("%%MatrixMarket matrix array integer general\n% b\n3 1\n1\n-2\n3\n"),
        read(npy_of("(3,)", bytes<double>({1, -2, 3}))), read(npy_of("(3, 1)", bytes<double>({1, -2, 3})))}) {
    CHECK(vectors.rows == 3);
    CHECK(vectors.cols == 1);
    CHECK(vectors.values == std::vector<double>{1, -2, 3});
  }
}

TEST_CASE("files that hold no vectors") {
  refused(
      "%%MatrixMarket matrix coordinate real general\n3 1 1\n1 1 1\n",
      {"line 1: holds a matrix, 'coordinate real general'; vectors are an 'array real general', or a .npy file"});
  refused("%%MatrixMarket matrix array real symmetric\n1 1\n1\n",
          {"line 1: holds a matrix, 'array real symmetric'"});
  refused(array + "3 1\n1\n2\nx\n", {"line 5: the value is 'x', which is no number"});
  refused(array + "3 1\n1\n2\nnan\n", {"line 5: the value is 'nan': every number must be finite"});
  refused(array + "3 1\n1.000\n2\n", {"line 4: the file ends here, after 2 of the 3 entries"});
  refused(array + "3 1\n1\n2\n3\n4\n", {"line 6: '4' follows the 3 entries"});
  refused(array + "3 1000000\n1\n2\n3\n4\n", {"line 2: 3000000 entries are announced"});
  refused("1\n2\n3\n", {"line 1: it begins with '1', not with '%%MatrixMarket'"});
  refused("", {"byte 0: the file is empty"});
  refused(npy_of("(1, 3, 1)", bytes<double>({1, 2, 3})),
          {"an array of 3 dimensions", "1 to 2 dimensions are wanted"});
  refused(npy_of("(3,)", bytes<double>({1, std::numeric_limits<double>::infinity(), 3})),
          {"byte 136: the number at [1] is inf: every number must be finite"});
  refused(npy_of("(3,)", bytes<double>({1, 2})), {"the file ends here"});
  CHECK(message_of([] { read_vectors("/nowhere/b.mtx"); }) ==
        "/nowhere/b.mtx: cannot be opened: No such file or directory");
  const Folder folder;
  message_has(message_of([&] { read_vectors(folder.path()); }), {"is a folder, not a file of vectors"});
}

TEST_CASE("what is written, byte for byte") {
  const Folder folder;
  const Vectors two{3, 2, {1, 4, 2, 5, 3, -1. / 3}}, one{3, 1, {1, -2, 0.1}};
  const auto written = [&](const char* name, const Vectors& vectors) {
    VectorFile(folder / name).write(vectors);
    return load(folder / name);
  };
  CHECK(written("x.mtx", two) == array + "3 2\n1\n2\n3\n4\n5\n-0.3333333333333333\n");
  CHECK(written("x.mtx", one) == array + "3 1\n1\n-2\n0.1\n");
  CHECK(written("x.npy", two) == npy_of("(3, 2)", bytes(two.values)));
  CHECK(written("x.npy", one) == npy_of("(3,)", bytes(one.values)));
  CHECK(folder.entries() == 2);
}

TEST_CASE("what is written is read again") {
  const Folder folder;
  Vectors vectors{50000, 3, {}};
  for (int i = 0; i < 150000; ++i)
    vectors.values.push_back(static_cast<double>(i - 70000) / 7e-3 / (i % 13 + 1));
  vectors.values[1] = std::numeric_limits<double>::denorm_min();
  vectors.values[2] = std::numeric_limits<double>::lowest();
  for (const char* name : {"x.mtx", "x.npy"}) {
    VectorFile(folder / name).write(vectors);
    const Vectors again = read_vectors(folder / name);
    CHECK(again.rows == 50000);
    CHECK(again.cols == 3);
    CHECK(again.values == vectors.values);
  }
}

TEST_CASE("targets are checked before there is something to write, and old files stay") {
  const Folder folder;
  CHECK(message_of([&] { VectorFile(folder / "x.txt"); }) ==
        (folder / "x.txt").string() + ": vectors are written to a file whose name ends in .npy or .mtx");
  message_has(message_of([&] { VectorFile(folder / "no" / "x.npy"); }), {"cannot be written"});
  CHECK(folder.entries() == 0);
  for (const char* name : {"x.mtx", "x.npy"}) {
    store(folder / name, "old");
    { const VectorFile unwritten(folder / name); }
    CHECK(load(folder / name) == "old");
  }
  VectorFile file(folder / "x.mtx");
  message_has(message_of([&] {
                file.write({1, 1, {std::numeric_limits<double>::quiet_NaN()}});
              }),
              {"x.mtx: cannot be written: a number is nan"});
  CHECK(load(folder / "x.mtx") == "old");
}
