/// \file
/// Looking at tiles without waiting for them.
#pragma once

#include <functional>
#include <memory>

#include "tile.hpp"

namespace asterism {

namespace detail {

struct SnapshotState;

/// The part of Snapshot that does not depend on the element type.
class SnapshotBase {
 public:
  SnapshotBase() = default;
  explicit SnapshotBase(const TileBase& tile);

  /// Whether the content, or the news that there is none, has come. Waits for nothing.
  [[nodiscard]] bool ready() const;

  /// Waits until it has.
  /// @throw TaskFailure: a task that should have written the content failed, on whichever rank, or was skipped because an
  /// earlier one had, or was cancelled. @throw Stall
  void wait() const;

  /// Whether wait() would throw a TaskFailure; false while it is not ready. Waits for nothing.
  [[nodiscard]] bool failed() const;

  /// Calls `callback` once, as soon as it is ready: in a thread of the runtime, or at once in this one. It may look at the
  /// snapshot, and cancel, but not wait for anything, nor submit. What it throws is a failure of the run, in either case: see
  /// Runtime::wait(). Where the Runtime has ended it is thrown here.
  void then(std::function<void()> callback) const;

  [[nodiscard]] Index rows() const;
  [[nodiscard]] Index cols() const;

 protected:
  /// An element. Waits. @throw as wait(); Error where there is none
  [[nodiscard]] const void* at(Index i, Index j) const;

 private:
  std::shared_ptr<SnapshotState> state_;
};

}  // namespace detail

/// What a tile holds once the tasks submitted so far have ended: asked for now, looked at later, on every rank. Tasks that
/// are submitted after it do not wait until somebody has looked, and do not change it. May be copied, and outlive its tile,
/// and its Runtime once it is ready.
///
///     const Snapshot best(tile);
///     ...
///     if (best.ready()) std::printf("%g so far\n", best(0, 0));
///
/// With several ranks: every rank makes it, in the same order as it submits tasks.
template <class T>
class Snapshot : public detail::SnapshotBase {
 public:
  /// Empty, to be assigned to.
  Snapshot() = default;
  /// @throw Error: the tile is empty, or its Runtime has ended; nothing was ever written to it (on its owner's rank)
  explicit Snapshot(const Tile<T>& tile) : SnapshotBase(tile) {}

  /// An element; waits for it. @throw as wait(); Error where there is none
  const T& operator()(Index i, Index j) const { return *static_cast<const T*>(at(i, j)); }
  /// The first element of a row; waits for it. @throw as wait(); Error where there is none
  [[nodiscard]] const T* row(Index i) const { return static_cast<const T*>(at(i, 0)); }
};

}  // namespace asterism
