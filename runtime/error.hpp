/// \file
/// What can go wrong, and who has to mend it.
#pragma once

#include <stdexcept>
#include <string>

namespace asterism {

/// Who has to act on an error. The values are the exit statuses of the command-line tool.
enum class Blame {
  input = 2,    ///< the caller: a bad argument, option or file
  machine = 3,  ///< the machine: no such worker, not enough memory, no progress
  task = 4,     ///< the run: a task of the graph failed
};

/// The base of everything that Asterism throws. The message says what is wrong, gives the offending value, and says
/// what to do about it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Blame blame = Blame::input)
      : std::runtime_error(message), blame_(blame) {}

  [[nodiscard]] Blame blame() const noexcept { return blame_; }

 private:
  Blame blame_;
};

/// The first failure inside a task; thrown by Runtime::wait().
class TaskFailure : public Error {
 public:
  TaskFailure(const std::string& task, const std::string& reason)
      : Error("task " + task + " failed: " + reason, Blame::task), task_(task) {}

  [[nodiscard]] const std::string& task() const noexcept { return task_; }

 private:
  std::string task_;
};

/// The watchdog saw no progress: the message names the oldest waiting task, its tiles and the memory nodes. The task
/// graph cannot be cancelled, so after a Stall the Runtime is of no further use and the process should end.
class Stall : public Error {
 public:
  explicit Stall(const std::string& diagnosis) : Error(diagnosis, Blame::machine) {}
};

}  // namespace asterism
