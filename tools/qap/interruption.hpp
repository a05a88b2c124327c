/// \file
/// Ctrl-C as a wish, where a run has something to keep.
#pragma once

namespace asterism::tools {

/// While it lives SIGINT and SIGTERM do not end the process, but are remembered. A second one ends it, as ever.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  [[nodiscard]] static bool wanted();
};

}  // namespace asterism::tools
