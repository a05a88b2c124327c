// Files that NumPy would not write are refused, with the place and the reason; numbers that are not finite are found.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "../support/messages.hpp"
#include "npy_files.hpp"
#include "runtime/error.hpp"
#include "tools/files/finite.hpp"
#include "tools/files/npy/npy.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
namespace fs = std::filesystem;

namespace {

/// Reads such a file: its message has to hold its name and all words.
void refused(const std::string& content, std::initializer_list<const char*> words) {
  const Folder folder;
  const fs::path path = folder / "f.npy";
  store(path, content);
  const std::string message = message_of([&] { NpyReader reader(path); });
  CAPTURE(message);
  CHECK(message.find(path.string() + ": byte ") == 0);
  message_has(message, words);
}

}  // namespace

TEST_CASE("files that are not there, or no files") {
  const Folder folder;
  const auto message = [](const fs::path& path) { return message_of([&] { NpyReader reader(path); }); };
  CHECK(message(folder / "none.npy") ==
        (folder / "none.npy").string() + ": cannot be opened: No such file or directory");
  CHECK(message(folder.path()) == folder.path().string() + ": is a folder, not a .npy file");
  CHECK(message("/dev/null").find("is not a regular file") != std::string::npos);
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(message(folder / "pipe").find("is not a regular file") != std::string::npos);
}

TEST_CASE("bad headers") {
  const auto with = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }",
               six_numbers);
  };
  refused("", {"byte 0", "empty"});
  refused("PK\x03\x04 a zip", {"byte 0", "not a .npy file", "'PK\\x03\\x04 a'"});
  refused("\x93NU", {"byte 3", "ends inside its header"});
  refused(npy(two_by_three, "", 4), {"byte 6", "version 4.0"});
  refused(npy(two_by_three, "").substr(0, 9), {"byte 9", "ends inside its header, which needs 10 bytes"});
  refused(npy(two_by_three, "", 2).substr(0, 100),
          {"byte 100", "ends inside its header, which needs 128 bytes"});
  refused(std::string("\x93NUMPY\x02\0\0\0\0\x7f{'", 14), {"byte 8", "header of 2130706432 bytes"});

  refused(with("'<i8'", "False", "(2, 3)"), {"byte 20", "'<i8'", "a.astype('<f8')"});
  refused(with("'<c16'", "False", "(2, 3)"), {"byte 20", "'<c16'"});
  refused(with("'>f8'", "False", "(2, 3)"), {"byte 20", "'>f8'", "big-endian"});
  refused(with("[('x', '<f8')]", "False", "(2, 3)"), {"byte 20", "structured"});
  refused(with("'<f8'", "True", "(2, 3)"), {"byte 44", "fortran_order is True", "ascontiguousarray"});
  refused(with("'<f8'", "Maybe", "(2, 3)"), {"byte 44", "'Maybe'"});
  refused(with("'<f8'", "False", "(0, 5)"), {"byte 61", "the extent 0: every extent must be at least 1"});
  refused(with("'<f8'", "False", "(2, -3)"), {"the extent -3"});
  refused(with("'<f8'", "False", "(2, 99999999999999999999)"), {"'99999999999999999999'", "too large"});
  refused(with("'<f8'", "False", "(4294967296, 4294967296)"), {"more numbers than can be counted"});
  refused(with("'<f8'", "False", "(2, 1152921504606846975)"),
          {"byte 10", "more numbers than can be counted"});
  refused(with("'<f8'", "False", "(6)"), {"byte 60", "not a tuple"});
  refused(with("'<f8'", "False", "()"), {"byte 60", "single number"});
  refused(with("'<f8'", "False", "(2 3)"), {"byte 63", "',' or ')' is wanted, not '3'"});
  refused(with("'<f8'", "False", "(2, x)"), {"byte 64", "an extent is wanted, not 'x'"});

  refused(npy("", six_numbers), {"'{' is wanted, not the end of the header"});
  refused(npy("{'descr' '<f8'}", six_numbers), {"byte 19", "':' is wanted, not ''<f8''"});
  refused(npy("{'descr", six_numbers), {"byte 11", "a string that does not end"});
  refused(npy("{'descr': '<f8', 'shape': (2, 3)}", six_numbers), {"byte 10", "no 'fortran_order'"});
  refused(npy("{'descr': '<f8', 'descr': '<f8'}", six_numbers),
          {"byte 27", "the key 'descr' is unknown or there twice"});
  refused(npy("{'order': 'C'}", six_numbers), {"byte 11", "the key 'order'"});
  refused(npy(two_by_three + "}", six_numbers), {"'}' follows the end of the header"});
}

TEST_CASE("files shorter and longer than their shape") {
  refused(npy(two_by_three, six_numbers).substr(0, 170),
          {"byte 170", "the file ends here: 42 bytes of numbers are there, the shape (2, 3) needs 48"});
  refused(npy(two_by_three, six_numbers + "xyz"), {"byte 176", "3 bytes too many"});
}

TEST_CASE("a file that shrinks while it is open") {
  const Folder folder;
  store(folder / "f.npy", npy(two_by_three, six_numbers));
  const NpyReader reader(folder / "f.npy");
  fs::resize_file(folder / "f.npy", 130);
  std::vector<double> numbers(6);
  CHECK(message_of([&] { reader.read_rows(0, 2, numbers.data(), 3); }).find("byte 130: the file ends here") !=
        std::string::npos);
}

TEST_CASE("rows that are not there") {
  const Folder folder;
  store(folder / "f.npy", npy(two_by_three, six_numbers));
  const NpyReader reader(folder / "f.npy");
  std::vector<double> numbers(9);
  reader.read_rows(2, 0, numbers.data(), 3);  // none at all are allowed
  CHECK_THROWS_AS(reader.read_rows(1, 2, numbers.data(), 3), Error);
  CHECK_THROWS_AS(reader.read_rows(-1, 2, numbers.data(), 3), Error);
  CHECK_THROWS_AS(reader.read_rows(0, 2, numbers.data(), 2), Error);
}

TEST_CASE("numbers that are not finite") {
  const Folder folder;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<double> numbers(6);
  for (const double bad : {nan, inf, -inf}) {
    store(folder / "f.npy", npy(two_by_three, bytes<double>({1, 2, 3, 4, bad, nan})));
    const NpyReader reader(folder / "f.npy");
    reader.read_rows(0, 2, numbers.data(), 3);
    const std::string message =
        message_of([&] { reader.read_rows(1, 1, numbers.data(), 3, Values::finite); });
    CAPTURE(message);
    CHECK(message.find("f.npy: byte 160: the number at [1, 1] is " + std::string(bad == inf    ? "inf"
                                                                                 : bad == -inf ? "-inf"
                                                                                               : "nan")) !=
          std::string::npos);
  }
}

TEST_CASE_TEMPLATE("the first number that is not finite", T, float, double) {
  using Limits = std::numeric_limits<T>;
  for (const Index cols : {1, 63, 64, 65, 131}) {
    const Index rows = 3, ld = cols + 2;
    std::vector<T> matrix(static_cast<std::size_t>(rows * ld), Limits::quiet_NaN());
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j)
        matrix[static_cast<std::size_t>(i * ld + j)] = j % 3 == 0   ? Limits::max()
                                                       : j % 3 == 1 ? Limits::denorm_min()
                                                                    : T(-0.0);
    CHECK(!first_not_finite(matrix.data(), rows, cols, ld));  // what lies between the rows does not count
    for (Index j = 0; j < cols; ++j) {
      T& number = matrix[static_cast<std::size_t>(ld + j)];
      for (const T bad :
           {Limits::quiet_NaN(), Limits::signaling_NaN(), Limits::infinity(), -Limits::infinity()}) {
        const T good = std::exchange(number, bad);
        const auto found = first_not_finite(matrix.data(), rows, cols, ld);
        REQUIRE(found);
        CHECK(found->row == 1);
        CHECK(found->col == j);
        number = good;
      }
    }
  }
}

TEST_CASE("truncated anywhere and changed anywhere, a file is read or refused") {
  const Folder folder;
  const fs::path path = folder / "f.npy";
  const std::string valid = npy(two_by_three, six_numbers);
  const auto reads = [&] {
    try {
      const NpyReader reader(path);
      const Index rows = reader.header().rows(), cols = reader.header().cols();
      std::vector<double> numbers(static_cast<std::size_t>(rows * cols));
      reader.read_rows(0, rows, numbers.data(), cols, Values::finite);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  store(path, valid);
  CHECK(reads());
  int changed = 0;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (std::size_t at = 0; at < valid.size(); ++at) {
    const auto put = [&](char byte) { file.seekp(static_cast<std::streamoff>(at)).put(byte).flush(); };
    for (int value = 0; value < 256; ++value) {
      put(static_cast<char>(value));
      changed += reads();
    }
    put(valid[at]);
  }
  CHECK(changed > 0);
  CHECK(reads());
  for (std::size_t length = valid.size(); length-- > 0;) {
    fs::resize_file(path, length);
    CHECK(!reads());
  }
}
