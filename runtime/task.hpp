/// \file
/// A task that was submitted.
#pragma once

#include <utility>

namespace asterism {

namespace detail {
struct TaskRecord;
}

/// What a codelet's call returns: may be dropped, kept, copied, and outlive the Runtime. Of a task that another rank runs
/// it is empty.
class Task {
 public:
  Task() = default;
  explicit Task(detail::TaskRecord* record) noexcept;  ///< private to runtime/: takes one of its holders over
  Task(const Task& other) noexcept;
  Task(Task&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  Task& operator=(Task other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~Task();

  /// Whether it has ended: with success, with a failure, or skipped. True where it is empty. Waits for nothing.
  [[nodiscard]] bool ended() const;

  /// Waits until it has. Where it is empty, for nothing.
  /// @throw TaskFailure: it failed, or was skipped because of an earlier failure, or cancelled. The failure is still thrown
  /// by Runtime::wait(). @throw Stall
  void wait() const;

 private:
  detail::TaskRecord* record_ = nullptr;
};

}  // namespace asterism
