/// \file
/// The walks of a launch, for `.cu` files only: those of several tiles, a block of threads for each.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../../../runtime/cuda.hpp"
#include "../tabu_search.hpp"

namespace asterism::qap::cuda {

/// What kernels need of a task's arguments, which themselves stay on the host: they own the flag that stops walks.
struct WalkRules {
  Index n, capacity;
  std::int64_t unit, target;

  explicit WalkRules(const TabuArguments& a) : n(a.n), capacity(a.capacity), unit(a.unit), target(a.target) {}
};
static_assert(std::is_trivially_copyable_v<WalkRules>);

/// As many tiles as travel with a launch, one after the other.
class BlockWalks {
 public:
  __host__ bool is_full() const { return tiles_ == most; }
  __host__ void add(const InOut<unsigned char>& tile) {
    const unsigned before = count();
    tiles_of_[tiles_] = tile;
    end_[tiles_++] = before + static_cast<unsigned>(tile.rows);
  }
  [[nodiscard]] __host__ unsigned count() const { return tiles_ > 0 ? end_[tiles_ - 1] : 0; }

  /// The walk of the caller's block.
  [[nodiscard]] __device__ unsigned char* mine() const {
    int tile = 0;
    while (blockIdx.x >= end_[tile]) ++tile;
    return tiles_of_[tile].row(blockIdx.x - (tile > 0 ? end_[tile - 1] : 0));
  }

 private:
  static constexpr int most = 64;

  InOut<unsigned char> tiles_of_[most];
  unsigned end_[most];  // the walks up to and with those of a tile
  int tiles_ = 0;
};

/// Beside the walks of other tasks, which alone may leave much of a GPU idle, and wait for their islands between generations.
/// @param room a row for each walk @param launch called as launch(stream, walks, room of these), once for up to 64 tiles
template <class Launch>
void launch_walks(Stream task, const Many<InOut<unsigned char>>& tiles, Scratch<unsigned char> room, const Launch& launch) {
  const asterism::cuda::Aside aside(task);
  for (Index next = 0; next < tiles.size();) {
    BlockWalks walks;
    while (next < tiles.size() && !walks.is_full()) walks.add(tiles[next++]);
    launch(asterism::cuda::native(aside.stream()), walks, room);
    room.data += walks.count() * room.ld;
  }
}

}  // namespace asterism::qap::cuda
