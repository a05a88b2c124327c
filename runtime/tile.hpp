/// \file
/// Tiles: the data that tasks read and write.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ports.hpp"
#include "runtime.hpp"

namespace asterism {

namespace detail {
struct TileState;  // one StarPU handle; defined in runtime/

struct TileShape {
  Index rows, cols, ld;
  std::size_t element_bytes;
  int gpu = -1;          // that keeps it, among the GPUs of its owner's rank; -1: none in particular
  bool at_home = false;  // main memory keeps it
};

/// The part of Tile that does not depend on the element type. But for assigning and ending it, everything throws Error
/// when the tile is empty (default-constructed or moved from) or its Runtime has ended.
class TileBase {
 public:
  TileBase() noexcept;
  TileBase(Runtime& runtime, const TileShape& shape, void* borrowed, int owner);
  TileBase(TileBase&&) noexcept;
  TileBase& operator=(TileBase&&) noexcept;
  ~TileBase();

  [[nodiscard]] Index rows() const;
  [[nodiscard]] Index cols() const;
  /// The rank that holds the tile and runs the tasks that write it.
  [[nodiscard]] int owner() const;

  /// Tells that no task will use the tile soon: it leaves the GPU as soon as its last task has ended, which makes room
  /// for the next one of a stream. A hint; the content stays.
  void wont_use() const;

  /// Brings the tile to main memory as soon as its last task so far has ended, while later tasks run.
  void fetch() const;

  /// The same, and drops all copies on GPUs: the next task there has it come again.
  void send_home() const;

  /// Brings the tile to main memory and drops all copies on GPUs. Blocks until its tasks so far have ended.
  /// @throw as a HostView that reads it
  void return_home() const;

  /// Blocks until the tile's tasks so far have ended, and leaves it where it is. On the owner's rank; others go on at once.
  /// @throw Stall
  void wait() const;

  /// Tells that the content is not needed any more: once the tasks so far have ended its memory serves others, and nothing
  /// is written back or out for it. A task or the host has to write the tile before it is read again.
  void forget() const;

  /// Tells, on every rank, that its owner has changed the tile through a HostView: tasks of other ranks that had it before
  /// get it anew. No matter with one rank, nor where a task writes the tile before they read it.
  void tell_changed() const;

  /// Writes every change made on a GPU back to main memory at once, overlapping with the tasks that follow, instead of
  /// when the GPU's memory is full. Together with wont_use this streams at the speed of the link.
  void write_through() const;

  /// Says where tasks find the tile that several GPUs work on together (Hints::together): on the GPU with this number, from
  /// 0, among those of the owner's rank. All other tasks have it wherever they run.
  /// @throw Error, on the owner's rank: there is no such GPU
  void set_home(int gpu) const;

  /// nullptr: the tile is empty.
  [[nodiscard]] TileState* state() const noexcept { return state_.get(); }
  [[nodiscard]] const std::shared_ptr<TileState>& shared_state() const noexcept { return state_; }

 private:
  std::shared_ptr<TileState> state_;  // the tasks that use the tile know it too, for messages
};

enum class HostAccess { read, write, read_write };

/// A tile that is in main memory, where nobody else uses it.
struct HeldTile {
  std::shared_ptr<TileState> tile;  // the Tile may be moved meanwhile
  void* data;
  Index rows, cols, ld;
};
/// Blocks until the tile is the caller's. @throw as HostView's constructor
HeldTile acquire(const TileBase& tile, HostAccess access);
/// Before the caller changes its content: whoever has it elsewhere has another one then.
void note_change(const HeldTile& held);
void release(const HeldTile& held) noexcept;
/// Blocks until the tasks so far of some tiles have ended, and leaves them where they are; not for those of other ranks.
/// @return for each tile of this rank when that was, as the worker that ended the last of its tasks says: the calling
/// thread may be woken milliseconds later while all cores are busy
/// @throw Stall
std::vector<std::chrono::steady_clock::time_point> ends_of(const std::vector<const TileBase*>& tiles);

}  // namespace detail

/// A row-major rows x cols matrix of T that the runtime keeps wherever tasks need it. Move-only.
template <class T>
class Tile : public detail::TileBase {
  static_assert(std::is_trivially_copyable_v<T>,
                "the elements of a tile travel as bytes between memories, disks and ranks: their type must be "
                "trivially copyable (no std::string, no std::vector)");
  static_assert(alignof(T) <= alignof(std::max_align_t),
                "the elements of a tile lie where malloc would put them: their type may need no larger alignment");

 public:
  /// An empty slot, to be assigned to.
  Tile() = default;

  /// A tile whose memory the runtime owns: allocated where and when a task first writes it, evicted to the spill folder
  /// when main memory is limited and full. Its content is undefined until then.
  /// @throw Error when an extent is below 1, or the tile has more elements than the runtime can count (2^32 - 1).
  Tile(Runtime& runtime, Index rows, Index cols, int owner = 0)
      : TileBase(runtime, {rows, cols, cols, sizeof(T)}, nullptr, owner) {}

  /// As the above, but kept on a GPU of its owner's rank: its room there is taken now, and no other tile can push it out.
  /// For small tiles beside a stream that fills the memory. Where there is no room, an ordinary tile.
  /// @param gpu the GPU's number, from 0, among those of the rank
  static Tile kept_on_gpu(Runtime& runtime, Index rows, Index cols, int gpu, int owner = 0) {
    return Tile(runtime, {rows, cols, cols, sizeof(T), gpu}, owner);
  }

  /// As the first, but with room of its own in main memory, taken now. While it is at home (from send_home() on, until a task
  /// writes it) tasks on GPUs that only read it do so there, through the link, as their kernels go: for what is read once,
  /// beside a stream that leaves it no room on the GPU. Where there is no room, or GPUs cannot read there, an ordinary tile.
  static Tile kept_at_home(Runtime& runtime, Index rows, Index cols, int owner = 0) {
    return Tile(runtime, {rows, cols, cols, sizeof(T), -1, true}, owner);
  }

  /// A tile over memory of the caller, who leaves it alone (but through HostView) until the Tile has ended; ending
  /// waits for the tile's tasks and brings the content back. Ranks other than the owner pass nullptr.
  Tile(Runtime& runtime, T* borrowed, Index rows, Index cols, Index ld, int owner = 0)
      : TileBase(runtime, {rows, cols, ld, sizeof(T)}, borrowed, owner) {}

 private:
  Tile(Runtime& runtime, const detail::TileShape& shape, int owner) : TileBase(runtime, shape, nullptr, owner) {}
};

/// A matrix cut into a grid of tiles, those of the last row and column maybe smaller, or into slabs of any heights.
template <class T>
class Tiles {
 public:
  /// Tells where the first element of a tile lies in the caller's memory; nullptr: the runtime owns its memory.
  using Address = std::function<T*(Index tile_row, Index tile_col)>;
  /// Tells which rank owns a tile.
  using Owner = std::function<int(Index tile_row, Index tile_col)>;

  Tiles() = default;
  Tiles(Tiles&& from) noexcept { swap(from); }
  Tiles& operator=(Tiles&& from) noexcept {
    Tiles(std::move(from)).swap(*this);
    return *this;
  }

  /// Tiles made one by one, in the order of their numbers: a column of them. @throw Error when there is none.
  explicit Tiles(std::vector<Tile<T>> tiles)
      : count_rows_(static_cast<Index>(tiles.size())), count_cols_(1), tiles_(std::move(tiles)) {
    if (tiles_.empty()) throw Error("a column of 0 tiles: there must be at least 1");
    tile_rows_ = tiles_.front().rows();
    tile_cols_ = tiles_.front().cols();
  }

  /// @param ld distance between rows in the caller's memory (for borrowed tiles)
  /// @throw Error when an extent is below 1.
  Tiles(Runtime& runtime, Index rows, Index cols, Index tile_rows, Index tile_cols, const Owner& owner = {},
        const Address& address = {}, Index ld = 0)
      : tile_rows_(tile_rows), tile_cols_(tile_cols) {
    if (rows < 1 || cols < 1 || tile_rows < 1 || tile_cols < 1)
      throw Error("cannot cut " + std::to_string(rows) + " x " + std::to_string(cols) + " elements into tiles of " +
                  std::to_string(tile_rows) + " x " + std::to_string(tile_cols) + ": every extent must be at least 1");
    count_rows_ = (rows - 1) / tile_rows + 1;
    count_cols_ = (cols - 1) / tile_cols + 1;
    if (count_rows_ > std::numeric_limits<Index>::max() / count_cols_)
      throw Error("cannot cut a matrix into " + std::to_string(count_rows_) + " x " + std::to_string(count_cols_) +
                  " tiles: those are too many to be counted; use larger ones");
    tiles_.reserve(static_cast<std::size_t>(count_rows_ * count_cols_));
    if (ld == 0) ld = cols;
    for (Index i = 0; i < count_rows_; ++i)
      for (Index j = 0; j < count_cols_; ++j)
        append(runtime, i, j, std::min(tile_rows, rows - i * tile_rows), std::min(tile_cols, cols - j * tile_cols),
               owner, address, ld);
  }

  /// A matrix cut into one slab of rows for each of `heights`, all `cols` wide: several grids below each other, say,
  /// each cut on its own. Tile number k is tile (k, 0); tile_rows() is the largest height.
  /// @param ld distance between rows in the caller's memory (for borrowed tiles)
  /// @throw Error when there is no height, or an extent is below 1.
  Tiles(Runtime& runtime, const std::vector<Index>& heights, Index cols, const Owner& owner, const Address& address,
        Index ld = 0)
      : tile_cols_(cols), count_rows_(static_cast<Index>(heights.size())), count_cols_(1) {
    if (heights.empty()) throw Error("cannot cut a matrix into 0 slabs: there must be at least 1");
    for (std::size_t k = 0; k < heights.size(); ++k)
      if (heights[k] < 1 || cols < 1)
        throw Error("cannot cut a slab of " + std::to_string(heights[k]) + " x " + std::to_string(cols) +
                    " elements (number " + std::to_string(k) + "): every extent must be at least 1");
    tile_rows_ = *std::max_element(heights.begin(), heights.end());
    tiles_.reserve(heights.size());
    for (Index k = 0; k < count_rows_; ++k)
      append(runtime, k, 0, heights[static_cast<std::size_t>(k)], cols, owner, address, ld == 0 ? cols : ld);
  }

  /// How many tiles there are along the rows and the columns.
  [[nodiscard]] Index count_rows() const { return count_rows_; }
  [[nodiscard]] Index count_cols() const { return count_cols_; }
  [[nodiscard]] Index count() const { return count_rows_ * count_cols_; }
  /// Extents of all tiles but the last ones; where the heights were given: of the largest.
  [[nodiscard]] Index tile_rows() const { return tile_rows_; }
  [[nodiscard]] Index tile_cols() const { return tile_cols_; }

  /// The tile in row i and column j of them, counted from 0. @throw Error when there is none
  Tile<T>& operator()(Index i, Index j) { return tiles_[number(i, j)]; }
  const Tile<T>& operator()(Index i, Index j) const { return tiles_[number(i, j)]; }
  /// Tile number k, row by row; the natural way where the matrix is cut one way only. @throw Error when there is none
  Tile<T>& operator[](Index k) { return tiles_[number(k)]; }
  const Tile<T>& operator[](Index k) const { return tiles_[number(k)]; }
  /// All of them, row by row.
  [[nodiscard]] auto begin() const { return tiles_.begin(); }
  [[nodiscard]] auto end() const { return tiles_.end(); }

 private:
  /// Makes tile (i, j), of r x c elements.
  void append(Runtime& runtime, Index i, Index j, Index r, Index c, const Owner& owner, const Address& address,
              Index ld) {
    const int rank = owner ? owner(i, j) : 0;
    if (T* const data = address ? address(i, j) : nullptr; data != nullptr)
      tiles_.emplace_back(runtime, data, r, c, ld, rank);
    else
      tiles_.emplace_back(runtime, r, c, rank);
  }

  [[nodiscard]] std::size_t number(Index k) const {
    if (k < 0 || k >= count())
      throw Error("there is no tile " + std::to_string(k) + ": there are " + std::to_string(count()) +
                  ", counted from 0");
    return static_cast<std::size_t>(k);
  }
  [[nodiscard]] std::size_t number(Index i, Index j) const {
    if (i < 0 || i >= count_rows_ || j < 0 || j >= count_cols_)
      throw Error("there is no tile (" + std::to_string(i) + ", " + std::to_string(j) + "): there are " +
                  std::to_string(count_rows_) + " x " + std::to_string(count_cols_) + ", counted from 0");
    return static_cast<std::size_t>(i * count_cols_ + j);
  }

  void swap(Tiles& other) noexcept {
    std::swap(tile_rows_, other.tile_rows_);
    std::swap(tile_cols_, other.tile_cols_);
    std::swap(count_rows_, other.count_rows_);
    std::swap(count_cols_, other.count_cols_);
    tiles_.swap(other.tiles_);
  }

  Index tile_rows_ = 0, tile_cols_ = 0, count_rows_ = 0, count_cols_ = 0;
  std::vector<Tile<T>> tiles_;
};

/// Access to a tile from the calling thread, in main memory, after all tasks submitted so far that conflict with it.
/// On the owner's rank only. The tile may be moved meanwhile, but not end. Where ranks other than the owner's have read a
/// tile before it is changed so, and are to read it again, all have to be told: see Tile::tell_changed.
template <class T>
class HostView {
 public:
  using Access = detail::HostAccess;

  /// @throw TaskFailure on reading, when the content is lost: a task that should have written it failed on this rank,
  /// or was skipped because an earlier one had. It is the failure that Runtime::wait() throws, which still has to be
  /// called. The tile stays lost after that, until a task or a view of Access::write writes it. A failure on another
  /// rank is known from wait() on.
  /// @throw Stall when the tile does not become available.
  /// @throw Error: the tile is empty, or its Runtime has ended; another rank owns it; it is read before it was written.
  HostView(const Tile<T>& tile, Access access)
      : held_(detail::acquire(tile, access)), data_(static_cast<T*>(held_.data)), ld_(held_.ld) {
    if (access != Access::read) detail::note_change(held_);
  }
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;
  ~HostView() { detail::release(held_); }

  [[nodiscard]] Index rows() const { return held_.rows; }
  [[nodiscard]] Index cols() const { return held_.cols; }
  [[nodiscard]] Index ld() const { return ld_; }
  [[nodiscard]] T* row(Index i) const { return data_ + i * ld_; }
  T& operator()(Index i, Index j) const { return data_[i * ld_ + j]; }

 private:
  detail::HeldTile held_;
  T* data_;
  Index ld_;
};

}  // namespace asterism
