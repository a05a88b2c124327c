#include "colouring.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
#include "team.hpp"

namespace asterism::sparse {
namespace {

constexpr int none = -1;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Two colours by breadth-first searches, one for each part of the graph that hangs together; nothing where a cycle
/// has an odd number of rows.
std::optional<Colouring> two_colours(PatternView graph) {
  Colouring colours{graph.rows() > 0 ? 1 : 0, std::vector<int>(at(graph.rows()), none)};
  std::vector<Index> queue;
  for (Index start = 0; start < graph.rows(); ++start) {
    if (colours.of_rows[at(start)] != none) continue;
    colours.of_rows[at(start)] = 0;
    queue.assign(1, start);
    for (std::size_t head = 0; head < queue.size(); ++head) {
      const int mine = colours.of_rows[at(queue[head])];
      for (const Index j : graph.row(queue[head])) {
        if (colours.of_rows[at(j)] == mine) return std::nullopt;
        if (colours.of_rows[at(j)] != none) continue;
        colours.of_rows[at(j)] = 1 - mine;
        colours.count = 2;
        queue.push_back(j);
      }
    }
  }
  return colours;
}

/// Finds the rows within q steps of a row. Every thread has its own.
class Neighbourhood {
 public:
  Neighbourhood(PatternView graph, int steps)
      : graph_(graph), steps_(steps), seen_by_(at(graph.rows()), none) {}

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
      : graph_(graph), q_(q), colours_{0, std::vector<int>(at(graph.rows()), none)} {}

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
    taken_by.resize(at(colours_.count) + 1, none);
    for (std::size_t k = 0; k + 1 < chunk.begin.size(); ++k) {
      const Index i = first + static_cast<Index>(k);
      for (Index n = chunk.begin[k]; n < chunk.begin[k + 1]; ++n)
        taken_by[at(colours_.of_rows[at(chunk.rows[at(n)])])] = i;
      const int mine = static_cast<int>(std::ranges::find_if(taken_by, [&](Index by) { return by != i; }) -
                                        taken_by.begin());
      colours_.of_rows[at(i)] = mine;
      if (mine < colours_.count) continue;
      colours_.count = mine + 1;
      taken_by.push_back(none);
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
  const Pattern graph = neighbours(pattern, threads);
  if (q == 1)
    if (std::optional<Colouring> two = two_colours(graph)) return std::move(*two);
  return Greedy(graph, q).by(threads);
}

}  // namespace asterism::sparse
