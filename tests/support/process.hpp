/// \file
/// Runs programs and looks at what they leave.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "files.hpp"

namespace asterism::test {

using Words = std::vector<std::string>;

inline Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

struct Result {
  int status = -1;  ///< of the exit; 128 + n where signal n ended it
  std::string out, err;
  double peak_bytes = 0;  ///< largest resident set
};

/// A running program; output goes to files in the current folder. Killed when it ends before the program
/// does.
class Process {
 public:
  /// @param name what its files' names begin with: of several at a time, each needs its own
  explicit Process(const Words& command, const std::string& name = "")
      : out_(name + "stdout.txt"), err_(name + "stderr.txt"), child_(::fork()) {
    if (child_ != 0) return;
    ::setpgid(0, 0);
    redirect(out_, STDOUT_FILENO);
    redirect(err_, STDERR_FILENO);
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (child_ > 0) wait(0);
  }

  void signal(int number) const { ::kill(child_, number); }

  Result wait(double seconds) {
    Result result;
    int status = 0;
    rusage usage{};
    const auto gone = [&](double patience) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
      while (::wait4(child_, &status, WNOHANG, &usage) == 0) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      return true;
    };
    if (!gone(seconds)) {
      signal(SIGTERM);  // mpirun takes its ranks along
      if (!gone(5)) {
        ::kill(-child_, SIGKILL);
        gone(60);
      }
      result.err = "(did not end by itself)\n";
    }
    child_ = -1;
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = load(out_);
    result.err += load(err_);
    result.peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
    return result;
  }

 private:
  static void redirect(const std::string& file, int stream) {
    ::dup2(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), stream);
  }

  std::string out_, err_;
  pid_t child_;
};

/// The command of asterism with these arguments.
inline Words one_process(const Words& arguments) {
  const char* program = std::getenv("ASTERISM_PROGRAM");
  return Words{program != nullptr ? program : "asterism"} + arguments;
}

/// The same with as many workers as there are cores, where a test must not depend on CTest's choice of one.
inline Words on_all_cores(const Words& arguments) {
  return Words{"env", "-u", "STARPU_NCPU", "-u", "STARPU_WORKERS_NOBIND"} + one_process(arguments);
}

/// The same under mpirun, one core for each rank.
inline Words on_ranks(int ranks, const Words& arguments) {
  const char* mpiexec = std::getenv("ASTERISM_MPIEXEC");
  return Words{"env",
               "STARPU_NCPU=1",
               "STARPU_WORKERS_NOBIND=1",
               "OMPI_MCA_hwloc_base_binding_policy=none",
               mpiexec != nullptr ? mpiexec : "mpirun",
               "-np",
               std::to_string(ranks)} +
         one_process(arguments);
}

inline Result run(const Words& command, double seconds = 60) { return Process(command).wait(seconds); }

/// A new, empty folder below the current one.
inline std::filesystem::path fresh_folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::current_path() / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace asterism::test
