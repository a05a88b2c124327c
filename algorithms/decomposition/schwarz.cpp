#include "schwarz.hpp"

#include <algorithm>

#include "../../codelets/sparse/krylov/residual.hpp"
#include "../../runtime/collectives.hpp"
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
  agree(runtime, [&] { subdomains_ = cut_into_subdomains(whole, settings.subdomains); });
  facts_.owners = owners_of(count(), runtime.ranks());
  for (const Subdomain& subdomain : subdomains_) {
    facts_.own_rows.push_back(static_cast<Index>(subdomain.owned.size()));
    facts_.rows.push_back(static_cast<Index>(subdomain.rows.size()));
  }
  facts_.seconds_partition = watch.lap();
  factors_ = LocalFactors<V>(runtime, whole, subdomains_, facts_.owners, settings.factors);
  facts_.factors = factors_.facts();
  if (settings.patches > 0) make_coarse(whole);
  for (Index p = 0; p < count(); ++p) {
    SubdomainTiles& t = tiles_.emplace_back();
    t.y = Tile<T>(runtime, 1, facts_.rows[p], facts_.owners[p]);
    t.work = Tile<V>(runtime, 1, facts_.rows[p], facts_.owners[p]);
    if (settings.patches == 0) continue;
    const auto own = static_cast<Index>(subdomains_[p].owned.size());
    t.coarse_work = Tile<T>(runtime, 1, own, facts_.owners[p]);
    t.coarse_y = Tile<T>(runtime, 1, own, facts_.owners[p]);
    t.sums = Tile<double>(runtime, 1, first_patch_[p + 1] - first_patch_[p], facts_.owners[p]);
    t.patches = Tile<std::int32_t>(runtime, 1, own, facts_.owners[p]);
    set(runtime, t.patches, [&](Index, Index j) { return patch_of_[p][j]; });
  }
}

/// Every rank has the coarse system.
template <class T, class V>
void Schwarz<T, V>::make_coarse(const sparse::Csr<T>& whole) {
  agree(*runtime_, [&] { patch_of_ = cut_into_patches(whole, subdomains_, settings_.patches); });
  first_patch_ = {0};
  for (const std::vector<std::int32_t>& patches : patch_of_)
    first_patch_.push_back(first_patch_.back() + 1 + std::ranges::max(patches));
  facts_.coarse_rows = first_patch_.back();
  const sparse::Csr<double> coarse = coarse_matrix(whole, subdomains_, patch_of_, first_patch_);
  Subdomain all;
  for (Index i = 0; i < facts_.coarse_rows; ++i) all.rows.push_back(i);
  FactorSettings factors = settings_.factors;
  factors.only = "the coarse matrix (a row for each patch)";
  for (int rank = 0; rank < runtime_->ranks(); ++rank) {
    coarse_.emplace_back(*runtime_, coarse, std::vector{all}, std::vector{rank}, factors);
    of_ranks_.push_back({Tile<double>(*runtime_, 1, facts_.coarse_rows, rank),
                         Tile<double>(*runtime_, 1, facts_.coarse_rows, rank)});
  }
  facts_.coarse = coarse_.front().facts();
}

template <class T, class V>
Hints Schwarz<T, V>::hints(Index subdomain) const {
  return {.where = Where::cpu, .cost = static_cast<std::uint64_t>(subdomain)};
}

template <class T, class V>
void Schwarz<T, V>::attach(const sparse::LinearSystem<T>& system) {
  system_ = &system;
  const Partition& blocks = system.blocks();
  std::vector<Parcel> there, owned, coarse;
  for (Index p = 0; p < count(); ++p) {
    const Subdomain& subdomain = subdomains_[p];
    add_parcels(blocks, p, subdomain.rows, all_places(subdomain.rows.size()), there);
    add_parcels(blocks, p, subdomain.rows, subdomain.owned, owned);
    if (settings_.patches == 0) continue;
    std::vector<Index> own;
    for (const std::int32_t place : subdomain.owned) own.push_back(subdomain.rows[place]);
    add_parcels(blocks, p, own, all_places(own.size()), coarse);
  }
  const auto block_owner = [&](Index k) { return blocks.owner(k); };
  const auto subdomain_owner = [&](Index p) { return facts_.owners[p]; };
  const auto ways = [&](const std::vector<Parcel>& to, const std::vector<Parcel>& from) {
    return Ways{
        Transfer<T>(*runtime_, to, blocks.count(), block_owner, count(), subdomain_owner),
        Transfer<T>(*runtime_, reversed(from), count(), subdomain_owner, blocks.count(), block_owner)};
  };
  local_ = ways(there, settings_.combination == Combination::restricted ? owned : there);
  facts_.bytes_between_ranks = local_.there.bytes_between_ranks() + local_.back.bytes_between_ranks();
  if (settings_.patches == 0) return;
  coarse_ways_ = ways(coarse, coarse);
  exchange_ = system.another_exchange();
  for (Index k = 0; k < blocks.count(); ++k) {
    r_.push_back(system.own_vector(k));
    rr_.push_back(system.sums(k));
  }
}

template <class T, class V>
void Schwarz<T, V>::send(const VectorOf& r, const Transfer<T>& there) const {
  for (Index k = 0; k < system_->count(); ++k)
    if (there.gives(k))
      sparse::codelets::send<T>({0}, {.v = r(k), .departures = there.from(k)}, system_->blocks().hints(k));
}

template <class T, class V>
void Schwarz<T, V>::assemble(const Transfer<T>& back, const VectorOf& z, bool anew) const {
  for (Index k = 0; k < system_->count(); ++k)
    codelets::assemble<T>({system_->layout().own(k), system_->blocks()[k].size, anew},
                          {.arrivals = back.to(k), .z = z(k)}, {.where = Where::cpu});
}

/// (Z1)
template <class T, class V>
void Schwarz<T, V>::add_local(const VectorOf& r, const VectorOf& z, bool anew) {
  send(r, local_.there);
  for (Index p = 0; p < count(); ++p)
    codelets::local_solve<T, V>({.arrivals = local_.there.to(p),
                                 .factors = factors_.ports(p),
                                 .work = tiles_[p].work,
                                 .y = tiles_[p].y,
                                 .departures = local_.back.from(p)},
                                hints(p));
  assemble(local_.back, z, anew);
}

/// (Z2)
template <class T, class V>
void Schwarz<T, V>::add_coarse(const VectorOf& r, const VectorOf& z, bool anew) {
  send(r, coarse_ways_.there);
  TileList<double> sums;
  for (Index p = 0; p < count(); ++p) {
    SubdomainTiles& t = tiles_[p];
    codelets::patch_sums<T>(
        {.arrivals = coarse_ways_.there.to(p), .patches = t.patches, .work = t.coarse_work, .sums = t.sums},
        {.where = Where::cpu});
    sums.add(t.sums);
  }
  for (std::size_t rank = 0; rank < of_ranks_.size(); ++rank)
    codelets::coarse_solve({.sums = sums,
                            .factors = coarse_[rank].ports(0),
                            .work = of_ranks_[rank].work,
                            .values = of_ranks_[rank].values},
                           {.where = Where::cpu});
  for (Index p = 0; p < count(); ++p)
    codelets::spread<T>({first_patch_[p]},
                        {.values = of_ranks_[facts_.owners[p]].values,
                         .patches = tiles_[p].patches,
                         .y = tiles_[p].coarse_y,
                         .departures = coarse_ways_.back.from(p)},
                        {.where = Where::cpu});
  assemble(coarse_ways_.back, z, anew);
}

/// r_ = r - A z
template <class T, class V>
void Schwarz<T, V>::submit_residual(const VectorOf& r, const VectorOf& z) {
  const sparse::BlockMatrix<T>& a = system_->matrix();
  for (Index k = 0; k < system_->count() && system_->count() > 1; ++k)
    sparse::codelets::send<T>({a.shape(k).own}, {.v = z(k), .departures = exchange_.from(k)},
                              system_->blocks().hints(k));
  for (Index k = 0; k < system_->count(); ++k)
    sparse::codelets::residual<T>(
        {a.shape(k), system_->unit()},
        {.matrix = a.ports(k), .arrivals = exchange_.to(k), .v = z(k), .b = r(k), .r = r_[k], .rr = rr_[k]},
        system_->blocks().hints(k));
}

/// (Z3)
template <class T, class V>
void Schwarz<T, V>::apply(const VectorOf& r, const VectorOf& z) {
  if (settings_.patches == 0) return add_local(r, z, true);
  const VectorOf residual = [this](Index k) -> const Tile<T>& { return r_[k]; };
  add_coarse(r, z, true);
  submit_residual(r, z);
  add_local(residual, z, false);
  if (settings_.combination == Combination::restricted) return;
  submit_residual(r, z);
  add_coarse(residual, z, false);
}

template class Schwarz<float>;
template class Schwarz<double>;
template class Schwarz<double, float>;

}  // namespace asterism::decomposition
