/// \file
/// NumPy files byte by byte, in a folder that vanishes.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>

namespace asterism::test {

/// A folder of its own for each test case.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("asterism_npy_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path operator/(const std::string& name) const { return path / name; }
  [[nodiscard]] long entries() const {
    return std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator());
  }
};

inline void store(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// The bytes of a file with the given dict, as NumPy lays them out.
inline std::string npy(const std::string& dict, const std::string& data, char version = 1) {
  const std::size_t before = version == 1 ? 10 : 12;
  std::string header = dict;
  header.append(63 - (before + dict.size()) % 64, ' ');
  header += '\n';
  std::string text = std::string("\x93NUMPY") + version + '\0';
  for (std::size_t i = 0; i < before - 8; ++i) text += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return text + header + data;
}

template <class T>
std::string bytes(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

inline const std::string two_by_three = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
inline const std::string six_numbers = bytes<double>({1, 2, 3, 4, 5, 6.5});

}  // namespace asterism::test
