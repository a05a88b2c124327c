#include "nested_dissection.hpp"

#include <algorithm>
#include <bitset>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>

#include "../../common/team.hpp"
#include "vertex_separator.hpp"

namespace asterism::decomposition {
namespace {

using List = std::vector<std::int32_t>;

/// Nodes of a part that is not cut any more.
constexpr std::int32_t most_of_leaf = 128;

/// A part of a graph, the numbers of its nodes in that, ascending, and where its order begins.
struct Piece {
  std::size_t of = 0;
  Adjacency graph;
  List names;
  std::int32_t first = 0;
};

/// Each time one with the fewest neighbours, which know each other then. Neighbours in separators count, too.
/// @param whole the graph that the piece is of
List by_least_degree(const Adjacency& whole, const Piece& piece) {
  using Nodes = std::bitset<4 * most_of_leaf>;
  const std::size_t n = piece.names.size();
  List outside;  // in separators
  const auto for_neighbours = [&](std::size_t i, const auto& body) {
    for (std::int32_t k = whole.begins[piece.names[i]]; k < whole.begins[piece.names[i] + 1]; ++k) {
      const std::int32_t neighbour = whole.neighbours[k];
      const auto at = std::ranges::lower_bound(piece.names, neighbour);
      const bool is_inside = at != piece.names.end() && *at == neighbour;
      body(neighbour, is_inside ? static_cast<std::size_t>(at - piece.names.begin()) : n);
    }
  };
  for (std::size_t i = 0; i < n; ++i)
    for_neighbours(i, [&](std::int32_t neighbour, std::size_t place) {
      if (place == n) outside.push_back(neighbour);
    });
  std::ranges::sort(outside);
  outside.erase(std::unique(outside.begin(), outside.end()), outside.end());
  std::vector<Nodes> neighbours(n);
  std::vector<std::size_t> degrees(n);
  for (std::size_t i = 0; i < n; ++i) {
    for_neighbours(i, [&](std::int32_t neighbour, std::size_t place) {
      if (place == n)
        place += static_cast<std::size_t>(std::ranges::lower_bound(outside, neighbour) - outside.begin());
      if (place < neighbours[i].size()) neighbours[i].set(place);
    });
    degrees[i] = neighbours[i].count();
  }
  List order;
  std::vector<char> is_left(n, 1);
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t next = n;
    for (std::size_t i = 0; i < n; ++i)
      if (is_left[i] != 0 && (next == n || degrees[i] < degrees[next])) next = i;
    is_left[next] = 0;
    order.push_back(static_cast<std::int32_t>(next));
    const Nodes its = neighbours[next];
    for (std::size_t i = 0; i < n; ++i)
      if (is_left[i] != 0 && its[i]) {
        neighbours[i] |= its;
        neighbours[i].reset(i).reset(next);
        degrees[i] = neighbours[i].count();
      }
  }
  return order;
}

/// The nodes of one side, with the edges between them.
Piece part_of(const Piece& whole, const std::vector<Side>& sides, Side side, std::int32_t first) {
  Piece part{.of = whole.of, .graph = {}, .names = {}, .first = first};
  List places(sides.size(), -1);
  std::int32_t next = 0;
  for (std::size_t i = 0; i < sides.size(); ++i)
    if (sides[i] == side) places[i] = next++;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (places[i] < 0) continue;
    part.names.push_back(whole.names[i]);
    for (std::int32_t k = whole.graph.begins[i]; k < whole.graph.begins[i + 1]; ++k)
      if (const std::int32_t to = places[whole.graph.neighbours[k]]; to >= 0)
        part.graph.neighbours.push_back(to);
    part.graph.begins.push_back(static_cast<std::int32_t>(part.graph.neighbours.size()));
  }
  return part;
}

/// Whether nodes have so many neighbours that there is nothing to be separated.
bool is_dense(const Adjacency& graph) {
  return 5 * static_cast<Index>(graph.neighbours.size()) > Index{graph.nodes()} * graph.nodes();
}

/// Pieces that threads take and cut, until there are none.
class Dissection {
 public:
  explicit Dissection(const std::vector<const Adjacency*>& graphs) : graphs_(graphs) {
    for (std::size_t of = 0; of < graphs.size(); ++of) {
      Piece piece{.of = of, .graph = *graphs[of], .names = List(graphs[of]->nodes()), .first = 0};
      std::iota(piece.names.begin(), piece.names.end(), 0);
      orders_.push_back(piece.names);
      add(std::move(piece));
    }
  }

  void work() {
    try {
      while (std::optional<Piece> piece = take()) {
        cut(*piece);
        end_one();
      }
    } catch (...) {
      give_up();
      throw;
    }
  }
  [[nodiscard]] std::vector<List>& orders() { return orders_; }

 private:
  void add(Piece piece) {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(piece));
    ++unfinished_;
    changed_.notify_one();
  }
  /// None: there will be no more.
  std::optional<Piece> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !pieces_.empty() || unfinished_ == 0 || given_up_; });
    if (pieces_.empty() || given_up_) return {};
    std::optional<Piece> piece = std::move(pieces_.back());
    pieces_.pop_back();
    return piece;
  }
  void end_one() {
    const std::lock_guard lock(mutex_);
    if (--unfinished_ == 0) changed_.notify_all();
  }
  void give_up() {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    changed_.notify_all();
  }

  void cut(const Piece& piece) {
    List& order = orders_[piece.of];  // each piece has places of its own in it
    if (piece.graph.nodes() <= most_of_leaf) {
      std::int32_t next = piece.first;
      for (const std::int32_t node : by_least_degree(*graphs_[piece.of], piece))
        order[next++] = piece.names[node];
      return;
    }
    if (is_dense(piece.graph)) {
      std::ranges::copy(piece.names, order.begin() + piece.first);
      return;
    }
    const std::vector<Side> sides = vertex_separator(piece.graph);
    Piece left = part_of(piece, sides, Side::left, piece.first);
    Piece right = part_of(piece, sides, Side::right, piece.first + left.graph.nodes());
    std::int32_t next = right.first + right.graph.nodes();
    for (std::size_t i = 0; i < sides.size(); ++i)
      if (sides[i] == Side::separator) order[next++] = piece.names[i];
    for (Piece* half : {&left, &right}) {
      if (half->graph.nodes() == piece.graph.nodes())  // it cannot be cut
        std::ranges::copy(half->names, order.begin() + half->first);
      else if (half->graph.nodes() > 0)
        add(std::move(*half));
    }
  }

  const std::vector<const Adjacency*>& graphs_;
  std::vector<List> orders_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Piece> pieces_;
  std::size_t unfinished_ = 0;
  bool given_up_ = false;
};

}  // namespace

std::vector<List> nested_dissections(const std::vector<const Adjacency*>& graphs, int threads) {
  Dissection dissection(graphs);
  in_team(team_size(threads), [&](int) { dissection.work(); });
  return std::move(dissection.orders());
}

}  // namespace asterism::decomposition
