/// \file
/// Cores that rest while they have nothing to do. Private to runtime/.
#pragma once

namespace asterism {

/// While it lives, CPU workers that have had nothing to do for a millisecond sleep between two looks for a
/// task: a twentieth of the time that they have been idle, so that a task waits little longer for its worker
/// than it did for what came before it, and at most 20 ms. Otherwise they look in a tight loop, which wakes
/// sooner but takes memory bandwidth, locks and power away from the workers of GPUs, and the core of the thread that
/// submits, which has none of its own. StarPU runs meanwhile.
class Rest {
 public:
  Rest();
  Rest(const Rest&) = delete;
  Rest& operator=(const Rest&) = delete;
  ~Rest();

  /// The worker of this thread has had something to do.
  static void task_ended();

 private:
  int hook_;
};

}  // namespace asterism
