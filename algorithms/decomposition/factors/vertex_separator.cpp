#include "vertex_separator.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <queue>
#include <random>

namespace asterism::decomposition {
namespace {

using List = std::vector<std::int32_t>;
using Sides = std::vector<Side>;

/// Nodes below which a graph is not made coarser.
constexpr std::int32_t coarsest = 100;
/// Parts of the weight that a half may have.
constexpr double most_of_weight = 0.6;
/// What a half has of the coarsest graph's weight before it is made better.
constexpr double part_grown = 0.42;
/// First separators that are tried on the coarsest graph, and times that one is improved.
constexpr int trials = 8, passes = 3;
/// Attempts at a separator of a large graph that has been made coarser a few times: they take less than this has taken.
constexpr int attempts_at_separator = 4;
constexpr std::int32_t nodes_for_attempts = 3000;
/// How far a node's turn may be from its place, where nodes are paired.
constexpr std::size_t most_shuffled = 4096;
constexpr std::size_t levels_before_attempts = 3;

Side other(Side side) { return side == Side::left ? Side::right : Side::left; }

/// A graph with weights; its nodes are those of a finer one, one by one or in pairs.
struct Level {
  List begins{0}, neighbours, edge_weights, node_weights, coarser;
  Index weight = 0;
  [[nodiscard]] std::int32_t nodes() const { return static_cast<std::int32_t>(node_weights.size()); }
  template <class Body>
  void for_neighbours(std::int32_t node, const Body& body) const {
    for (std::int32_t k = begins[node]; k < begins[node + 1]; ++k) body(neighbours[k], edge_weights[k]);
  }
};

Level finest_of(const Adjacency& graph) {
  Level level;
  level.begins = graph.begins;
  level.neighbours = graph.neighbours;
  level.edge_weights.assign(graph.neighbours.size(), 1);
  level.node_weights.assign(static_cast<std::size_t>(graph.nodes()), 1);
  level.weight = graph.nodes();
  return level;
}

/// Pairs nodes with the neighbour that they have most edges to, the lightest of these; in no regular way, as regular
/// pairs of a grid's nodes hide the separators that go across. @return how many there are then
std::int32_t pair_nodes(Level& level, std::mt19937& random) {
  const auto most = static_cast<std::int32_t>(std::max<Index>(2, 3 * level.weight / (2 * (coarsest / 5))));
  List mate(level.node_weights.size(), -1);
  List turns(level.node_weights.size());
  std::iota(turns.begin(), turns.end(), 0);
  for (std::size_t k = 0; k < turns.size(); ++k)  // not far, for the caches
    std::swap(turns[k], turns[k + random() % std::min(most_shuffled, turns.size() - k)]);
  for (const std::int32_t node : turns) {
    if (mate[node] >= 0) continue;
    std::int32_t best = node, best_edges = 0, best_weight = 0;
    level.for_neighbours(node, [&](std::int32_t to, std::int32_t edges) {
      const std::int32_t weight = level.node_weights[to];
      if (mate[to] >= 0 || weight + level.node_weights[node] > most) return;
      if (edges < best_edges || (edges == best_edges && weight > best_weight)) return;
      if (edges == best_edges && weight == best_weight && random() % 2 == 0) return;
      best = to;
      best_edges = edges;
      best_weight = weight;
    });
    mate[node] = best;
    mate[best] = node;
  }
  // Numbers in the order of the finer nodes: neighbours stay near each other.
  level.coarser.resize(mate.size());
  std::int32_t next = 0;
  for (std::int32_t node = 0; node < level.nodes(); ++node)
    level.coarser[node] = mate[node] < node ? level.coarser[mate[node]] : next++;
  return next;
}

Level coarser_of(const Level& fine, std::int32_t count) {
  Level level;
  level.weight = fine.weight;
  level.node_weights.assign(static_cast<std::size_t>(count), 0);
  List first(static_cast<std::size_t>(count), -1), second(first), place(first);
  for (std::int32_t node = 0; node < fine.nodes(); ++node) {
    const std::int32_t to = fine.coarser[node];
    level.node_weights[to] += fine.node_weights[node];
    (first[to] < 0 ? first : second)[to] = node;
  }
  level.begins.reserve(static_cast<std::size_t>(count) + 1);
  level.neighbours.reserve(fine.neighbours.size());
  level.edge_weights.reserve(fine.neighbours.size());
  for (std::int32_t node = 0; node < count; ++node) {
    const std::int32_t begin = level.begins.back();
    for (const std::int32_t of : {first[node], second[node]}) {
      if (of < 0) continue;
      fine.for_neighbours(of, [&](std::int32_t neighbour, std::int32_t edges) {
        const std::int32_t to = fine.coarser[neighbour];
        if (to == node) return;
        if (place[to] < begin) {
          place[to] = static_cast<std::int32_t>(level.neighbours.size());
          level.neighbours.push_back(to);
          level.edge_weights.push_back(0);
        }
        level.edge_weights[place[to]] += edges;
      });
    }
    level.begins.push_back(static_cast<std::int32_t>(level.neighbours.size()));
  }
  return level;
}

/// A node that may move, and by how much that makes it better.
struct Offer {
  std::int32_t gain, node;
  bool operator<(const Offer& than) const { return gain != than.gain ? gain < than.gain : node > than.node; }
};

/// What a half may weigh.
Index most_of_half(const Level& level) {
  return static_cast<Index>(most_of_weight * static_cast<double>(level.weight));
}

/// Moves without a better separator after which there will not be one.
std::size_t patience_of(std::size_t on_border) { return std::clamp<std::size_t>(on_border / 8, 8, 25); }

/// A separator that gets better.
class Refinement {
 public:
  Refinement(const Level& level, Sides sides)
      : level_(level), sides_(std::move(sides)), moved_in_(sides_.size(), 0) {
    for (std::int32_t node = 0; node < level.nodes(); ++node) {
      weight(sides_[node]) += level.node_weights[node];
      if (sides_[node] == Side::separator) border_.push_back(node);
    }
  }

  void refine() {
    for (int pass = 1; pass <= passes; ++pass)
      if (!improve(pass)) return;
  }
  [[nodiscard]] Sides& sides() { return sides_; }

  struct Quality {
    Index beyond, separator, larger_half;
    auto operator<=>(const Quality&) const = default;
  };
  [[nodiscard]] Quality quality() const {
    const Index half = std::max(weights_[0], weights_[1]);
    return {std::max<Index>(0, half - most_of_half(level_)), weights_[2], half};
  }

 private:
  /// A node that left the separator, and those that it brought in from the other side.
  struct Move {
    std::int32_t node;
    Side to;
    std::size_t brought;
  };
  Index& weight(Side side) { return weights_[static_cast<std::size_t>(side)]; }

  [[nodiscard]] std::int32_t gain(std::int32_t node, Side to) const {
    std::int32_t gain = level_.node_weights[node];
    level_.for_neighbours(node, [&](std::int32_t neighbour, std::int32_t) {
      if (sides_[neighbour] == other(to)) gain -= level_.node_weights[neighbour];
    });
    return gain;
  }
  void offer(std::int32_t node) {
    if (moved_in_[node] == pass_) return;
    for (const Side to : {Side::left, Side::right})
      queues_[static_cast<std::size_t>(to)].push({gain(node, to), node});
  }
  /// The best one to a side; those whose gain is not what it was are put in again.
  [[nodiscard]] const Offer* best(Side to) {
    auto& queue = queues_[static_cast<std::size_t>(to)];
    while (!queue.empty()) {
      const Offer top = queue.top();
      const bool is_free = sides_[top.node] == Side::separator && moved_in_[top.node] != pass_;
      const std::int32_t now = is_free ? gain(top.node, to) : 0;
      if (is_free && now == top.gain) return &queue.top();
      queue.pop();
      if (is_free && now < top.gain) queue.push({now, top.node});
    }
    return nullptr;
  }
  void set(std::int32_t node, Side side) {
    weight(sides_[node]) -= level_.node_weights[node];
    weight(side) += level_.node_weights[node];
    sides_[node] = side;
  }

  /// Whether there was a node to be moved.
  bool move_one() {
    const Offer *left = best(Side::left), *right = best(Side::right);
    const auto fits = [&](const Offer* its, Side to) {
      return its != nullptr && (weight(to) + level_.node_weights[its->node] <= most_of_half(level_) ||
                                weight(to) < weight(other(to)));
    };
    const bool left_fits = fits(left, Side::left), right_fits = fits(right, Side::right);
    if (!left_fits && !right_fits) return false;
    Side to = left_fits ? Side::left : Side::right;
    if (left_fits && right_fits) {
      if (left->gain != right->gain)
        to = left->gain > right->gain ? Side::left : Side::right;
      else
        to = weight(Side::left) <= weight(Side::right) ? Side::left : Side::right;
    }
    move((to == Side::left ? left : right)->node, to);
    return true;
  }
  void move(std::int32_t node, Side to) {
    moved_in_[node] = pass_;
    moves_.push_back({node, to, brought_.size()});
    set(node, to);
    const std::size_t begin = brought_.size();
    level_.for_neighbours(node, [&](std::int32_t neighbour, std::int32_t) {
      if (sides_[neighbour] == other(to)) {
        set(neighbour, Side::separator);
        brought_.push_back(neighbour);
        border_.push_back(neighbour);
      }
    });
    for (std::size_t k = begin; k < brought_.size(); ++k) {
      offer(brought_[k]);
      level_.for_neighbours(brought_[k], [&](std::int32_t neighbour, std::int32_t) {
        if (sides_[neighbour] == Side::separator) offer(neighbour);
      });
    }
  }
  void undo_last() {
    const Move last = moves_.back();
    moves_.pop_back();
    for (; brought_.size() > last.brought; brought_.pop_back()) set(brought_.back(), other(last.to));
    set(last.node, Side::separator);
  }

  bool improve(int pass) {
    pass_ = pass;
    moves_.clear();
    brought_.clear();
    for (auto& queue : queues_) queue = {};
    std::erase_if(border_, [&](std::int32_t node) { return sides_[node] != Side::separator; });
    std::ranges::sort(border_);
    border_.erase(std::unique(border_.begin(), border_.end()), border_.end());
    for (const std::int32_t node : border_) offer(node);
    const std::size_t most_in_vain = patience_of(border_.size());
    const Quality before = quality();
    Quality best_yet = before;
    std::size_t best_moves = 0;
    while (moves_.size() < best_moves + most_in_vain && move_one()) {
      if (const Quality now = quality(); now < best_yet) {
        best_yet = now;
        best_moves = moves_.size();
      }
    }
    while (moves_.size() > best_moves) undo_last();
    return best_yet < before;
  }

  const Level& level_;
  Sides sides_;
  std::vector<int> moved_in_;  // the pass that a node has left the separator in
  int pass_ = 0;
  std::array<Index, 3> weights_{};
  std::array<std::priority_queue<Offer>, 2> queues_;  // to each side
  std::vector<Move> moves_;
  List brought_;
  List border_;  // nodes that are in the separator, or were
};

/// One of the nodes that are farthest from a node, in the same component.
std::int32_t farthest_from(const Level& level, std::int32_t start) {
  std::vector<char> seen(level.node_weights.size());
  List queue{start};
  seen[start] = 1;
  for (std::size_t k = 0; k < queue.size(); ++k)
    level.for_neighbours(queue[k], [&](std::int32_t neighbour, std::int32_t) {
      if (seen[neighbour] == 0) queue.push_back(neighbour);
      seen[neighbour] = 1;
    });
  return queue.back();
}

/// A part of the graph around a node is left, all else right.
Sides grown_from(const Level& level, std::int32_t start) {
  Sides sides(level.node_weights.size(), Side::right);
  std::vector<char> seen(sides.size());
  List queue;
  Index weight = 0;
  std::int32_t next = start;
  for (std::size_t k = 0; static_cast<double>(weight) < part_grown * static_cast<double>(level.weight);) {
    if (k == queue.size()) {  // another component
      while (seen[next] != 0) next = (next + 1) % level.nodes();
      seen[next] = 1;
      queue.push_back(next);
    }
    const std::int32_t node = queue[k++];
    sides[node] = Side::left;
    weight += level.node_weights[node];
    level.for_neighbours(node, [&](std::int32_t neighbour, std::int32_t) {
      if (seen[neighbour] == 0) queue.push_back(neighbour);
      seen[neighbour] = 1;
    });
  }
  return sides;
}

/// The nodes of one half next to the other: of the half where they weigh less.
void separate(const Level& level, Sides& sides) {
  std::array<List, 2> borders;
  std::array<Index, 2> weights{};
  for (std::int32_t node = 0; node < level.nodes(); ++node) {
    bool border = false;
    level.for_neighbours(
        node, [&](std::int32_t neighbour, std::int32_t) { border |= sides[neighbour] != sides[node]; });
    if (!border) continue;
    borders[static_cast<std::size_t>(sides[node])].push_back(node);
    weights[static_cast<std::size_t>(sides[node])] += level.node_weights[node];
  }
  for (const std::int32_t node : borders[weights[0] <= weights[1] ? 0 : 1]) sides[node] = Side::separator;
}

Sides separator_of_coarsest(const Level& level) {
  Sides best;
  Refinement::Quality best_quality{};
  for (int trial = 0; trial < std::min(trials, level.nodes()); ++trial) {
    auto start = static_cast<std::int32_t>(Index{level.nodes()} * (trial / 2) / (trials / 2));
    if (trial % 2 == 0) start = farthest_from(level, farthest_from(level, start));
    Sides sides = grown_from(level, start);
    separate(level, sides);
    Refinement its(level, std::move(sides));
    its.refine();
    if (!best.empty() && !(its.quality() < best_quality)) continue;
    best_quality = its.quality();
    best = std::move(its.sides());
  }
  return best;
}

struct Separator {
  Sides sides;
  Refinement::Quality quality;
};

/// Of a graph, by way of one that has been made coarser so many times; the best of some attempts at that.
Separator separator_of(Level finest, int attempts, std::mt19937& random) {
  std::vector<Level> levels;
  levels.push_back(std::move(finest));
  const auto most_levels = attempts > 1 ? levels_before_attempts : std::numeric_limits<std::size_t>::max();
  while (levels.back().nodes() > coarsest && levels.size() <= most_levels) {
    const std::int32_t count = pair_nodes(levels.back(), random);
    if (count > levels.back().nodes() * 19 / 20) break;
    levels.push_back(coarser_of(levels.back(), count));
  }
  Separator best{separator_of_coarsest(levels.back()), {}};
  if (attempts > 1 && levels.back().nodes() > coarsest) {
    best = separator_of(levels.back(), 1, random);
    for (int attempt = 1; attempt < attempts; ++attempt)
      if (Separator its = separator_of(levels.back(), 1, random); its.quality < best.quality)
        best = std::move(its);
  }
  for (std::size_t k = levels.size(); k-- > 0;) {
    const Level& level = levels[k];
    if (k + 1 < levels.size()) {
      Sides finer;
      finer.reserve(level.coarser.size());
      for (const std::int32_t coarse : level.coarser) finer.push_back(best.sides[coarse]);
      best.sides = std::move(finer);
    }
    Refinement its(level, std::move(best.sides));
    its.refine();
    best.quality = its.quality();
    best.sides = std::move(its.sides());
  }
  return best;
}

}  // namespace

std::vector<Side> vertex_separator(const Adjacency& graph) {
  if (graph.nodes() == 0) return {};
  std::mt19937 random;
  const int attempts = graph.nodes() >= nodes_for_attempts ? attempts_at_separator : 1;
  return separator_of(finest_of(graph), attempts, random).sides;
}

}  // namespace asterism::decomposition
