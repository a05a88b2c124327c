/// \file
/// A linear system in main memory: read, made and checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../algorithms/sparse/blocks/rank_shares.hpp"
#include "../../algorithms/sparse/csr.hpp"
#include "../../algorithms/sparse/preconditioners/preconditioner.hpp"
#include "../../runtime/runtime.hpp"
#include "stated_problem.hpp"

namespace asterism::tools {

/// How the rows of a matrix are numbered where its user looks.
struct Numbering {
  Index first = 0;
  [[nodiscard]] Index operator()(Index row) const { return row + first; }
  /// " (numbered from 1, as in the file)"
  [[nodiscard]] std::string words() const;
};

/// A matrix, of which a rank has some rows or all.
struct StatedMatrix {
  std::string name = {};  ///< for messages
  Numbering number = {};
  sparse::Csr<double> matrix = {};
  Index duplicates = 0;  ///< entries of the file with the place of another
  bool pattern = false;  ///< whether its values are no more than 1 wherever the file has an entry
};

/// What each rank can do, by which it gets rows.
using RankSpeeds = std::vector<sparse::RankSpeed>;
/// As --balance asks for. With several ranks: collective. @throw TaskFailure, Stall
RankSpeeds speeds_of_ranks(Runtime& runtime, const LinearOptions& options);

/// How much entries may differ from their mirror images, in proportion to the larger: what adding up in another order
/// does.
constexpr double symmetry_tolerance = 1e-10;

/// All rows of the matrix, on every rank, whose numbers are finite; patterns, too. With several ranks: collective.
/// @throw Error
StatedMatrix read_whole_matrix(const Runtime& runtime, const LinearOptions& options,
                               const StatedLinear& stated);

/// Of all rows those of this rank.
sparse::Csr<double> rows_of_this_rank(const Runtime& runtime, const sparse::Csr<double>& whole,
                                      const RankSpeeds& speeds);

/// The rows of the matrix that this rank needs to check and solve: its own of a model, or where the matrix is assumed
/// to be symmetric; else all. With several ranks: collective. @throw Error: as the reader; a pattern without
/// --pattern-values
StatedMatrix read_matrix_to_solve(const Runtime& runtime, const LinearOptions& options,
                                  const StatedLinear& stated, const RankSpeeds& speeds);

/// How a matrix is solved with.
struct ChosenMethod {
  LinearMethod method = LinearMethod::cg;
  std::string because = {};  ///< what the matrix is, where that and no option says so
  sparse::MatrixClass matrix_class = sparse::MatrixClass::positive_definite;  ///< as far as its entries tell
};

/// Checks a matrix that was read to be solved with, and keeps this rank's rows of it. With several ranks: collective.
/// @throw Error: not square; an empty row; a number that is not finite, or not in `stated.precision`; a diagonal entry
/// that is missing, zero or, for conjugate gradients, negative where the preconditioner needs it; not symmetric, where
/// conjugate gradients are asked for
ChosenMethod require_solvable(const Runtime& runtime, const LinearOptions& options,
                              const StatedLinear& stated, const RankSpeeds& speeds, StatedMatrix& matrix);

/// This rank's rows of right-hand sides.
struct RightHandSides {
  Index columns = 1;
  Array<double> values;  ///< row-major
};

/// With several ranks: collective. @throw Error: a file of another number of rows, or as read_vectors
RightHandSides right_hand_sides(const Runtime& runtime, const LinearOptions& options,
                                const StatedLinear& stated, const StatedMatrix& matrix);

/// Uniform in (-1, 1), and exact in f32: equal seeds and rows, equal numbers, on every machine.
double random_number(std::uint64_t seed, Index row);

}  // namespace asterism::tools
