// How matrices are cut into subdomains and patches, which order and fill their factors get, what is refused.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "../support/messages.hpp"
#include "algorithms/decomposition/cut/coarse_matrix.hpp"
#include "algorithms/decomposition/cut/metis.hpp"
#include "algorithms/decomposition/factors/elimination_order.hpp"
#include "algorithms/decomposition/factors/elimination_tree.hpp"
#include "algorithms/decomposition/transfer.hpp"
#include "subdomain_solves.hpp"

namespace asterism::test {
namespace {

using namespace decomposition;

std::vector<Index> own_rows(const Subdomain& s) {
  std::vector<Index> rows;
  for (const std::int32_t place : s.owned) rows.push_back(s.rows[static_cast<std::size_t>(place)]);
  return rows;
}

/// Each row is owned once, and the lists are ascending.
void check_division(const std::vector<Subdomain>& subdomains, Index n) {
  std::vector<int> owners(static_cast<std::size_t>(n));
  for (const Subdomain& s : subdomains) {
    CHECK(std::ranges::is_sorted(s.rows));
    CHECK(std::ranges::is_sorted(s.owned));
    CHECK(std::set(s.rows.begin(), s.rows.end()).size() == s.rows.size());
    CHECK(!s.owned.empty());
    for (const Index row : own_rows(s)) ++owners[static_cast<std::size_t>(row)];
  }
  CHECK(std::ranges::count(owners, 1) == n);
}

Adjacency whole_graph(const sparse::Csr<double>& a) {
  std::vector<Index> rows(static_cast<std::size_t>(a.total_rows));
  std::iota(rows.begin(), rows.end(), 0);
  return adjacency_of(a, rows);
}

/// Entries below the diagonal of L, by elimination of a dense pattern.
Index dense_fill(const sparse::Csr<double>& a, const std::vector<std::int32_t>& order) {
  const auto n = static_cast<Index>(order.size());
  const Dense full = dense(a);
  Dense pattern(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      const auto p = order[static_cast<std::size_t>(i)], q = order[static_cast<std::size_t>(j)];
      pattern(i, j) = full(p, q) != 0 || full(q, p) != 0 ? 1 : 0;
    }
  Index fill = 0;
  for (Index k = 0; k < n; ++k)
    for (Index i = k + 1; i < n; ++i) {
      if (pattern(i, k) == 0) continue;
      ++fill;
      for (Index j = k + 1; j < n; ++j)
        if (pattern(j, k) != 0) pattern(i, j) = 1;
    }
  return fill;
}

}  // namespace

TEST_CASE("rows: as many in each subdomain, and so many more of each neighbour") {
  const auto a = model("poisson2d:7x9");
  for (const Index count : {1, 2, 5, 63})
    for (const Index overlap : {0, 1}) {
      CAPTURE(count);
      CAPTURE(overlap);
      const auto subdomains = cut_into_subdomains(a, {.count = count, .overlap = overlap});
      check_division(subdomains, 63);
      for (Index p = 0; p < count; ++p) {
        const Index first = 63 * p / count, end = 63 * (p + 1) / count;
        const auto& rows = subdomains[static_cast<std::size_t>(p)].rows;
        CHECK(rows.front() == std::max<Index>(0, first - overlap));
        CHECK(rows.back() == std::min<Index>(63, end + overlap) - 1);
        CHECK(own_rows(subdomains[static_cast<std::size_t>(p)]).front() == first);
      }
    }
}

TEST_CASE(
    "graph: every row once; an overlap has all that so many steps lead to, also against an entry's direction") {
  const auto a = model("convection2d:12x10");
  const Dense full = dense(a);
  for (const Index count : {1, 4, 120}) {
    CAPTURE(count);
    const auto subdomains = cut_into_subdomains(a, {.count = count, .cut = Cut::graph});
    const auto wider = cut_into_subdomains(a, {.count = count, .cut = Cut::graph, .overlap = 1});
    REQUIRE(static_cast<Index>(subdomains.size()) == count);
    check_division(subdomains, 120);
    check_division(wider, 120);
    for (std::size_t p = 0; p < subdomains.size(); ++p) {
      CHECK(own_rows(wider[p]) == subdomains[p].rows);
      std::set<Index> reached(subdomains[p].rows.begin(), subdomains[p].rows.end());
      for (const Index row : subdomains[p].rows)
        for (Index j = 0; j < 120; ++j)
          if (full(row, j) != 0 || full(j, row) != 0) reached.insert(j);
      CHECK(std::vector<Index>(reached.begin(), reached.end()) == wider[p].rows);
    }
  }
}

TEST_CASE("subdomains are dealt to ranks as many on each, or by their shares") {
  using Owners = std::vector<int>;
  CHECK(owners_of(4, 2) == Owners{0, 0, 1, 1});
  CHECK(owners_of(5, 3) == Owners{0, 1, 1, 2, 2});
  CHECK(owners_of(1, 3) == Owners{2});
  CHECK(owners_of(5, 2, {3, 2}) == Owners{0, 0, 0, 1, 1});
  CHECK(owners_of(3, 3, {0, 1.5, 0}) == Owners{1, 1, 1});
  CHECK(owners_of(7, 2, {0.1, 0.6}) == Owners{0, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("a graph's cut is balanced, short, and the same again") {
  const auto a = model("poisson2d:32x32");
  const auto first = cut_into_subdomains(a, {.count = 16, .cut = Cut::graph});
  const auto again = cut_into_subdomains(a, {.count = 16, .cut = Cut::graph});
  const auto wider = cut_into_subdomains(a, {.count = 16, .cut = Cut::graph, .overlap = 1});
  std::size_t beside = 0;
  for (std::size_t p = 0; p < 16; ++p) {
    CHECK(first[p].rows == again[p].rows);
    CHECK(first[p].rows.size() < 80);
    beside += wider[p].rows.size() - first[p].rows.size();
  }
  CHECK(beside < 16 * 2 * 32 / 2);  // stripes would have two lines of 32 each
}

TEST_CASE("what cannot be cut is refused") {
  const auto a = model("poisson2d:4x5");
  const auto refusal = [&](const SubdomainSettings& s) {
    return message_of([&] { cut_into_subdomains(a, s); });
  };
  sparse::Csr<double> wide = a;
  wide.cols = 21;
  message_has(message_of([&] { cut_into_subdomains(wide, {}); }), {"20 x 21", "only a square one"});
  wide = a;
  wide.columns.back() = 20;
  message_has(message_of([&] { cut_into_subdomains(wide, {}); }), {"column 20", "there are 20"});
  message_has(refusal({.count = 0}), {"0 subdomains of 20 rows", "at least 1"});
  message_has(refusal({.count = 21}), {"21 subdomains of 20 rows"});
  message_has(refusal({.count = 4, .overlap = 6}), {"overlap of 6 rows", "subdomain 1 (of 4) has 5"});
  message_has(refusal({.count = 4, .overlap = -1}), {"overlap of -1"});
  message_has(refusal({.count = 2, .cut = Cut::graph, .overlap = 9}), {"9 steps", "all 20 rows"});
}

TEST_CASE("the fill of an order is what elimination makes; a band keeps its order") {
  for (const char* name : {"poisson2d:6x7", "convection2d:5x5", "circuit-like:60"}) {
    CAPTURE(name);
    const auto a = model(name);
    const Adjacency graph = whole_graph(a);
    std::vector<std::int32_t> natural(static_cast<std::size_t>(a.total_rows));
    std::iota(natural.begin(), natural.end(), 0);
    const Index fill = dense_fill(a, natural);
    const auto tree = elimination_tree(graph, natural, fill);
    REQUIRE(tree);
    CHECK(tree->fill == fill);
    CHECK(!elimination_tree(graph, natural, fill / 2));
    const EliminationOrder order = elimination_orders({&graph}).front();
    CHECK(order.tree.fill == dense_fill(a, order.old_of_new));
    CHECK(order.tree.fill <= fill);
  }
  const Adjacency line = whole_graph(model("poisson2d:50x1")), grid = whole_graph(model("poisson2d:40x40"));
  const std::vector<EliminationOrder> orders = elimination_orders({&line, &grid});
  CHECK(elimination_orders({&line, &grid, &grid}, 3)[2].old_of_new == orders[1].old_of_new);
  CHECK(orders[0].tree.fill == 49);
  CHECK(std::ranges::is_sorted(orders[0].old_of_new));
  CHECK(orders[1].tree.fill < 40 * 40 * 40 / 2);
}

TEST_CASE("subdomains of bodies are weighed by how many have a row; those of areas, and stripes, are not") {
  const auto weighed = [](const char* name, const SubdomainSettings& settings) {
    std::vector<Subdomain> subdomains = cut_into_subdomains(model(name), settings);
    weigh(subdomains, settings);
    return subdomains;
  };
  const auto is_weighed = [&](const char* name, const SubdomainSettings& settings) {
    return !weighed(name, settings).front().counts.empty();
  };
  CHECK(!is_weighed("poisson2d:40x40", {.count = 16, .cut = Cut::graph, .overlap = 2}));
  CHECK(!is_weighed("triangulation-like:40x40", {.count = 4, .cut = Cut::graph, .overlap = 3}));
  CHECK(!is_weighed("poisson3d:12x12x12", {.count = 8, .cut = Cut::rows, .overlap = 144}));
  CHECK(!is_weighed("poisson3d:12x12x12", {.count = 8, .cut = Cut::graph}));
  CHECK(!is_weighed("poisson3d:12x12x12", {.count = 1, .cut = Cut::graph, .overlap = 1}));
  const std::vector<Subdomain> bodies =
      weighed("poisson3d:12x12x12", {.count = 16, .cut = Cut::graph, .overlap = 1});
  double all = 0;  // every row counts once
  for (const Subdomain& s : bodies) {
    REQUIRE(s.counts.size() == s.rows.size());
    for (const std::int32_t count : s.counts) all += 1. / count;
  }
  CHECK(all == doctest::Approx(12 * 12 * 12));
}

TEST_CASE(
    "METIS gives several threads what it gives one, and leaves handlers and random numbers of the program alone") {
  std::vector<Adjacency> graphs;
  for (int k = 0; k < 12; ++k)
    graphs.push_back(whole_graph(model(fmt::format("poisson2d:{}x{}", 40 + k, 53 - k))));
  const auto results = [&](int threads) {
    std::vector<std::vector<std::int32_t>> orders(graphs.size()), parts(graphs.size());
    one_by_one_with_metis(graphs.size(), threads, [&](std::size_t k) {
      orders[k] = nested_dissection(graphs[k]);
      parts[k] = cut_graph(graphs[k], 7);
    });
    return std::pair(orders, parts);
  };
  struct sigaction before {
  }, after{};
  sigaction(SIGABRT, nullptr, &before);
  std::srand(5);
  const int first = std::rand();
  std::srand(5);
  const auto by_one = results(1);
  CHECK(std::rand() == first);
  for (int turn = 0; turn < 5; ++turn) CHECK(results(4) == by_one);
  sigaction(SIGABRT, nullptr, &after);
  CHECK((after.sa_handler == before.sa_handler));
  for (std::size_t k = 0; k < graphs.size(); ++k) {
    std::vector<std::int32_t> sorted = by_one.first[k];
    std::ranges::sort(sorted);
    CHECK(sorted == all_places(sorted.size()));
    CHECK(std::ranges::max(by_one.second[k]) == 6);
  }
}

TEST_CASE("parcels of the same two pieces are joined; what goes to several places goes in several parcels") {
  const std::vector<Parcel> parcels{{0, 0, {3, 4}, {0, 1}},
                                    {1, 0, {0}, {2}},
                                    {0, 0, {4, 5}, {3, 4}},
                                    {0, 0, {4, 3}, {5, 6}},
                                    {0, 1, {4, 4}, {0, 1}}};
  const std::vector<Parcel> all = joined(parcels);
  const auto is = [&](std::size_t k, const Parcel& known) {
    REQUIRE(k < all.size());
    CHECK(all[k].from == known.from);
    CHECK(all[k].to == known.to);
    CHECK(all[k].taken == known.taken);
    CHECK(all[k].placed == known.placed);
  };
  is(0, {0, 0, {3, 4, 5}, {0, 1, 4}});
  is(1, {1, 0, {0}, {2}});
  is(2, {0, 0, {4, 3}, {3, 6}});
  is(3, {0, 0, {4}, {5}});
  is(4, {0, 1, {4}, {0}});
  is(5, {0, 1, {4}, {1}});
  CHECK(all.size() == 6);
}

TEST_CASE("patches: every own row in one, none empty; Z^T A Z") {
  const auto a = model("poisson2d:9x8");
  const auto subdomains = cut_into_subdomains(a, {.count = 3, .overlap = 9});
  for (const Index patches : {1, 4, 1000}) {
    CAPTURE(patches);
    const auto patch_of = cut_into_patches(a, subdomains, patches);
    std::vector<Index> first{0};
    Dense z(72, 72);
    for (std::size_t p = 0; p < 3; ++p) {
      const std::set<std::int32_t> used(patch_of[p].begin(), patch_of[p].end());
      CHECK(static_cast<Index>(used.size()) == std::min<Index>(patches, 24));
      CHECK(*used.rbegin() + 1 == static_cast<std::int32_t>(used.size()));
      const std::vector<Index> own = own_rows(subdomains[p]);
      for (std::size_t i = 0; i < own.size(); ++i) z(own[i], first.back() + patch_of[p][i]) = 1;
      first.push_back(first.back() + static_cast<Index>(used.size()));
    }
    const Dense known = transposed(z) * dense(a) * z;  // and zeros beyond
    const Dense coarse = dense(coarse_matrix(a, subdomains, patch_of, first));
    REQUIRE(coarse.rows() == first.back());
    Worst worst;
    for (Index i = 0; i < coarse.rows(); ++i)
      for (Index j = 0; j < coarse.cols(); ++j) worst.take_in(coarse(i, j) - known(i, j));
    CHECK(worst.value() < 1e-14);
  }
}

}  // namespace asterism::test
