/// \file
/// Test cases that end their process, or need another environment, run in a child, which is this program
/// again.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "process.hpp"
#include "skip.hpp"

namespace asterism::test {

struct Child {
  int status;
  std::string text;  ///< what it wrote
};

/// Runs one test case of this program, skipped otherwise, in a process of its own.
/// @param prefix what stands before the program: words for env(1) @param name as Process
inline Child run_in_child(const std::string& test_case, const Words& prefix = {},
                          const std::string& name = "") {
  const Words command = Words{"env"} + prefix +
                        Words{std::filesystem::read_symlink("/proc/self/exe").string(), "--no-skip",
                              "--test-case=" + test_case};
  const Result result = Process(command, name).wait(60);  // a hang takes longer
  return {result.status, result.out + result.err};
}

/// How a test case ends on several ranks.
struct Ending {
  std::string test_case;
  int ranks, status;
  std::string message;   ///< " (rank 1): ..." of the rank that it happened to, ": ..." of all; empty: none
  Words variables = {};  ///< of the environment: NAME=value
};

/// The test case under mpirun. @param name as Process
inline Child run_on_ranks(const Ending& ending, const std::string& name) {
  const char* const mpiexec = std::getenv("ASTERISM_MPIEXEC");
  const Words rank_of_several{"STARPU_NCPU=1", "STARPU_WORKERS_NOBIND=1",
                              "OMPI_MCA_hwloc_base_binding_policy=none",
                              "OMPI_MCA_odls_base_sigkill_timeout=0"};  // mpirun itself waits for a second or two
  return run_in_child(ending.test_case,
                      ending.variables + rank_of_several +
                          Words{mpiexec != nullptr ? mpiexec : "mpirun", "-np", std::to_string(ending.ranks)},
                      name);
}

/// Expects its status, and its message once.
inline void check_ending(const Ending& ending, const Child& child) {
  CAPTURE(ending.test_case);
  CAPTURE(ending.ranks);
  CAPTURE(ending.variables);
  CHECK_MESSAGE(child.status == ending.status, child.text);
  const auto next = [&](std::size_t from) {
    return std::min(child.text.find("asterism: ", from), child.text.find("asterism (rank ", from));
  };
  const std::size_t first = next(0);
  if (ending.message.empty()) {
    CHECK_MESSAGE(first == std::string::npos, child.text);
  } else {
    REQUIRE_MESSAGE(first != std::string::npos, child.text);
    CHECK_MESSAGE(child.text.find("asterism" + ending.message) == first, child.text);
    CHECK_MESSAGE(next(first + 1) == std::string::npos, child.text);
  }
}

/// Runs test cases in children, each on ranks of its own, and expects them to end so. Some run at a time: they mostly
/// wait, for MPI and for each other.
inline void check_endings(const std::vector<Ending>& endings) {
  constexpr std::size_t at_a_time = 4;
  std::vector<Child> children(endings.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < std::min(at_a_time, endings.size()); ++t)
    threads.emplace_back([&] {
      for (std::size_t k = next++; k < endings.size(); k = next++)
        children[k] = run_on_ranks(endings[k], "child" + std::to_string(k) + "_");
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t k = 0; k < endings.size(); ++k) check_ending(endings[k], children[k]);
}

}  // namespace asterism::test
