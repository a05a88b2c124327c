/// \file
/// Which preconditioner an iteration gets, by name, and what it consists of: the parts of (Q1) to (Q3), for the rows
/// of a rank.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../../codelets/sparse/preconditioner.hpp"
#include "../../../runtime/runtime.hpp"
#include "../../common/partition.hpp"
#include "../csr.hpp"
#include "factorise.hpp"

namespace asterism::sparse {

enum class PreconditionerMethod {
  none,
  diagonal,
  polynomial,  ///< Neumann series with a scaled identity, [Czapinski 2014] (6.6): omega = 1 / the largest diagonal entry
  polynomial_diagonal,  ///< with the diagonal, (6.9)
  chebyshev,
  ic0,      ///< incomplete Cholesky on A's pattern, in A's order
  ilu0,     ///< incomplete LU likewise
  mc_ssor,  ///< SSOR in an order of colours; omega = 1: symmetric Gauss-Seidel
  mc_ilu,   ///< ILU(p, q): coloured for |A|^q, with fill of level p
  automatic,
};

/// A preconditioner and its numbers.
struct PreconditionerChoice {
  PreconditionerMethod method = PreconditionerMethod::automatic;
  int degree = 1;    ///< of a polynomial
  double omega = 1;  ///< of SSOR
  int p = 0, q = 1;  ///< of ILU(p, q)
};

/// Reads a name: none diagonal polynomial:K polynomial-diagonal:K chebyshev:K ic0 ilu0 mc-sgs mc-ssor:OMEGA mc-ilu0
/// mc-ilu:P,Q (Q may be left out: P + 1) auto. @throw Error: none of these; K < 0, OMEGA outside (0, 2), P < 0, Q < 1
PreconditionerChoice parse_preconditioner(std::string_view name);
/// The name that is read as this choice.
std::string to_string(const PreconditionerChoice& choice);
/// All names with what they mean, a line for each.
std::string list_of_preconditioners();

/// What a method takes a matrix to be.
enum class MatrixClass {
  positive_definite,  ///< and symmetric
  general,
};

/// Whether a factorisation that breaks down is tried again with a larger diagonal.
enum class DiagonalShift { none, automatic };

/// What can be said of a preconditioner.
struct PreconditionerFacts {
  PreconditionerChoice choice;   ///< what `automatic` became
  Index stages = 0;              ///< colours, levels, or turns of grains and what is between them
  bool grains_in_order = false;  ///< StageOrder
  std::vector<Index> rows_of_colours = {};
  Index entries = 0;                        ///< of the factors, with their diagonal
  Index reduced_rows = 0;                   ///< of ReducedSystem, which is solved instead; 0: there is none
  double shift = 0;                         ///< of the diagonal, relative
  std::optional<Breakdown> breakdown = {};  ///< without which there is a factorisation
};

/// The diagonal of this rank's rows. With several ranks: collective. @throw Error, on all ranks: it has an entry that the
/// choice cannot divide by
template <class T>
Array<double> usable_diagonal(const Runtime& runtime, const Csr<T>& mine, const PreconditionerChoice& choice,
                              MatrixClass matrix_class);

/// Whether `automatic` is ILU(0) where a ReducedSystem is to be had: not where all diagonal entries are equal, as they
/// are where nothing is stored of the matrix, nor where it has so large a diagonal that some tens of iterations are enough;
/// nor on GPUs where it has so few rows that half of them would take as long.
/// With several ranks: collective. @throw Error: as usable_diagonal()
template <class T>
bool gains_by_reduction(const Runtime& runtime, const Csr<T>& mine, MatrixClass matrix_class, bool on_gpus);

class TriangularPlan;

/// A preconditioner in main memory. Its rows and columns, and those of the matrix that it is for, may have new numbers.
template <class T>
struct PreparedPreconditioner {
  PreconditionerKind kind = PreconditionerKind::none;
  std::vector<Index> new_of_old,
      old_of_new;  ///< rows; empty where they keep their numbers. Only within grains.
  std::shared_ptr<const Csr<T>>
      matrix;           ///< this rank's rows in the new order; those that were given, if it is theirs
  Csr<T> lower, upper;  ///< (Q3) likewise
  Array<double> inverse_diagonal;     ///< of this rank's rows; empty for a scaled identity and `none`
  std::vector<PolynomialStep> steps;  ///< (Q2)
  std::vector<int> stage_of_row;  ///< of all rows in the new order; stages are worked on one after the other
  /// (Q3): whether the rows have their natural order, and blocks follow each other, each as a whole.
  bool sequential = false;
  PreconditionerFacts facts;
  std::map<std::string, double> seconds;  ///< parts, as LinearFacts::seconds
  /// What the matrix' pattern has decided of a triangular one.
  std::shared_ptr<TriangularPlan> plan;
};

/// @param mine this rank's rows of the matrix, which outlive the result @param blocks whole grains
/// @param plan of a matrix with the same pattern in the same blocks, for the same choice; none: it is made
/// With several ranks: collective. Of what is triangular every rank gets the pattern of the whole matrix, and of its
/// values those that its factors need.
/// @throw Error: a diagonal entry that is missing, zero, or, of a positive definite matrix, negative; ic0 or chebyshev
/// for a general matrix
template <class T>
PreparedPreconditioner<T> prepare(const Runtime& runtime, const Partition& blocks, const Csr<T>& mine,
                                  const PreconditionerChoice& choice, DiagonalShift shift,
                                  MatrixClass matrix_class, std::shared_ptr<TriangularPlan> plan = nullptr);

}  // namespace asterism::sparse
