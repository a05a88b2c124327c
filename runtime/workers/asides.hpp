/// \file
/// Streams beside those of tasks: see cuda::Aside. Private to runtime/.
#pragma once

#include <cstddef>
#include <vector>

#include "../cuda.hpp"

namespace asterism::cuda {

/// What a worker keeps for its tasks, used in its thread alone.
class Asides {
 public:
  Asides() = default;
  Asides(const Asides&) = delete;
  Asides& operator=(const Asides&) = delete;
  ~Asides();

  /// One after the other, as many as StarPU gives a GPU tasks at a time; made when first asked for.
  /// @throw Error: CUDA refuses
  Aside::Own next();

 private:
  std::vector<Aside::Own> all_;
  std::size_t turn_ = 0;
};

}  // namespace asterism::cuda
