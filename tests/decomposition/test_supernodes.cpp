// Supernodes: what they are made of; their factor; solving with it as blocks of GPU threads do, here one thread after the
// other, and in any order that they allow; who solves for which subdomains.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>

#include "../support/worst.hpp"
#include "algorithms/decomposition/factors/dealing.hpp"
#include "algorithms/decomposition/factors/elimination_order.hpp"
#include "algorithms/decomposition/factors/elimination_tree.hpp"
#include "codelets/decomposition/supernodes/cholesky.hpp"
#include "codelets/decomposition/supernodes/steps.hpp"
#include "subdomain_solves.hpp"

namespace asterism::test {
namespace {

using namespace decomposition;
using List = std::vector<std::int32_t>;

Adjacency graph_of(const sparse::Csr<double>& a) {
  std::vector<Index> all(static_cast<std::size_t>(a.total_rows));
  std::iota(all.begin(), all.end(), 0);
  return adjacency_of(a, all);
}
SupernodalOrder supernodal_order(const sparse::Csr<double>& a) {
  const Adjacency graph = graph_of(a);
  const EliminationOrder order = elimination_orders({&graph}).front();
  return supernodes_of(graph, order.old_of_new, order.tree);
}
Dense reordered(const sparse::Csr<double>& a, const List& old_of_new) {
  const std::vector<Index> rows(old_of_new.begin(), old_of_new.end());
  return part_of(dense(a), rows, rows);
}

/// Entries of a symmetric matrix in the order of elimination, as a factorisation wants them.
template <class V>
struct OwnLower {
  List begins{0}, places;
  std::vector<V> values;
  explicit OwnLower(const Dense& a) {
    for (Index j = 0; j < a.cols(); ++j) {
      for (Index i = j; i < a.rows(); ++i)
        if (a(i, j) != 0) {
          places.push_back(static_cast<std::int32_t>(i));
          values.push_back(static_cast<V>(a(i, j)));
        }
      begins.push_back(static_cast<std::int32_t>(places.size()));
    }
  }
  [[nodiscard]] LowerTriangle<V> view() const { return {begins, places, values}; }
};

template <class V>
std::vector<V> factor_of(const Supernodes& s, const Dense& matrix) {
  std::vector<V> panels(static_cast<std::size_t>(s.entries()), std::numeric_limits<V>::quiet_NaN());
  CHECK(!factorise_supernodes<V>(s, OwnLower<V>(matrix).view(), panels));
  return panels;
}

/// As the team of that many threads on a GPU does it: the same sums in the same order.
template <int size, class V>
struct HostTeam {
  void meet() const {}
  template <class Body>
  void each(Index count, const Body& body) const {
    for (Index i = 0; i < count; ++i) body(i);
  }
  template <class End, class Term, class Put>
  void row_sums(Index rows, const End& end, const Term& term, const Put& put) const {
    const int stride = row_stride(size, rows), shares = size / stride;
    std::vector<V> sums;
    for (Index i = 0; i < rows; ++i) {
      V sum = 0;
      for (int share = 0; share < shares; ++share) {
        V part = 0;
        for (Index j = share; j < end(i); j += shares) part += term(i, j);
        sum = share == 0 ? part : sum + part;
      }
      sums.push_back(sum);
    }
    for (Index i = 0; i < rows; ++i) put(i, sums[i]);
  }
  template <class Begin, class Term, class Put>
  void column_sums(Index columns, const Begin& begin, Index end, const Term& term, const Put& put) const {
    const int lanes = lanes_of_column(size, columns);
    REQUIRE(size % lanes == 0);
    for (Index j = 0; j < columns; ++j) {
      V parts[32] = {};
      for (int lane = 0; lane < lanes; ++lane)
        for (Index k = begin(j) + lane; k < end; k += lanes) parts[lane] += term(k, j);
      for (int half = lanes / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane) parts[lane] += parts[lane + half];
      put(j, parts[0]);
    }
  }
};

/// Which of those that may be worked on comes next.
enum class Next { jobs, postorder, backwards };

/// The order of a pass forward: children come before their parents.
List order_of_work(const Supernodes& s, Next next) {
  if (next == Next::jobs) return s.order;
  List order(s.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  if (next == Next::backwards)  // the deepest last within what is allowed: by height
    std::ranges::stable_sort(order, {}, [&](std::int32_t k) {
      std::int32_t height = 0;
      for (std::int32_t c = 0; c <= k; ++c) {
        std::int32_t up = c, steps = 0;
        while (up != k && up >= 0) {
          up = s.nodes[up].parent;
          ++steps;
        }
        if (up == k) height = std::max(height, steps);
      }
      return height;
    });
  return order;
}

/// Where v_2 is.
enum class Room { shared, too_small };

template <class V>
std::vector<V> solve_by_steps(const Supernodes& s, const std::vector<V>& panels, const std::vector<V>& b,
                              Next next, Room room_for = Room::shared) {
  const Index n = s.columns();
  std::vector<V> work(static_cast<std::size_t>(n) + s.rows.size(), std::numeric_limits<V>::quiet_NaN()), x(b);
  std::vector<V> v1(most_width), y(most_width), v2(static_cast<std::size_t>(n));
  const SupernodalSolve<V> at{s.nodes.data(), panels.data(), s.rows.data(),  s.places.data(),
                              s.order.data(), work.data(),   work.data() + n};
  const TeamRoom<V> room{v1.data(), y.data(), v2.data(), room_for == Room::shared ? n : 0};
  const auto with_team = [&](const Supernode& node, const auto& step) {
    if (is_small(node))
      step(HostTeam<32, V>{});
    else
      step(HostTeam<32 * small_of_job, V>{});
  };
  const List order = order_of_work(s, next);
  for (const std::int32_t k : order)
    with_team(s.nodes[k], [&](const auto& team) {
      forward_step(team, at, s.nodes[k], room, [&](Index i) { return b[i]; });
    });
  for (auto k = order.rbegin(); k != order.rend(); ++k)
    with_team(s.nodes[*k], [&](const auto& team) {
      backward_step(team, at, s.nodes[*k], room, [&](Index i, V value) { x[i] = value; });
    });
  return x;
}

/// Of several right-hand sides, one behind the other.
template <class V>
std::vector<V> solve_on_core(const Supernodes& s, std::vector<V> panels, std::vector<V> x) {
  List lists = s.rows;
  std::vector<Supernode> nodes = s.nodes;
  const auto port = []<class X>(std::vector<X>& list) {
    return Optional<In<X>>{
        {list.data(), 1, static_cast<Index>(list.size()), static_cast<Index>(list.size())}};
  };
  panels.resize(panels.size() + panel_margin);
  std::vector<V> room(s.rows.size() + core_room(s.columns()), std::numeric_limits<V>::quiet_NaN());
  cpu::solve_supernodes(SupernodePorts<AsPorts, V>{port(nodes), port(lists), port(panels)},
                        static_cast<Index>(x.size()) / s.columns(), {x.data(), s.columns()}, room.data());
  return x;
}

/// A matrix without zeros: one chain of supernodes, as wide as they may be.
Dense full_matrix(Index n) {
  Dense a = diagonal(n, static_cast<double>(n));
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      if (i != j) a(i, j) = std::cos(static_cast<double>(i * j));
  return a;
}

constexpr const char* models[] = {"poisson2d:23x19", "poisson3d:7x6x5", "triangulation-like:15x14",
                                  "poisson2d:70x1", "poisson2d:1x1"};

}  // namespace

TEST_CASE("supernodes have all columns once, and all rows that elimination fills") {
  for (const char* name : models) {
    CAPTURE(name);
    const auto a = model(name);
    const auto [old_of_new, s] = supernodal_order(a);
    List sorted = old_of_new;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < sorted.size(); ++i) REQUIRE(sorted[i] == static_cast<std::int32_t>(i));
    REQUIRE(s.columns() == a.total_rows);
    const Adjacency graph = graph_of(a);
    const EliminationTree tree = *elimination_tree(graph, old_of_new, 1 << 30);
    CHECK(tree.fill == elimination_orders({&graph}).front().tree.fill);  // another order, with the same fill
    const bool line = std::string_view(name).ends_with("x1");            // of which zeros are the larger part
    CHECK(static_cast<double>(s.entries()) <=
          (line ? 3.4 : 1.8) * static_cast<double>(tree.fill + a.total_rows));
    std::int32_t next = 0;
    Index next_panel = 0, next_row = 0;
    for (std::size_t k = 0; k < s.nodes.size(); ++k) {
      const Supernode& node = s.nodes[k];
      CHECK(node.first == next);
      CHECK(node.panel == next_panel);
      CHECK(node.rows == next_row);
      next += node.width;
      next_panel += node.entries();
      next_row += node.below;
      CHECK((node.parent > static_cast<std::int32_t>(k) || node.parent == -1));
      const auto rows = s.rows.begin() + node.rows;
      CHECK(std::is_sorted(rows, rows + node.below));
      CHECK(std::set<std::int32_t>(rows, rows + node.below).size() == static_cast<std::size_t>(node.below));
      for (std::int32_t j = node.first; j < next; ++j)
        CHECK(tree.below[j] <= next - 1 - j + node.below);  // and the parent is among them:
      if (node.parent < 0) {
        CHECK(node.below == 0);
        continue;
      }
      const Supernode& parent = s.nodes[node.parent];
      CHECK(rows[0] >= parent.first);
      CHECK(rows[0] < parent.first + parent.width);
      for (std::int32_t i = 0; i < node.below; ++i) {
        const std::int32_t place = s.places[node.rows + i];
        CHECK(rows[i] ==
              (place < parent.width ? parent.first + place : s.rows[parent.rows + place - parent.width]));
      }
    }
    CHECK(next_row == static_cast<Index>(s.rows.size()));
  }
}

TEST_CASE(
    "the order of work: children first and side by side, and jobs of one large supernode or some small ones") {
  for (const char* name : {"poisson2d:60x50", "poisson3d:12x11x10", "poisson2d:70x1"}) {
    CAPTURE(name);
    const Supernodes one = supernodal_order(model(name)).supernodes;
    const Supernodes s = joined({one, supernodal_order(model("poisson2d:9x9")).supernodes, one});
    CHECK(s.depth == std::max(one.depth, supernodal_order(model("poisson2d:9x9")).supernodes.depth));
    CHECK(s.columns() == 2 * one.columns() + 81);
    std::vector<std::int32_t> place(s.nodes.size(), -1);
    for (std::size_t k = 0; k < s.order.size(); ++k) place[s.order[k]] = static_cast<std::int32_t>(k);
    CHECK(std::ranges::count(place, -1) == 0);
    std::size_t children = 0;
    for (std::size_t k = 0; k < s.nodes.size(); ++k) {
      children += static_cast<std::size_t>(s.nodes[k].child_count);
      for (std::int32_t c = 0; c < s.nodes[k].child_count; ++c) {
        const std::int32_t child = s.order[s.nodes[k].children + c];
        CHECK(s.nodes[child].parent == static_cast<std::int32_t>(k));
        CHECK(place[child] < place[k]);
      }
    }
    CHECK(children + static_cast<std::size_t>(std::ranges::count(s.nodes, -1, &Supernode::parent)) ==
          s.nodes.size());
    REQUIRE(s.jobs.front() == 0);
    REQUIRE(s.jobs.back() == static_cast<std::int32_t>(s.order.size()));
    for (std::size_t j = 0; j + 1 < s.jobs.size(); ++j) {
      const std::int32_t count = s.jobs[j + 1] - s.jobs[j];
      CHECK(count >= 1);
      CHECK(count <= small_of_job);
      for (std::int32_t k = s.jobs[j]; count > 1 && k < s.jobs[j + 1]; ++k)
        CHECK(is_small(s.nodes[s.order[k]]));
    }
  }
}

TEST_CASE_TEMPLATE("a solution by the steps of GPU threads is that of a core, bit for bit in any order", V,
                   double, float) {
  const double accuracy = sizeof(V) == 8 ? 1e-11 : 1e-3;
  for (const char* name : models) {
    CAPTURE(name);
    const auto a = model(name);
    const auto [old_of_new, s] = supernodal_order(a);
    const Dense matrix = reordered(a, old_of_new);
    const std::vector<V> panels = factor_of<V>(s, matrix);
    const std::vector<double> given = scattered(a.total_rows);
    const DenseVector known = solve_dense(matrix, DenseVector(given.data(), given.size()));
    const std::vector<V> b(given.begin(), given.end());
    const std::vector<V> by_jobs = solve_by_steps(s, panels, b, Next::jobs);
    const std::vector<V> on_core = solve_on_core(s, panels, b);
    Worst steps, core;
    for (std::size_t i = 0; i < known.size(); ++i) {
      steps.take_in((static_cast<double>(by_jobs[i]) - known[i]) / std::abs(known).max());
      core.take_in((static_cast<double>(on_core[i]) - known[i]) / std::abs(known).max());
    }
    CHECK(steps.value() < accuracy);
    CHECK(core.value() < accuracy);
    CHECK(by_jobs == solve_by_steps(s, panels, b, Next::postorder));
    CHECK(by_jobs == solve_by_steps(s, panels, b, Next::backwards));
    CHECK(by_jobs == solve_by_steps(s, panels, b, Next::jobs, Room::too_small));
    CHECK(by_jobs == solve_by_steps(s, factor_of<V>(s, matrix), b, Next::jobs));
  }
}

TEST_CASE_TEMPLATE("several right-hand sides have the bits that each has alone", V, double, float) {
  for (const char* name : {"poisson2d:23x19", "poisson3d:13x13x13", "poisson2d:70x1"}) {
    CAPTURE(name);
    const auto a = model(name);
    const auto [old_of_new, s] = supernodal_order(a);
    const std::vector<V> panels = factor_of<V>(s, reordered(a, old_of_new));
    const std::vector<double> given = scattered(5 * a.total_rows);
    const std::vector<V> b(given.begin(), given.end());
    std::vector<V> one_by_one;
    for (auto at = b.begin(); at != b.end(); at += a.total_rows) {
      const std::vector<V> x = solve_on_core(s, panels, std::vector<V>(at, at + a.total_rows));
      one_by_one.insert(one_by_one.end(), x.begin(), x.end());
    }
    CHECK(solve_on_core(s, panels, b) == one_by_one);
  }
}

TEST_CASE("a forest is solved as its trees are, bit for bit") {
  const auto first = supernodal_order(model("poisson2d:12x13")),
             second = supernodal_order(model("poisson3d:4x5x6"));
  const std::vector<double> of_first =
      factor_of<double>(first.supernodes, reordered(model("poisson2d:12x13"), first.old_of_new));
  const std::vector<double> of_second =
      factor_of<double>(second.supernodes, reordered(model("poisson3d:4x5x6"), second.old_of_new));
  std::vector<double> panels = of_first;
  panels.insert(panels.end(), of_second.begin(), of_second.end());
  const std::vector<double> b = scattered(12 * 13 + 4 * 5 * 6);
  std::vector<double> x =
      solve_by_steps(first.supernodes, of_first, {b.begin(), b.begin() + 156}, Next::jobs);
  for (const double value :
       solve_by_steps(second.supernodes, of_second, {b.begin() + 156, b.end()}, Next::jobs))
    x.push_back(value);
  CHECK(solve_by_steps(joined({first.supernodes, second.supernodes}), panels, b, Next::jobs) == x);
}

TEST_CASE("wide supernodes are cut where a block of threads has no more room") {
  const Index n = most_width + 76;
  const Dense a = full_matrix(n);
  const auto [old_of_new, s] = supernodal_order(csr_of(a));
  REQUIRE(s.nodes.size() == 2);
  CHECK(std::ranges::max(s.nodes, {}, &Supernode::width).width == most_width);
  std::vector<double> known = scattered(n), b(static_cast<std::size_t>(n));
  const Dense matrix = reordered(csr_of(a), old_of_new);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) b[i] += matrix(i, j) * known[j];
  const std::vector<double> panels = factor_of<double>(s, matrix);
  const std::vector<double> steps = solve_by_steps(s, panels, b, Next::jobs),
                            core = solve_on_core(s, panels, b);
  CHECK(largest_difference(steps, known) < 1e-12);
  CHECK(largest_difference(core, known) < 1e-12);
}

TEST_CASE("the first pivot that is no positive number is told, with its column") {
  const auto a = model("poisson2d:20x20");
  const auto [old_of_new, s] = supernodal_order(a);
  for (const Index column : {0, 57, 250, 399}) {
    CAPTURE(column);
    for (const double wrong : {-3.0, std::numeric_limits<double>::quiet_NaN()}) {
      Dense matrix = reordered(a, old_of_new);
      matrix(column, column) = wrong;
      std::vector<double> panels(static_cast<std::size_t>(s.entries()));
      const auto bad = factorise_supernodes<double>(s, OwnLower<double>(matrix).view(), panels);
      REQUIRE(bad);
      CHECK(bad->column == column);
      // The pivot is what the columns before leave of it.
      CHECK((std::isnan(wrong) ? std::isnan(bad->pivot) : bad->pivot <= -3 && bad->pivot >= -7));
    }
  }
}

TEST_CASE("subdomains go to GPUs where these win and have room; others to cores, one by one") {
  const Candidate gpu{.rank = 0, .where = Where::cuda, .worker = 0, .memory = 1e9, .alone = true};
  std::vector<Candidate> workers{gpu};
  for (int k = 0; k < 8; ++k) workers.push_back({.rank = 0, .worker = k});
  workers.push_back({.rank = 1, .worker = 0});
  const std::vector<int> owners{0, 0, 0, 0, 1, 1};
  const auto dealt = [&](const FactorSize& size, SolveOn solve_on = SolveOn::fastest) {
    return deal_subdomains(workers, std::vector<FactorSize>(6, size), owners, solve_on);
  };
  const FactorSize large{.bytes = 100'000'000, .entries = 12'000'000, .depth = 20};
  const Partition all = dealt(large);
  REQUIRE(all.count() == 3);  // the four of rank 0 together
  CHECK(all[0].size == 4);
  CHECK(all[0].where == Where::cuda);
  CHECK(all[1].where == Where::cpu);
  CHECK(all.owner(1) == 1);
  CHECK(all.hints(1).worker == -1);
  CHECK(dealt(large, SolveOn::cores).count() == 6);
  const FactorSize small{.bytes = 10'000, .entries = 1'000, .depth = 6};
  CHECK(dealt(small).count() == 6);
  CHECK(dealt(small, SolveOn::gpus).count() == 3);
  const FactorSize chain{.bytes = 10'000'000, .entries = 1'000'000, .depth = 20'000};
  CHECK(dealt(chain).count() == 6);
  // Rows wait for each other more often, and a core reads a triangle once for each half.
  FactorSize triangles{.bytes = 100'000'000, .entries = 12'000'000, .depth = 2'000, .supernodal = false};
  CHECK(dealt(triangles).count() == 3);
  triangles.depth = 200'000;
  CHECK(dealt(triangles).count() == 6);
  CHECK(dealt(triangles, SolveOn::gpus).count() == 3);
  const FactorSize huge{.bytes = 300'000'000, .entries = 40'000'000, .depth = 20};  // two fit
  const Partition some = dealt(huge);
  REQUIRE(some.count() == 5);
  CHECK(some[0].size == 2);
  CHECK(some[1].where == Where::cpu);

  Candidate second = gpu;
  second.worker = 1;
  workers.insert(workers.begin() + 1, second);
  workers[0].alone = workers[1].alone = false;
  const Partition two = dealt(large);
  REQUIRE(two.count() == 4);
  CHECK(two[0].size == 2);
  CHECK(two[1].size == 2);
  CHECK(two.hints(1).worker == 1);
}

}  // namespace asterism::test
