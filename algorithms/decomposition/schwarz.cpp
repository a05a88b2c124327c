#include "schwarz.hpp"

#include <algorithm>

#include "../../codelets/sparse/krylov/residual.hpp"
#include "../../runtime/collectives.hpp"
#include "../../runtime/pause.hpp"
#include "../common/set.hpp"
#include "../common/stopwatch.hpp"
#include "cut/coarse_matrix.hpp"
#include "cut/whole_matrix.hpp"

namespace asterism::decomposition {

template <class T, class V>
Schwarz<T, V>::Schwarz(Runtime& runtime, const sparse::Csr<T>& mine, const SchwarzSettings& settings)
    : runtime_(&runtime), settings_(settings) {
  Stopwatch watch;
  const sparse::Csr<T> whole = whole_matrix(runtime, mine);
  agree(runtime, [&] {
    const Pause pause;
    subdomains_ = cut_into_subdomains(whole, settings.subdomains);
    if (settings.combination == Combination::symmetric) weigh(subdomains_, settings.subdomains);
    // Before the factorisations: all cores do it.
    if (settings.patches > 0) patch_of_ = cut_into_patches(whole, subdomains_, settings.patches);
  });
  facts_.owners = owners_of(count(), runtime.ranks(), settings.subdomains.shares);
  memory_ = gather(runtime, static_cast<Index>(physical_memory()));
  for (const Subdomain& subdomain : subdomains_) {
    facts_.own_rows.push_back(static_cast<Index>(subdomain.owned.size()));
    facts_.rows.push_back(static_cast<Index>(subdomain.rows.size()));
  }
  facts_.seconds_partition = watch.lap();
  factors_ = LocalFactors<V>(runtime, whole, subdomains_, facts_.owners, settings.factors);
  facts_.factors = factors_.facts();
  if (settings.patches > 0) make_coarse(whole);
  make_tiles();
}

template <class T, class V>
void Schwarz<T, V>::make_tiles() {
  for (Index g = 0; g < groups().count(); ++g) {
    const Part& group = groups()[g];
    Index rows = 0, own = 0;
    for (Index p = group.first; p < group.first + group.size; ++p) {
      rows += facts_.rows[p];
      own += facts_.own_rows[p];
    }
    GroupTiles& t = tiles_.emplace_back();
    make_y(g, 1, rows);
    if (settings_.patches == 0) continue;
    const Index patches = patches_of(g);
    t.coarse_work = Tile<T>(*runtime_, 1, own, group.rank);
    t.patches = Tile<std::int32_t>(*runtime_, 1, own, group.rank);
    t.members = Tile<std::int32_t>(*runtime_, 1, own, group.rank);
    t.member_begins = Tile<std::int32_t>(*runtime_, 1, patches + 1, group.rank);
    set_patches(g, t);
  }
}

template <class T, class V>
void Schwarz<T, V>::make_y(Index group, Index vectors, Index rows) {
  Tile<T>& y = tiles_[group].y;
  y = Tile<T>(*runtime_, vectors, rows, groups().owner(group));
  clear(y, hints(group));
}

template <class T, class V>
Index Schwarz<T, V>::patches_of(Index group) const {
  const Part& its = groups()[group];
  return first_patch_[its.first + its.size] - first_patch_[its.first];
}

template <class T, class V>
void Schwarz<T, V>::set_patches(Index group, const GroupTiles& tiles) const {
  const Index first = groups()[group].first, end = first + groups()[group].size;
  std::vector<std::int32_t> patches;
  for (Index p = first; p < end; ++p)
    for (const std::int32_t patch : patch_of_[p])
      patches.push_back(static_cast<std::int32_t>(first_patch_[p] - first_patch_[first]) + patch);
  std::vector<std::int32_t> members = all_places(patches.size()), begins{0};
  std::ranges::stable_sort(members, {}, [&](std::int32_t row) { return patches[row]; });
  for (std::size_t k = 0; k < members.size(); ++k)
    if (k + 1 == members.size() || patches[members[k]] != patches[members[k + 1]])
      begins.push_back(static_cast<std::int32_t>(k + 1));
  set(*runtime_, tiles.patches, [&](Index, Index j) { return patches[j]; });
  set(*runtime_, tiles.members, [&](Index, Index j) { return members[j]; });
  set(*runtime_, tiles.member_begins, [&](Index, Index j) { return begins[j]; });
}

/// Every rank has the coarse system.
template <class T, class V>
void Schwarz<T, V>::make_coarse(const sparse::Csr<T>& whole) {
  first_patch_ = {0};
  for (const std::vector<std::int32_t>& patches : patch_of_)
    first_patch_.push_back(first_patch_.back() + 1 + std::ranges::max(patches));
  facts_.coarse_rows = first_patch_.back();
  const sparse::Csr<double> coarse = coarse_matrix(whole, subdomains_, patch_of_, first_patch_);
  FactorSettings factors = settings_.factors;
  factors.later = !factors_.is_settled();
  factors.only = "the coarse matrix (a row for each patch)";
  for (int rank = 0; rank < runtime_->ranks(); ++rank) {
    // Where the sums of patches are: there is little to be solved.
    const bool on_gpu = std::ranges::any_of(groups().parts(), [&](const Part& group) {
      return group.rank == rank && group.where == Where::cuda;
    });
    factors.solve_on = on_gpu ? SolveOn::gpus : SolveOn::cores;
    coarse_.emplace_back(*runtime_, coarse, all_patches(), std::vector{rank}, factors);
  }
  facts_.coarse = coarse_.front().facts();
}

/// As a single subdomain.
template <class T, class V>
std::vector<Subdomain> Schwarz<T, V>::all_patches() const {
  Subdomain all;
  for (Index i = 0; i < facts_.coarse_rows; ++i) all.rows.push_back(i);
  return {all};
}

template <class T, class V>
void Schwarz<T, V>::settle() {
  if (factors_.is_settled()) return;
  factors_.settle(subdomains_);
  facts_.factors = factors_.facts();
  for (LocalFactors<double>& coarse : coarse_) coarse.settle(all_patches());
  if (!coarse_.empty()) facts_.coarse = coarse_.front().facts();
}

template <class T, class V>
Hints Schwarz<T, V>::hints(Index group, std::size_t vectors) const {
  Hints hints = groups().hints(group);
  hints.cost = static_cast<std::uint64_t>(group) + (static_cast<std::uint64_t>(vectors) << 32);
  return hints;
}

template <class T, class V>
void Schwarz<T, V>::attach(const sparse::LinearSystem<T>& system) {
  system_ = &system;
  const Partition& blocks = system.blocks();
  std::vector<Parcel> there, owned, coarse;
  const auto add = [&](Index group, Index before, const std::vector<Index>& rows,
                       const std::vector<std::int32_t>& places, std::vector<Parcel>& parcels) {
    std::size_t next = parcels.size();
    add_parcels(blocks, group, rows, places, parcels);
    for (; next < parcels.size(); ++next)
      for (std::int32_t& place : parcels[next].placed) place += static_cast<std::int32_t>(before);
  };
  for (Index g = 0; g < groups().count(); ++g) {
    Index rows_before = 0, own_before = 0;
    for (Index p = groups()[g].first; p < groups()[g].first + groups()[g].size; ++p) {
      const Subdomain& subdomain = subdomains_[p];
      add(g, rows_before, subdomain.rows, all_places(subdomain.rows.size()), there);
      add(g, rows_before, subdomain.rows, subdomain.owned, owned);
      std::vector<Index> own;
      for (const std::int32_t place : subdomain.owned) own.push_back(subdomain.rows[place]);
      add(g, own_before, own, all_places(own.size()), coarse);
      rows_before += facts_.rows[p];
      own_before += facts_.own_rows[p];
    }
  }
  const auto block_owner = [&](Index k) { return blocks.owner(k); };
  const auto group_owner = [&](Index g) { return groups().owner(g); };
  const auto ways = [&](const std::vector<Parcel>& to, const std::vector<Parcel>& from) {
    return Ways{
        Transfer<T>(*runtime_, joined(to), blocks.count(), block_owner, groups().count(), group_owner),
        Transfer<T>(*runtime_, reversed(joined(from)), groups().count(), group_owner, blocks.count(),
                    block_owner)};
  };
  Column column{.local = ways(there, settings_.combination == Combination::restricted ? owned : there)};
  facts_.bytes_between_ranks =
      column.local.there.bytes_between_ranks() + column.local.back.bytes_between_ranks();
  if (settings_.patches > 0) column.coarse = ways(coarse, coarse);
  add_column(std::move(column));
}

/// @param column with its ways
template <class T, class V>
void Schwarz<T, V>::add_column(Column column) {
  if (settings_.patches > 0) {
    column.exchange = system_->another_exchange();
    for (Index k = 0; k < system_->count(); ++k) {
      column.r.push_back(system_->own_vector(k));
      column.rr.push_back(system_->sums(k));
    }
    for (Index g = 0; g < groups().count(); ++g) {
      column.coarse_y.emplace_back(*runtime_, 1, tiles_[g].coarse_work.cols(), groups().owner(g));
      column.sums.emplace_back(*runtime_, 1, patches_of(g), groups().owner(g));
    }
    for (int rank = 0; rank < runtime_->ranks(); ++rank)
      column.values.emplace_back(*runtime_, 1, facts_.coarse_rows, rank);
  }
  columns_.push_back(std::move(column));
}

/// Vectors beside the first one, here and in an iteration, may take half of the memory that factors leave.
template <class T, class V>
Index Schwarz<T, V>::most_together(Index wanted) const {
  constexpr Index vectors_of_rows = 10, vectors_of_local_rows = 4;
  std::vector<Index> elements;
  for (int rank = 0; rank < runtime_->ranks(); ++rank)
    elements.push_back(vectors_of_rows * system_->blocks().elements_of(rank).count());
  for (std::size_t p = 0; p < facts_.rows.size(); ++p)
    elements[facts_.owners[p]] += vectors_of_local_rows * facts_.rows[p];
  Index most = wanted;
  for (std::size_t rank = 0; rank < elements.size(); ++rank) {
    const Index bytes = std::max<Index>(1, elements[rank] * static_cast<Index>(sizeof(T)));
    const Index room = std::max<Index>(0, memory_[rank] - facts_.factors.bytes[rank]) / 2;
    most = std::min(most, 1 + room / bytes);
  }
  return most;
}

template <class T, class V>
void Schwarz<T, V>::make_room(Index vectors) {
  if (vectors <= static_cast<Index>(columns_.size())) return;
  while (static_cast<Index>(columns_.size()) < vectors)
    add_column({.local = columns_.front().local.another(*runtime_),
                .coarse = columns_.front().coarse.another(*runtime_)});
  for (Index g = 0; g < groups().count(); ++g) make_y(g, vectors, tiles_[g].y.cols());
  factors_.make_room(vectors);
}

template <class T, class V>
void Schwarz<T, V>::send(const VectorOf& r, const Transfer<T>& there) const {
  for (Index k = 0; k < system_->count(); ++k)
    sparse::send(r(k), 0, there.from(k), system_->blocks().hints(k));
}

template <class T, class V>
void Schwarz<T, V>::assemble(const Transfer<T>& back, const VectorOf& z, bool anew) const {
  for (Index k = 0; k < system_->count(); ++k)
    codelets::assemble<T>({system_->layout().own(k), system_->blocks()[k].size, anew},
                          {.arrivals = back.to(k), .z = z(k)}, system_->blocks().hints(k));
}

/// (Z1)
template <class T, class V>
void Schwarz<T, V>::add_local(const std::vector<VectorOf>& r, const std::vector<VectorOf>& z, bool anew) {
  for (std::size_t v = 0; v < r.size(); ++v) send(r[v], columns_[v].local.there);
  for (Index g = 0; g < groups().count(); ++g) solve_locally(g, r.size());
  for (std::size_t v = 0; v < r.size(); ++v) assemble(columns_[v].local.back, z[v], anew);
}

template <class T, class V>
void Schwarz<T, V>::solve_locally(Index group, std::size_t vectors) {
  Arrivals<AsTiles, T> arrivals = columns_.front().local.there.to(group);
  Departures<AsTiles, T> departures = columns_.front().local.back.from(group);
  for (std::size_t v = 1; v < vectors; ++v) {
    for (const Tile<T>* pack : columns_[v].local.there.to(group).packs) arrivals.packs.add(pack);
    for (const Tile<T>* pack : columns_[v].local.back.from(group).packs) departures.packs.add(pack);
  }
  const auto pieces = factors_.pieces(group);
  for (const auto& piece : pieces)
    codelets::local_solve<T, V>({.vectors = static_cast<Index>(vectors),
                                 .first = piece.first,
                                 .takes = &piece == &pieces.front(),
                                 .gives = &piece == &pieces.back()},
                                {.arrivals = arrivals,
                                 .factors = piece.factors,
                                 .room = piece.room,
                                 .y = tiles_[group].y,
                                 .departures = departures},
                                hints(group, vectors));
}

/// (Z2)
template <class T, class V>
void Schwarz<T, V>::add_coarse(const Column& column, const VectorOf& r, const VectorOf& z, bool anew) {
  send(r, column.coarse.there);
  for (Index g = 0; g < groups().count(); ++g) {
    const GroupTiles& t = tiles_[g];
    codelets::patch_sums<T>({.arrivals = column.coarse.there.to(g),
                             .members = t.members,
                             .begins = t.member_begins,
                             .work = t.coarse_work,
                             .sums = column.sums[g]},
                            hints(g));
  }
  for (std::size_t rank = 0; rank < coarse_.size(); ++rank) {
    const auto all = coarse_[rank].pieces(0).front();
    codelets::coarse_solve(
        {.sums = column.sums, .factors = all.factors, .room = all.room, .values = column.values[rank]},
        coarse_[rank].groups().hints(0));
  }
  for (Index g = 0; g < groups().count(); ++g)
    codelets::spread<T>({first_patch_[groups()[g].first]},
                        {.values = column.values[groups().owner(g)],
                         .patches = tiles_[g].patches,
                         .y = column.coarse_y[g],
                         .departures = column.coarse.back.from(g)},
                        hints(g));
  assemble(column.coarse.back, z, anew);
}

/// column.r = r - A z
template <class T, class V>
void Schwarz<T, V>::submit_residual(const Column& column, const VectorOf& r, const VectorOf& z) {
  const sparse::BlockMatrix<T>& a = system_->matrix();
  for (Index k = 0; k < system_->count() && system_->count() > 1; ++k)
    sparse::send(z(k), a.shape(k).own, column.exchange.from(k), system_->blocks().hints(k));
  for (Index k = 0; k < system_->count(); ++k)
    sparse::codelets::residual<T>({a.shape(k), system_->unit()},
                                  {.matrix = a.ports(k),
                                   .arrivals = column.exchange.to(k),
                                   .v = z(k),
                                   .b = r(k),
                                   .r = column.r[k],
                                   .rr = column.rr[k]},
                                  system_->blocks().hints(k));
}

/// (Z3)
template <class T, class V>
void Schwarz<T, V>::apply(const std::vector<VectorOf>& r, const std::vector<VectorOf>& z) {
  if (settings_.patches == 0) return add_local(r, z, true);
  std::vector<VectorOf> residuals;
  for (std::size_t v = 0; v < r.size(); ++v) {
    const Column& column = columns_[v];
    add_coarse(column, r[v], z[v], true);
    submit_residual(column, r[v], z[v]);
    residuals.push_back([&column](Index k) -> const Tile<T>& { return column.r[k]; });
  }
  add_local(residuals, z, false);
  if (settings_.combination == Combination::restricted) return;
  for (std::size_t v = 0; v < r.size(); ++v) {
    submit_residual(columns_[v], r[v], z[v]);
    add_coarse(columns_[v], residuals[v], z[v], false);
  }
}

template class Schwarz<float>;
template class Schwarz<double>;
template class Schwarz<double, float>;

}  // namespace asterism::decomposition
