/// \file
/// Test cases that end their process, or need another environment, run in a child, which is this program
/// again.
#pragma once

#include <filesystem>
#include <string>

#include "process.hpp"
#include "skip.hpp"

namespace asterism::test {

struct Child {
  int status;
  std::string text;  ///< what it wrote
};

/// Runs one test case of this program, skipped otherwise, in a process of its own.
/// @param prefix what stands before the program: words for env(1)
inline Child run_in_child(const std::string& test_case, const Words& prefix = {}) {
  const Result result = run(Words{"env"} + prefix +
                            Words{std::filesystem::read_symlink("/proc/self/exe").string(), "--no-skip",
                                  "--test-case=" + test_case});
  return {result.status, result.out + result.err};
}

}  // namespace asterism::test
