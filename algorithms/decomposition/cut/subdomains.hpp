/// \file
/// How the rows of a matrix are cut into subdomains, and how these overlap.
#pragma once

#include <cstdint>
#include <vector>

#include "../../sparse/csr.hpp"

namespace asterism::decomposition {

/// How rows are cut.
enum class Cut {
  rows,   ///< consecutive rows, as many in each subdomain, [Czapinski 2014] (7.2)
  graph,  ///< by METIS, so that few entries are between subdomains
};

struct SubdomainSettings {
  Index count = 1;
  Cut cut = Cut::rows;
  /// By rows: of each neighbour so many rows next to one's own. By graph: all rows that so many steps lead to.
  Index overlap = 0;
  /// Of the ranks, in the number of subdomains, say by what they can do (sparse::shares_of_ranks); none: as many on each.
  std::vector<double> shares = {};
};

struct Subdomain {
  std::vector<Index> rows;          ///< with its overlap, ascending
  std::vector<std::int32_t> owned;  ///< those that no other subdomain owns: their places in `rows`, ascending
  /// Of each row, how many subdomains have it, where that weighs what they add up: see weigh(). Else empty.
  std::vector<std::int32_t> counts = {};
};

/// @param whole all rows of the matrix
/// @throw Error: a matrix that is not square, an entry outside of it; no subdomain, more than there are rows; an overlap
/// below 0, larger than a neighbour, or so large that a subdomain has all rows
template <class T>
std::vector<Subdomain> cut_into_subdomains(const sparse::Csr<T>& whole, const SubdomainSettings& settings);

/// For (Z1), symmetric: sets the counts where the subdomains of a graph are bodies rather than areas, so that many of them meet.
/// There conjugate gradients take a fifth to a half less iterations with weights, as the preconditioner's largest eigenvalue is
/// about how many solutions are added up; in the plane, and with stripes, they take up to a half more.
void weigh(std::vector<Subdomain>& subdomains, const SubdomainSettings& settings);

/// All elements of a list of that length.
std::vector<std::int32_t> all_places(std::size_t length);

/// The rank of each subdomain, in their order. @param shares of the ranks; none: as many on each
std::vector<int> owners_of(Index count, int ranks, const std::vector<double>& shares = {});

}  // namespace asterism::decomposition
