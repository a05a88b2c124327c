/// \file
/// The coarse space of a matrix cut into subdomains, (Z2): patches of their own rows, and Z^T A Z.
#pragma once

#include <cstdint>
#include <vector>

#include "subdomains.hpp"

namespace asterism::decomposition {

/// Cuts the own rows of each subdomain along the graph, as they need not be compact: stripes of a grid are not.
/// @param patches of each subdomain, as far as it has rows
/// @return for each subdomain the patch of each of its own rows, counted from its first; no patch is empty
template <class T>
std::vector<std::vector<std::int32_t>> cut_into_patches(const sparse::Csr<T>& whole,
                                                        const std::vector<Subdomain>& subdomains,
                                                        Index patches);

/// Z^T A Z. @param first_patch of each subdomain, and in the end all
template <class T>
sparse::Csr<double> coarse_matrix(const sparse::Csr<T>& whole, const std::vector<Subdomain>& subdomains,
                                  const std::vector<std::vector<std::int32_t>>& patch_of,
                                  const std::vector<Index>& first_patch);

}  // namespace asterism::decomposition
