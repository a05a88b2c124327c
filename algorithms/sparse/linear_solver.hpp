/// \file
/// Solvers of sparse linear systems A x = b: what they are told, and what they tell.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../../runtime/report.hpp"
#include "../common/iteration/observer.hpp"
#include "../common/partition.hpp"
#include "blocks/division.hpp"
#include "linear_operator.hpp"
#include "preconditioners/preconditioner.hpp"

namespace asterism::sparse {

/// Vectors of a basis of GMRES, at most.
inline constexpr Index most_restart = 256;

/// Whether the matrix gets other values, in the same places, once it is set up.
enum class Values {
  fixed,
  refreshed,  ///< what the pattern decides of a preconditioner is kept in main memory
};

/// Sums over all rows that an iteration of conjugate gradients waits for. Each of the three forms rounds in its own way, so
/// one is chosen only where that is asked for; where rounding spoils another one than `two`, the iteration begins anew with
/// two.
enum class Reductions {
  one,  ///< [Chronopoulos, Gear 1989]
  two,
  pipelined,  ///< [Ghysels, Vanroose 2014]: one, while A and the preconditioner are applied; more vectors
  fastest,    ///< of these three, measured when a solver is set up: other runs may make other choices
};

struct LinearSettings {
  PreconditionerChoice preconditioner = {};
  DiagonalShift shift = DiagonalShift::automatic;
  double tolerance = 1e-8;                  ///< of ||b - A x|| / ||b||
  Index max_iterations = 0;                 ///< 0: as many as it takes, while the residual falls
  Index check_every = 0;                    ///< iterations between two looks at the residual; 0: chosen
  Reductions reductions = Reductions::two;  ///< of conjugate gradients on several blocks
  Index restart = 30;                       ///< of GMRES: vectors after which the basis begins anew
  std::optional<Format> format = {};        ///< of the matrix; none: chosen for each block
  Workers workers = Workers::fastest;
  Index blocks = 0;  ///< of each rank; 0: chosen
  Values values = Values::fixed;
  Observer observer = {};
};

/// The spectrum of M^-1 A, as far as an iteration has seen it: its largest eigenvalue, and an upper bound of its least.
struct SpectrumEstimate {
  double least = 0, most = 0;
  [[nodiscard]] double condition() const { return most / least; }
};

struct LinearFacts {
  std::vector<Part> blocks;
  std::vector<Format> formats;  ///< of each block
  double bytes_per_row = 0;     ///< of the matrix as it is stored
  Index entries = 0;
  PreconditionerFacts preconditioner;
  Index bytes_exchanged = 0;                  ///< between blocks, for each product with A
  std::optional<Reductions> reductions = {};  ///< of conjugate gradients on several blocks: what was chosen
  /// Of the parts of the set-up, those that there were: "divide", "gather" from other ranks, "colour" (or levels, and
  /// the rows' numbers by them), "permute", "symbolic" (fill), "factorise", "split" into L and U, "arrange" in formats,
  /// "try" the reductions.
  std::map<std::string, double> seconds = {};
};

struct LinearReport : Report {
  double true_residual = 0;  ///< ||b - A x|| / ||b||, formed anew with the x that is given back
  Index restarts =
      0;  ///< times that the iteration began anew as its own residual had drifted from the true one
  std::optional<SpectrumEstimate> spectrum = {};
};

/// With several ranks: collective. @throw Error: a matrix that is not square, entries outside of it; settings that make
/// no sense, or differ between ranks
template <class T>
void require_sound(const Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings);
/// The same of an operator. @throw Error: no rows, no whole lines, nothing to multiply with; a preconditioner or a format
/// that it would need entries for
template <class T>
void require_sound(const Runtime& runtime, const LinearOperator<T>& a, const LinearSettings& settings);

/// Puts what a part of an iteration says, of which `iterations` were made after `before` others, behind what is there.
void append(const Report& part, Index iterations, Index before, LinearReport& report);

}  // namespace asterism::sparse
