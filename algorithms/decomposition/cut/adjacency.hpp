/// \file
/// The graph of some rows of a matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "../../sparse/csr.hpp"

namespace asterism::decomposition {

/// Where the entries of some rows of a matrix are, and of its transposed, between these rows and without the diagonal:
/// an undirected graph, whose nodes are the rows' places in the list. METIS counts so, with 32 bits.
struct Adjacency {
  std::vector<std::int32_t> begins = {0}, neighbours;
  [[nodiscard]] std::int32_t nodes() const { return static_cast<std::int32_t>(begins.size()) - 1; }
  bool operator==(const Adjacency&) const = default;
};

/// @param whole all rows of the matrix @param rows ascending
/// @throw Error: more than 32-bit numbers count
template <class T>
Adjacency adjacency_of(const sparse::Csr<T>& whole, const std::vector<Index>& rows);

}  // namespace asterism::decomposition
