// NumPy's file format: what NumPy writes is read, and what is written is what NumPy would write.

#include "tools/files/npy/npy.hpp"

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
#include "../support/skip.hpp"
#include "npy_files.hpp"
#include "runtime/error.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
namespace fs = std::filesystem;

namespace {

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
    if (left_out_when_sanitized(rows == 503)) continue;
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
