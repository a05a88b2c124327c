/// \file
/// What relaxation solves, and how it is told to.
#pragma once

#include <optional>
#include <vector>

#include "../../codelets/relaxation/sweeps.hpp"
#include "../common/iteration/observer.hpp"
#include "../common/workers.hpp"

namespace asterism {
class Statement;
}

namespace asterism::relaxation {

/// What u is on one side of the rectangle.
struct Side {
  double value = 0;                 ///< everywhere on it,
  std::vector<double> values = {};  ///< or, if not empty, at each of its nodes
};

struct Problem {
  std::vector<Index> shape;          ///< unknowns: rows, columns
  std::vector<double> lengths = {};  ///< of the rectangle along y, x; empty: 1
  Side y_lower = {}, y_upper = {};   ///< before the first row, after the last: a value for each column
  Side x_lower = {}, x_upper = {};   ///< before the first column, after the last: a value for each row
};

enum class Method { jacobi, gauss_seidel, sor, ssor };

/// How neighbours get each other's rows.
enum class Exchange {
  automatic,   ///< blocking between GPUs of one node, and between cores of one rank; else overlapped
  overlapped,  ///< the rows next to neighbours are relaxed first, and exchanged while the interior is
  blocking,    ///< a stripe is relaxed as a whole, then the rows are exchanged
  /// Not at all between the colours of a sweep, only after it: what [Czapinski 2014] 4.2 shows to go wrong. For
  /// experiments.
  stale,
};

struct Settings {
  Method method = Method::sor;
  /// None: the best one. That is Discretisation::optimal_omega for SOR, and 1 for all others: Jacobi
  /// and Gauss-Seidel have no other, and the colours of symmetric SOR meet in pairs (red, black, black, red),
  /// which makes of two steps one with omega (2 - omega) <= 1; see effective_omega.
  std::optional<double> omega = {};
  Index sweeps = 0;      ///< at most so many; 0: no limit but that of the tolerance
  double tolerance = 0;  ///< stop at this scaled residual, [Czapinski 2014] (4.13); 0: never
  /// Sweeps between two residuals; 0: chosen, whole tasks, with a tolerance; else once, at the end.
  Index check_every = 0;
  Index sweeps_per_task = 0;  ///< 0: chosen; fewer are taken where the stripes are too low for so many
  Arrangement arrangement = Arrangement::separated;  ///< of the methods by colours
  Exchange exchange = Exchange::automatic;
  /// 0: one for each worker that takes part, more where its memory asks for it; else all ranks take part.
  Index stripes = 0;
  Balance balance = Balance::measured;
  Observer observer = {};  ///< is told the residuals; each rank's own
};

/// Symmetric SOR by colours converges as SOR with omega (2 - omega): its two steps in a row on one colour,
/// whose neighbours do not change between them, are one step with that omega. (Young, Iterative Solution of
/// Large Linear Systems, 1971, chapter 15: with the red-black order the best omega of SSOR is 1, which is
/// Gauss-Seidel. The well-known 2 / (1 + sqrt(2 (1 - radius))) belongs to the natural order of the nodes.)
/// For all other methods: omega.
double effective_omega(Method method, double omega);

/// By how much a sweep reduces the error in the end: the spectral radius of the method's iteration on a grid
/// whose Jacobi iteration has the radius `jacobi_radius`. SOR: omega - 1 from the best omega on, below it
/// ((omega rho + sqrt(omega^2 rho^2 - 4 (omega - 1))) / 2)^2 (Young 1971, chapter 6).
double spectral_radius(Method method, double omega, double jacobi_radius);

/// The problem, as what all ranks have to be given alike.
Statement statement(const Problem& problem, std::size_t element_bytes);

/// The settings, where they and the problem are sound. @throw Error: see Solver's constructor; but the number
/// of stripes is not looked at.
Settings checked(const Problem& problem, Settings settings);

/// What u is at node number `node` of a side.
double value_at(const Side& side, Index node);

/// The five-point equations on the problem's grid.
Discretisation discretise(const Problem& problem);

/// ||A||_inf of the discrete Laplacian: the diagonal, and as many neighbours as a node of the inside has.
double operator_norm(const Discretisation& grid, Index rows, Index nodes);

}  // namespace asterism::relaxation
