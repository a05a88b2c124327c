/// \file
/// What can go wrong, and who has to mend it.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

namespace asterism {

/// Who has to act on an error. The values are the exit statuses of the command-line tool.
enum class Blame {
  input = 2,    ///< the caller: a bad argument, option or file
  machine = 3,  ///< the machine: no such worker, not enough memory, no progress
  task = 4,     ///< the run: a task of the graph failed
};

/// Who throws an error: the rank that it happened to, or every rank, so that it is enough if one of them tells it.
enum class ThrownBy { this_rank, all_ranks };

/// The base of everything that Asterism throws. The message says what is wrong, gives the offending value, and says
/// what to do about it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Blame blame = Blame::input, ThrownBy ranks = ThrownBy::this_rank);

  [[nodiscard]] Blame blame() const noexcept { return note_->blame; }
  [[nodiscard]] ThrownBy thrown_by() const noexcept { return note_->thrown_by; }

  /// What an error says, for those that see it pass by without having it: destructors.
  struct Note {
    std::string message;
    Blame blame;
    ThrownBy thrown_by;
  };
  /// That of this thread's last Error that still lives; nullptr: none does.
  [[nodiscard]] static std::shared_ptr<Note> newest() noexcept;

 private:
  std::shared_ptr<Note> note_;  // of all copies
};

/// The first failure inside a task; thrown by Runtime::wait(), on all ranks.
class TaskFailure : public Error {
 public:
  /// @param where " on rank 1", or nothing
  TaskFailure(const std::string& task, const std::string& reason, ThrownBy ranks = ThrownBy::this_rank,
              const std::string& where = {})
      : Error("task " + task + " failed" + where + ": " + reason, Blame::task, ranks), task_(task) {}

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
