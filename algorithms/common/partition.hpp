/// \file
/// Which part of something belongs to which rank, GPU or core, and how large it is.
///
/// What is cut are n elements in a row: rows of a grid or of a matrix, planes, modes, subdomains, starts. They are
/// cut in parts, by weights (cut_by_weight) or into sizes that are given (deal_parts), and each part has a worker.
/// All of this is arithmetic: it gives every rank the same, without a word between them, if they begin with the same
/// workers and weights.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "../../runtime/codelet.hpp"
#include "../../runtime/per_rank.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "workers.hpp"

namespace asterism {

/// Consecutive elements, and who works on them.
struct Part {
  Index first = 0, size = 0;
  int rank = 0;
  Where where = Where::cpu;
  int worker = -1;     ///< its number among those of the kind on its rank; -1: any of them
  bool alone = false;  ///< whether its rank has no other worker of the kind
};

/// Whether two parts have the same worker.
inline bool same_worker(const Part& a, const Part& b) {
  return a.rank == b.rank && a.where == b.where && a.worker == b.worker;
}

/// What is beyond the first and the last part.
enum class Border {
  open,      ///< nothing
  periodic,  ///< the other end
};

/// The part so many steps (-1 or 1) from one of `count` parts, where there is one.
std::optional<Index> neighbour(Index part, Index step, Index count, Border border);

/// Parts one after the other, from element 0 to the last. Those of a rank follow each other, and the ranks are in
/// order; a rank may have none, and a part may be empty.
class Partition {
 public:
  /// [first, end)
  struct Range {
    Index first = 0, end = 0;
    [[nodiscard]] Index count() const { return end - first; }
  };

  Partition() = default;
  /// @throw Error: parts that do not follow each other, a negative size, ranks that are not in order
  explicit Partition(std::vector<Part> parts);

  /// How many parts there are, and elements in all of them.
  [[nodiscard]] Index count() const { return static_cast<Index>(parts_.size()); }
  [[nodiscard]] Index extent() const { return parts_.empty() ? 0 : parts_.back().first + parts_.back().size; }
  [[nodiscard]] const Part& operator[](Index part) const { return parts_[static_cast<std::size_t>(part)]; }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

  [[nodiscard]] int owner(Index part) const { return (*this)[part].rank; }
  /// The parts of a rank, and the elements in them. Of a rank that has none: where they would be.
  [[nodiscard]] Range parts_of(int rank) const;
  [[nodiscard]] Range elements_of(int rank) const;
  /// The part that has an element. @throw Error: there is no such element
  [[nodiscard]] Index part_of(Index element) const;

  [[nodiscard]] std::optional<Index> before(Index part, Border border = Border::open) const {
    return neighbour(part, -1, count(), border);
  }
  [[nodiscard]] std::optional<Index> after(Index part, Border border = Border::open) const {
    return neighbour(part, 1, count(), border);
  }

  /// Where the tasks of a part run. A worker is named only where its rank has several of the kind: a task that is
  /// pinned runs its codelet's first implementation, while StarPU chooses among them by its models.
  [[nodiscard]] Hints hints(Index part) const;

  /// A tile for every part, with a row of `cols` for each of its elements: the runtime's, or in the caller's memory, if
  /// that is given. @throw Error: a part is empty
  template <class T>
  [[nodiscard]] Tiles<T> tiles(Runtime& runtime, Index cols,
                               const typename Tiles<T>::Address& address = {}) const {
    std::vector<Index> heights;
    for (const Part& part : parts_) heights.push_back(part.size);
    return Tiles<T>(runtime, heights, cols, owners(), address);
  }
  /// A tile of rows x cols for every part.
  template <class T>
  [[nodiscard]] Tiles<T> equal_tiles(Runtime& runtime, Index rows, Index cols) const {
    return Tiles<T>(runtime, count() * rows, cols, rows, cols, owners());
  }
  /// Of what every rank has one, that of the rank that works on a part.
  template <class T>
  [[nodiscard]] const Tile<T>& mine(const PerRank<T>& tiles, Index part) const {
    return tiles[owner(part)];
  }
  template <class Value>
  [[nodiscard]] const Value& mine(const std::vector<Value>& of_ranks, Index part) const {
    return of_ranks[static_cast<std::size_t>(owner(part))];
  }

 private:
  [[nodiscard]] std::function<int(Index, Index)> owners() const {
    return [this](Index part, Index) { return owner(part); };
  }

  std::vector<Part> parts_;
};

/// Where a bound between two parts goes that lies between two elements.
enum class Rounding { nearest, down, up };

/// What bounds are like.
struct Granularity {
  Index unit = 1;   ///< they are multiples of so many elements; what is left over goes to the last part
  Index least = 0;  ///< units of a part, as far as there are so many; 0: parts may be empty
  Rounding rounding = Rounding::nearest;
};

/// The bounds, from 0 to n, of parts in proportion to weights; equal parts where all weights are zero.
/// @return one more than there are weights
/// @throw Error: no weight, one that is negative or not finite, n below 0
std::vector<Index> bounds_by_weight(Index n, const std::vector<double>& weights,
                                    const Granularity& granularity = {});

/// The same where elements do not cost the same: parts whose costs are in proportion to weights.
/// @param cost_before what the elements before each one cost together, and in the end what all cost: for a sparse
/// matrix in compressed rows, its row pointers
/// @throw Error: as bounds_by_weight; costs that fall
std::vector<Index> bounds_by_cost(const std::vector<Index>& cost_before, const std::vector<double>& weights);

/// A part for every entry of `workers`, in which a worker may be there several times, rank by rank.
/// @param weights one for each entry
/// @throw Error: not one weight each; as bounds_by_weight
Partition cut_by_weight(Index n, const std::vector<Candidate>& workers, const std::vector<double>& weights,
                        const Granularity& granularity = {});

/// In which order a rank's parts go to its workers.
enum class Dealing {
  blocks,  ///< consecutive ones each: little crosses between workers
  turns,   ///< one after the other, the faster ones more often: all workers go along the parts together
};

/// Who gets each of `count` parts, in proportion to weights: a number for each part.
/// @throw Error: as bounds_by_weight
std::vector<std::size_t> deal(Index count, const std::vector<double>& weights, Dealing dealing);

/// Parts of the given sizes to workers, in proportion to weights: to each rank consecutive ones, by what its workers
/// weigh together, and in the rank as `dealing` says.
/// @param workers rank by rank @param weights one for each of them
/// @throw Error: not one weight each; as bounds_by_weight
Partition deal_parts(const std::vector<Index>& sizes, const std::vector<Candidate>& workers,
                     const std::vector<double>& weights, Dealing dealing);

}  // namespace asterism
