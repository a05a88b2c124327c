/// \file
/// Time for others than the workers.
#pragma once

namespace asterism {

/// While it lives, the workers sleep. Idle ones look for tasks in a tight loop otherwise, and take the cores away from
/// a thread that reads or writes files. No task runs and no tile moves meanwhile, so nobody may wait for any; tasks may be
/// submitted, which all begin at its end.
class Pause {
 public:
  Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
  ~Pause();
};

}  // namespace asterism
