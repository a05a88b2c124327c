#include "dcg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "../../codelets/decomposition/schwarz.hpp"
#include "../../codelets/sparse/krylov/residual.hpp"
#include "../../runtime/collectives.hpp"
#include "../common/each_once.hpp"
#include "../common/set.hpp"
#include "../common/tile_or_none.hpp"
#include "cut/whole_matrix.hpp"

namespace asterism::decomposition {
namespace {

sparse::LinearSettings without_preconditioner(sparse::LinearSettings settings) {
  settings.preconditioner.method = sparse::PreconditionerMethod::none;
  return settings;
}

/// Those columns of a subdomain's rows that are no rows of it, ascending.
template <class T>
std::vector<Index> columns_outside(const sparse::Csr<T>& whole, const Subdomain& subdomain) {
  std::vector<Index> columns;
  for (const Index row : subdomain.rows)
    for (Index k = whole.row_begin[row]; k < whole.row_begin[row + 1]; ++k)
      if (!std::ranges::binary_search(subdomain.rows, whole.columns[k])) columns.push_back(whole.columns[k]);
  keep_each_once(columns);
  return columns;
}

/// Entries of a subdomain's rows in some columns, which are numbered by their places in the list.
template <class T>
struct LocalRows {
  std::vector<std::int32_t> begins = {0}, columns;
  std::vector<T> values;
};
template <class T>
LocalRows<T> local_rows(const sparse::Csr<T>& whole, const Subdomain& subdomain,
                        const std::vector<Index>& columns) {
  LocalRows<T> rows;
  for (const Index row : subdomain.rows) {
    for (Index k = whole.row_begin[row]; k < whole.row_begin[row + 1]; ++k) {
      const auto at = std::ranges::lower_bound(columns, whole.columns[k]);
      if (at == columns.end() || *at != whole.columns[k]) continue;
      rows.columns.push_back(static_cast<std::int32_t>(at - columns.begin()));
      rows.values.push_back(whole.values[k]);
    }
    if (rows.columns.size() > std::numeric_limits<std::int32_t>::max())
      throw Error(fmt::format(
          "subdomains of {} rows and more have over 2^31 entries, which 32-bit numbers count; use more",
          subdomain.rows.size()));
    rows.begins.push_back(static_cast<std::int32_t>(rows.columns.size()));
  }
  return rows;
}

template <class X>
Tile<X> tile_of(Runtime& runtime, const std::vector<X>& list, int owner) {
  if (list.empty()) return {};
  Tile<X> tile(runtime, 1, static_cast<Index>(list.size()), owner);
  set(runtime, tile, [&](Index, Index j) { return list[static_cast<std::size_t>(j)]; });
  return tile;
}

}  // namespace

template <class T>
Dcg<T>::Dcg(Runtime& runtime, const sparse::Csr<T>& mine, const sparse::LinearSettings& settings,
            const SubdomainSettings& subdomains)
    : Base(runtime, mine, without_preconditioner(settings), sparse::MatrixClass::general), looks_(runtime) {
  const sparse::Csr<T> whole = whole_matrix(runtime, mine);
  agree(runtime, [&] { subdomains_ = cut_into_subdomains(whole, subdomains); });
  const std::vector<int> owners = owners_of(subdomain_count(), runtime.ranks(), subdomains.shares);
  for (Index p = 0; p < subdomain_count(); ++p) {
    outside_.push_back(columns_outside(whole, subdomains_[p]));
    make_tiles(whole, p, owners[p]);
  }
  make_transfers(owners);
}

template <class T>
void Dcg<T>::make_tiles(const sparse::Csr<T>& whole, Index p, int owner) {
  Runtime& runtime = this->runtime();
  SubdomainTiles& t = of_subdomains_.emplace_back();
  const auto rows_of = [&](const std::vector<Index>& columns) {
    const LocalRows<T> rows = local_rows(whole, subdomains_[p], columns);
    return RowTiles{tile_of(runtime, rows.begins, owner), tile_of(runtime, rows.columns, owner),
                    tile_of(runtime, rows.values, owner)};
  };
  t.inside = rows_of(subdomains_[p].rows);
  t.between = rows_of(outside_[p]);
  const auto n = static_cast<Index>(subdomains_[p].rows.size()), out = static_cast<Index>(outside_[p].size());
  for (Tile<T>* vector : {&t.x, &t.r, &t.p}) *vector = Tile<T>(runtime, 1, n, owner);
  if (out > 0) t.outside = Tile<T>(runtime, 1, out, owner);
  t.work = Tile<T>(runtime, 1, std::max(n, out), owner);
}

template <class T>
void Dcg<T>::make_transfers(const std::vector<int>& owners) {
  const Partition& blocks = this->blocks();
  std::vector<Parcel> all, owned, outside, neighbours;
  std::vector<Index> owner_of_row(static_cast<std::size_t>(blocks.extent()));
  std::vector<std::int32_t> place_of_row(owner_of_row.size());
  for (Index p = 0; p < subdomain_count(); ++p) {
    const Subdomain& subdomain = subdomains_[p];
    add_parcels(blocks, p, subdomain.rows, all_places(subdomain.rows.size()), all);
    add_parcels(blocks, p, subdomain.rows, subdomain.owned, owned);
    add_parcels(blocks, p, outside_[p], all_places(outside_[p].size()), outside);
    for (const std::int32_t place : subdomain.owned) {
      owner_of_row[subdomain.rows[place]] = p;
      place_of_row[subdomain.rows[place]] = place;
    }
  }
  for (Index p = 0; p < subdomain_count(); ++p) {
    std::vector<Parcel> its(subdomains_.size());
    for (std::size_t i = 0; i < outside_[p].size(); ++i) {
      Parcel& parcel = its[owner_of_row[outside_[p][i]]];
      parcel.taken.push_back(place_of_row[outside_[p][i]]);
      parcel.placed.push_back(static_cast<std::int32_t>(i));
    }
    for (Index from = 0; from < subdomain_count(); ++from)
      if (!its[from].taken.empty())
        neighbours.push_back({from, p, std::move(its[from].taken), std::move(its[from].placed)});
  }
  Runtime& runtime = this->runtime();
  const auto block_owner = [&](Index k) { return blocks.owner(k); };
  const auto subdomain_owner = [&](Index p) { return owners[p]; };
  const auto to_subdomains = [&](const std::vector<Parcel>& parcels) {
    return Transfer<T>(runtime, parcels, blocks.count(), block_owner, subdomain_count(), subdomain_owner);
  };
  x_there_ = to_subdomains(all);
  r_there_ = to_subdomains(all);
  outside_there_ = to_subdomains(outside);
  back_ =
      Transfer<T>(runtime, reversed(owned), subdomain_count(), subdomain_owner, blocks.count(), block_owner);
  neighbours_ = Transfer<T>(runtime, neighbours, subdomain_count(), subdomain_owner, subdomain_count(),
                            subdomain_owner);
}

template <class T>
RowPorts<AsTiles, T> Dcg<T>::RowTiles::ports() const {
  return {begins, tile_or_none(columns), tile_or_none(values)};
}

/// Line 1, with any first guess.
template <class T>
void Dcg<T>::begin(Index) {
  iteration_ = 0;
  for (Index k = 0; k < this->count(); ++k) {
    const auto send = [&](const Tile<T>& v, const Transfer<T>& there) {
      sparse::send(v, 0, there.from(k), this->blocks().hints(k));
    };
    send(this->tiles(k).x, x_there_);
    send(this->tiles(k).r, r_there_);
    send(this->tiles(k).x, outside_there_);
  }
  for (Index p = 0; p < subdomain_count(); ++p) {
    SubdomainTiles& t = of_subdomains_[p];
    codelets::dcg_begin<T>({.x_arrivals = x_there_.to(p),
                            .r_arrivals = r_there_.to(p),
                            .outside_arrivals = outside_there_.to(p),
                            .x = t.x,
                            .r = t.r,
                            .p = t.p,
                            .outside = tile_or_none(t.outside)},
                           {.where = Where::cpu});
  }
}

template <class T>
void Dcg<T>::iterate_all(const typename Base::Solvers& going) {
  for (Dcg* its : this->template all_as<Dcg>(going)) its->iterate_once();
}

template <class T>
void Dcg<T>::iterate_once() {
  for (Index p = 0; p < subdomain_count(); ++p) {
    SubdomainTiles& t = of_subdomains_[p];
    codelets::dcg_descend<T>({.inside = t.inside.ports(),
                              .p = t.p,
                              .work = t.work,
                              .x = t.x,
                              .r = t.r,
                              .departures = neighbours_.from(p)},
                             {.where = Where::cpu});
  }
  for (Index p = 0; p < subdomain_count(); ++p) {
    SubdomainTiles& t = of_subdomains_[p];
    codelets::dcg_turn<T>({.arrivals = neighbours_.to(p),
                           .inside = t.inside.ports(),
                           .between = t.between.ports(),
                           .work = t.work,
                           .outside = tile_or_none(t.outside),
                           .r = t.r,
                           .p = t.p},
                          {.where = Where::cpu});
  }
  ++iteration_;
}

/// The subdomains' own rows of x, to blocks.
template <class T>
void Dcg<T>::bring_x() {
  for (Index p = 0; p < subdomain_count(); ++p)
    sparse::send(of_subdomains_[p].x, 0, back_.from(p), {.where = Where::cpu});
  for (Index k = 0; k < this->count(); ++k)
    codelets::assemble<T>({0, this->blocks()[k].size, true}, {.arrivals = back_.to(k), .z = this->tiles(k).x},
                          {.where = Where::cpu});
}

template <class T>
void Dcg<T>::submit_look(Index number) {
  if (iteration_ > 0) {
    bring_x();
    this->submit_residual();
  }
  looks_.submit(number, this->all_rr(), iteration_);
}

template <class T>
std::optional<typename Dcg<T>::Seen> Dcg<T>::look(Index number) {
  return looks_.template wait_for<Seen>(number);
}

template class Dcg<float>;
template class Dcg<double>;

}  // namespace asterism::decomposition
