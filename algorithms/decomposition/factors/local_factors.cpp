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
    : runtime_(&runtime), settings_(settings), blocks_(subdomains.size()) {
  Stopwatch watch;
  agree(runtime, [&] { require_numbers<V>(whole); });
  order(whole, subdomains, owners);
  require_memory();
  facts_.seconds_order = watch.lap();
  const bool for_gpus =
      std::ranges::any_of(groups_.parts(), [](const Part& group) { return group.where == Where::cuda; });
  const bool sizes_are_known = settings.matrix_class == MatrixClass::positive_definite;
  settled_ = false;
  make_blocks(whole, subdomains, owners);
  if (sizes_are_known) {
    gather_groups();
    make_tiles();
    factorise(owners);
    publish();
    if (!for_gpus && !settings.later) end(subdomains);
  } else {
    factorise(owners);
    end(subdomains);
    gather_groups();
    make_tiles();
  }
  if (settled_) forget_orders();
}

template <class V>
template <class T>
void LocalFactors<V>::order(const Csr<T>& whole, const std::vector<Subdomain>& subdomains,
                            const std::vector<int>& owners) {
  Runtime& runtime = *runtime_;
  std::vector<FactorSize> sizes;
  agree(runtime, [&] {
    const Pause pause;
    std::vector<std::size_t> mine;
    for (std::size_t p = 0; p < subdomains.size(); ++p)
      if (owners[p] == runtime.rank()) mine.push_back(p);
    std::vector<Adjacency> graphs(mine.size());
    one_by_one(mine.size(), 0,
               [&](std::size_t k) { graphs[k] = adjacency_of(whole, subdomains[mine[k]].rows); });
    std::vector<BlockOrder> orders = order_blocks(graphs, settings_.matrix_class);
    for (std::size_t k = 0; k < mine.size(); ++k) {
      const std::size_t p = mine[k];
      const BlockOrder& its = blocks_[p].order = std::move(orders[k]);
      if (its.supernodes) {
        sizes.push_back(
            {bytes_of<V>(*its.supernodes), its.supernodes->entries(), its.supernodes->depth, true});
        continue;
      }
      const Index fill = its.fill, rows = static_cast<Index>(subdomains[p].rows.size());
      if (fill > std::numeric_limits<std::int32_t>::max())
        throw Error(
            fmt::format("the factors of {} have {} entries: 32-bit numbers count them; use more subdomains",
                        name_of(static_cast<Index>(p), settings_.only), fill));
      sizes.push_back({bytes_of<V>(rows, fill), fill, its.depth, false});
    }
  });
  Index bytes = 0;
  for (const FactorSize& size : sizes) bytes += size.bytes;
  facts_.predicted = gather(runtime, bytes);
  sizes = gather_lists(runtime, sizes);  // subdomains are in the order of ranks
  const std::vector<Candidate> workers = all_workers(runtime);
  groups_ = deal_subdomains(workers, sizes, owners, settings_.solve_on);
  divide(workers, sizes);
}

/// A GPU's group into batches of as many subdomains as are factorised at a time, but not many: what a GPU has of them it
/// has twice for a while.
template <class V>
void LocalFactors<V>::divide(const std::vector<Candidate>& workers, const std::vector<FactorSize>& sizes) {
  constexpr Index most_batches = 8;
  for (const Part& part : groups_.parts()) {
    Group& group = of_groups_.emplace_back(part.first, part.size);
    if (part.where != Where::cuda || settings_.matrix_class != MatrixClass::positive_definite) continue;
    double bytes = 0, memory = 0;
    for (Index p = part.first; p < part.first + part.size; ++p)
      bytes += static_cast<double>(sizes[static_cast<std::size_t>(p)].bytes);
    Index cores = 0;
    for (const Candidate& worker : workers) {
      if (worker.rank != part.rank) continue;
      if (worker.where == Where::cpu) ++cores;
      if (worker.where == Where::cuda && worker.worker == part.worker) memory = worker.memory;
    }
    const Index at_a_time = std::max(cores, parts(part.size, most_batches));
    if (part.size <= at_a_time || (memory > 0 && 2 * bytes > most_of_memory * memory)) continue;
    for (Index first = 0; first < part.size; first += at_a_time)
      group.batches.emplace_back(part.first + first, std::min(at_a_time, part.size - first));
  }
}

template <class V>
void LocalFactors<V>::require_memory() const {
  agree(*runtime_, [&] {
    const Index mine = facts_.predicted[static_cast<std::size_t>(runtime_->rank())];
    const auto there = settings_.most_bytes > 0 ? static_cast<double>(settings_.most_bytes)
                                                : 0.9 * static_cast<double>(physical_memory());
    if (static_cast<double>(mine) <= there) return;
    const bool others_have_less = std::ranges::min(facts_.predicted) < mine / 2;
    throw Error(fmt::format("the factors of the subdomains will take {}, and there may be {}: use more subdomains, less "
                            "overlap{}{} or more ranks",
                            human_bytes(static_cast<double>(mine)), human_bytes(there),
                            sizeof(V) == 8 ? ", factors in f32" : "",
                            others_have_less ? ", as many subdomains on each rank (--balance equal)" : ""),
                Blame::machine);
  });
}

/// The blocks of this rank's subdomains.
template <class V>
template <class T>
void LocalFactors<V>::make_blocks(const Csr<T>& whole, const std::vector<Subdomain>& subdomains,
                                  const std::vector<int>& owners) {
  agree(*runtime_, [&] {
    const Pause pause;
    one_by_one(subdomains.size(), 0, [&](std::size_t p) {
      if (owners[p] == runtime_->rank())
        blocks_[p].local = std::make_shared<LocalBlock<V>>(
            block_of<V>(whole, subdomains[p], blocks_[p].order, settings_.matrix_class));
    });
    for (const Part& group : groups_.parts())
      for (Index p = group.first; p < group.first + group.size; ++p)
        if (blocks_[p].local) blocks_[p].local->for_gpu = group.where == Where::cuda;
  });
}

/// Submits the factorisations. Of supernodes there is room for the panels.
template <class V>
void LocalFactors<V>::factorise(const std::vector<int>& owners) {
  begun_ = seconds_now();
  const auto factorise_all = [&](Group& group) {
    V* room = group.panel_numbers.get();
    for (Index p = group.first; p < group.first + group.size; ++p) {
      const Block& block = blocks_[p];
      if (block.local && block.order.supernodes) {
        const auto entries = static_cast<std::size_t>(block.order.supernodes->entries());
        block.local->supernodes = block.order.supernodes;
        block.local->panels = {room, entries};
        room += entries;
      }
      ended_.emplace_back(*runtime_, 1, 1, owners[p]);
      codelets::factorise<V>({block.local}, ended_.back(),
                             {.where = Where::cpu,
                              .priority = settings_.later ? 1 : 0,
                              .cost = static_cast<std::uint64_t>(p),
                              .label = fmt::format("subdomain {}", p)});
    }
  };
  for (Group& group : of_groups_)
    for (Group& part : parts_of(group)) factorise_all(part);
}

/// Whoever uses panels waits for the factorisations.
template <class V>
void LocalFactors<V>::publish() {
  const auto publish_panels = [&](const Group& group) {
    TileList<double> ended;
    for (Index p = group.first; p < group.first + group.size; ++p) ended.add(ended_[p]);
    codelets::publish<V>(ended, group.panels, {.where = Where::cpu, .priority = 1});
  };
  for (Index g = 0; g < groups_.count(); ++g) {
    TileList<V> panels;
    for (const Group& part : parts_of(of_groups_[g])) {
      publish_panels(part);
      panels.add(part.panels);
    }
    if (!of_groups_[g].batches.empty())
      codelets::join_panels<V>(panels, of_groups_[g].panels, groups_.hints(g));
  }
}

template <class V>
void LocalFactors<V>::settle(const std::vector<Subdomain>& subdomains) {
  if (settled_) return;
  end(subdomains);
  forget_orders();
}

/// The factorisations.
template <class V>
void LocalFactors<V>::end(const std::vector<Subdomain>& subdomains) {
  runtime_->wait();
  require_factors(subdomains);
  double last = begun_;
  for (const Tile<double>& ended : ended_)
    if (ended.owner() == runtime_->rank())
      last = std::max(last, HostView<double>(ended, HostView<double>::Access::read)(0, 0));
  facts_.seconds_factorise = last - begun_;
  ended_.clear();
  for (Group& group : of_groups_) group.batches.clear();
  settled_ = true;
}

template <class V>
void LocalFactors<V>::forget_orders() {
  for (Block& block : blocks_) {
    block.order = {};
    if (block.local) block.local->supernodes = {};
  }
}

/// @throw Error, on all ranks: what is wrong with the first block that has no factors
template <class V>
void LocalFactors<V>::require_factors(const std::vector<Subdomain>& subdomains) const {
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
  bad = gather_lists(*runtime_, bad);
  if (!bad.empty()) throw Error(words_of<V>(bad.front(), settings_.only));
}

template <class V>
void LocalFactors<V>::join_triangles(Group& group) const {
  const Pause pause;
  std::vector<Triangle<V>> lower, upper;
  for (Index p = group.first; p < group.first + group.size; ++p) {
    const LocalBlock<V>& block = *blocks_[p].local;
    lower.push_back(block.lower);
    upper.push_back(block.upper);
    group.joined_pivots.insert(group.joined_pivots.end(), block.inverse_pivots.begin(),
                               block.inverse_pivots.end());
  }
  group.joined_lower.join(lower);
  group.joined_upper.join(upper);
  for (Index p = group.first; p < group.first + group.size; ++p) {
    LocalBlock<V>& block = *blocks_[p].local;
    block.lower = block.upper = {};
    block.inverse_pivots = {};
    block.storage = {};
  }
}

/// What the tiles of a group lend: of several blocks, one behind the other.
template <class V>
void LocalFactors<V>::gather_group(Group& group) const {
  const auto size = [](const auto& list) { return static_cast<Index>(list.size()); };
  std::vector<Supernodes> parts;
  bool for_gpu = false;
  for (Index p = group.first; p < group.first + group.size; ++p) {
    const Block& block = blocks_[p];
    const std::vector<std::int32_t>& old_of_new = block.order.old_of_new;
    const auto before = static_cast<std::int32_t>(group.row_of.size());
    for_gpu = block.local->for_gpu;
    if (block.order.supernodes) {
      for (const std::int32_t old : old_of_new) group.row_of.push_back(before + old);
      parts.push_back(*block.order.supernodes);
    } else {
      for (const std::int32_t place : block.local->row_order)
        group.row_of.push_back(before + old_of_new[place]);
      for (const std::int32_t place : block.local->column_order)
        group.column_of.push_back(before + old_of_new[place]);
    }
  }
  Sizes& its = group.sizes;
  its.rows = its.work = size(group.row_of);
  if (!parts.empty()) {
    Supernodes all = joined(parts);
    its.panels = all.entries() + panel_margin;
    its.work = supernodal_work(its.rows, size(all.rows));
    group.nodes = std::move(all.nodes);
    for (const std::vector<std::int32_t>* list : {&all.rows, &all.places, &all.order, &all.jobs})
      group.lists.insert(group.lists.end(), list->begin(), list->end());
    its.nodes = size(group.nodes);
    its.lists = size(group.lists);
    return;
  }
  const auto set_sizes = [&](const Triangle<V>& lower, const Triangle<V>& upper) {
    its.lower_begins = lower.places.empty() && !for_gpu ? 0 : size(lower.begins);
    its.lower = size(lower.places);
    its.upper_begins = size(upper.begins);
    its.upper = size(upper.places);
    its.pivots = its.rows;
  };
  if (for_gpu) {
    join_triangles(group);
    set_sizes(group.joined_lower.view(), group.joined_upper.view());
    its.order = its.rows;
    its.work = 2 * its.rows;
  } else {
    set_sizes(blocks_[group.first].local->lower, blocks_[group.first].local->upper);
  }
}

template <class V>
void LocalFactors<V>::gather_groups() {
  std::vector<Sizes> all_sizes;
  Index fill = 0, bytes = 0;
  agree(*runtime_, [&] {
    for (Index g = 0; g < groups_.count(); ++g) {
      if (groups_.owner(g) != runtime_->rank()) continue;
      gather_group(of_groups_[g]);
      for (Group& batch : of_groups_[g].batches) gather_group(batch);
    }
  });
  for (Index g = 0; g < groups_.count(); ++g) {
    if (groups_.owner(g) != runtime_->rank()) continue;
    const Group& group = of_groups_[g];
    const Sizes& its = group.sizes;
    const Index permutations = its.nodes > 0 ? its.rows : 2 * its.rows;
    fill += its.lower + its.upper + its.pivots + (its.panels > 0 ? its.panels - panel_margin : 0);
    bytes += (its.panels + its.lower + its.upper + its.pivots) * static_cast<Index>(sizeof(V)) +
             its.nodes * static_cast<Index>(sizeof(Supernode)) +
             4 * (its.lists + its.lower + its.upper + its.lower_begins + its.upper_begins + 2 * its.order +
                  permutations);
    all_sizes.push_back(its);
    for (const Group& batch : group.batches) all_sizes.push_back(batch.sizes);
  }
  all_sizes = gather_lists(*runtime_, all_sizes);  // groups are in the order of ranks
  auto next = all_sizes.begin();
  for (Group& group : of_groups_) {
    group.sizes = *next++;
    for (Group& batch : group.batches) batch.sizes = *next++;
  }
  sum_over_ranks(*runtime_, &fill, 1);
  facts_.fill = fill;
  facts_.bytes = gather(*runtime_, bytes);
}

template <class V>
void LocalFactors<V>::make_tiles() {
  for (Index g = 0; g < groups_.count(); ++g) {
    make_tiles(of_groups_[g], groups_.owner(g));
    for (Group& batch : of_groups_[g].batches) make_tiles(batch, groups_.owner(g));
  }
  make_room(1);
}

template <class V>
void LocalFactors<V>::make_tiles(Group& group, int owner) {
  static const LocalBlock<V> nothing;
  const Block& block = blocks_[group.first];
  const LocalBlock<V>& b = block.local ? *block.local : nothing;
  const Sizes& its = group.sizes;
  const auto tiles = [&](const Triangle<V>& t, Index begins, Index entries,
                         const std::vector<std::int32_t>& order) {
    return TriangleTiles{
        lent(*runtime_, t.begins.data(), begins, owner), lent(*runtime_, t.places.data(), entries, owner),
        lent(*runtime_, t.values.data(), entries, owner), lent(*runtime_, order.data(), its.order, owner)};
  };
  const bool is_joined = its.order > 0;  // as the triangles of a GPU's group are
  group.lower = tiles(is_joined ? group.joined_lower.view() : b.lower, its.lower_begins, its.lower,
                      group.joined_lower.order);
  group.upper = tiles(is_joined ? group.joined_upper.view() : b.upper, its.upper_begins, its.upper,
                      group.joined_upper.order);
  group.inverse_pivots =
      lent(*runtime_, is_joined ? group.joined_pivots.data() : b.inverse_pivots.data(), its.pivots, owner);
  group.rows = lent(*runtime_, group.row_of.data(), its.rows, owner);
  group.columns = lent(*runtime_, group.column_of.data(), its.nodes > 0 ? 0 : its.rows, owner);
  group.node_tile = lent(*runtime_, group.nodes.data(), its.nodes, owner);
  group.list_tile = lent(*runtime_, group.lists.data(), its.lists, owner);
  if (!group.batches.empty()) {
    group.panels = Tile<V>(*runtime_, 1, its.panels, owner);
    return;
  }
  if (its.panels > 0 && owner == runtime_->rank()) {  // factorisations write all of it but for the margin
    group.panel_numbers = std::make_unique_for_overwrite<V[]>(static_cast<std::size_t>(its.panels));
    std::fill_n(group.panel_numbers.get() + its.panels - panel_margin, panel_margin, V{});
  }
  group.panels = lent(*runtime_, group.panel_numbers.get(), its.panels, owner);
}

template <class V>
void LocalFactors<V>::make_room(Index columns) {
  const auto make = [&](Group& group, int owner) {
    const Sizes& its = group.sizes;
    group.work = Tile<V>(*runtime_, columns, its.work, owner);
    if (its.nodes > 0)
      group.counters = Tile<std::int32_t>(*runtime_, columns, supernodal_counters(its.nodes), owner);
  };
  for (Index g = 0; g < groups_.count(); ++g) {
    make(of_groups_[g], groups_.owner(g));
    for (Group& batch : of_groups_[g].batches) make(batch, groups_.owner(g));
  }
}

template <class V>
TrianglePorts<AsTiles, V> LocalFactors<V>::TriangleTiles::ports() const {
  return {tile_or_none(begins), tile_or_none(places), tile_or_none(values), tile_or_none(order)};
}

template <class V>
typename LocalFactors<V>::Piece LocalFactors<V>::piece_of(const Group& its, Index first) const {
  const bool supernodal = its.sizes.nodes > 0;
  return {.factors = {.lower = its.lower.ports(),
                      .upper = its.upper.ports(),
                      .inverse_pivots = tile_or_none(its.inverse_pivots),
                      .supernodes = {tile_or_none(its.node_tile), tile_or_none(its.list_tile),
                                     tile_or_none(its.panels)},
                      .rows = its.rows,
                      .columns = supernodal ? its.rows : its.columns},
          .room = {its.work, tile_or_none(its.counters)},
          .first = first};
}

template <class V>
std::vector<typename LocalFactors<V>::Piece> LocalFactors<V>::pieces(Index group) const {
  std::vector<Piece> pieces;
  Index first = 0;
  for (const Group& part : parts_of(of_groups_[static_cast<std::size_t>(group)])) {
    pieces.push_back(piece_of(part, first));
    first += part.sizes.rows;
  }
  return pieces;
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
