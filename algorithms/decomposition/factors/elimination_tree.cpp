#include "elimination_tree.hpp"

#include <algorithm>
#include <numeric>

namespace asterism::decomposition {
namespace {

using List = std::vector<std::int32_t>;

List inverse_of(const List& order) {
  List places(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) places[order[i]] = static_cast<std::int32_t>(i);
  return places;
}

/// Zeros that a supernode may have, as a part of its entries.
double most_padding(Index width) {
  if (width <= 8) return 0.7;
  if (width <= 16) return 0.4;
  return width <= 64 ? 0.12 : 0.05;
}

/// Columns that join others, from the leaves of the tree up.
class Amalgamation {
 public:
  explicit Amalgamation(const EliminationTree& tree) : tree_(tree), nodes_(tree.parents.size()) {
    for (std::size_t j = 0; j < nodes_.size(); ++j) nodes_[j].below = tree.below[j];
    join_where(
        [](const Node& node, const Node& parent) { return node.below == parent.width + parent.below; });
    join_where([](const Node& node, const Node& parent) {
      const auto [zeros, entries] = together(node, parent);
      return static_cast<double>(zeros) <=
             most_padding(Index{node.width} + parent.width) * static_cast<double>(entries);
    });
  }

  /// What a column belongs to: the number of a column, the topmost of a supernode.
  [[nodiscard]] std::int32_t top_of(std::int32_t column) {
    std::int32_t top = column;
    while (nodes_[top].joined_to >= 0) top = nodes_[top].joined_to;
    while (nodes_[column].joined_to >= 0) column = std::exchange(nodes_[column].joined_to, top);
    return top;
  }

 private:
  struct Node {
    std::int32_t width = 1, below = 0, joined_to = -1;
    Index zeros = 0;
  };
  struct Padding {
    Index zeros, entries;
  };

  static Index entries_of(Index width, Index below) { return width * (width + 1) / 2 + width * below; }
  static Padding together(const Node& node, const Node& parent) {
    const Index entries = entries_of(Index{node.width} + parent.width, parent.below);
    const Index own = entries_of(node.width, node.below) + entries_of(parent.width, parent.below);
    return {node.zeros + parent.zeros + entries - own, entries};
  }

  /// Each to its parent, if it may; of several those with most rows first.
  template <class Joins>
  void join_where(const Joins& joins) {
    std::vector<List> children(nodes_.size());
    for (std::int32_t j = 0; j < static_cast<std::int32_t>(nodes_.size()); ++j) {
      if (nodes_[j].joined_to >= 0) continue;  // its top comes later
      List& its = children[j];
      std::ranges::stable_sort(its, std::greater<>(), [this](std::int32_t c) { return nodes_[c].below; });
      for (const std::int32_t child : its)
        if (joins(nodes_[child], nodes_[j]) && nodes_[child].width + nodes_[j].width <= most_width)
          join(child, j);
      List().swap(its);
      if (tree_.parents[j] >= 0) children[top_of(tree_.parents[j])].push_back(j);
    }
  }
  void join(std::int32_t child, std::int32_t to) {
    Node &node = nodes_[child], &parent = nodes_[to];
    parent.zeros = together(node, parent).zeros;
    parent.width += node.width;
    node.joined_to = to;
  }

  const EliminationTree& tree_;
  std::vector<Node> nodes_;
};

/// Children of each node, and the roots last; all ascending.
std::vector<List> children_of(const List& parents) {
  std::vector<List> children(parents.size() + 1);
  for (std::size_t k = 0; k < parents.size(); ++k)
    children[parents[k] < 0 ? parents.size() : static_cast<std::size_t>(parents[k])].push_back(
        static_cast<std::int32_t>(k));
  return children;
}

/// Children before their parents, and subtrees consecutive.
List postorder(const List& parents) {
  std::vector<List> children = children_of(parents);
  List order, stack = std::move(children.back());
  while (!stack.empty()) {
    const std::int32_t node = stack.back();
    if (children[node].empty()) {
      order.push_back(node);
      stack.pop_back();
    } else {
      stack.insert(stack.end(), children[node].begin(), children[node].end());
      children[node].clear();
    }
  }
  return order;
}

/// Numbers of rows and places in lists, of supernodes that know their columns.
void set_rows(const Adjacency& graph, const List& old_of_new, Supernodes& s) {
  const List new_of_old = inverse_of(old_of_new);
  List seen(old_of_new.size(), -1), parents;
  for (const Supernode& node : s.nodes) parents.push_back(node.parent);
  const std::vector<List> children = children_of(parents);
  for (std::size_t k = 0; k < s.nodes.size(); ++k) {
    Supernode& node = s.nodes[k];
    const std::int32_t end = node.first + node.width;
    node.rows = static_cast<Index>(s.rows.size());
    const auto add = [&](std::int32_t row) {
      if (row < end || seen[row] == static_cast<std::int32_t>(k)) return;
      seen[row] = static_cast<std::int32_t>(k);
      s.rows.push_back(row);
    };
    for (std::int32_t j = node.first; j < end; ++j)
      for (std::int32_t e = graph.begins[old_of_new[j]]; e < graph.begins[old_of_new[j] + 1]; ++e)
        add(new_of_old[graph.neighbours[e]]);
    for (const std::int32_t child : children[k])
      for (std::int32_t i = 0; i < s.nodes[child].below; ++i) add(s.rows[s.nodes[child].rows + i]);
    std::sort(s.rows.begin() + node.rows, s.rows.end());
    node.below = static_cast<std::int32_t>(static_cast<Index>(s.rows.size()) - node.rows);
  }
}

void set_places(Supernodes& s) {
  s.places.resize(s.rows.size());
  for (const Supernode& node : s.nodes) {
    if (node.parent < 0) continue;
    const Supernode& parent = s.nodes[node.parent];
    const auto begin = s.rows.begin() + parent.rows;
    auto at = begin;
    for (Index k = node.rows; k < node.rows + node.below; ++k) {
      const std::int32_t row = s.rows[k];
      if (row < parent.first + parent.width) {
        s.places[k] = row - parent.first;
      } else {
        at = std::lower_bound(at, begin + parent.below, row);
        s.places[k] = parent.width + static_cast<std::int32_t>(at - begin);
      }
    }
  }
}

/// By their distance from the root, the farthest first.
void set_order(Supernodes& s) {
  List parents;
  for (const Supernode& node : s.nodes) parents.push_back(node.parent);
  const std::vector<List> children = children_of(parents);
  s.order = children.back();
  s.depth = s.nodes.empty() ? 0 : 1;
  for (std::size_t k = 0, last = s.order.size(); k < s.order.size(); ++k) {
    if (k == last) {
      last = s.order.size();
      ++s.depth;
    }
    const List& its = children[s.order[k]];
    s.nodes[s.order[k]].children = static_cast<std::int32_t>(s.order.size());
    s.nodes[s.order[k]].child_count = static_cast<std::int32_t>(its.size());
    s.order.insert(s.order.end(), its.begin(), its.end());
  }
  std::ranges::reverse(s.order);
  for (Supernode& node : s.nodes)
    node.children = static_cast<std::int32_t>(s.order.size()) - node.children - node.child_count;
}

void set_jobs(Supernodes& s) {
  const auto small = [&](std::size_t k) { return is_small(s.nodes[s.order[k]]); };
  s.jobs = {};
  for (std::size_t k = 0; k < s.order.size(); ++k)
    if (k == 0 || !small(k) || !small(k - 1) || static_cast<std::int32_t>(k) - s.jobs.back() == small_of_job)
      s.jobs.push_back(static_cast<std::int32_t>(k));
  s.jobs.push_back(static_cast<std::int32_t>(s.order.size()));
}

}  // namespace

std::optional<EliminationTree> elimination_tree(const Adjacency& graph, const List& old_of_new, Index most) {
  const std::int32_t n = graph.nodes();
  const List new_of_old = inverse_of(old_of_new);
  EliminationTree tree{List(old_of_new.size(), -1), List(old_of_new.size()), 0};
  List seen(old_of_new.size(), -1);
  for (std::int32_t row = 0; row < n; ++row) {
    seen[row] = row;
    const std::int32_t old = old_of_new[row];
    for (std::int32_t k = graph.begins[old]; k < graph.begins[old + 1]; ++k)
      for (std::int32_t node = new_of_old[graph.neighbours[k]]; node < row && seen[node] != row;
           node = tree.parents[node]) {
        seen[node] = row;
        if (tree.parents[node] < 0) tree.parents[node] = row;
        ++tree.below[node];
        ++tree.fill;
      }
    if (tree.fill > most) return {};
  }
  return tree;
}

SupernodalOrder supernodes_of(const Adjacency& graph, const List& old_of_new, const EliminationTree& tree) {
  Amalgamation amalgamation(tree);
  const auto n = static_cast<std::int32_t>(old_of_new.size());
  List tops, number(old_of_new.size(), -1), parents;
  for (std::int32_t j = 0; j < n; ++j)
    if (amalgamation.top_of(j) == j) {
      number[j] = static_cast<std::int32_t>(tops.size());
      tops.push_back(j);
    }
  for (const std::int32_t top : tops)
    parents.push_back(tree.parents[top] < 0 ? -1 : number[amalgamation.top_of(tree.parents[top])]);
  std::vector<List> columns(tops.size());
  for (std::int32_t j = 0; j < n; ++j) columns[number[amalgamation.top_of(j)]].push_back(j);

  const List order = postorder(parents), place = inverse_of(order);
  SupernodalOrder result;
  Supernodes& s = result.supernodes;
  for (const std::int32_t k : order) {
    s.nodes.push_back({.first = static_cast<std::int32_t>(result.old_of_new.size()),
                       .width = static_cast<std::int32_t>(columns[k].size()),
                       .parent = parents[k] < 0 ? -1 : place[parents[k]]});
    for (const std::int32_t j : columns[k]) result.old_of_new.push_back(old_of_new[j]);
  }
  set_rows(graph, result.old_of_new, s);
  Index next = 0;
  for (Supernode& node : s.nodes) {
    node.panel = next;
    next += node.entries();
  }
  set_places(s);
  set_order(s);
  set_jobs(s);
  return result;
}

Supernodes joined(const std::vector<Supernodes>& parts) {
  Supernodes all;
  for (const Supernodes& part : parts) {
    const auto nodes = static_cast<std::int32_t>(all.nodes.size()),
               columns = static_cast<std::int32_t>(all.columns());
    const auto rows = static_cast<Index>(all.rows.size()), entries = all.entries();
    for (Supernode node : part.nodes) {
      node.panel += entries;
      node.rows += rows;
      node.first += columns;
      if (node.parent >= 0) node.parent += nodes;
      all.nodes.push_back(node);
    }
    for (const std::int32_t row : part.rows) all.rows.push_back(row + columns);
    all.places.insert(all.places.end(), part.places.begin(), part.places.end());
  }
  set_order(all);
  set_jobs(all);
  return all;
}

}  // namespace asterism::decomposition
