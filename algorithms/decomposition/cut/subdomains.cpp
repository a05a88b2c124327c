#include "subdomains.hpp"

#include <fmt/format.h>
#include <metis.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "../../../runtime/error.hpp"

namespace asterism::decomposition {
namespace {

static_assert(sizeof(idx_t) == sizeof(std::int32_t), "METIS with 32-bit numbers, as Debian has it");

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

template <class T>
std::vector<Subdomain> cut_by_graph(const sparse::Csr<T>& whole, const SubdomainSettings& settings) {
  std::vector<Index> all(static_cast<std::size_t>(whole.total_rows));
  std::iota(all.begin(), all.end(), 0);
  const Adjacency graph = adjacency_of(whole, all);
  const std::vector<std::int32_t> parts = cut_graph(graph, static_cast<std::int32_t>(settings.count));
  std::vector<Subdomain> subdomains;
  for (const std::vector<Index>& own : rows_of_parts(parts, settings.count)) {
    subdomains.push_back(with_layers(graph, own, settings.overlap));
    if (settings.count > 1 && static_cast<Index>(subdomains.back().rows.size()) == whole.total_rows)
      throw Error(fmt::format(
          "an overlap of {} steps in the graph: a subdomain has all {} rows then; give less overlap",
          settings.overlap, whole.total_rows));
  }
  return subdomains;
}

}  // namespace

template <class T>
Adjacency adjacency_of(const sparse::Csr<T>& whole, const std::vector<Index>& rows) {
  if (rows.size() >= std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("{} rows: METIS counts with 32 bits; use more subdomains", rows.size()));
  std::vector<std::int32_t> place(static_cast<std::size_t>(whole.total_rows), -1);
  for (std::size_t i = 0; i < rows.size(); ++i) place[rows[i]] = static_cast<std::int32_t>(i);
  std::vector<std::vector<std::int32_t>> mirrored(rows.size());
  const auto for_each = [&](std::size_t i, const auto& body) {
    for (Index k = whole.row_begin[rows[i]]; k < whole.row_begin[rows[i] + 1]; ++k)
      if (const std::int32_t j = place[whole.columns[k]]; j >= 0 && j != static_cast<std::int32_t>(i))
        body(j);
  };
  // What a row has and the other has not; of a symmetric pattern nothing.
  for (std::size_t i = 0; i < rows.size(); ++i)
    for_each(i, [&](std::int32_t j) {
      const auto begin = whole.columns.begin() + whole.row_begin[rows[j]];
      const auto end = whole.columns.begin() + whole.row_begin[rows[j] + 1];
      if (!std::binary_search(begin, end, rows[i])) mirrored[j].push_back(static_cast<std::int32_t>(i));
    });
  Adjacency graph;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for_each(i, [&](std::int32_t j) { graph.neighbours.push_back(j); });
    graph.neighbours.insert(graph.neighbours.end(), mirrored[i].begin(), mirrored[i].end());
    if (graph.neighbours.size() > std::numeric_limits<std::int32_t>::max())
      throw Error("more than 2^31 entries in a graph: METIS counts with 32 bits; use more subdomains");
    graph.begins.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
  }
  return graph;
}

std::vector<std::int32_t> cut_graph(const Adjacency& graph, std::int32_t parts) {
  const std::int32_t n = graph.nodes();
  std::vector<std::int32_t> part_of(static_cast<std::size_t>(n));
  if (parts >= n) {  // METIS may leave parts empty where they are that small
    std::iota(part_of.begin(), part_of.end(), 0);
    return part_of;
  }
  if (parts == 1) return part_of;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  idx_t nodes = n, constraints = 1, count = parts, cut = 0;
  Adjacency g = graph;  // METIS takes no constants
  if (METIS_PartGraphKway(&nodes, &constraints, g.begins.data(), g.neighbours.data(), nullptr, nullptr,
                          nullptr, &count, nullptr, nullptr, options, &cut, part_of.data()) != METIS_OK)
    throw Error(fmt::format("METIS cannot cut a graph of {} nodes into {} parts", n, parts));
  std::vector<std::int32_t> sizes(static_cast<std::size_t>(parts));
  for (const std::int32_t part : part_of) ++sizes[static_cast<std::size_t>(part)];
  for (std::size_t empty = 0; empty < sizes.size(); ++empty) {
    if (sizes[empty] > 0) continue;  // else it gets a node of the largest part
    const auto largest = static_cast<std::int32_t>(std::ranges::max_element(sizes) - sizes.begin());
    *std::ranges::find(part_of, largest) = static_cast<std::int32_t>(empty);
    --sizes[static_cast<std::size_t>(largest)];
    ++sizes[empty];
  }
  return part_of;
}

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

std::vector<std::int32_t> all_places(std::size_t length) {
  std::vector<std::int32_t> places(length);
  std::iota(places.begin(), places.end(), 0);
  return places;
}

std::vector<int> owners_of(Index count, int ranks) {
  std::vector<int> owners;
  for (int rank = 0; rank < ranks; ++rank)
    owners.resize(static_cast<std::size_t>(count * (rank + 1) / ranks), rank);
  return owners;
}

template Adjacency adjacency_of(const sparse::Csr<float>&, const std::vector<Index>&);
template Adjacency adjacency_of(const sparse::Csr<double>&, const std::vector<Index>&);
template std::vector<Subdomain> cut_into_subdomains(const sparse::Csr<float>&, const SubdomainSettings&);
template std::vector<Subdomain> cut_into_subdomains(const sparse::Csr<double>&, const SubdomainSettings&);

}  // namespace asterism::decomposition
