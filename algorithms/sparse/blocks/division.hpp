/// \file
/// How the rows of a sparse matrix are divided: among ranks by whoever reads them, in a rank among its workers here.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "../../../codelets/sparse/units.hpp"
#include "../../../runtime/runtime.hpp"
#include "../../common/partition.hpp"

namespace asterism::sparse {

/// Which of its workers a rank uses.
enum class Workers {
  fastest,  ///< GPUs where it has some, else cores: 16 cores add 2 % to the bandwidth of one H200
  all,
};

/// Of the workers of all ranks those that take part.
std::vector<Candidate> chosen_workers(const std::vector<Candidate>& all, Workers workers);

/// The rows [first, end) of a rank, as whole grains: for those that make or read them.
/// @param shares of the ranks; at least one of them is not 0
std::pair<Index, Index> rows_of_rank(Index n, int rank, const std::vector<double>& shares);
/// The same for a rank that has as many rows as the others. @param rank of `ranks`
std::pair<Index, Index> rows_of_rank(Index n, int rank, int ranks);

/// Cuts every rank's rows in blocks, one for each of its workers, in whole grains and with entries by the workers'
/// speeds; fewer blocks where they would have so little to do that a task costs more. With several ranks: collective;
/// the same on every rank.
/// @param first, row_begin the first row of this rank, and where the entries of its rows begin, as Csr has it
/// @param n all rows @param blocks of each rank, as far as it has grains; 0: chosen
/// @throw Error: ranks whose rows do not follow each other in whole grains (grain_rows(n)) up to n
Partition divide(const Runtime& runtime, Index n, Index first, std::span<const Index> row_begin,
                 Workers workers, Index blocks = 0);

/// The same for rows of which nobody has entries, in whole lines, of which every rank has as many as the others.
/// @param rows a multiple of `line`
Partition divide_lines(const Runtime& runtime, Index rows, Index line, Workers workers, Index blocks);

}  // namespace asterism::sparse
