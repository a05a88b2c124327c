/// \file
/// What is behind a tile. Private to runtime/.
#pragma once

#include <starpu.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../arguments/tile_arguments.hpp"
#include "../hardware/huge_pages.hpp"
#include "../ranks/ranks.hpp"
#include "../runtime.hpp"
#include "../tile.hpp"

namespace asterism::detail {

/// Rows of a tile, where they begin and how many elements from one to the next.
struct HeldRows {
  void* data;
  Index ld;
};

struct TileState : std::enable_shared_from_this<TileState> {
  Runtime::State* runtime = nullptr;  // nullptr: it has ended, and the tile with it
  TileShape shape;
  starpu_data_handle_t handle = nullptr;
  int owner = 0;
  bool borrowed = false;
  std::uintptr_t kept = 0;  // its room on the GPU that keeps it, in memory node kept_node
  unsigned kept_node = 0;
  int home = -1;  // the memory node of the GPU where Hints::together finds it; -1: none in particular
  // Its own room in main memory, and whether it is there and nowhere else, by what has been submitted.
  HugePages room_at_home;
  std::atomic<bool> is_at_home = false;
  std::atomic<bool> written = false;  // reading a tile that nobody wrote makes StarPU abort
  std::atomic<int> host_views = 0;    // HostViews that hold it now
  // What kept the last task that has ended from writing it; nullptr: nothing.
  std::atomic<const Failure*> lost = nullptr;
  std::atomic<const Failure*> mended = nullptr;  // a loss after which a task that writes it was submitted
  std::shared_ptr<void> memory;                  // borrowed memory that lives as long as this
  // With several ranks: those that have it as it was before the host changed it, and were not told. Guarded by the
  // Runtime's mutex, but for whether there are any.
  std::vector<int> outdated;
  std::atomic<bool> is_outdated = false;
  // The Runtime's period in which a task that writes it was last submitted.
  std::atomic<std::uint64_t> written_in = 0;

  /// @throw Error: see Tile
  void begin(Runtime::State& its_runtime, const TileShape& its_shape, void* memory_of_caller, int its_owner);
  /// Takes room in main memory that GPUs read from. @return where; nullptr: there is none
  void* take_room_at_home();
  void give_room_at_home_back() noexcept;
  /// The host is about to change the tile.
  void note_host_change();
  /// Other ranks get it anew.
  void note_told();
  /// Whether that rank has it as it is no more.
  [[nodiscard]] bool is_outdated_on(int rank) const;
  /// The tile's copy there, for whoever has acquired it. Not by what StarPU calls local: what it calls back may run in the
  /// thread of a GPU's worker, whose own memory is another.
  [[nodiscard]] HeldRows in_main_memory() const;
  /// A task that writes the tile has ended: notes whether the content is lost. @param why the task did not do what it
  /// should have; nullptr: it did
  void note_end(Access access, const Failure* why);
  /// A task of another rank that writes the tile was submitted: once its content has come, or what there is in its stead,
  /// and before anybody looks at it, notes whether it is lost.
  void await(Access access);
  /// When nobody has the tile any more: ends it, now or, while an exception passes on one of several ranks, with the next
  /// wait() or the Runtime.
  void let_go() noexcept;
  /// Waits for the tile's tasks, brings borrowed memory up to date, and takes the tile out of the Runtime.
  void end() noexcept;
  /// The same for a tile that outlives its Runtime; views of it end too.
  void end_with_runtime() noexcept;

  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.cols) * shape.element_bytes;
  }
};

/// What keeps a tile from being used, and what to do about it; nullptr: nothing.
const char* flaw_of(const TileState* tile);

}  // namespace asterism::detail
