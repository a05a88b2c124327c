/// \file
/// Test cases that end their process, or need another environment, run in a child, which is this program
/// again.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
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

/// The same under mpirun, for as long as a hang would not.
/// @param variables of the environment: NAME=value
inline Child run_on_ranks(const std::string& test_case, int ranks, const Words& variables = {}) {
  const char* const mpiexec = std::getenv("ASTERISM_MPIEXEC");
  return run_in_child(
      test_case, variables + Words{mpiexec != nullptr ? mpiexec : "mpirun", "-np", std::to_string(ranks)});
}

/// Runs a test case on several ranks, in children, and expects a status and one message: "(rank 1): ..." of the rank that
/// it happened to, ": ..." of all. Empty: none.
inline void ends_with(const std::string& test_case, int ranks, int status, const std::string& message,
                      const Words& variables = {}) {
  const Child child = run_on_ranks(test_case, ranks, variables);
  CAPTURE(test_case);
  CAPTURE(ranks);
  CAPTURE(variables);
  CHECK_MESSAGE(child.status == status, child.text);
  const auto next = [&](std::size_t from) {
    const std::size_t all = child.text.find("asterism: ", from),
                      one = child.text.find("asterism (rank ", from);
    return all < one ? all : one;
  };
  const std::size_t first = next(0);
  const std::size_t expected = message.empty() ? std::string::npos : child.text.find("asterism" + message);
  CHECK_MESSAGE(first == expected, child.text);
  CHECK_MESSAGE((message.empty() || first != std::string::npos), child.text);
  if (first != std::string::npos) CHECK_MESSAGE(next(first + 1) == std::string::npos, child.text);
}

}  // namespace asterism::test
