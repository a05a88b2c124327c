/// \file
/// How much of a matrix each rank has, by what its workers can do.
#pragma once

#include <utility>
#include <vector>

#include "division.hpp"

namespace asterism::sparse {

/// How the rows of a matrix are shared among ranks: weights, of which a rank may have 0.
using RankShares = std::vector<double>;

/// The speeds of the ranks, measured with products of matrix and vector on all of a rank's workers that take part, at the
/// same time. Ranks that are within a third of each other count as equal. One that is not a twentieth as fast as the
/// fastest gets nothing: in every iteration the others would wait longer for what it sends than for its rows.
/// With several ranks: collective; the same on every rank. @throw TaskFailure, Stall
RankShares measure_rank_shares(Runtime& runtime, Workers workers);

/// The rows [first, end) of a rank, as whole grains. @param shares at least one of them is not 0
std::pair<Index, Index> rows_of_rank(Index n, int rank, const RankShares& shares);

}  // namespace asterism::sparse
