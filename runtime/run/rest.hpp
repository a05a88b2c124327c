/// \file
/// Cores that rest while they have nothing to do. Private to runtime/.
#pragma once

namespace asterism {

/// While it lives, workers that have found nothing to do let others have their core between two looks for a task: most of
/// all the thread that submits, which has none of its own, and makes them wait if they do not. StarPU itself looks in a
/// tight loop. CPU workers that have had nothing to do for a millisecond sleep meanwhile: a twentieth of the time that they
/// have been idle, so that a task waits little longer for its worker than it did for what came before it, and at most
/// 20 ms; which leaves memory bandwidth, locks and power to the workers of GPUs. StarPU runs meanwhile.
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
