/// \file
/// A tile on every rank, and reductions.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "contents.hpp"
#include "runtime.hpp"
#include "tile.hpp"

namespace asterism {

/// A tile of the same extents on every rank: of what each needs in full, or works in. Tile r belongs to rank r.
template <class T>
class PerRank {
 public:
  PerRank() = default;
  PerRank(Runtime& runtime, Index rows, Index cols) : rank_(runtime.rank()) {
    for (int rank = 0; rank < runtime.ranks(); ++rank) tiles_.emplace_back(runtime, rows, cols, rank);
  }

  /// @throw Error: there is no such rank, or this is empty (default-constructed, or moved from)
  [[nodiscard]] const Tile<T>& operator[](int rank) const {
    if (rank < 0 || rank >= size())
      throw Error("the tile of rank " + std::to_string(rank) + " is asked for, of " + std::to_string(size()) +
                  " there are");
    return tiles_[static_cast<std::size_t>(rank)];
  }
  /// That of this rank.
  [[nodiscard]] const Tile<T>& mine() const { return (*this)[rank_]; }
  [[nodiscard]] int size() const { return static_cast<int>(tiles_.size()); }
  [[nodiscard]] auto begin() const { return tiles_.begin(); }
  [[nodiscard]] auto end() const { return tiles_.end(); }

 private:
  int rank_ = 0;
  std::vector<Tile<T>> tiles_;
};

/// Submits tasks that copy a tile to every rank's.
template <class T>
void copy(const Tile<T>& from, const PerRank<T>& to, const Hints& hints = {}) {
  for (const Tile<T>& tile : to) copy(from, tile, hints);
}

/// Reductions of parts of the same extents by tasks, as a tree whose shape follows from the number of parts alone: the same
/// bits however many ranks and workers there are, and whatever ends first. It has the memory of the tree's inner nodes.
template <class T>
class Reduction {
 public:
  /// @throw Error: there is no part, or one is absent
  Reduction(Runtime& runtime, const TileList<T>& parts) {
    if (parts.size() == 0) throw Error("a reduction of 0 parts: there must be at least 1");
    const std::vector<const Tile<T>*> all = present(parts);
    for (std::size_t k = 0; k + 1 < all.size(); k += 2)
      nodes_.emplace_back(runtime, all[k]->rows(), all[k]->cols(), all[k]->owner());
  }

  /// Submits combine(x, y), which makes y what of x and y is wanted (y += x), up the tree. The parts stay as they are.
  template <class Combine>
  void operator()(const Combine& combine, const TileList<T>& parts, const Tile<T>& result,
                  const Hints& hints = {}) const {
    const std::vector<const Tile<T>*> all = present(parts);
    if (all.size() / 2 != nodes_.size())
      throw Error("a reduction of " + std::to_string(all.size()) +
                  " parts, which was made for others: make one for these");
    std::vector<const Tile<T>*> level;
    for (std::size_t k = 0; k < all.size(); k += 2) {
      if (k + 1 == all.size()) {
        level.push_back(all[k]);
        continue;
      }
      copy(*all[k], nodes_[k / 2], hints);
      combine(*all[k + 1], nodes_[k / 2], hints);
      level.push_back(&nodes_[k / 2]);
    }
    while (level.size() > 1) {
      std::vector<const Tile<T>*> next;
      for (std::size_t k = 0; k < level.size(); k += 2) {
        if (k + 1 < level.size()) combine(*level[k + 1], *level[k], hints);
        next.push_back(level[k]);
      }
      level.swap(next);
    }
    copy(*level.front(), result, hints);
  }

 private:
  static std::vector<const Tile<T>*> present(const TileList<T>& parts) {
    std::vector<const Tile<T>*> all(parts.begin(), parts.end());
    const auto absent = std::find(all.begin(), all.end(), nullptr);
    if (absent != all.end())
      throw Error("part " + std::to_string(absent - all.begin()) + " of a reduction is absent: leave it out");
    return all;
  }

  std::vector<Tile<T>> nodes_;
};

/// A single reduction, which waits for its tasks, as the memory of its tree ends with it.
///
///     const auto add = codelet("add", [](In<double> x, InOut<double> y) { ... });
///     reduce(runtime, add, parts, sum);
template <class T, class Combine>
void reduce(Runtime& runtime, const Combine& combine, const TileList<T>& parts, const Tile<T>& result,
            const Hints& hints = {}) {
  Reduction<T>(runtime, parts)(combine, parts, result, hints);
}

}  // namespace asterism
