/// \file
/// Order for the thread sanitizer. Private to runtime/.
#pragma once

#include <atomic>
#include <cstdint>

namespace asterism {

#ifdef ASTERISM_SANITIZE_THREAD
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif

/// What one thread gives to another through StarPU, whose locks order the two, comes before what the other does with it;
/// but the thread sanitizer cannot look into StarPU. It sees give() and take(), of which nothing is left in other builds.
class HandedOver {
 public:
  void give() {
    if constexpr (thread_sanitizer) ++number_;
  }
  void take() const {
    if constexpr (thread_sanitizer) static_cast<void>(number_.load());
  }

 private:
  std::atomic<std::uint32_t> number_ = 0;
};

}  // namespace asterism
