#include "local_factors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "../../../runtime/collectives.hpp"
#include "../../../runtime/error.hpp"
#include "../../common/stopwatch.hpp"
#include "../tile_or_none.hpp"

namespace asterism::decomposition {
namespace {

using sparse::Csr;
using sparse::MatrixClass;

/// Of factors with so many entries below the diagonal.
template <class V>
Index bytes_of(Index rows, Index fill, MatrixClass matrix_class) {
  const Index triangles = matrix_class == MatrixClass::positive_definite ? 1 : 2;
  constexpr Index entry = sizeof(V) + sizeof(std::int32_t);
  return triangles * (fill * entry + (rows + 1) * 4) + rows * (static_cast<Index>(sizeof(V)) + 8);
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
    : orders_(subdomains.size()), blocks_(subdomains.size()) {
  Stopwatch watch;
  agree(runtime, [&] { require_numbers<V>(whole); });
  order(runtime, whole, subdomains, owners, settings);
  require_memory(runtime, settings.most_bytes);
  facts_.seconds_order = watch.lap();
  factorise(runtime, whole, subdomains, owners, settings);
  make_tiles(runtime, owners);
  facts_.seconds_factorise = watch.lap();
}

template <class V>
template <class T>
void LocalFactors<V>::order(const Runtime& runtime, const Csr<T>& whole,
                            const std::vector<Subdomain>& subdomains, const std::vector<int>& owners,
                            const FactorSettings& settings) {
  Index bytes = 0;
  agree(runtime, [&] {
    for (std::size_t p = 0; p < subdomains.size(); ++p) {
      if (owners[p] != runtime.rank()) continue;
      orders_[p] = elimination_order(adjacency_of(whole, subdomains[p].rows));
      const Index fill = orders_[p].fill, rows = static_cast<Index>(subdomains[p].rows.size());
      if (fill > std::numeric_limits<std::int32_t>::max())
        throw Error(
            fmt::format("the factors of {} have {} entries: 32-bit numbers count them; use more subdomains",
                        name_of(static_cast<Index>(p), settings), fill));
      bytes += bytes_of<V>(rows, fill, settings.matrix_class);
    }
  });
  facts_.predicted = gather(runtime, bytes);
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

template <class V>
template <class T>
void LocalFactors<V>::factorise(Runtime& runtime, const Csr<T>& whole,
                                const std::vector<Subdomain>& subdomains, const std::vector<int>& owners,
                                const FactorSettings& settings) {
  std::vector<Tile<std::int32_t>> done;
  for (std::size_t p = 0; p < subdomains.size(); ++p) {
    Block& block = blocks_[p];
    if (owners[p] == runtime.rank())
      block.local = std::make_shared<LocalBlock<V>>(
          block_of<V>(whole, subdomains[p], orders_[p], settings.matrix_class));
    done.emplace_back(runtime, 1, 1, owners[p]);
    codelets::factorise<V>({block.local}, done.back(),
                           {.where = Where::cpu,
                            .cost = static_cast<std::uint64_t>(p),
                            .label = fmt::format("subdomain {}", p)});
  }
  runtime.wait();
  std::vector<BadBlock> bad;
  Index fill = 0, bytes = 0;
  for (std::size_t p = 0; p < subdomains.size(); ++p) {
    Block& block = blocks_[p];
    if (!block.local) continue;
    const std::vector<std::int32_t>& old_of_new = orders_[p].old_of_new;
    if (const auto& defect = block.local->defect)
      bad.push_back({static_cast<Index>(p), subdomains[p].rows[old_of_new[defect->place]], defect->kind,
                     defect->pivot});
    const auto composed = [&](const std::vector<std::int32_t>& order) {
      if (order.empty()) return old_of_new;
      std::vector<std::int32_t> all;
      for (const std::int32_t place : order) all.push_back(old_of_new[place]);
      return all;
    };
    block.row_of = composed(block.local->row_order);
    block.column_of = composed(block.local->column_order);
    orders_[p] = {};
    const auto stored =
        static_cast<Index>(block.local->lower.places.size() + block.local->upper.places.size());
    fill += stored + block.local->size;
    bytes += stored * static_cast<Index>(sizeof(V) + 4) +
             static_cast<Index>(block.local->lower.begins.size() + block.local->upper.begins.size()) * 4 +
             block.local->size * static_cast<Index>(sizeof(V) + 8);
  }
  bad = gather_lists(runtime, bad);
  if (!bad.empty()) throw Error(words_of<V>(bad.front(), settings));
  sum_over_ranks(runtime, &fill, 1);
  facts_.fill = fill;
  facts_.bytes = gather(runtime, bytes);
}

template <class V>
void LocalFactors<V>::make_tiles(Runtime& runtime, const std::vector<int>& owners) {
  struct Sizes {
    Index rows = 0, lower_begins = 0, lower = 0, upper_begins = 0, upper = 0;
  };
  std::vector<Sizes> sizes;
  for (const Block& block : blocks_)
    if (block.local) {
      const auto size = [](const auto& list) { return static_cast<Index>(list.size()); };
      const LocalBlock<V>& b = *block.local;
      sizes.push_back({b.size, b.lower.places.empty() ? 0 : size(b.lower.begins), size(b.lower.places),
                       size(b.upper.begins), size(b.upper.places)});
    }
  sizes = gather_lists(runtime, sizes);  // subdomains are in the order of ranks
  for (std::size_t p = 0; p < blocks_.size(); ++p) {
    Block& block = blocks_[p];
    static const LocalBlock<V> nothing;
    const LocalBlock<V>& b = block.local ? *block.local : nothing;
    const Sizes& its = sizes[p];
    const int owner = owners[p];
    const auto tiles = [&](const Triangle<V>& t, Index begins, Index entries) {
      return TriangleTiles{lent(runtime, t.begins, begins, owner), lent(runtime, t.places, entries, owner),
                           lent(runtime, t.values, entries, owner)};
    };
    block.lower = tiles(b.lower, its.lower_begins, its.lower);
    block.upper = tiles(b.upper, its.upper_begins, its.upper);
    block.inverse_pivots = lent<V>(runtime, b.inverse_pivots, its.rows, owner);
    block.rows = lent<std::int32_t>(runtime, block.row_of, its.rows, owner);
    block.columns = lent<std::int32_t>(runtime, block.column_of, its.rows, owner);
  }
}

template <class V>
TrianglePorts<AsTiles, V> LocalFactors<V>::TriangleTiles::ports() const {
  return {tile_or_none(begins), tile_or_none(places), tile_or_none(values)};
}

template <class V>
FactorPorts<AsTiles, V> LocalFactors<V>::ports(Index subdomain) const {
  const Block& block = blocks_[static_cast<std::size_t>(subdomain)];
  return {block.lower.ports(), block.upper.ports(), block.inverse_pivots, block.rows, block.columns};
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
