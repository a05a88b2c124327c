/// \file
/// What `asterism linear --analyse` finds out of a matrix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../../../algorithms/sparse/graph/structure.hpp"
#include "../system.hpp"

namespace asterism::tools {

/// Rows of a colour with which a GPU is busy for longer than its launch takes.
inline constexpr Index rows_to_fill_a_gpu = 10'000;

/// Colours of the rows for |A|^q.
struct ColourCount {
  int q = 1, colours = 0;
  Index fewest_rows = 0, most_rows = 0;  ///< of a colour
};

/// What some hundred iterations of conjugate gradients tell of a matrix.
struct Definiteness {
  Reason reason = Reason::solved;  ///< indefinite: the matrix is not positive definite
  std::optional<sparse::SpectrumEstimate> spectrum;
};

/// How fast block relaxation converges.
struct DecompositionRate {
  Index subdomains = 1, overlap = 0;
  double rho = 0;                    ///< by power iteration
  std::optional<double> known = {};  ///< [Czapinski 2014] (7.35), where it holds
};

struct MatrixAnalysis {
  Index rows = 0, cols = 0, entries = 0, duplicates = 0;
  bool pattern = false;  ///< nothing is known of its values
  sparse::Structure facts = {};
  std::optional<DecompositionRate> decomposition = {};  ///< where --solver dbds asks for it
  // Of square ones:
  std::optional<sparse::SymmetryCheck<double>> symmetry = {};
  std::vector<ColourCount> colours = {};
  // Of symmetric ones without an empty row, or a diagonal entry that is missing or not positive:
  std::optional<Definiteness> plain = {}, scaled = {};  ///< without preconditioner; with the diagonal

  [[nodiscard]] bool symmetric() const { return symmetry && symmetry->numerical(); }
};

/// A preconditioner for a matrix, and why.
struct Recommendation {
  std::string preconditioner;  ///< empty: none helps
  std::string reason;
};

MatrixAnalysis analysis_of(Runtime& runtime, const StatedMatrix& matrix, std::uint64_t seed);
/// With several ranks: collective. @throw Error: as Schwarz
DecompositionRate rate_of_subdomains(Runtime& runtime, const StatedMatrix& matrix,
                                     const LinearOptions& options);

/// @param on_gpu whether GPUs would solve
Recommendation recommended(const MatrixAnalysis& analysis, bool on_gpu);

}  // namespace asterism::tools
