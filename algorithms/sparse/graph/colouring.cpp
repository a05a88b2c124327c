#include "colouring.hpp"

#include <algorithm>
#include <atomic>
#include <compare>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
#include "../../common/each_once.hpp"
#include "../../common/team.hpp"
#include "rows.hpp"

namespace asterism::sparse {
namespace {

constexpr int no_colour = -1;

/// Two colours wherever they are enough. A row gets the other colour than its first neighbour before it in its part of the
/// rows; rows without one begin trees anew, of which those that hang together are brought into line by whole trees.
class TwoColours {
 public:
  TwoColours(PatternView graph, int threads)
      : graph_(graph), threads_(threads), tree_(at(graph.rows())), side_(at(graph.rows())) {}

  /// Nothing where a cycle has an odd number of rows.
  std::optional<Colouring> colours() && {
    grow_trees();
    if (!find_bonds() || !join_trees()) return std::nullopt;
    Colouring colours{graph_.rows() > 0 ? 1 : 0, Array<int>(at(graph_.rows()))};
    std::atomic<bool> second = false;
    in_parts(graph_.rows(), threads_, [&](Index first, Index end) {
      int any = 0;
      for (Index i = first; i < end; ++i)
        any |= colours.of_rows[at(i)] = side_[at(i)] ^ roots_[at(tree_[at(i)])].side;
      if (any != 0) second = true;
    });
    colours.count += second;
    return colours;
  }

 private:
  /// Where a tree hangs: in the lowest of those that it has a bond with, once they are joined.
  struct Root {
    Index parent = 0;
    int side = 0;  ///< 1: its rows change their side for that of the parent
  };
  /// Two trees, and whether the rows by which they meet are on the same side.
  struct Bond {
    Index a = 0, b = 0;
    int same = 0;
    auto operator<=>(const Bond&) const = default;
  };

  void grow_trees() {
    std::vector<Index> before(at(parts_of(graph_.rows())) + 1, 0);  // roots, of all parts before each
    for_each_part(graph_.rows(), threads_, [&](Index part, Index first, Index end) {
      Index& roots = before[at(part) + 1];
      for (Index i = first; i < end; ++i) {
        const std::span<const Index> row = graph_.row(i);
        const auto stem = std::ranges::find_if(row, [&](Index j) { return j >= first; });
        const bool is_root = stem == row.end() || *stem >= i;
        tree_[at(i)] = is_root ? roots++ : tree_[at(*stem)];
        side_[at(i)] = static_cast<signed char>(is_root ? 0 : 1 - side_[at(*stem)]);
      }
    });
    std::partial_sum(before.begin(), before.end(), before.begin());
    for_each_part(graph_.rows(), threads_, [&](Index part, Index first, Index end) {
      for (Index i = first; i < end; ++i) tree_[at(i)] += before[at(part)];
    });
    for (Index root = 0; root < before.back(); ++root) roots_.push_back({root, 0});
  }

  /// @return false: two neighbours of a tree are on the same side of it
  bool find_bonds() {
    std::atomic<bool> odd = false;
    std::mutex mutex;
    in_parts(graph_.rows(), threads_, [&](Index first, Index end) {
      std::vector<Bond> found;
      for (Index i = first; i < end && !odd; ++i)
        for (const Index j : graph_.row(i)) {
          if (j >= i) break;
          const Index mine = tree_[at(i)], other = tree_[at(j)];
          const bool same = side_[at(i)] == side_[at(j)];
          if (mine == other && same) odd = true;
          if (mine != other) found.push_back({std::min(mine, other), std::max(mine, other), same});
        }
      keep_each_once(found);
      const std::lock_guard lock(mutex);
      bonds_.insert(bonds_.end(), found.begin(), found.end());
    });
    return !odd;
  }

  /// @return false: bonds contradict each other
  bool join_trees() {
    for (const Bond& bond : bonds_) {
      const Root a = top(bond.a), b = top(bond.b);
      const int change = a.side ^ b.side ^ bond.same;
      if (a.parent == b.parent) {
        if (change != 0) return false;
        continue;
      }
      roots_[at(std::max(a.parent, b.parent))] = {std::min(a.parent, b.parent), change};
    }
    for (Index tree = 0; tree < static_cast<Index>(roots_.size()); ++tree) top(tree);
    return true;
  }

  /// The tree in which a tree hangs in the end, and whether its rows change their side for that. Shortens the way.
  Root top(Index tree) {
    Root way{tree, 0};
    while (roots_[at(way.parent)].parent != way.parent) {
      const Root next = roots_[at(way.parent)];
      way = {next.parent, way.side ^ next.side};
    }
    for (int side = way.side; roots_[at(tree)].parent != tree && tree != way.parent;) {
      const Root next = std::exchange(roots_[at(tree)], {way.parent, side});
      tree = next.parent;
      side ^= next.side;
    }
    return way;
  }

  PatternView graph_;
  int threads_;
  Array<Index> tree_;        // of each row
  Array<signed char> side_;  // of each row in its tree
  std::vector<Root> roots_;  // of each tree, by their lowest rows
  std::vector<Bond> bonds_;
};

/// Finds the rows within q steps of a row. Every thread has its own.
class Neighbourhood {
 public:
  Neighbourhood(PatternView graph, int steps)
      : graph_(graph), steps_(steps), seen_by_(at(graph.rows()), no_colour) {}

  /// The row itself and those within so many steps, each once, in a new search for each row.
  const std::vector<Index>& of(Index row) {
    rows_.assign(1, row);
    seen_by_[at(row)] = row;
    std::size_t head = 0;
    for (int step = 0; step < steps_ && head < rows_.size(); ++step)
      for (const std::size_t end = rows_.size(); head < end; ++head)
        for (const Index j : graph_.row(rows_[head])) {
          if (seen_by_[at(j)] == row) continue;
          seen_by_[at(j)] = row;
          rows_.push_back(j);
        }
    return rows_;
  }

 private:
  PatternView graph_;
  int steps_;
  std::vector<Index> seen_by_, rows_;
};

/// Greedy colouring in the rows' order by several threads. To search neighbourhoods takes nearly all of the time and is
/// done for chunks of rows at once; their colours follow chunk after chunk, so that they are those of one thread.
class Greedy {
 public:
  Greedy(PatternView graph, int q)
      : graph_(graph), q_(q), colours_{0, Array<int>(at(graph.rows()), no_colour)} {}

  Colouring by(int threads) {
    in_team(threads_for(graph_.rows(), threads), [&](int) {
      try {
        work();
      } catch (...) {
        finish(failed);  // the others wait for this chunk
        throw;
      }
    });
    return std::move(colours_);
  }

 private:
  static constexpr Index chunk_rows = 512;
  static constexpr Index failed = -1;

  /// For the rows of a chunk, one after the other: those before each within q steps.
  struct Chunk {
    std::vector<Index> begin, rows;
  };

  void work() {
    Neighbourhood neighbourhood(graph_, q_);
    Chunk chunk;
    std::vector<Index> taken_by;  // per colour: the last row that cannot have it
    for (Index number = next_++; number * chunk_rows < graph_.rows(); number = next_++) {
      const Index first = number * chunk_rows, end = std::min(graph_.rows(), first + chunk_rows);
      search(first, end, neighbourhood, chunk);
      for (Index done = finished_; done != number; done = finished_) {
        if (done == failed) return;
        finished_.wait(done);
      }
      give_colours(first, chunk, taken_by);
      finish(number + 1);
    }
  }

  static void search(Index first, Index end, Neighbourhood& neighbourhood, Chunk& chunk) {
    chunk.rows.clear();
    chunk.begin.assign(1, 0);
    for (Index i = first; i < end; ++i) {
      for (const Index j : neighbourhood.of(i))
        if (j < i) chunk.rows.push_back(j);
      chunk.begin.push_back(static_cast<Index>(chunk.rows.size()));
    }
  }

  void give_colours(Index first, const Chunk& chunk, std::vector<Index>& taken_by) {
    taken_by.resize(at(colours_.count) + 1, no_colour);
    for (std::size_t k = 0; k + 1 < chunk.begin.size(); ++k) {
      const Index i = first + static_cast<Index>(k);
      for (Index n = chunk.begin[k]; n < chunk.begin[k + 1]; ++n)
        taken_by[at(colours_.of_rows[at(chunk.rows[at(n)])])] = i;
      const int mine = static_cast<int>(std::ranges::find_if(taken_by, [&](Index by) { return by != i; }) -
                                        taken_by.begin());
      colours_.of_rows[at(i)] = mine;
      if (mine < colours_.count) continue;
      colours_.count = mine + 1;
      taken_by.push_back(no_colour);
    }
  }

  void finish(Index chunks) {
    Index before = finished_;
    while (before != failed && !finished_.compare_exchange_weak(before, chunks)) {
    }
    finished_.notify_all();
  }

  PatternView graph_;
  int q_;
  Colouring colours_;
  std::atomic<Index> next_ = 0;      ///< chunk to be searched
  std::atomic<Index> finished_ = 0;  ///< so many chunks have colours; or failed
};

}  // namespace

Colouring colour(PatternView pattern, int q, int threads) {
  if (q < 1) throw Error(fmt::format("a colouring for |A|^q with q = {} is asked for: q is at least 1", q));
  const Graph graph(pattern, threads);
  if (q == 1)
    if (std::optional<Colouring> two = TwoColours(graph.view(), threads).colours()) return std::move(*two);
  return Greedy(graph.view(), q).by(threads);
}

std::optional<Colouring> two_colours(PatternView pattern, int threads) {
  const Graph graph(pattern, threads);
  return TwoColours(graph.view(), threads).colours();
}

}  // namespace asterism::sparse
