/// \file
/// Streams beside those of tasks: see cuda::Aside. Private to runtime/.
#pragma once

#include <cstddef>

#include "side_streams.hpp"

namespace asterism::cuda {

/// What a worker keeps for its tasks, used in its thread alone.
class Asides {
 public:
  /// One after the other, as many as StarPU gives a GPU tasks at a time; made when first asked for.
  /// @throw Error: CUDA refuses
  SideStream next();

 private:
  SideStreams all_;
  std::size_t turn_ = 0;
};

}  // namespace asterism::cuda
