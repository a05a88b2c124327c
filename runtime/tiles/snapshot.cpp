#include "../snapshot.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <mutex>

#include "../run/state.hpp"

namespace asterism::detail {
namespace {

/// What stands before the content where it travels to other ranks; the content is as aligned as elements want.
struct alignas(std::max_align_t) Label {
  char failed = 0, cancelled = 0;
  int rank = -1;
  std::array<char, 250> task = {};
  std::array<char, 762> reason = {};
};

template <std::size_t n>
void write(std::array<char, n>& field, const std::string& text) {
  std::memcpy(field.data(), text.data(), std::min(text.size(), n - 1));
}

}  // namespace

/// Shared by the snapshots and by what StarPU calls when the tile is there.
struct SnapshotState : std::enable_shared_from_this<SnapshotState> {
  Runtime::State* runtime = nullptr;
  TileShape shape;
  std::shared_ptr<TileState> tile;                // on its owner's rank, until it was copied
  std::shared_ptr<std::vector<std::byte>> bytes;  // Label, and the rows
  std::shared_ptr<TileState> parcel;              // these bytes as a tile that travels, with several ranks
  std::atomic<bool> ready = false;
  std::mutex mutex;  // guards the callbacks
  std::vector<std::function<void()>> callbacks;

  SnapshotState() = default;
  SnapshotState(const SnapshotState&) = delete;
  SnapshotState& operator=(const SnapshotState&) = delete;
  ~SnapshotState() {
    if (parcel == nullptr || parcel->runtime == nullptr) return;
    const std::lock_guard lock(runtime->mutex);  // its end would wait, maybe in a thread of StarPU's
    runtime->left_behind.push_back(parcel);
  }

  [[nodiscard]] Label& label() const { return *reinterpret_cast<Label*>(bytes->data()); }
  [[nodiscard]] std::byte* rows() const { return bytes->data() + sizeof(Label); }

  void ask();
  void take_tile();
  void take_parcel();
  void settle();
  void call(const std::function<void()>& callback) const;
};

namespace {

/// Calls a member of the snapshot's state when the calling rank has a tile in main memory.
template <void (SnapshotState::*then)()>
void when_there(const TileState& tile, starpu_data_access_mode mode, SnapshotState& state) {
  starpu_data_acquire_on_node_cb(
      tile.handle, STARPU_MAIN_RAM, mode,
      [](void* argument) {
        const std::unique_ptr<std::shared_ptr<SnapshotState>> ours(
            static_cast<std::shared_ptr<SnapshotState>*>(argument));
        (ours->get()->*then)();
      },
      new std::shared_ptr<SnapshotState>(state.shared_from_this()));
}

}  // namespace

void SnapshotState::ask() {
  // The parcel is written first of all, by its owner, when the tile has come; then it is sent.
  if (parcel != nullptr && tile != nullptr)
    starpu_data_acquire_on_node_cb(
        parcel->handle, STARPU_MAIN_RAM, STARPU_W, [](void*) {}, nullptr);
  if (parcel != nullptr) ranks::send_to_all(parcel->handle);
  if (tile != nullptr)
    when_there<&SnapshotState::take_tile>(*tile, STARPU_R, *this);
  else
    when_there<&SnapshotState::take_parcel>(*parcel, STARPU_R, *this);
}

void SnapshotState::take_tile() {
  runtime->by_kernels.take();
  if (const Failure* const lost = tile->lost) {
    Label& l = label();
    l.failed = 1;
    l.cancelled = lost->cancelled ? 1 : 0;
    l.rank = lost->rank < 0 && runtime->ranks > 1 && !lost->cancelled ? runtime->rank : lost->rank;
    write(l.task, lost->task);
    write(l.reason, lost->reason);
  } else {
    const HeldRows held = tile->in_main_memory();
    const auto* const from = static_cast<const std::byte*>(held.data);
    const std::size_t row = static_cast<std::size_t>(shape.cols) * shape.element_bytes;
    const std::size_t ld = static_cast<std::size_t>(held.ld) * shape.element_bytes;
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.rows); ++i)
      std::memcpy(rows() + i * row, from + i * ld, row);
  }
  starpu_data_release_on_node(tile->handle, STARPU_MAIN_RAM);
  tile.reset();
  if (parcel != nullptr) starpu_data_release_on_node(parcel->handle, STARPU_MAIN_RAM);
  settle();
}

void SnapshotState::take_parcel() {
  std::memcpy(bytes->data(), parcel->in_main_memory().data, bytes->size());
  starpu_data_release_on_node(parcel->handle, STARPU_MAIN_RAM);
  settle();
}

void SnapshotState::settle() {
  std::vector<std::function<void()>> now;
  {
    const std::lock_guard lock(mutex);
    ready = true;
    now.swap(callbacks);
  }
  for (const auto& callback : now) call(callback);
  const std::lock_guard lock(runtime->mutex);
  --runtime->awaited;
  runtime->changed.notify_all();
}

void SnapshotState::call(const std::function<void()>& callback) const {
  try {
    callback();
  } catch (const std::exception& error) {
    runtime->fail("that called back", error.what());
  } catch (...) {
    runtime->fail("that called back", no_standard_exception);
  }
}

SnapshotBase::SnapshotBase(const TileBase& of) : state_(std::make_shared<SnapshotState>()) {
  if (const char* const flaw = flaw_of(of.state())) throw Error(fmt::format("this is {}", flaw));
  TileState& tile = *of.state();
  Runtime::State& runtime = *tile.runtime;
  SnapshotState& s = *state_;
  s.runtime = &runtime;
  s.shape = tile.shape;
  const bool ours = tile.owner == runtime.rank;
  if (ours && !tile.written)
    throw Error(fmt::format("a snapshot is made of a {} x {} tile before anything was written to it",
                            tile.shape.rows, tile.shape.cols));
  s.bytes = std::make_shared<std::vector<std::byte>>(sizeof(Label) + tile.bytes());
  new (s.bytes->data()) Label;
  if (ours) s.tile = tile.shared_from_this();
  if (runtime.ranks > 1) {
    s.parcel = std::make_shared<TileState>();
    const auto bytes = static_cast<Index>(s.bytes->size());
    s.parcel->memory = s.bytes;
    s.parcel->begin(runtime, {1, bytes, bytes, 1}, ours ? s.bytes->data() : nullptr, tile.owner);
    if (runtime.left_behind_count() > 64) runtime.end_left_behind();
  }
  ++runtime.awaited;
  s.ask();
}

bool SnapshotBase::ready() const { return state_ != nullptr && state_->ready; }

bool SnapshotBase::failed() const { return ready() && state_->label().failed != 0; }

void SnapshotBase::wait() const {
  if (state_ == nullptr) throw Error("this is an empty snapshot: assign one of a tile to it first");
  if (!state_->ready) {
    Runtime::State& runtime = *state_->runtime;
    std::unique_lock lock(runtime.mutex);
    runtime.wait_until(
        lock, [&] { return state_->ready.load(); }, 0);
  }
  const Label& label = state_->label();
  if (label.failed == 0) return;
  throw task_failure(
      Failure{label.task.data(), label.reason.data(), Blame::task, label.rank, label.cancelled != 0});
}

void SnapshotBase::then(std::function<void()> callback) const {
  if (state_ == nullptr) throw Error("this is an empty snapshot: assign one of a tile to it first");
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->ready) return state_->callbacks.push_back(std::move(callback));
  }
  if (current_runtime() == state_->runtime)
    state_->call(callback);
  else
    callback();
}

Index SnapshotBase::rows() const { return state_ == nullptr ? 0 : state_->shape.rows; }
Index SnapshotBase::cols() const { return state_ == nullptr ? 0 : state_->shape.cols; }

const void* SnapshotBase::at(Index i, Index j) const {
  wait();
  const auto require = [](const char* what, Index number, Index count) {
    if (number < 0 || number >= count)
      throw Error(fmt::format("there is no {} {} in a snapshot of {}, counted from 0", what, number, count));
  };
  const auto& shape = state_->shape;
  require("row", i, shape.rows);
  require("column", j, shape.cols);
  return state_->rows() + static_cast<std::size_t>(i * shape.cols + j) * shape.element_bytes;
}

}  // namespace asterism::detail
