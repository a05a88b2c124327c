/// \file
/// How many stripes each worker has.
#pragma once

#include <vector>

#include "../../common/partition.hpp"

namespace asterism::relaxation {

/// Workers, and how many stripes each of them has.
struct Division {
  std::vector<Candidate> workers;
  std::vector<Index> stripes;

  [[nodiscard]] Index count() const;
};

/// A stripe for each worker, but for those that would have next to nothing to do; at least one for each rank.
/// @param rows, columns of the grid's nodes
/// @param possible      no more stripes than these
Index worthwhile_stripes(const std::vector<Candidate>& workers, Index rows, Index columns, Index possible);

/// So many stripes for the fastest of the workers; several each where there are more stripes than workers.
Division divide(const std::vector<Candidate>& workers, Index stripes);

/// The rows in stripes: a worker's are equal; `weights`, one for each worker, say how many rows they have together.
Partition cut_stripes(const Division& division, const std::vector<double>& weights, Index rows,
                      const Granularity& granularity);

}  // namespace asterism::relaxation
