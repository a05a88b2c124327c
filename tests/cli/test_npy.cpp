// NumPy's file format: what NumPy writes is read, and what is written is what NumPy would write.

#include "tools/files/npy.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "../support/process.hpp"
#include "npy_files.hpp"
#include "runtime/error.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
namespace fs = std::filesystem;

namespace {

<<<<<<< HEAD
=======
const std::string two_by_three = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
const std::string six_numbers = bytes<double>({1, 2, 3, 4, 5, 6.5});

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

>>>>>>> wip-files
template <class T>
std::vector<T> random_numbers(std::size_t count) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> numbers(count);
  for (T& number : numbers) number = uniform(generator);
  return numbers;
}

template <class T>
std::vector<T> read_all(const fs::path& path) {
  const NpyReader reader(path);
  const Index rows = reader.header().rows(), cols = reader.header().cols();
  std::vector<T> numbers(static_cast<std::size_t>(rows * cols), T(-9));
  reader.read_rows(0, rows, numbers.data(), cols);
  return numbers;
}

}  // namespace

TEST_CASE("a file as NumPy writes it, byte for byte") {
  // numpy.save("f.npy", numpy.array([[1, 2, 3], [4, 5, 6.5]])), versions 1, 2 and 3
  const Folder folder;
  for (const char version : {'\1', '\2', '\3'}) {
    store(folder / "f.npy", npy(two_by_three, six_numbers, version));
    const NpyReader reader(folder / "f.npy");
    CHECK(reader.header().precision == Precision::f64);
    CHECK(reader.header().shape == std::vector<Index>{2, 3});
    CHECK(reader.header().data_offset == 128);
    CHECK(read_all<double>(folder / "f.npy") == std::vector<double>{1, 2, 3, 4, 5, 6.5});
  }
}

TEST_CASE("what is written is what NumPy writes") {
  const Folder folder;
  NpyWriter writer(folder / "f.npy", Precision::f64, {2, 3});
  const std::vector<double> numbers{1, 2, 3, 4, 5, 6.5};
  writer.write_rows(0, 2, numbers.data(), 3);
  writer.commit();
  CHECK(load(folder / "f.npy") == npy(two_by_three, six_numbers));
  CHECK(folder.entries() == 1);

  NpyWriter line(folder / "line.npy", Precision::f32, {5});
  line.commit();
  CHECK(load(folder / "line.npy") ==
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", std::string(20, '\0')));
}

TEST_CASE("order of the keys, white space and quotes do not matter") {
  const Folder folder;
  for (const char* dict : {"{\"shape\":(2,3),\"descr\":\"<f8\",\"fortran_order\":False}",
                           "  { 'fortran_order' : False ,\n 'shape':\t( 2 , 3 , ), 'descr':'<f8' , }  "}) {
    store(folder / "f.npy", npy(dict, six_numbers));
    CHECK(read_all<double>(folder / "f.npy")[5] == 6.5);
  }
}

TEST_CASE("other numbers of dimensions, when they are asked for") {
  const Folder folder;
  const auto refused_by = [&](Dimensions dimensions, const char* words) {
    const std::string message = message_of([&] { NpyReader(folder / "f.npy", dimensions); });
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
  };
  store(folder / "f.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }", six_numbers));
  const NpyReader line(folder / "f.npy", 1);
  CHECK(line.header().shape == std::vector<Index>{6});
  CHECK(line.header().rows() == 6);
  CHECK(line.header().cols() == 1);
  refused_by(2, "1 dimension, its shape is (6,); 2 dimensions are wanted");
  store(folder / "f.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3), }", six_numbers));
  const NpyReader solid(folder / "f.npy", {2, 4});
  CHECK(solid.header().rows() == 1);
  CHECK(solid.header().cols() == 6);
  refused_by(2, "3 dimensions, its shape is (1, 2, 3); 2 dimensions are wanted");
  refused_by(1, "(1, 2, 3); 1 dimension is wanted");
  refused_by({4, 5}, "(1, 2, 3); 4 to 5 dimensions are wanted");
}

TEST_CASE("several leading axes count rows") {
  const Folder folder;
  const auto numbers = random_numbers<double>(2 * 3 * 5 * 7);
  NpyWriter writer(folder / "f.npy", Precision::f64, {2, 3, 5, 7});
  writer.set_leading(2);
  CHECK(writer.header().rows() == 6);
  CHECK(writer.header().cols() == 35);
  {
    NpyWriter other = NpyWriter::attach(writer.temporary());
    other.set_leading(3);
    other.write_rows(25, 5, numbers.data() + 175, 7);
  }
  writer.write_rows(0, 5, numbers.data(), 35);
  writer.commit();

  NpyReader reader(folder / "f.npy", 4);
  CHECK(reader.header().file_bytes() == fs::file_size(folder / "f.npy"));
  std::vector<double> target(35);
  reader.set_leading(2);
  reader.read_rows(4, 1, target.data(), 35);
  CHECK(target == std::vector<double>(numbers.begin() + 140, numbers.begin() + 175));
  CHECK_THROWS_AS(reader.read_rows(6, 1, target.data(), 35), Error);
  reader.set_leading(4);
  reader.read_rows(209, 1, target.data(), 1);
  CHECK(target[0] == numbers.back());

  std::fstream(folder / "f.npy", std::ios::binary | std::ios::in | std::ios::out).seekp(128 + 8 * 150)
      << bytes<double>({std::numeric_limits<double>::infinity()});
  reader.set_leading(2);
  const std::string message = message_of([&] { reader.read_rows(4, 1, target.data(), 35, Values::finite); });
  CAPTURE(message);
  CHECK(message.find("byte 1328: the number at [1, 1, 1, 3] is inf") != std::string::npos);
}

TEST_CASE_TEMPLATE("round trips", T, float, double) {
  const Folder folder;
  const fs::path path = folder / "u.npy";
  struct Shape {
    Index rows, cols, ld;
  };
  // One number, primes, short and long strided rows, one long row, and more than one thread is worth.
  for (const auto [rows, cols, ld] :
       {Shape{1, 1, 1}, Shape{1, 1, 5}, Shape{7, 13, 13}, Shape{13, 7, 11}, Shape{1, 1500007, 1500007},
        Shape{3, 10007, 10016}, Shape{503, 4099, 4099}, Shape{503, 4099, 4104}, Shape{15013, 101, 104}}) {
    for (const int threads : {1, 3}) {
      CAPTURE(rows);
      CAPTURE(cols);
      CAPTURE(ld);
      const auto source = random_numbers<T>(static_cast<std::size_t>(rows * ld));
      NpyWriter writer(path, precision_of<T>, {rows, cols}, threads);
      const Index half = rows / 2;  // out of order, in two parts
      writer.write_rows(half, rows - half, source.data() + half * ld, ld);
      writer.write_rows(0, half, source.data(), ld);
      writer.commit();
      CHECK(fs::file_size(path) == 128 + static_cast<std::size_t>(rows * cols) * sizeof(T));

      const NpyReader reader(path, 2, threads);
      std::vector<T> target(source.size(), T(99));
      reader.read_rows(half, rows - half, target.data() + half * ld, ld, Values::finite);
      reader.read_rows(0, half, target.data(), ld);
      std::size_t wrong = 0;
      for (Index i = 0; i < rows * ld; ++i) {
        const auto at = static_cast<std::size_t>(i);
        wrong += i % ld < cols ? target[at] != source[at]
                               : target[at] != T(99);  // between the rows nothing changes
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("the precision changes on the way in, not on the way out") {
  const Folder folder;
  store(folder / "f.npy", npy(two_by_three, six_numbers));
  CHECK(read_all<float>(folder / "f.npy") == std::vector<float>{1, 2, 3, 4, 5, 6.5F});
  NpyWriter writer(folder / "u.npy", Precision::f64, {1, 1});
  const float number = 1;
  CHECK(message_of([&] { writer.write_rows(0, 1, &number, 1); }).find("file of f64, the rows are f32") !=
        std::string::npos);
}

TEST_CASE("several threads of the caller read and write at once") {
  const Folder folder;
  constexpr Index rows = 64, cols = 5000;
  const auto source = random_numbers<double>(rows * cols);
  std::vector<double> target(source.size());
  const auto by_rows = [&](const auto& action) {
    std::vector<std::jthread> threads;
    for (Index first = 0; first < rows; first += 16) threads.emplace_back([=] { action(first); });
  };
  NpyWriter writer(folder / "u.npy", Precision::f64, {rows, cols});
  by_rows([&](Index first) { writer.write_rows(first, 16, source.data() + first * cols, cols); });
  writer.commit();
  const NpyReader reader(folder / "u.npy");
  by_rows([&](Index first) { reader.read_rows(first, 16, target.data() + first * cols, cols); });
  CHECK(target == source);
}

TEST_CASE("several processes write one file") {
  const Folder folder;
  const std::vector<double> numbers{1, 2, 3, 4, 5, 6.5};
  NpyWriter writer(folder / "u.npy", Precision::f64, {2, 3});
  {
    const NpyWriter other = NpyWriter::attach(writer.temporary());
    CHECK(other.header().shape == std::vector<Index>{2, 3});
    other.write_rows(1, 1, numbers.data() + 3, 3);
  }
  CHECK(fs::exists(writer.temporary()));  // only the creator removes it
  writer.write_rows(0, 1, numbers.data(), 3);
  writer.commit();
  CHECK(read_all<double>(folder / "u.npy") == numbers);
  CHECK(message_of([&] { NpyWriter::attach(writer.temporary()); }).find("cannot be opened: No such file") !=
        std::string::npos);
}
<<<<<<< HEAD
=======

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

TEST_CASE("outputs that cannot be written are found at once, and nothing is touched") {
  const Folder folder;
  const auto message = [](const fs::path& path) {
    return message_of([&] { NpyWriter writer(path, Precision::f64, {2, 3}); });
  };
  const auto has = [](const std::string& text, const char* words) {
    CAPTURE(text);
    CHECK(text.find(words) != std::string::npos);
  };
  store(folder / "file", "old");
  has(message(folder.path()), "is a folder");
  has(message(folder.path() / ""), "not the name of a file");
  has(message(""), "not the name of a file");
  has(message(folder / "none/u.npy"), "none: No such file or directory");
  has(message(folder / "file/u.npy"), "file is not a folder");
  has(message("/dev/null"), "not a regular file");
  CHECK(load(folder / "file") == "old");
  CHECK(folder.entries() == 1);
}

namespace {

/// To root everything is allowed, and in some containers root cannot be anybody else.
SkipUnless somebody_can_be_refused() {
  const bool root = ::geteuid() == 0;
  return {!root || (::seteuid(65534) == 0 && ::seteuid(0) == 0), "root cannot be anybody else here"};
}

}  // namespace

TEST_CASE("outputs that this user may not write are found at once, and nothing is touched" *
          somebody_can_be_refused()) {
  const Folder folder;
  const auto message = [](const fs::path& path) {
    return message_of([&] { NpyWriter writer(path, Precision::f64, {2, 3}); });
  };
  store(folder / "file", "old");
  fs::permissions(folder / "file", fs::perms::owner_read);
  fs::create_directory(folder / "locked");
  fs::permissions(folder / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  fs::permissions(folder.path(), fs::perms::all);
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::seteuid(65534) == 0);
  CHECK(message(folder / "file").find("cannot be replaced: Permission denied") != std::string::npos);
  CHECK(message(folder / "locked/u.npy").find("cannot be written: Permission denied") != std::string::npos);
  if (root) REQUIRE(::seteuid(0) == 0);
  CHECK(load(folder / "file") == "old");
  CHECK(folder.entries() == 2);
}

TEST_CASE("a disk that is too small is the machine's fault, found at once") {
  const Folder folder;
  try {
    NpyWriter writer(folder / "u.npy", Precision::f64, {Index{1} << 30, Index{1} << 22});
    FAIL("32 PiB were reserved");
  } catch (const Error& error) {
    CHECK(error.blame() == Blame::machine);
    CHECK(std::string(error.what()).find("cannot be reserved") != std::string::npos);
  }
  CHECK(folder.entries() == 0);
}

TEST_CASE("an old file stays until a new one is complete") {
  const Folder folder;
  const fs::path path = folder / "u.npy";
  store(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  { const NpyWriter writer(path, Precision::f64, {2, 3}); }
  CHECK(load(path) == "old");
  CHECK(folder.entries() == 1);

  NpyWriter writer(path, Precision::f64, {2, 3});
  CHECK(load(path) == "old");
  writer.commit();
  CHECK(fs::file_size(path) == 176);
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(folder.entries() == 1);
}

TEST_CASE("through a symbolic link the file behind it is replaced") {
  const Folder folder;
  fs::create_directory(folder / "elsewhere");
  store(folder / "elsewhere/u.npy", "old");
  fs::create_symlink("elsewhere/u.npy", folder / "link.npy");
  NpyWriter writer(folder / "link.npy", Precision::f64, {2, 3});
  writer.commit();
  CHECK(fs::is_symlink(folder / "link.npy"));
  CHECK(fs::file_size(folder / "elsewhere/u.npy") == 176);
}

TEST_CASE("a process that is ended leaves the old file, and only when killed a temporary one beside it") {
  const Folder folder;
  const fs::path path = folder / "u.npy";
  store(path, "old");
  for (const int signal : {SIGINT, SIGTERM, SIGABRT, SIGKILL}) {
    CAPTURE(signal);
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(SIGINT, SIG_DFL);  // whatever the test program or the shell made of it
      remove_temporaries_when_interrupted();
      const NpyWriter writer(path, Precision::f64, {2, 3});
      std::raise(signal);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(load(path) == "old");
    CHECK(folder.entries() == (signal == SIGKILL ? 2 : 1));  // until somebody writes there again
  }
}

TEST_CASE("what killed processes left of an output is removed by the next that writes it, and nothing else") {
  const Folder folder;
  const std::string dead = ".2147483647-", alive = "." + std::to_string(::getppid()) + "-";
  const std::vector<std::string> others{"u.npy" + alive + "0.part",
                                        "u.npy" + dead + "7.part",  // of one that we cannot see: locked
                                        "v.npy" + dead + "0.part",
                                        "u.npy" + dead + "0.part.npy",
                                        "u.npy" + dead + "x.part",
                                        "u.npy" + dead + ".part",
                                        "u.npy.-1-0.part",
                                        "u.npy.0-0.part",
                                        "u.npy.part",
                                        "u.npy"};
  for (const std::string& name : others) store(folder / name, "old");
  const int locked = ::open((folder / others[1]).c_str(), O_RDWR);
  REQUIRE(::flock(locked, LOCK_EX) == 0);
  for (const char* number : {"0", "12"}) store(folder / ("u.npy" + dead + number + ".part"), "old");
  const auto all = static_cast<long>(others.size());
  CHECK(folder.entries() == all + 2);
  {
    const NpyWriter writer(folder / "u.npy", Precision::f64, {2, 3});
    CHECK(folder.entries() == all + 1);
    const Descriptor another(::open(writer.temporary().c_str(), O_RDWR));  // that of a process that looks
    CHECK(::flock(another.number(), LOCK_EX | LOCK_NB) != 0);
  }
  for (const std::string& name : others) CHECK_MESSAGE(load(folder / name) == "old", name);
  CHECK(folder.entries() == all);
  ::close(locked);
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
>>>>>>> wip-files
