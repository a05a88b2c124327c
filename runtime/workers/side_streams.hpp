/// \file
/// The streams that a worker has beside the stream of its tasks: see cuda::Team and cuda::Aside. Private to runtime/.
#pragma once

#include <cstddef>
#include <vector>

#include "../cuda.hpp"

namespace asterism::cuda {

/// Streams that live as long as it does.
class SideStreams {
 public:
  SideStreams() = default;
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;
  ~SideStreams();

  /// One more, on the current device. @throw Error: CUDA refuses
  SideStream add();

  [[nodiscard]] std::size_t count() const { return all_.size(); }
  [[nodiscard]] SideStream operator[](std::size_t i) const { return all_[i]; }

 private:
  std::vector<SideStream> all_;
};

}  // namespace asterism::cuda
