#include "coarse_matrix.hpp"

#include <algorithm>
#include <map>

#include "metis.hpp"

namespace asterism::decomposition {

template <class T>
std::vector<std::vector<std::int32_t>> cut_into_patches(const sparse::Csr<T>& whole,
                                                        const std::vector<Subdomain>& subdomains,
                                                        Index patches) {
  std::vector<std::vector<std::int32_t>> patch_of(subdomains.size());
  one_by_one_with_metis(subdomains.size(), 0, [&](std::size_t p) {
    std::vector<Index> own;
    for (const std::int32_t place : subdomains[p].owned) own.push_back(subdomains[p].rows[place]);
    const Index count = std::min(patches, static_cast<Index>(own.size()));
    patch_of[p] = cut_graph(adjacency_of(whole, own), static_cast<std::int32_t>(count));
  });
  return patch_of;
}

template <class T>
sparse::Csr<double> coarse_matrix(const sparse::Csr<T>& whole, const std::vector<Subdomain>& subdomains,
                                  const std::vector<std::vector<std::int32_t>>& patch_of,
                                  const std::vector<Index>& first_patch) {
  std::vector<Index> patch_of_row(static_cast<std::size_t>(whole.total_rows));
  for (std::size_t p = 0; p < subdomains.size(); ++p)
    for (std::size_t i = 0; i < subdomains[p].owned.size(); ++i)
      patch_of_row[subdomains[p].rows[subdomains[p].owned[i]]] = first_patch[p] + patch_of[p][i];
  const Index n = first_patch.back();
  std::vector<std::map<Index, double>> rows(static_cast<std::size_t>(n));
  for (Index i = 0; i < whole.total_rows; ++i)
    for (Index k = whole.row_begin[i]; k < whole.row_begin[i + 1]; ++k)
      rows[patch_of_row[i]][patch_of_row[whole.columns[k]]] += static_cast<double>(whole.values[k]);
  sparse::Csr<double> coarse;
  coarse.total_rows = coarse.cols = n;
  for (const std::map<Index, double>& row : rows) {
    for (const auto& [column, value] : row) {
      coarse.columns.push_back(column);
      coarse.values.push_back(value);
    }
    coarse.row_begin.push_back(static_cast<Index>(coarse.columns.size()));
  }
  return coarse;
}

template std::vector<std::vector<std::int32_t>> cut_into_patches(const sparse::Csr<float>&,
                                                                 const std::vector<Subdomain>&, Index);
template std::vector<std::vector<std::int32_t>> cut_into_patches(const sparse::Csr<double>&,
                                                                 const std::vector<Subdomain>&, Index);
template sparse::Csr<double> coarse_matrix(const sparse::Csr<float>&, const std::vector<Subdomain>&,
                                           const std::vector<std::vector<std::int32_t>>&,
                                           const std::vector<Index>&);
template sparse::Csr<double> coarse_matrix(const sparse::Csr<double>&, const std::vector<Subdomain>&,
                                           const std::vector<std::vector<std::int32_t>>&,
                                           const std::vector<Index>&);

}  // namespace asterism::decomposition
