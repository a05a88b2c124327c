#include "../tile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "../run/state.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "../cuda.hpp"
#endif

namespace asterism::detail {
namespace {

/// Blocks until the calling thread has the tile as starpu_data_acquire_on_node would, but gives up when the watchdog
/// does. @throw Stall
void wait_for(const TileState& tile, int node, starpu_data_access_mode mode) {
  struct Call {  // shared: after a stall StarPU may still call
    Runtime::State* runtime;
    bool ready = false;
  };
  const auto call = std::make_shared<Call>(Call{tile.runtime});
  starpu_data_acquire_on_node_cb(
      tile.handle, node, mode,
      [](void* argument) {
        const std::unique_ptr<std::shared_ptr<Call>> ours(static_cast<std::shared_ptr<Call>*>(argument));
        const std::lock_guard lock((*ours)->runtime->mutex);
        (*ours)->ready = true;
        (*ours)->runtime->changed.notify_all();
      },
      new std::shared_ptr<Call>(call));
  std::unique_lock lock(tile.runtime->mutex);
  tile.runtime->wait_until(lock, [&] { return call->ready; });
  tile.runtime->by_kernels.take();
}

/// When the tile's tasks so far have ended. @param mode RW: no other copy is kept
void bring_to_main_memory(const TileState& tile, starpu_data_access_mode mode) {
  if (tile.owner != tile.runtime->rank || !tile.written) return;
  // Not a prefetch: that one does not wait for the tasks before it, and would bring what the tile holds now.
  starpu_data_acquire_on_node_cb(
      tile.handle, STARPU_MAIN_RAM, mode,
      [](void* handle) {
        starpu_data_release_on_node(static_cast<starpu_data_handle_t>(handle), STARPU_MAIN_RAM);
      },
      tile.handle);
}

/// The memory node of a rank's GPU. @throw Error: there is none with that number
unsigned node_of_gpu(int gpu) {
  const int worker = number_in_starpu(WorkerKind::cuda, gpu);
  if (worker < 0)
    throw Error(
        fmt::format("tile for GPU {}: there are {}, counted from 0", gpu, starpu_cuda_worker_get_count()));
  return starpu_worker_get_memory_node(static_cast<unsigned>(worker));
}

/// Whether there are GPUs, and their kernels find page-locked main memory at the address that it has for cores.
bool gpus_read_locked_memory() {
#ifdef ASTERISM_WITH_CUDA
  const unsigned gpus = starpu_cuda_worker_get_count();
  for (unsigned gpu = 0; gpu < gpus; ++gpu) {
    const int worker = number_in_starpu(WorkerKind::cuda, static_cast<int>(gpu));
    const int device = starpu_worker_get_devid(worker);
    int can = 0;
    if (cudaDeviceGetAttribute(&can, cudaDevAttrCanUseHostPointerForRegisteredMem, device) != cudaSuccess ||
        can == 0)
      return false;
  }
  return gpus > 0;
#else
  return false;
#endif
}

/// The state of a tile that can be used. @throw Error
TileState& usable(const TileBase& tile) {
  if (const char* const flaw = flaw_of(tile.state())) throw Error(fmt::format("this is {}", flaw));
  return *tile.state();
}

}  // namespace

const char* flaw_of(const TileState* tile) {
  if (tile == nullptr)
    return "an empty tile (default-constructed, or moved from): assign one of a Runtime to it first";
  if (tile->runtime == nullptr) return "a tile of a Runtime that has ended: make it anew";
  return nullptr;
}

TileBase::TileBase(Runtime& runtime, const TileShape& shape, void* borrowed, int owner)
    : state_(std::make_shared<TileState>()) {
  state_->begin(runtime.state(), shape, borrowed, owner);
}

void TileState::begin(Runtime::State& its_runtime, const TileShape& its_shape, void* memory_of_caller,
                      int its_owner) {
  runtime = &its_runtime;
  shape = its_shape;
  owner = its_owner;
  constexpr Index most = std::numeric_limits<std::uint32_t>::max();  // StarPU counts elements in 32 bits
  if (shape.rows < 1 || shape.cols < 1)
    throw Error(fmt::format("tile is {} x {}: every extent must be at least 1", shape.rows, shape.cols));
  if (shape.rows > most || shape.ld > most)
    throw Error(fmt::format("tile is {} x {} (rows {} apart): no extent may pass {}", shape.rows, shape.cols,
                            shape.ld, most));
  if (shape.rows > most / shape.cols)
    throw Error(fmt::format("tile is {} x {}: it may have {} elements at most; use smaller tiles", shape.rows,
                            shape.cols, most));
  if (shape.ld < shape.cols)
    throw Error(fmt::format("tile has rows of {} elements {} apart: the distance must be at least the length",
                            shape.cols, shape.ld));
  if (owner < 0 || owner >= runtime->ranks)
    throw Error(fmt::format("tile of rank {}: there are ranks 0 to {}", owner, runtime->ranks - 1));
  borrowed = memory_of_caller != nullptr && owner == runtime->rank;
  written = borrowed;
  if (shape.gpu >= 0 && owner == runtime->rank) {
    kept_node = node_of_gpu(shape.gpu);
    home = static_cast<int>(kept_node);
    kept = starpu_malloc_on_node(kept_node, bytes());
  }
  void* const in_main_memory = borrowed ? memory_of_caller : take_room_at_home();
  int from = -1;
  if (in_main_memory != nullptr) from = STARPU_MAIN_RAM;
  if (kept != 0) from = static_cast<int>(kept_node);
  starpu_matrix_data_register(
      &handle, from, kept != 0 ? kept : reinterpret_cast<std::uintptr_t>(in_main_memory),
      static_cast<std::uint32_t>(borrowed ? shape.ld : shape.cols), static_cast<std::uint32_t>(shape.cols),
      static_cast<std::uint32_t>(shape.rows), shape.element_bytes);
  if (runtime->ranks > 1) ranks::register_tile(handle, runtime->next_tag++, owner);
  const std::lock_guard lock(runtime->mutex);
  runtime->tiles.insert(this);
}

void* TileState::take_room_at_home() {
  if (!shape.at_home || owner != runtime->rank || !gpus_read_locked_memory() ||
      starpu_memory_allocate(STARPU_MAIN_RAM, bytes(), 0) != 0)
    return nullptr;
  room_at_home = HugePages(bytes());
  if (room_at_home.locked()) return room_at_home.data();
  give_room_at_home_back();
  return nullptr;
}

void TileState::give_room_at_home_back() noexcept {
  if (room_at_home.data() == nullptr) return;
  room_at_home = {};
  starpu_memory_deallocate(STARPU_MAIN_RAM, bytes());
}

TileBase::TileBase() noexcept = default;
TileBase::TileBase(TileBase&&) noexcept = default;

TileBase& TileBase::operator=(TileBase&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

TileBase::~TileBase() {
  if (state_) state_->let_go();
}

void TileState::let_go() noexcept {
  // While an exception passes its tasks may be waiting for other ranks, which wait for this one.
  if (runtime == nullptr || borrowed || !runtime->unwinds()) return end();
  const std::lock_guard lock(runtime->mutex);
  runtime->left_behind.push_back(shared_from_this());
}

void TileState::end() noexcept {
  if (runtime == nullptr || runtime->stalled)
    return;  // after a stall StarPU's threads may still look at the handle
  // The caller may free borrowed memory right after, and transfers of any tile that are still on their way when StarPU
  // ends make it abort: wait for its tasks. While an exception passes they may be waiting for other ranks that wait
  // for this one: the watchdog is told.
  const bool unwinds = runtime->unwinds();
  const auto count = [&](int change) {
    const std::lock_guard lock(runtime->mutex);
    runtime->unwinding += change;
  };
  if (unwinds) count(1);
  try {
    wait_for(*this, STARPU_ACQUIRE_NO_NODE, borrowed ? STARPU_RW : STARPU_W);
  } catch (const Stall& stall) {
    if (!unwinds) fmt::print(stderr, "asterism: at the end of a tile: {}\n", stall.what());
    return;
  }
  if (unwinds) count(-1);
  starpu_data_release_on_node(handle, STARPU_ACQUIRE_NO_NODE);
  if (runtime->ranks > 1) ranks::forget_tile(handle);
  if (borrowed)
    starpu_data_unregister(handle);
  else
    starpu_data_unregister_no_coherency(handle);
  if (kept != 0) starpu_free_on_node(kept_node, kept, bytes());
  give_room_at_home_back();
  const std::lock_guard lock(runtime->mutex);
  runtime->tiles.erase(this);
  runtime = nullptr;
}

void TileState::end_with_runtime() noexcept {
  for (; host_views > 0 && !runtime->stalled; --host_views)
    starpu_data_release_on_node(handle, STARPU_MAIN_RAM);
  end();
}

void TileState::note_host_change() {
  const std::lock_guard lock(runtime->mutex);
  for (int other = 0; other < runtime->ranks; ++other)
    if (other != runtime->rank && ranks::was_sent(handle, other)) outdated.push_back(other);
  is_outdated = !outdated.empty();
}

void TileState::note_told() {
  if (!is_outdated) return;
  const std::lock_guard lock(runtime->mutex);
  outdated.clear();
  is_outdated = false;
}

bool TileState::is_outdated_on(int rank) const {
  if (!is_outdated) return false;
  const std::lock_guard lock(runtime->mutex);
  return std::find(outdated.begin(), outdated.end(), rank) != outdated.end();
}

HeldRows TileState::in_main_memory() const {
  void* const matrix = starpu_data_get_interface_on_node(handle, STARPU_MAIN_RAM);
  return {reinterpret_cast<void*>(STARPU_MATRIX_GET_PTR(matrix)),
          static_cast<Index>(STARPU_MATRIX_GET_LD(matrix))};
}

void TileState::note_end(Access access, const Failure* why) {
  // A task that never began has left what it was to change as it was: good, if its input was.
  const bool changes = why == nullptr ? access == Access::write
                                      : writes(access) && (access == Access::write || !why->cancelled);
  if (changes) lost = why;
}

void TileState::await(Access access) {
  struct Awaited {
    std::shared_ptr<TileState> tile;
    Access access;
  };
  ++runtime->awaited;
  starpu_data_acquire_on_node_cb(
      handle, STARPU_ACQUIRE_NO_NODE, STARPU_RW,
      [](void* argument) {
        const std::unique_ptr<Awaited> ours(static_cast<Awaited*>(argument));
        TileState& tile = *ours->tile;
        Runtime::State& its_runtime = *tile.runtime;
        // Where the task did not do what it should have, all ranks held theirs before it sent this.
        if (its_runtime.holds > 0) its_runtime.wait_while_held();
        tile.note_end(ours->access, its_runtime.failure);
        starpu_data_release_on_node(tile.handle, STARPU_ACQUIRE_NO_NODE);
        const std::lock_guard lock(its_runtime.mutex);
        --its_runtime.awaited;
        its_runtime.changed.notify_all();
      },
      new Awaited{shared_from_this(), access});
}

Index TileBase::rows() const { return usable(*this).shape.rows; }
Index TileBase::cols() const { return usable(*this).shape.cols; }
int TileBase::owner() const { return usable(*this).owner; }

void TileBase::wont_use() const {
  const TileState& tile = usable(*this);
  if (tile.owner == tile.runtime->rank && tile.written) starpu_data_wont_use(tile.handle);
}

void TileBase::fetch() const { bring_to_main_memory(usable(*this), STARPU_R); }

void TileBase::send_home() const {
  TileState& tile = usable(*this);
  bring_to_main_memory(tile, STARPU_RW);
  tile.is_at_home = tile.room_at_home.data() != nullptr;
}

void TileBase::return_home() const {
  release(acquire(*this, HostAccess::read_write));  // whoever may write has the only copy
  // StarPU would keep the room of the copies that no longer count, and not find it again where memory is scarce.
  for (unsigned node = 0; node < starpu_memory_nodes_get_count(); ++node)
    if (starpu_node_get_kind(node) == STARPU_CUDA_RAM) starpu_data_evict_from_node(state_->handle, node);
}

void TileBase::wait() const { ends_of({this}); }

void TileBase::forget() const {
  TileState& tile = usable(*this);
  if (tile.owner != tile.runtime->rank || tile.borrowed || tile.kept != 0) return;
  starpu_data_invalidate_submit(tile.handle);
  tile.written = false;
}

void TileBase::tell_changed() const {
  TileState& tile = usable(*this);
  if (tile.runtime->ranks > 1) ranks::send_again(tile.handle);
  tile.note_told();
}

void TileBase::write_through() const {
  const TileState& tile = usable(*this);
  // A tile that main memory does not own would be kept there for ever by this, and never go on to the disk.
  if (tile.borrowed) starpu_data_set_wt_mask(tile.handle, 1U << STARPU_MAIN_RAM);
}

void TileBase::set_home(int gpu) const {
  TileState& tile = usable(*this);
  if (tile.owner == tile.runtime->rank) tile.home = static_cast<int>(node_of_gpu(gpu));
}

std::vector<std::chrono::steady_clock::time_point> ends_of(const std::vector<const TileBase*>& tiles) {
  struct Ends {  // shared: after a stall StarPU may still call
    Runtime::State* runtime;
    std::vector<std::chrono::steady_clock::time_point> of_tile;
    std::size_t to_come;
  };
  struct Call {
    std::shared_ptr<Ends> ends;
    std::size_t tile;
    starpu_data_handle_t handle;
  };
  if (tiles.empty()) return {};
  Runtime::State& runtime = *usable(*tiles.front()).runtime;
  const auto is_ours = [&](const TileBase* tile) { return tile->owner() == runtime.rank; };
  const auto ends = std::make_shared<Ends>(
      Ends{&runtime, {}, static_cast<std::size_t>(std::ranges::count_if(tiles, is_ours))});
  ends->of_tile.resize(tiles.size());
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (!is_ours(tiles[i])) continue;
    const TileState& tile = usable(*tiles[i]);
    starpu_data_acquire_on_node_cb(
        tile.handle, STARPU_ACQUIRE_NO_NODE,
        tile.written ? STARPU_R : STARPU_W,  // nothing to read makes StarPU abort
        [](void* argument) {
          const std::unique_ptr<Call> call(static_cast<Call*>(argument));
          const auto now = std::chrono::steady_clock::now();
          starpu_data_release_on_node(call->handle, STARPU_ACQUIRE_NO_NODE);
          const std::lock_guard lock(call->ends->runtime->mutex);
          call->ends->of_tile[call->tile] = now;
          if (--call->ends->to_come == 0) call->ends->runtime->changed.notify_all();
        },
        new Call{ends, i, tile.handle});
  }
  std::unique_lock lock(runtime.mutex);
  runtime.wait_until(lock, [&] { return ends->to_come == 0; });
  runtime.by_kernels.take();
  return ends->of_tile;
}

HeldTile acquire(const TileBase& tile, HostAccess access) {
  TileState& t = usable(tile);
  Runtime::State& runtime = *t.runtime;
  if (t.owner != runtime.rank)
    throw Error(fmt::format("rank {} looks at a tile of rank {}: only the owner has its content",
                            runtime.rank, t.owner));
  if (access != HostAccess::write && !t.written)
    throw Error(fmt::format("a {} x {} tile is read from the host before anything was written to it",
                            t.shape.rows, t.shape.cols));
  const starpu_data_access_mode mode = access == HostAccess::read    ? STARPU_R
                                       : access == HostAccess::write ? STARPU_W
                                                                     : STARPU_RW;
  wait_for(t, STARPU_MAIN_RAM, mode);
  ++t.host_views;
  const HeldRows rows = t.in_main_memory();
  const HeldTile held{t.shared_from_this(), rows.data, t.shape.rows, t.shape.cols, rows.ld};
  if (access == HostAccess::write) {
    t.written = true;
    t.written_in = 0;
    t.lost = nullptr;
  } else if (const Failure* const failure = t.lost) {
    release(held);
    throw task_failure(*failure);
  }
  return held;
}

void note_change(const HeldTile& held) {
  if (held.tile->runtime->ranks > 1) held.tile->note_host_change();
}

void release(const HeldTile& held) noexcept {
  TileState& t = *held.tile;
  if (t.runtime == nullptr) return;  // it ended, and the view with it
  --t.host_views;
  ++t.runtime->views_ended;
  t.runtime->by_host.give();
  // Not starpu_data_release, which means a tile's home: for one that a GPU keeps that is the GPU.
  if (!t.runtime->stalled) starpu_data_release_on_node(t.handle, STARPU_MAIN_RAM);
}

}  // namespace asterism::detail
