/// \file
/// Streams of GPUs that work on a task together: see cuda::Team. Private to runtime/.
#pragma once

#include <utility>
#include <vector>

#include "side_streams.hpp"

namespace asterism::cuda {

/// What a worker keeps for its teams, used in its thread alone.
class Teams {
 public:
  /// The members of a team, made when first asked for. @param devices CUDA's numbers @throw Error: CUDA refuses
  std::vector<Team::Member> members(const std::vector<int>& devices);

 private:
  void let_see(const std::vector<int>& devices);

  SideStreams streams_;
  std::vector<Team::Member> all_;
  std::vector<std::pair<int, int>> seen_;  // who sees whom
};

}  // namespace asterism::cuda
