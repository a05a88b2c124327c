#include "subdomains.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../../../runtime/error.hpp"
#include "../../common/partition.hpp"
#include "../../common/team.hpp"
#include "adjacency.hpp"
#include "metis.hpp"

namespace asterism::decomposition {
namespace {

/// @throw Error
template <class T>
void require_square(const sparse::Csr<T>& whole) {
  if (whole.total_rows != whole.cols)
    throw Error(
        fmt::format("the matrix is {} x {}: only a square one has subdomains", whole.total_rows, whole.cols));
  for (const Index column : whole.columns)
    if (column < 0 || column >= whole.cols)
      throw Error(fmt::format("the matrix has an entry in column {} (the first is 0): there are {}", column,
                              whole.cols));
}

/// As many rows in each subdomain, or one more.
std::vector<Index> row_bounds(Index n, Index count) {
  std::vector<Index> bounds;
  for (Index p = 0; p <= count; ++p) bounds.push_back(n * p / count);
  return bounds;
}

Subdomain with_neighbours(const std::vector<Index>& bounds, Index p, Index overlap) {
  const Index count = static_cast<Index>(bounds.size()) - 1;
  for (const Index neighbour : {p - 1, p + 1}) {
    if (neighbour < 0 || neighbour >= count) continue;
    const Index rows = bounds[neighbour + 1] - bounds[neighbour];
    if (overlap > rows)
      throw Error(fmt::format(
          "an overlap of {} rows: subdomain {} (of {}) has {}; give less overlap or fewer subdomains",
          overlap, neighbour, count, rows));
  }
  const Index first = std::max<Index>(0, bounds[p] - overlap);
  const Index end = std::min(bounds.back(), bounds[p + 1] + overlap);
  Subdomain subdomain;
  subdomain.rows.resize(static_cast<std::size_t>(end - first));
  std::iota(subdomain.rows.begin(), subdomain.rows.end(), first);
  subdomain.owned.resize(static_cast<std::size_t>(bounds[p + 1] - bounds[p]));
  std::iota(subdomain.owned.begin(), subdomain.owned.end(), static_cast<std::int32_t>(bounds[p] - first));
  return subdomain;
}

/// Parts in the order of their rows' mean number, so that those of a rank lie together.
std::vector<std::vector<Index>> rows_of_parts(const std::vector<std::int32_t>& part_of, Index count) {
  std::vector<std::vector<Index>> rows(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < part_of.size(); ++i)
    rows[static_cast<std::size_t>(part_of[i])].push_back(static_cast<Index>(i));
  std::ranges::stable_sort(rows, {}, [](const std::vector<Index>& part) {
    return std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(part.size());
  });
  return rows;
}

/// The rows with all that so many steps lead to.
Subdomain with_layers(const Adjacency& graph, const std::vector<Index>& own, Index layers) {
  std::vector<Index> rows = own, last = own;
  std::vector<char> is_in(static_cast<std::size_t>(graph.nodes()));
  for (const Index row : own) is_in[static_cast<std::size_t>(row)] = 1;
  for (Index layer = 0; layer < layers && !last.empty(); ++layer) {
    std::vector<Index> next;
    for (const Index row : last)
      for (std::int32_t k = graph.begins[row]; k < graph.begins[row + 1]; ++k)
        if (char& in = is_in[static_cast<std::size_t>(graph.neighbours[k])]; in == 0) {
          in = 1;
          next.push_back(graph.neighbours[k]);
        }
    rows.insert(rows.end(), next.begin(), next.end());
    last = std::move(next);
  }
  std::ranges::sort(rows);
  Subdomain subdomain{std::move(rows), {}};
  auto at = own.begin();
  for (std::size_t i = 0; i < subdomain.rows.size() && at != own.end(); ++i)
    if (subdomain.rows[i] == *at) {
      subdomain.owned.push_back(static_cast<std::int32_t>(i));
      ++at;
    }
  return subdomain;
}

/// A cube of n rows has 6 n^(2/3) in a layer around it, a square 4 n^(1/2): what has more than halfway between is a body.
bool are_bodies(const std::vector<Subdomain>& subdomains, Index layers) {
  double around = 0, halfway = 0;
  for (const Subdomain& subdomain : subdomains) {
    around +=
        static_cast<double>(subdomain.rows.size() - subdomain.owned.size()) / static_cast<double>(layers);
    halfway += 5 * std::pow(static_cast<double>(subdomain.owned.size()), 3. / 5);
  }
  return around > halfway;
}

template <class T>
std::vector<Subdomain> cut_by_graph(const sparse::Csr<T>& whole, const SubdomainSettings& settings) {
  std::vector<Index> all(static_cast<std::size_t>(whole.total_rows));
  std::iota(all.begin(), all.end(), 0);
  const Adjacency graph = adjacency_of(whole, all);
  const std::vector<std::int32_t> parts = cut_graph(graph, static_cast<std::int32_t>(settings.count));
  const std::vector<std::vector<Index>> own = rows_of_parts(parts, settings.count);
  std::vector<Subdomain> subdomains(own.size());
  one_by_one(own.size(), 0, [&](std::size_t p) {
    subdomains[p] = with_layers(graph, own[p], settings.overlap);
    if (settings.count > 1 && static_cast<Index>(subdomains[p].rows.size()) == whole.total_rows)
      throw Error(fmt::format(
          "an overlap of {} steps in the graph: a subdomain has all {} rows then; give less overlap",
          settings.overlap, whole.total_rows));
  });
  return subdomains;
}

}  // namespace

template <class T>
std::vector<Subdomain> cut_into_subdomains(const sparse::Csr<T>& whole, const SubdomainSettings& settings) {
  const Index n = whole.total_rows;
  require_square(whole);
  if (settings.count < 1 || settings.count > n)
    throw Error(fmt::format("{} subdomains of {} rows: there must be at least 1, and a row for each",
                            settings.count, n));
  if (settings.overlap < 0)
    throw Error(fmt::format("an overlap of {}: it may not be negative", settings.overlap));
  if (settings.cut == Cut::graph) return cut_by_graph(whole, settings);
  const std::vector<Index> bounds = row_bounds(n, settings.count);
  std::vector<Subdomain> subdomains;
  for (Index p = 0; p < settings.count; ++p)
    subdomains.push_back(with_neighbours(bounds, p, settings.overlap));
  return subdomains;
}

void weigh(std::vector<Subdomain>& subdomains, const SubdomainSettings& settings) {
  if (settings.cut != Cut::graph || settings.overlap == 0 || !are_bodies(subdomains, settings.overlap))
    return;
  std::vector<std::int32_t> counts;
  for (const Subdomain& subdomain : subdomains) {
    counts.resize(std::max(counts.size(), static_cast<std::size_t>(subdomain.rows.back()) + 1));
    for (const Index row : subdomain.rows) ++counts[static_cast<std::size_t>(row)];
  }
  for (Subdomain& subdomain : subdomains)
    for (const Index row : subdomain.rows) subdomain.counts.push_back(counts[static_cast<std::size_t>(row)]);
}

std::vector<std::int32_t> all_places(std::size_t length) {
  std::vector<std::int32_t> places(length);
  std::iota(places.begin(), places.end(), 0);
  return places;
}

std::vector<int> owners_of(Index count, int ranks, const std::vector<double>& shares) {
  const std::vector<double> equal(static_cast<std::size_t>(ranks), 1);
  const std::vector<Index> bounds =
      bounds_by_weight(count, shares.empty() ? equal : shares, {.rounding = Rounding::down});
  std::vector<int> owners;
  for (int rank = 0; rank < ranks; ++rank)
    owners.resize(static_cast<std::size_t>(bounds[static_cast<std::size_t>(rank) + 1]), rank);
  return owners;
}

template std::vector<Subdomain> cut_into_subdomains(const sparse::Csr<float>&, const SubdomainSettings&);
template std::vector<Subdomain> cut_into_subdomains(const sparse::Csr<double>&, const SubdomainSettings&);

}  // namespace asterism::decomposition
