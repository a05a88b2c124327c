/// \file
/// The options of `asterism linear`.
#pragma once

#include <optional>
#include <string>

#include "../../algorithms/decomposition/cut/subdomains.hpp"
#include "../../algorithms/sparse/linear_solver.hpp"
#include "../../algorithms/sparse/models/models.hpp"
#include "../cli/options.hpp"

namespace asterism::tools {

enum class LinearMethod {
  cg,        ///< preconditioned conjugate gradients
  bicgstab,  ///< for matrices that need not be symmetric, with the memory of some vectors
  gmres,     ///< likewise, with the memory of --restart vectors and more
  dcg,       ///< subdomains with conjugate gradients of their own
  dbds,      ///< subdomains with factors of their own
};

/// Right-hand sides that are not read from a file.
enum class RightHandSide {
  ones,           ///< b = (1, ..., 1)
  random,         ///< uniform in (-1, 1), drawn from --seed
  ones_solution,  ///< b = A (1, ..., 1), whose solution is known
};

/// What becomes of a file that says where entries are, but not which.
enum class PatternValues { refused, laplacian };

enum class LinearTask { solve, analyse };
enum class SymmetryTrust { checked, assumed };

/// Of the factors of subdomains.
enum class FactorPrecision { of_arithmetic, f32 };

/// Of --solver dcg and dbds.
struct DecompositionOptions {
  std::optional<Index> subdomains, overlap, patches;
  std::optional<decomposition::Cut> cut;
  FactorPrecision factors = FactorPrecision::of_arithmetic;
  std::optional<LinearMethod> accelerate;  ///< cg, bicgstab or gmres
};

struct LinearOptions {
  CommonOptions common;
  LinearTask task = LinearTask::solve;
  std::string matrix;           ///< the file of A; empty: a model
  std::string right_hand_side;  ///< the file of B; empty: `rhs`
  std::optional<sparse::MatrixModel> model;
  std::string model_text;  ///< the model as it was written
  std::optional<RightHandSide> rhs;
  PatternValues pattern_values = PatternValues::refused;
  SymmetryTrust symmetry = SymmetryTrust::checked;

  std::optional<LinearMethod> method;  ///< none: chosen by the matrix
  std::optional<Index> restart;
  sparse::Reductions reductions = sparse::Reductions::two;
  sparse::PreconditionerChoice preconditioner;
  std::optional<Precision> preconditioner_precision;  ///< none: that of the arithmetic
  sparse::DiagonalShift shift = sparse::DiagonalShift::automatic;
  std::optional<sparse::Format> format;
  sparse::Workers workers = sparse::Workers::fastest;
  Balance balance = Balance::measured;
  DecompositionOptions decomposition;
  std::optional<double> tolerance;
  std::optional<Index> max_iterations, check_every;
};

/// The relative residual at which a solve ends without --tolerance.
double default_tolerance_of_linear(Precision precision);

void add_linear_options(CLI::App& app, LinearOptions& options);

// Values of options as they are written.
const char* name(LinearMethod method);
const char* name(RightHandSide rhs);
const char* name(sparse::Format format);
const char* name(sparse::DiagonalShift shift);
const char* name(sparse::Reductions reductions);

}  // namespace asterism::tools
