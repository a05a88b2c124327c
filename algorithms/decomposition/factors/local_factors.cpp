#include "local_factors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "../../../runtime/collectives.hpp"
#include "../../../runtime/error.hpp"
#include "../../common/stopwatch.hpp"
#include "../tile_or_none.hpp"
#include "elimination_tree.hpp"

namespace asterism::decomposition {
namespace {

using sparse::Csr;
using sparse::MatrixClass;

/// Of triangular factors with so many entries below the diagonal.
template <class V>
Index bytes_of(Index rows, Index fill) {
  constexpr Index entry = sizeof(V) + sizeof(std::int32_t);
  return 2 * (fill * entry + (rows + 1) * 4) + rows * (static_cast<Index>(sizeof(V)) + 8);
}
template <class V>
Index bytes_of(const Supernodes& s) {
  const std::size_t lists = s.rows.size() + s.places.size() + s.order.size() + s.jobs.size();
  return s.entries() * static_cast<Index>(sizeof(V)) +
         static_cast<Index>(s.nodes.size() * sizeof(Supernode) + 4 * lists) + 4 * s.columns();
}

struct OrderedGraph {
  Adjacency graph;
  EliminationOrder order;
  std::shared_ptr<const Supernodes> supernodes;  // of a symmetric block
};

/// Many subdomains of a grid have the same graph: it is ordered once. @param known those before, and this one
const OrderedGraph& ordered(Adjacency graph, MatrixClass matrix_class, std::vector<OrderedGraph>& known) {
  if (const auto same = std::ranges::find(known, graph, &OrderedGraph::graph); same != known.end())
    return *same;
  OrderedGraph its{.graph = std::move(graph), .order = {}, .supernodes = nullptr};
  its.order = elimination_order(its.graph);
  if (matrix_class == MatrixClass::positive_definite) {
    SupernodalOrder found = supernodes_of(its.graph, its.order.old_of_new);
    its.order.old_of_new = std::move(found.old_of_new);
    its.supernodes = std::make_shared<const Supernodes>(std::move(found.supernodes));
  }
  known.push_back(std::move(its));
  return known.back();
}

/// The rows and columns of a subdomain in the order of elimination; of a symmetric block the lower triangle.
template <class V, class T>
LocalBlock<V> block_of(const Csr<T>& whole, const Subdomain& subdomain, const EliminationOrder& order,
                       MatrixClass matrix_class) {
  LocalBlock<V> block;
  block.size = static_cast<std::int32_t>(subdomain.rows.size());
  block.symmetric = matrix_class == MatrixClass::positive_definite;
  std::vector<std::int32_t> place(static_cast<std::size_t>(whole.total_rows), -1);
  for (std::int32_t i = 0; i < block.size; ++i) place[subdomain.rows[order.old_of_new[i]]] = i;
  const auto for_each = [&](const auto& body) {  // rows and columns in the order of elimination
    for (std::int32_t i = 0; i < block.size; ++i) {
      const Index row = subdomain.rows[order.old_of_new[i]];
      for (Index k = whole.row_begin[row]; k < whole.row_begin[row + 1]; ++k)
        if (const std::int32_t j = place[whole.columns[k]]; j >= 0 && (j <= i || !block.symmetric))
          body(i, j, whole.values[k]);
    }
  };
  block.begins.assign(static_cast<std::size_t>(block.size) + 1, 0);
  for_each([&](std::int32_t, std::int32_t j, T) { ++block.begins[static_cast<std::size_t>(j) + 1]; });
  std::partial_sum(block.begins.begin(), block.begins.end(), block.begins.begin());
  block.places.resize(static_cast<std::size_t>(block.begins.back()));
  block.values.resize(block.places.size());
  std::vector<std::int32_t> next(block.begins.begin(), block.begins.end() - 1);
  for_each([&](std::int32_t i, std::int32_t j, T value) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(j)]++);
    block.places[at] = i;
    block.values[at] = static_cast<V>(value);
  });
  return block;
}

/// What is wrong with a block, told to all ranks.
struct BadBlock {
  Index subdomain = 0, row = 0;
  Defect::Kind kind = Defect::Kind::singular;
  double pivot = 0;
};

/// "the block of subdomain 3 (the first is 0)"
std::string name_of(Index subdomain, const FactorSettings& settings) {
  if (settings.only != nullptr) return settings.only;
  return fmt::format("the block of subdomain {} (the first is 0)", subdomain);
}

template <class V>
std::string words_of(const BadBlock& bad, const FactorSettings& settings) {
  const std::string where = name_of(bad.subdomain, settings) + " ";
  const std::string row = fmt::format("row {} (the first is 0)", bad.row);
  const char* const f32 =
      sizeof(V) == 4 ? " in f32; it is too ill-conditioned for that: use factors in f64" : "";
  switch (bad.kind) {
    case Defect::Kind::not_positive:
      return fmt::format("{}is not positive definite{}: {} has the pivot {:.3g}{}", where,
                         sizeof(V) == 4 ? ", or not" : "", row, bad.pivot,
                         sizeof(V) == 4 ? f32 : "; factorise it as a general matrix (bicgstab, gmres)");
    case Defect::Kind::singular:
      return fmt::format(
          "{}is singular: there is no pivot for the column of {}{}; cut it in other subdomains", where, row,
          sizeof(V) == 4 ? " in f32" : "");
    case Defect::Kind::not_finite:
      return fmt::format("the factors of {}exceed the numbers of {}: {} has the pivot {}{}", where,
                         sizeof(V) == 4 ? "f32" : "f64", row, bad.pivot,
                         sizeof(V) == 4 ? "; use factors in f64, or scale the matrix" : "; scale the matrix");
  }
  return where;
}

/// @throw Error: an entry of a block is beyond V
template <class V, class T>
void require_numbers(const Csr<T>& whole) {
  if constexpr (sizeof(V) < sizeof(T))
    for (Index i = 0; i < whole.rows(); ++i)
      for (Index k = whole.row_begin[i]; k < whole.row_begin[i + 1]; ++k)
        if (std::abs(whole.values[k]) > static_cast<T>(std::numeric_limits<V>::max()))
          throw Error(fmt::format(
              "the entry ({}, {}) is {:g} (rows and columns from 0): factors in f32 hold no number above {:.3g}; use "
              "factors in f64, or scale the matrix",
              i, whole.columns[k], whole.values[k], std::numeric_limits<V>::max()));
}

template <class X>
Tile<X> lent(Runtime& runtime, std::span<const X> mine, Index size, int owner) {
  if (size == 0) return {};
  X* const data = owner == runtime.rank() ? const_cast<X*>(mine.data()) : nullptr;  // no task writes it
  return Tile<X>(runtime, data, 1, size, size, owner);
}

}  // namespace

template <class V>
template <class T>
LocalFactors<V>::LocalFactors(Runtime& runtime, const Csr<T>& whole, const std::vector<Subdomain>& subdomains,
                              const std::vector<int>& owners, const FactorSettings& settings)
    : blocks_(subdomains.size()) {
  Stopwatch watch;
  agree(runtime, [&] { require_numbers<V>(whole); });
  order(runtime, whole, subdomains, owners, settings);
  require_memory(runtime, settings.most_bytes);
  facts_.seconds_order = watch.lap();
  factorise(runtime, whole, subdomains, owners, settings);
  require_factors(runtime, subdomains, settings);
  gather_groups(runtime);
  make_tiles(runtime);
  facts_.seconds_factorise = watch.lap();
}

template <class V>
template <class T>
void LocalFactors<V>::order(Runtime& runtime, const Csr<T>& whole, const std::vector<Subdomain>& subdomains,
                            const std::vector<int>& owners, const FactorSettings& settings) {
  std::vector<OrderedGraph> known;
  std::vector<FactorSize> sizes;
  agree(runtime, [&] {
    for (std::size_t p = 0; p < subdomains.size(); ++p) {
      if (owners[p] != runtime.rank()) continue;
      const OrderedGraph& its =
          ordered(adjacency_of(whole, subdomains[p].rows), settings.matrix_class, known);
      blocks_[p].order = its.order;
      blocks_[p].supernodes = its.supernodes;
      if (its.supernodes) {
        sizes.push_back({bytes_of<V>(*its.supernodes), its.supernodes->entries(), its.supernodes->depth});
        continue;
      }
      const Index fill = its.order.fill, rows = static_cast<Index>(subdomains[p].rows.size());
      if (fill > std::numeric_limits<std::int32_t>::max())
        throw Error(
            fmt::format("the factors of {} have {} entries: 32-bit numbers count them; use more subdomains",
                        name_of(static_cast<Index>(p), settings), fill));
      sizes.push_back({bytes_of<V>(rows, fill), fill, 0});
    }
  });
  Index bytes = 0;
  for (const FactorSize& size : sizes) bytes += size.bytes;
  facts_.predicted = gather(runtime, bytes);
  // Subdomains are in the order of ranks.
  groups_ = deal_subdomains(all_workers(runtime), gather_lists(runtime, sizes), owners, settings.solve_on);
}

template <class V>
void LocalFactors<V>::require_memory(const Runtime& runtime, Index most_bytes) const {
  agree(runtime, [&] {
    const Index mine = facts_.predicted[static_cast<std::size_t>(runtime.rank())];
    const auto there =
        most_bytes > 0 ? static_cast<double>(most_bytes) : 0.9 * static_cast<double>(physical_memory());
    if (static_cast<double>(mine) > there)
      throw Error(
          fmt::format(
              "the factors of the subdomains will take {}, and there may be {}: use more subdomains, less "
              "overlap{} or more ranks",
              human_bytes(static_cast<double>(mine)), human_bytes(there),
              sizeof(V) == 8 ? ", factors in f32" : ""),
          Blame::machine);
  });
}

/// For the panels of each group, behind one another.
template <class V>
void LocalFactors<V>::make_room() {
  for (Index g = 0; g < groups_.count(); ++g) {
    Index entries = 0;
    for (Index p = groups_[g].first; p < groups_[g].first + groups_[g].size; ++p)
      if (blocks_[p].supernodes) entries += blocks_[p].supernodes->entries();
    if (entries == 0) continue;
    of_groups_[g].sizes.panels = entries + panel_margin;
    // Tasks write all of it but for the margin.
    of_groups_[g].panel_numbers =
        std::make_unique_for_overwrite<V[]>(static_cast<std::size_t>(entries + panel_margin));
    std::fill_n(of_groups_[g].panel_numbers.get() + entries, panel_margin, V{});
  }
}

template <class V>
template <class T>
void LocalFactors<V>::factorise(Runtime& runtime, const Csr<T>& whole,
                                const std::vector<Subdomain>& subdomains, const std::vector<int>& owners,
                                const FactorSettings& settings) {
  of_groups_.resize(static_cast<std::size_t>(groups_.count()));
  make_room();
  std::vector<Tile<std::int32_t>> done;
  for (Index g = 0; g < groups_.count(); ++g) {
    V* room = of_groups_[g].panel_numbers.get();
    for (Index p = groups_[g].first; p < groups_[g].first + groups_[g].size; ++p) {
      Block& block = blocks_[p];
      if (owners[p] == runtime.rank()) {
        block.local = std::make_shared<LocalBlock<V>>(
            block_of<V>(whole, subdomains[p], block.order, settings.matrix_class));
        if (block.supernodes) {
          const auto entries = static_cast<std::size_t>(block.supernodes->entries());
          block.local->supernodes = block.supernodes;
          block.local->panels = {room, entries};
          room += entries;
        }
      }
      done.emplace_back(runtime, 1, 1, owners[p]);
      codelets::factorise<V>({block.local}, done.back(),
                             {.where = Where::cpu,
                              .cost = static_cast<std::uint64_t>(p),
                              .label = fmt::format("subdomain {}", p)});
    }
  }
  runtime.wait();
}

/// @throw Error, on all ranks: what is wrong with the first block that has no factors
template <class V>
void LocalFactors<V>::require_factors(const Runtime& runtime, const std::vector<Subdomain>& subdomains,
                                      const FactorSettings& settings) {
  std::vector<BadBlock> bad;
  for (std::size_t p = 0; p < subdomains.size(); ++p) {
    const Block& block = blocks_[p];
    if (!block.local) continue;
    if (const auto& defect = block.local->defect)
      bad.push_back({static_cast<Index>(p), subdomains[p].rows[block.order.old_of_new[defect->place]],
                     defect->kind, defect->pivot});
  }
  bad = gather_lists(runtime, bad);
  if (!bad.empty()) throw Error(words_of<V>(bad.front(), settings));
}

/// What the tiles of groups lend: of supernodes, one behind the other; else a group has one block.
template <class V>
void LocalFactors<V>::gather_groups(const Runtime& runtime) {
  std::vector<Sizes> all_sizes;
  Index fill = 0, bytes = 0;
  const auto size = [](const auto& list) { return static_cast<Index>(list.size()); };
  for (Index g = 0; g < groups_.count(); ++g) {
    if (groups_.owner(g) != runtime.rank()) continue;
    Group& group = of_groups_[g];
    std::vector<Supernodes> parts;
    for (Index p = groups_[g].first; p < groups_[g].first + groups_[g].size; ++p) {
      const Block& block = blocks_[p];
      const std::vector<std::int32_t>& old_of_new = block.order.old_of_new;
      const auto before = static_cast<std::int32_t>(group.row_of.size());
      if (block.supernodes) {
        for (const std::int32_t old : old_of_new) group.row_of.push_back(before + old);
        parts.push_back(*block.supernodes);
      } else {
        for (const std::int32_t place : block.local->row_order) group.row_of.push_back(old_of_new[place]);
        for (const std::int32_t place : block.local->column_order)
          group.column_of.push_back(old_of_new[place]);
      }
    }
    Sizes& its = group.sizes;
    its.rows = its.work = size(group.row_of);
    if (!parts.empty()) {
      Supernodes all = joined(parts);
      its.work = supernodal_work(its.rows, size(all.rows));
      group.nodes = std::move(all.nodes);
      for (const std::vector<std::int32_t>* list : {&all.rows, &all.places, &all.order, &all.jobs})
        group.lists.insert(group.lists.end(), list->begin(), list->end());
      its.nodes = size(group.nodes);
      its.lists = size(group.lists);
      fill += its.panels - panel_margin;
    } else {
      const LocalBlock<V>& b = *blocks_[groups_[g].first].local;
      its.lower_begins = b.lower.places.empty() ? 0 : size(b.lower.begins);
      its.lower = size(b.lower.places);
      its.upper_begins = size(b.upper.begins);
      its.upper = size(b.upper.places);
      its.pivots = its.rows;
      fill += its.lower + its.upper + its.rows;
    }
    bytes += (its.panels + its.lower + its.upper + its.pivots) * static_cast<Index>(sizeof(V)) +
             its.nodes * static_cast<Index>(sizeof(Supernode)) +
             4 * (its.lists + its.lower + its.upper + size(group.row_of) + size(group.column_of)) +
             4 * (its.lower_begins + its.upper_begins);
    all_sizes.push_back(its);
  }
  all_sizes = gather_lists(runtime, all_sizes);  // groups are in the order of ranks
  for (std::size_t g = 0; g < all_sizes.size(); ++g) of_groups_[g].sizes = all_sizes[g];
  sum_over_ranks(runtime, &fill, 1);
  facts_.fill = fill;
  facts_.bytes = gather(runtime, bytes);
}

template <class V>
void LocalFactors<V>::make_tiles(Runtime& runtime) {
  static const LocalBlock<V> nothing;
  for (Index g = 0; g < groups_.count(); ++g) {
    Group& group = of_groups_[g];
    const int owner = groups_.owner(g);
    Block& block = blocks_[groups_[g].first];
    const LocalBlock<V>& b = block.local ? *block.local : nothing;
    const Sizes& its = group.sizes;
    const auto tiles = [&](const Triangle<V>& t, Index begins, Index entries) {
      return TriangleTiles{lent(runtime, t.begins, begins, owner), lent(runtime, t.places, entries, owner),
                           lent(runtime, t.values, entries, owner)};
    };
    group.lower = tiles(b.lower, its.lower_begins, its.lower);
    group.upper = tiles(b.upper, its.upper_begins, its.upper);
    group.inverse_pivots = lent<V>(runtime, b.inverse_pivots, its.pivots, owner);
    group.rows = lent<std::int32_t>(runtime, group.row_of, its.rows, owner);
    group.columns = lent<std::int32_t>(runtime, group.column_of, its.nodes > 0 ? 0 : its.rows, owner);
    group.node_tile = lent<Supernode>(runtime, group.nodes, its.nodes, owner);
    group.list_tile = lent<std::int32_t>(runtime, group.lists, its.lists, owner);
    const auto panels = static_cast<std::size_t>(owner == runtime.rank() ? its.panels : 0);
    group.panels = lent<V>(runtime, {group.panel_numbers.get(), panels}, its.panels, owner);
    group.work = Tile<V>(runtime, 1, its.work, owner);
    if (its.nodes > 0) group.counters = Tile<std::int32_t>(runtime, 1, supernodal_counters(its.nodes), owner);
  }
  for (Block& block : blocks_) {
    block.order = {};
    block.supernodes = {};
    if (block.local) block.local->supernodes = {};
  }
}

template <class V>
TrianglePorts<AsTiles, V> LocalFactors<V>::TriangleTiles::ports() const {
  return {tile_or_none(begins), tile_or_none(places), tile_or_none(values)};
}

template <class V>
FactorPorts<AsTiles, V> LocalFactors<V>::ports(Index group) const {
  const Group& its = of_groups_[static_cast<std::size_t>(group)];
  const bool supernodal = its.sizes.nodes > 0;
  return {.lower = its.lower.ports(),
          .upper = its.upper.ports(),
          .inverse_pivots = tile_or_none(its.inverse_pivots),
          .supernodes = {tile_or_none(its.node_tile), tile_or_none(its.list_tile), tile_or_none(its.panels)},
          .rows = its.rows,
          .columns = supernodal ? its.rows : its.columns};
}

template <class V>
SolveRoom<AsTiles, V> LocalFactors<V>::room(Index group) const {
  const Group& its = of_groups_[static_cast<std::size_t>(group)];
  return {its.work, tile_or_none(its.counters)};
}

template class LocalFactors<float>;
template class LocalFactors<double>;
#define ASTERISM_INSTANTIATE(V, T)                                                               \
  template LocalFactors<V>::LocalFactors(Runtime&, const Csr<T>&, const std::vector<Subdomain>&, \
                                         const std::vector<int>&, const FactorSettings&)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(float, double);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::decomposition
