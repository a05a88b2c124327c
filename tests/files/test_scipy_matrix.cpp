// What scipy.sparse.save_npz writes: archives are made here as zipfile makes them, stored or deflated.

#include <doctest/doctest.h>
#include <zip.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "../support/sparse_entries.hpp"
#include "tools/files/matrices/matrix_file.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
namespace fs = std::filesystem;

namespace {

using Members = std::map<std::string, std::string>;

std::string array(const std::string& type, const std::string& shape, const std::string& data) {
  return npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }", data);
}

template <class T>
std::string line(const std::string& type, const std::vector<T>& numbers) {
  return array(type, "(" + std::to_string(numbers.size()) + ",)", bytes(numbers));
}

/// scipy.sparse.csr_matrix([[1, 0, 2], [0, 0, 0], [0, -3, 0]])
Members three_rows() {
  return {{"format.npy", array("|S3", "()", "csr")},
          {"shape.npy", line<std::int64_t>("<i8", {3, 3})},
          {"indptr.npy", line<std::int32_t>("<i4", {0, 2, 2, 3})},
          {"indices.npy", line<std::int32_t>("<i4", {0, 2, 1})},
          {"data.npy", line<double>("<f8", {1, 2, -3})}};
}

Members with(const std::string& name, const std::string& content) {
  Members members = three_rows();
  members[name + ".npy"] = content;
  return members;
}

void make(const fs::path& path, const Members& members, zip_int32_t method = ZIP_CM_STORE) {
  zip_t* const archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  REQUIRE(archive != nullptr);
  for (const auto& [name, content] : members) {
    zip_source_t* const source = zip_source_buffer(archive, content.data(), content.size(), 0);
    const zip_int64_t index = zip_file_add(archive, name.c_str(), source, 0);
    REQUIRE(index >= 0);
    REQUIRE(zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), method, 0) == 0);
  }
  REQUIRE(zip_close(archive) == 0);
}

MatrixFile read(const Members& members, zip_int32_t method = ZIP_CM_STORE) {
  const Folder folder;
  make(folder / "a.npz", members, method);
  return read_matrix(folder / "a.npz");
}

/// Reads such an archive: its message names it and the member, and has all words.
void refused(const Members& members, const std::string& member, std::initializer_list<const char*> words) {
  const Folder folder;
  make(folder / "a.npz", members);
  const std::string message = message_of([&] { read_matrix(folder / "a.npz"); });
  CAPTURE(message);
  CHECK(message.find((folder / "a.npz").string() + ": " + member) == 0);
  message_has(message, words);
}

}  // namespace

TEST_CASE("stored and deflated archives") {
  for (const zip_int32_t method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    const MatrixFile file = read(three_rows(), method);
    CHECK(file.matrix.total_rows == 3);
    CHECK(file.matrix.cols == 3);
    CHECK(file.matrix.row_begin == Array<Index>{0, 2, 2, 3});
    CHECK(entries_of(file.matrix) == Entries{{{0, 0}, 1}, {{0, 2}, 2}, {{2, 1}, -3}});
    CHECK(file.field == Field::real);
    CHECK(file.symmetry == Symmetry::general);
    CHECK(file.duplicates == 0);
  }
}

TEST_CASE("types of numbers, of the format's text, and members that are of no account") {
  const Entries same = entries_of(read(three_rows()).matrix);
  const auto data = [&](const std::string& content) { return read(with("data", content)); };
  CHECK(entries_of(data(line<float>("<f4", {1, 2, -3})).matrix) == same);
  CHECK(data(line<float>("<f4", {1, 2, -3})).field == Field::real);
  CHECK(entries_of(data(line<std::int8_t>("|i1", {1, 2, -3})).matrix) == same);
  CHECK(entries_of(data(line<std::int16_t>("<i2", {1, 2, -3})).matrix) == same);
  CHECK(entries_of(data(line<std::int32_t>("<i4", {1, 2, -3})).matrix) == same);
  CHECK(entries_of(data(line<std::int64_t>("<i8", {1, 2, -3})).matrix) == same);
  CHECK(data(line<std::int64_t>("<i8", {1, 2, -3})).field == Field::integer);
  const Entries ones{{{0, 0}, 1}, {{0, 2}, 1}, {{2, 1}, 1}};
  CHECK(entries_of(data(line<std::uint8_t>("|b1", {1, 1, 1})).matrix) == ones);
  CHECK(entries_of(data(line<std::uint8_t>("|u1", {1, 1, 1})).matrix) == ones);
  CHECK(entries_of(data(line<std::uint16_t>("<u2", {1, 1, 1})).matrix) == ones);
  CHECK(entries_of(data(line<std::uint32_t>("<u4", {1, 1, 1})).matrix) == ones);
  CHECK(entries_of(data(line<std::uint64_t>("<u8", {1, 1, 1})).matrix) == ones);

  Members members = three_rows();
  members["indptr.npy"] = line<std::int64_t>("<i8", {0, 2, 2, 3});
  members["indices.npy"] = line<std::int64_t>("<i8", {0, 2, 1});
  members["shape.npy"] = line<std::int32_t>("<i4", {3, 3});
  members["format.npy"] = array("<U3", "()", std::string("c\0\0\0s\0\0\0r\0\0\0", 12));  // of Python 2
  members["_is_array.npy"] = array("|b1", "()", "\1");
  CHECK(entries_of(read(members).matrix) == same);
}

TEST_CASE("rectangular matrices, and those without entries") {
  Members members = with("shape", line<std::int64_t>("<i8", {3, 7}));
  CHECK(read(members).matrix.cols == 7);
  members["indptr.npy"] = line<std::int32_t>("<i4", {0, 0, 0, 0});
  members["indices.npy"] = line<std::int32_t>("<i4", {});
  members["data.npy"] = line<double>("<f8", {});
  const MatrixFile none = read(members);
  CHECK(none.matrix.rows() == 3);
  CHECK(entries_of(none.matrix).empty());
}

TEST_CASE("columns in any order, some of them twice") {
  Members members = with("indptr", line<std::int32_t>("<i4", {0, 4, 4, 6}));
  members["indices.npy"] = line<std::int32_t>("<i4", {2, 0, 2, 1, 1, 1});
  members["data.npy"] = line<double>("<f8", {1, 2, 3, 4, 5, 6});
  const MatrixFile file = read(members);
  CHECK(file.duplicates == 2);
  CHECK(entries_of(file.matrix) == Entries{{{0, 0}, 2}, {{0, 1}, 4}, {{0, 2}, 4}, {{2, 1}, 11}});
}

TEST_CASE("shares of a large archive") {
  constexpr Index rows = 100000, per_row = 5;  // more than a piece of each array
  std::vector<std::int32_t> indptr{0}, indices;
  std::vector<double> data;
  for (Index i = 0; i < rows; ++i) {
    for (Index k = 0; k < per_row; ++k) {
      indices.push_back(static_cast<std::int32_t>((i * 7 + k * 1000) % rows));
      data.push_back(static_cast<double>(i) + 0.1 * static_cast<double>(k));
    }
    indptr.push_back(static_cast<std::int32_t>(indices.size()));
  }
  const Folder folder;
  make(folder / "a.npz",
       {{"format.npy", array("|S3", "()", "csr")},
        {"shape.npy", line<std::int64_t>("<i8", {rows, rows})},
        {"indptr.npy", line("<i4", indptr)},
        {"indices.npy", line("<i4", indices)},
        {"data.npy", line("<f8", data)}},
       ZIP_CM_DEFLATE);
  Index next_row = 0;
  std::size_t entry = 0, differences = 0;
  for (const Index part : {0, 1, 2}) {
    const auto matrix = read_matrix(folder / "a.npz", equal_entries(part, 3)).matrix;
    CHECK(matrix.first_row == next_row);
    next_row += matrix.rows();
    for (const auto& [place, value] : entries_of(matrix)) {
      const Index first = place.first * per_row;
      bool found = false;
      for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(first + per_row); ++k)
        found |= indices[k] == place.second && data[k] == value;
      differences += !found;
      ++entry;
    }
  }
  CHECK(next_row == rows);
  CHECK(entry == indices.size());
  CHECK(differences == 0);
}

TEST_CASE("archives that hold no matrix in compressed rows") {
  refused(with("format", array("|S3", "()", "csc")), "format.npy: ",
          {"the format is 'csc'; 'csr' is read: scipy.sparse.save_npz(path, a.tocsr()) writes it"});
  refused(with("format", line<double>("<f8", {1})),
          "format.npy: ", {"elements of the type 'f8', one text alone are wanted"});
  refused(with("format", array("|S3", "(2,)", "csrcsr")), "format.npy: ", {"one text alone"});
  for (const char* name : {"format.npy", "shape.npy", "indptr.npy", "indices.npy", "data.npy"}) {
    Members members = three_rows();
    members.erase(name);
    refused(members, "the member ", {name, "No such file"});
  }
  refused(with("shape", line<std::int64_t>("<i8", {3, 3, 1})), "shape.npy: ", {"two extents, not 3"});
  refused(with("shape", line<std::int64_t>("<i8", {3, 0})),
          "shape.npy: ", {"3 x 0: every extent must be at least 1"});
  refused(with("shape", line<double>("<f8", {3, 3})),
          "shape.npy: ", {"of the type 'f8', whole numbers are wanted"});
  refused(with("shape", line<std::int64_t>("<i8", {4, 3})),
          "indptr.npy: ", {"4 numbers; a matrix of 4 rows"});
  refused(with("indptr", line<std::int32_t>("<i4", {1, 2, 2, 3})),
          "indptr.npy: ", {"the number at [0] is 1"});
  refused(with("indptr", line<std::int32_t>("<i4", {0, 2, 1, 3})),
          "indptr.npy: ", {"the number at [2] is 1, less than 2 before it"});
  refused(with("indptr", line<std::int32_t>("<i4", {0, 2, 2, -3})),
          "indptr.npy: ", {"the number at [3] is -3"});
  refused(with("indptr", line<std::int32_t>("<i4", {0, 2, 2, 1000000000})),
          "indices.npy: ", {"3 numbers; the rows have 1000000000 entries"});
  refused(with("indptr", array("<i4", "(2, 2)", bytes<std::int32_t>({0, 2, 2, 3}))),
          "indptr.npy: ", {"its shape is (2, 2); one dimension is wanted"});
  refused(with("indices", line<std::int32_t>("<i4", {0, 3, 1})),
          "indices.npy: ", {"the number at [1] is 3: columns are from 0 to 2"});
  refused(with("indices", line<std::int32_t>("<i4", {0, -1, 1})),
          "indices.npy: ", {"the number at [1] is -1"});
  refused(with("indices", line<std::uint64_t>("<u8", {0, ~std::uint64_t{0}, 1})),
          "indices.npy: ", {"the number at [1] is"});
  refused(with("data", line<double>("<f8", {1, 2})), "data.npy: ", {"2 numbers; the rows have 3 entries"});
  refused(with("data", line<double>("<f8", {1, 2, std::numeric_limits<double>::quiet_NaN()})),
          "data.npy: ", {"the number at [2] is nan: every number must be finite"});
  refused(with("data", line<std::int64_t>("<i8", {1, (std::int64_t{1} << 53) + 1, 2})),
          "data.npy: ", {"the number at [1] is 9007199254740993, more than a double holds exactly"});
  refused(with("data", array("<c16", "(3,)", std::string(48, '\0'))),
          "data.npy: ", {"of the type 'c16', real or whole numbers are wanted"});
  refused(with("data", array(">f8", "(3,)", std::string(24, '\0'))),
          "data.npy: byte 20: ", {"'>f8'", "little-endian"});
}

TEST_CASE("members and archives that are damaged") {
  refused(with("data", "no array"), "data.npy: byte 0: ", {"not a .npy file", "'no arr'"});
  refused(with("data", "\x93NUMPY"), "data.npy: byte 6: ", {"ends inside its header"});
  refused(with("data", ""), "data.npy: ", {"ends inside its header"});
  refused(with("data", array("<f8", "(3,)", bytes<double>({1, 2}))),
          "data.npy: ", {"16 bytes of numbers are there", "the shape (3,) of 'f8'"});
  refused(with("data", array("<f8", "(9223372036854775807, 9223372036854775807)", "")),
          "data.npy: ", {"0 bytes of numbers"});
  refused(with("data", array("<f", "(3,)", "")), "data.npy: ", {"'<f'"});

  const Folder folder;
  const fs::path path = folder / "a.npz";
  const auto message = [&](const std::string& content) {
    store(path, content);
    return message_of([&] { read_matrix(path); });
  };
  make(path, three_rows());
  std::string archive = load(path);
  const auto numbers = archive.find(bytes<double>({1, 2, -3}));
  REQUIRE(numbers != std::string::npos);
  archive[numbers + 3] = 1;  // another number, which is finite: the checksum tells
  message_has(message(archive), {"a.npz: data.npy: byte 152: cannot be read: CRC error"});
  message_has(message(archive.substr(0, archive.size() / 2)), {"a.npz: cannot be read as a zip archive: "});
  message_has(message("PK"), {"a.npz: cannot be read as a zip archive: "});
}

TEST_CASE("changed anywhere, an archive is read or refused") {
  const Folder folder;
  const fs::path path = folder / "a.npz";
  for (const zip_int32_t method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    make(path, three_rows(), method);
    const std::string valid = load(path);
    for (std::size_t at = 0; at < valid.size(); ++at) {
      std::string changed = valid;
      changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      store(path, changed);
      try {
        entries_of(read_matrix(path).matrix);
      } catch (const Error& error) {
        CHECK(std::string(error.what()).starts_with(path.string()));
      }
    }
  }
}
