#include "local_factors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "../../../runtime/collectives.hpp"
#include "../../../runtime/error.hpp"
#include "../../../runtime/pause.hpp"
#include "../../common/lent.hpp"
#include "../../common/stopwatch.hpp"
#include "../../common/team.hpp"
#include "../../common/tile_or_none.hpp"
#include "defect_words.hpp"

namespace asterism::decomposition {
namespace {

using sparse::Csr;
using sparse::MatrixClass;

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
  std::vector<FactorSize> sizes;
  agree(runtime, [&] {
    const Pause pause;
    std::vector<std::size_t> mine;
    for (std::size_t p = 0; p < subdomains.size(); ++p)
      if (owners[p] == runtime.rank()) mine.push_back(p);
    std::vector<Adjacency> graphs(mine.size());
    one_by_one(mine.size(), 0,
               [&](std::size_t k) { graphs[k] = adjacency_of(whole, subdomains[mine[k]].rows); });
    std::vector<BlockOrder> orders = order_blocks(graphs, settings.matrix_class);
    for (std::size_t k = 0; k < mine.size(); ++k) {
      const std::size_t p = mine[k];
      const BlockOrder& its = blocks_[p].order = std::move(orders[k]);
      if (its.supernodes) {
        sizes.push_back({bytes_of<V>(*its.supernodes), its.supernodes->entries(), its.supernodes->depth});
        continue;
      }
      const Index fill = its.fill, rows = static_cast<Index>(subdomains[p].rows.size());
      if (fill > std::numeric_limits<std::int32_t>::max())
        throw Error(
            fmt::format("the factors of {} have {} entries: 32-bit numbers count them; use more subdomains",
                        name_of(static_cast<Index>(p), settings.only), fill));
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
void LocalFactors<V>::make_panels() {
  for (Index g = 0; g < groups_.count(); ++g) {
    Index entries = 0;
    for (Index p = groups_[g].first; p < groups_[g].first + groups_[g].size; ++p)
      if (blocks_[p].order.supernodes) entries += blocks_[p].order.supernodes->entries();
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
  make_panels();
  std::vector<Tile<std::int32_t>> done;
  for (Index g = 0; g < groups_.count(); ++g) {
    V* room = of_groups_[g].panel_numbers.get();
    for (Index p = groups_[g].first; p < groups_[g].first + groups_[g].size; ++p) {
      Block& block = blocks_[p];
      if (owners[p] == runtime.rank()) {
        block.local = std::make_shared<LocalBlock<V>>(
            block_of<V>(whole, subdomains[p], block.order, settings.matrix_class));
        if (block.order.supernodes) {
          const auto entries = static_cast<std::size_t>(block.order.supernodes->entries());
          block.local->supernodes = block.order.supernodes;
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
    if (const auto& defect = block.local->defect) {
      const std::int32_t i = block.order.old_of_new[defect->place];
      bad.push_back({static_cast<Index>(p), subdomains[p].rows[i], defect->kind,
                     defect->pivot / weight_of(subdomains[p], i, i)});
    }
  }
  bad = gather_lists(runtime, bad);
  if (!bad.empty()) throw Error(words_of<V>(bad.front(), settings.only));
}

/// What the tiles of a group lend: of supernodes, one block behind the other; else there is only one.
template <class V>
void LocalFactors<V>::gather_group(Index g) {
  const auto size = [](const auto& list) { return static_cast<Index>(list.size()); };
  Group& group = of_groups_[g];
  std::vector<Supernodes> parts;
  for (Index p = groups_[g].first; p < groups_[g].first + groups_[g].size; ++p) {
    const Block& block = blocks_[p];
    const std::vector<std::int32_t>& old_of_new = block.order.old_of_new;
    if (block.order.supernodes) {
      const auto before = static_cast<std::int32_t>(group.row_of.size());
      for (const std::int32_t old : old_of_new) group.row_of.push_back(before + old);
      parts.push_back(*block.order.supernodes);
    } else {
      for (const std::int32_t place : block.local->row_order) group.row_of.push_back(old_of_new[place]);
      for (const std::int32_t place : block.local->column_order) group.column_of.push_back(old_of_new[place]);
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
  } else {
    const LocalBlock<V>& b = *blocks_[groups_[g].first].local;
    its.lower_begins = b.lower.places.empty() ? 0 : size(b.lower.begins);
    its.lower = size(b.lower.places);
    its.upper_begins = size(b.upper.begins);
    its.upper = size(b.upper.places);
    its.pivots = its.rows;
  }
}

template <class V>
void LocalFactors<V>::gather_groups(const Runtime& runtime) {
  std::vector<Sizes> all_sizes;
  Index fill = 0, bytes = 0;
  for (Index g = 0; g < groups_.count(); ++g) {
    if (groups_.owner(g) != runtime.rank()) continue;
    gather_group(g);
    const Sizes& its = of_groups_[g].sizes;
    const Index permutations = its.nodes > 0 ? its.rows : 2 * its.rows;
    fill += its.lower + its.upper + its.pivots + (its.panels > 0 ? its.panels - panel_margin : 0);
    bytes += (its.panels + its.lower + its.upper + its.pivots) * static_cast<Index>(sizeof(V)) +
             its.nodes * static_cast<Index>(sizeof(Supernode)) +
             4 * (its.lists + its.lower + its.upper + its.lower_begins + its.upper_begins + permutations);
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
      return TriangleTiles{lent(runtime, t.begins.data(), begins, owner),
                           lent(runtime, t.places.data(), entries, owner),
                           lent(runtime, t.values.data(), entries, owner)};
    };
    group.lower = tiles(b.lower, its.lower_begins, its.lower);
    group.upper = tiles(b.upper, its.upper_begins, its.upper);
    group.inverse_pivots = lent(runtime, b.inverse_pivots.data(), its.pivots, owner);
    group.rows = lent(runtime, group.row_of.data(), its.rows, owner);
    group.columns = lent(runtime, group.column_of.data(), its.nodes > 0 ? 0 : its.rows, owner);
    group.node_tile = lent(runtime, group.nodes.data(), its.nodes, owner);
    group.list_tile = lent(runtime, group.lists.data(), its.lists, owner);
    group.panels = lent(runtime, group.panel_numbers.get(), its.panels, owner);
  }
  make_room(runtime, 1);
  for (Block& block : blocks_) {
    block.order = {};
    if (block.local) block.local->supernodes = {};
  }
}

template <class V>
void LocalFactors<V>::make_room(Runtime& runtime, Index columns) {
  for (Index g = 0; g < groups_.count(); ++g) {
    Group& group = of_groups_[g];
    const Sizes& its = group.sizes;
    const int owner = groups_.owner(g);
    group.work = Tile<V>(runtime, columns, its.work, owner);
    if (its.nodes > 0)
      group.counters = Tile<std::int32_t>(runtime, columns, supernodal_counters(its.nodes), owner);
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
