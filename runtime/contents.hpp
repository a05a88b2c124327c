/// \file
/// What is in tiles of any element type: set, made, copied, cut anew by tasks; and gathered on the host.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "codelet.hpp"
#include "snapshot.hpp"

namespace asterism {

namespace detail {

/// "copy_8": what is done to elements of so many bytes takes as long for all of their types.
template <class T>
std::string sized_name(const char* verb) {
  return std::string(verb) + "_" + std::to_string(sizeof(T));
}

/// Copies rows within a GPU's memory, or to it from where the GPU reads them at home. @throw Error
void copy_on_gpu(Stream stream, const void* from, Index from_ld, void* to, Index to_ld, Index rows,
                 Index cols, std::size_t element_bytes);
/// Makes the bytes of rows in a GPU's memory 0. @throw Error
void clear_on_gpu(Stream stream, void* data, Index ld, Index rows, Index cols, std::size_t element_bytes);

template <class T>
void clear_rows(Out<T> to) {
  for (Index i = 0; i < to.rows; ++i)
    std::memset(static_cast<void*>(to.row(i)), 0, static_cast<std::size_t>(to.cols) * sizeof(T));
}
template <class T>
void clear_rows_on_gpu(Stream stream, Out<T> to) {
  clear_on_gpu(stream, to.data, to.ld, to.rows, to.cols, sizeof(T));
}
template <class T>
void copy_rows(Index first, In<T> from, Out<T> to) {
  for (Index i = 0; i < to.rows; ++i) std::copy_n(from.row(first + i), to.cols, to.row(i));
}
template <class T>
void copy_rows_on_gpu(Stream stream, Index first, In<T> from, Out<T> to) {
  copy_on_gpu(stream, from.row(first), from.ld, to.data, to.ld, to.rows, to.cols, sizeof(T));
}

}  // namespace detail

/// Submits a task on a core that sets all elements to a value.
template <class T>
Task set(const Tile<T>& tile, const std::type_identity_t<T>& value, const Hints& hints = {}) {
  static const Codelet<T, Out<T>> all{detail::sized_name<T>("set"), [](const T& v, Out<T> x) {
                                        for (Index i = 0; i < x.rows; ++i) std::fill_n(x.row(i), x.cols, v);
                                      }};
  return all(value, tile, hints);
}

/// Submits a task that makes all bytes of a tile 0, where the tile will be used: zeros need not cross a link.
template <class T>
Task clear(const Tile<T>& tile, const Hints& hints = {}) {
  static const Codelet<NoArgs, Out<T>> all{detail::sized_name<T>("clear"), detail::clear_rows<T>,
                                           ASTERISM_CUDA_KERNEL(detail::clear_rows_on_gpu<T>)};
  return all(tile, hints);
}

/// Writes value(row, column) to a tile from the host, where this rank owns it; waits for its tasks so far. With several
/// ranks: on all of them.
template <class T, class Value>
void set(const Runtime& runtime, const Tile<T>& tile, Value value) {
  tile.tell_changed();
  if (tile.owner() != runtime.rank()) return;
  const HostView<T> view(tile, HostView<T>::Access::write);
  for (Index i = 0; i < view.rows(); ++i)
    for (Index j = 0; j < view.cols(); ++j) view(i, j) = static_cast<T>(value(i, j));
}

/// Submits a task on a core that makes element (i, j) of what value(i, j) gives.
/// @param value copied; called in a worker's thread
template <class T, class Value>
requires std::invocable<const Value&, Index, Index> Task generate(const Tile<T>& tile, Value value,
                                                                  const Hints& hints = {}) {
  static const Codelet<Value, Out<T>> all{detail::sized_name<T>("generate"), [](const Value& v, Out<T> x) {
                                            for (Index i = 0; i < x.rows; ++i)
                                              for (Index j = 0; j < x.cols; ++j)
                                                x.row(i)[j] = static_cast<T>(v(i, j));
                                          }};
  return all(value, tile, hints);
}

/// Submits a task that copies the rows of a tile from `first` on, as many as `to` has, on the rank that owns `to`.
/// @throw Error: these are not all rows of `from`, or the tiles have not as many columns
template <class T>
Task copy_rows(const Tile<T>& from, Index first, const Tile<T>& to, const Hints& hints = {}) {
  if (first < 0 || to.rows() > from.rows() - first || from.cols() != to.cols())
    throw Error("cannot copy rows from " + std::to_string(first) + " on of a " + std::to_string(from.rows()) +
                " x " + std::to_string(from.cols()) + " tile to one of " + std::to_string(to.rows()) + " x " +
                std::to_string(to.cols()) + ": it must have these rows, and as many columns");
  static const Codelet<Index, In<T>, Out<T>> all{detail::sized_name<T>("copy"), detail::copy_rows<T>,
                                                 ASTERISM_CUDA_KERNEL(detail::copy_rows_on_gpu<T>)};
  return all(first, from, to, hints);
}

/// Submits a task that copies a tile, on the rank that owns `to`. @throw Error: they have different extents
template <class T>
Task copy(const Tile<T>& from, const Tile<T>& to, const Hints& hints = {}) {
  if (from.rows() != to.rows() || from.cols() != to.cols())
    throw Error("cannot copy a " + std::to_string(from.rows()) + " x " + std::to_string(from.cols()) +
                " tile to one of " + std::to_string(to.rows()) + " x " + std::to_string(to.cols()) +
                ": their extents must be the same");
  return copy_rows(from, 0, to, hints);
}

/// Gives a tile another owner: a new tile, a task that copies, and the end of the old one, which waits for that task.
/// With several ranks: on all of them, as the tasks around it. @throw Error: as Tile and Codelet say
template <class T>
void move_to(Runtime& runtime, Tile<T>& tile, int rank) {
  if (tile.owner() == rank) return;
  Tile<T> moved(runtime, tile.rows(), tile.cols(), rank);
  copy(tile, moved);
  tile = std::move(moved);
}

/// The elements of a tile, row by row, on every rank. Waits. With several ranks: collective. @throw as Snapshot::wait
template <class T>
std::vector<T> gather(const Tile<T>& tile) {
  const Snapshot<T> look(tile);
  const T* const first = look.row(0);
  return std::vector<T>(first, first + look.rows() * look.cols());
}

/// The matrix that is cut into tiles, row by row, on every rank. Waits. With several ranks: collective.
template <class T>
std::vector<T> gather(const Tiles<T>& tiles) {
  std::vector<Snapshot<T>> looks;
  for (const Tile<T>& tile : tiles) looks.emplace_back(tile);
  std::vector<T> all;
  for (Index i = 0; i < tiles.count_rows(); ++i) {
    const auto look = [&](Index j) -> const Snapshot<T>& {
      return looks[static_cast<std::size_t>(i * tiles.count_cols() + j)];
    };
    for (Index row = 0; row < look(0).rows(); ++row)
      for (Index j = 0; j < tiles.count_cols(); ++j)
        all.insert(all.end(), look(j).row(row), look(j).row(row) + look(j).cols());
  }
  return all;
}

namespace detail {

/// A part of a tile that is part of another one: where it begins in both, and its extents.
struct Piece {
  Index from_row, from_col, to_row, to_col, rows, cols;
};

/// Where the rows (columns) of tiles begin, and where the last ends.
template <class T>
std::vector<Index> begins(const Tiles<T>& tiles, Index count, Index (TileBase::*extent)() const, Index i,
                          Index j) {
  std::vector<Index> all{0};
  for (Index k = 0; k < count; ++k) all.push_back(all.back() + (tiles(k * i, k * j).*extent)());
  return all;
}

/// @throw Error: tiles of a row are not of the same height, or those of a column not of the same width
template <class T>
void require_grid(const Tiles<T>& tiles) {
  for (Index i = 0; i < tiles.count_rows(); ++i)
    for (Index j = 0; j < tiles.count_cols(); ++j)
      if (tiles(i, j).rows() != tiles(i, 0).rows() || tiles(i, j).cols() != tiles(0, j).cols())
        throw Error("tile (" + std::to_string(i) + ", " + std::to_string(j) + ") of " +
                    std::to_string(tiles(i, j).rows()) + " x " + std::to_string(tiles(i, j).cols()) +
                    " elements is no part of a matrix: those beside it are " +
                    std::to_string(tiles(i, 0).rows()) + " high, those below and above " +
                    std::to_string(tiles(0, j).cols()) + " wide");
}

template <class T>
void take_pieces(const std::vector<Piece>& pieces, Many<In<T>> from, Out<T> to) {
  for (Index k = 0; k < from.size(); ++k) {
    const Piece& p = pieces[static_cast<std::size_t>(k)];
    for (Index i = 0; i < p.rows; ++i)
      std::copy_n(from[k].row(p.from_row + i) + p.from_col, p.cols, to.row(p.to_row + i) + p.to_col);
  }
}

}  // namespace detail

/// Submits tasks on cores that copy a matrix to tiles that are cut, and owned, in another way: one for each tile of `to`,
/// to which only those travel that it needs. @throw Error: they are not of the same extents, or tiles that were made one by
/// one are no matrix
template <class T>
void redistribute(const Tiles<T>& from, const Tiles<T>& to, const Hints& hints = {}) {
  using detail::TileBase;
  static const Codelet<std::vector<detail::Piece>, Many<In<T>>, Out<T>> take{
      detail::sized_name<T>("redistribute"), detail::take_pieces<T>};
  const auto rows = [](const Tiles<T>& t) {
    return detail::begins(t, t.count_rows(), &TileBase::rows, 1, 0);
  };
  const auto cols = [](const Tiles<T>& t) {
    return detail::begins(t, t.count_cols(), &TileBase::cols, 0, 1);
  };
  detail::require_grid(from);
  detail::require_grid(to);
  const std::vector<Index> from_rows = rows(from), from_cols = cols(from), to_rows = rows(to),
                           to_cols = cols(to);
  if (from_rows.back() != to_rows.back() || from_cols.back() != to_cols.back())
    throw Error("cannot cut a matrix of " + std::to_string(from_rows.back()) + " x " +
                std::to_string(from_cols.back()) + " elements into tiles of one of " +
                std::to_string(to_rows.back()) + " x " + std::to_string(to_cols.back()) +
                ": their extents must be the same");
  const auto at = [](const std::vector<Index>& begins, Index k) {
    return begins[static_cast<std::size_t>(k)];
  };
  for (Index i = 0; i < to.count_rows(); ++i)
    for (Index j = 0; j < to.count_cols(); ++j) {
      std::vector<detail::Piece> pieces;
      TileList<T> tiles;
      for (Index k = 0; k < from.count_rows(); ++k)
        for (Index l = 0; l < from.count_cols(); ++l) {
          const Index row = std::max(at(from_rows, k), at(to_rows, i)),
                      col = std::max(at(from_cols, l), at(to_cols, j));
          const Index row_end = std::min(at(from_rows, k + 1), at(to_rows, i + 1));
          const Index col_end = std::min(at(from_cols, l + 1), at(to_cols, j + 1));
          if (row >= row_end || col >= col_end) continue;
          pieces.push_back({row - at(from_rows, k), col - at(from_cols, l), row - at(to_rows, i),
                            col - at(to_cols, j), row_end - row, col_end - col});
          tiles.add(from(k, l));
        }
      take(pieces, tiles, to(i, j), hints);
    }
}

}  // namespace asterism
