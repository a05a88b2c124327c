/// \file
/// Matrix Market files that a test has as text.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <initializer_list>
#include <string>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "tools/files/matrices/matrix_file.hpp"

namespace asterism::test {

inline const std::string general = "%%MatrixMarket matrix coordinate real general\n";
inline const std::string symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
inline const std::string skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n";

inline tools::MatrixFile read_text(const std::string& content) {
  const Folder folder;
  store(folder / "a.mtx", content);
  return tools::read_matrix(folder / "a.mtx");
}

/// Reads such a file: its message names it and the line, and has all words.
inline void refused_text(const std::string& content, Index line, std::initializer_list<const char*> words) {
  const Folder folder;
  const std::filesystem::path path = folder / "a.mtx";
  store(path, content);
  const std::string message = message_of([&] { tools::read_matrix(path); });
  CAPTURE(content.substr(0, 200));
  CAPTURE(message);
  CHECK(message.find(path.string() + ": line " + std::to_string(line) + ": ") == 0);
  message_has(message, words);
}

}  // namespace asterism::test
