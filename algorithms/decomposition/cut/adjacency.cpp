#include "adjacency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "../../../runtime/error.hpp"

namespace asterism::decomposition {

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

template Adjacency adjacency_of(const sparse::Csr<float>&, const std::vector<Index>&);
template Adjacency adjacency_of(const sparse::Csr<double>&, const std::vector<Index>&);

}  // namespace asterism::decomposition
