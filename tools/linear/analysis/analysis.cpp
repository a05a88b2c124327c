#include "analysis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "../../../algorithms/sparse/blocks/block_matrix.hpp"
#include "../../../algorithms/sparse/conjugate_gradients.hpp"
#include "../../../algorithms/sparse/graph/colouring.hpp"
#include "../decomposition.hpp"

namespace asterism::tools {
namespace {

/// As many iterations as the solver keeps coefficients of.
constexpr Index lanczos_steps = sparse::CgState::kept;
/// Up to which condition a diagonal is enough, how many colours are few, and how many rows
/// with their factors stay in the caches of a core.
constexpr double small_condition = 1e2;
constexpr int few_colours = 16;
constexpr Index rows_in_caches = 20'000;

ColourCount count_colours(const sparse::Csr<double>& matrix, int q) {
  const sparse::Colouring colouring = sparse::colour(matrix, q);
  std::vector<Index> rows(static_cast<std::size_t>(colouring.count));
  for (const int colour : colouring.of_rows) ++rows[static_cast<std::size_t>(colour)];
  return {q, colouring.count, std::ranges::min(rows), std::ranges::max(rows)};
}

Definiteness iterate_for_spectrum(Runtime& runtime, const sparse::Csr<double>& mine,
                                  sparse::PreconditionerMethod method, std::uint64_t seed) {
  sparse::LinearSettings settings;
  settings.preconditioner.method = method;
  settings.tolerance = 0;
  settings.max_iterations = lanczos_steps;
  sparse::ConjugateGradients<double> solver(runtime, mine, settings);
  std::vector<double> b(static_cast<std::size_t>(solver.row_count())), x(b.size());
  for (std::size_t i = 0; i < b.size(); ++i)
    b[i] = random_number(seed, solver.first_row() + static_cast<Index>(i));
  const sparse::LinearReport report = solver.solve(b.data(), x.data());
  return {report.reason, report.spectrum};
}

bool may_be_definite(const MatrixAnalysis& a) {
  return !a.pattern && a.symmetric() && a.facts.empty.count == 0 && a.facts.without_diagonal.count == 0 &&
         a.facts.nonpositive_diagonal.count == 0;
}

std::string why_not_definite(const MatrixAnalysis& a) {
  if (a.rows != a.cols) return "the matrix is not square: there is no system to solve";
  if (a.pattern) return "a pattern has no values to solve with; --pattern-values laplacian gives it some";
  if (!a.symmetric())
    return "the matrix is not symmetric, as conjugate gradients need it: --solver bicgstab and gmres do not";
  if (a.facts.empty.count > 0) return "the matrix has empty rows: it is singular";
  return "the matrix has diagonal entries that are missing or not positive: it is not positive definite; --solver "
         "bicgstab and gmres do not need it to be";
}

std::string ill_conditioned(double condition) {
  return fmt::format("with its diagonal the condition is still {:.3g} at least", condition);
}

/// Measured on two cores, matrices of 500 to 1,000,000 rows: factors of a matrix in the caches are worth two to six times
/// fewer iterations; of a larger one they take four to ten times as long as a product, and the diagonal was the
/// fastest, or Chebyshev's polynomials by at most a third.
Recommendation for_cores(const MatrixAnalysis& a, double condition) {
  if (a.rows <= rows_in_caches)
    return {"ic0", ill_conditioned(condition) + ", and factors of so few rows stay in the caches"};
  return {"diagonal", ill_conditioned(condition) +
                          ", but cores apply factors of so many rows in the time of several iterations"};
}

/// Of a matrix whose rows depend on each other in few colours, or many.
Recommendation for_gpus(const MatrixAnalysis& a, double condition) {
  const ColourCount& colours = a.colours.front();
  if (colours.colours <= few_colours && colours.fewest_rows >= rows_to_fill_a_gpu)
    return {"mc-ilu0",
            fmt::format("{}; {} colours, the smallest of {} rows, can be worked on one after the other",
                        ill_conditioned(condition), colours.colours, colours.fewest_rows)};
  return {"chebyshev:4",
          fmt::format("{}; {} colours, the smallest of {} rows, would leave a GPU without work, products "
                      "with A do not",
                      ill_conditioned(condition), colours.colours, colours.fewest_rows)};
}

}  // namespace

MatrixAnalysis analysis_of(Runtime& runtime, const StatedMatrix& m, std::uint64_t seed) {
  const sparse::Csr<double>& matrix = m.matrix;
  MatrixAnalysis a{.rows = matrix.total_rows,
                   .cols = matrix.cols,
                   .entries = matrix.entries(),
                   .duplicates = m.duplicates,
                   .pattern = m.pattern,
                   .facts = sparse::structure_of(matrix)};
  if (a.rows != a.cols) return a;
  a.symmetry = sparse::check_symmetry(matrix, symmetry_tolerance);
  for (const int q : {1, 2, 3}) a.colours.push_back(count_colours(matrix, q));
  if (!may_be_definite(a)) return a;
  const sparse::Csr<double> mine =
      rows_of_this_rank(runtime, matrix, RankSpeeds(static_cast<std::size_t>(runtime.ranks())));
  a.plain = iterate_for_spectrum(runtime, mine, sparse::PreconditionerMethod::none, seed);
  a.scaled = iterate_for_spectrum(runtime, mine, sparse::PreconditionerMethod::diagonal, seed);
  return a;
}

DecompositionRate rate_of_subdomains(Runtime& runtime, const StatedMatrix& m, const LinearOptions& o) {
  constexpr double accuracy = 1e-4;
  constexpr Index most_iterations = 20'000;
  const RankSpeeds speeds = speeds_of_ranks(runtime, o);
  const std::vector<double> shares = sparse::shares_of_ranks(m.matrix.total_rows, speeds);
  const sparse::Csr<double> mine = rows_of_this_rank(runtime, m.matrix, speeds);
  std::function<decomposition::SchwarzFacts()> facts;
  const bool symmetric = o.symmetry == SymmetryTrust::assumed ||
                         sparse::check_symmetry(m.matrix, symmetry_tolerance).numerical();
  const auto schwarz =
      make_schwarz(runtime, mine, o, shares,
                   symmetric ? sparse::MatrixClass::positive_definite : sparse::MatrixClass::general, facts);
  decomposition::Dbds<double> solver(runtime, mine, {}, schwarz);
  std::vector<double> start(static_cast<std::size_t>(solver.row_count()));
  for (std::size_t i = 0; i < start.size(); ++i)
    start[i] = random_number(o.common.seed, solver.first_row() + static_cast<Index>(i));
  const decomposition::SubdomainSettings subdomains = subdomains_of(runtime, o, shares);
  DecompositionRate rate{subdomains.count, subdomains.overlap,
                         solver.spectral_radius(start.data(), accuracy, most_iterations)};
  const bool is_square_grid =
      o.model && o.model->family == sparse::ModelFamily::poisson2d && o.model->nx == o.model->ny;
  if (is_square_grid && subdomains.count == o.model->nx && subdomains.overlap == 0 &&
      subdomains.cut == decomposition::Cut::rows && !o.decomposition.patches)
    rate.known = rho_of_lines(o.model->nx);
  return rate;
}

Recommendation recommended(const MatrixAnalysis& a, bool on_gpu) {
  if (!may_be_definite(a)) return {"", why_not_definite(a)};
  if (a.plain->reason == Reason::indefinite || a.scaled->reason == Reason::indefinite)
    return {"", "negative curvature: the matrix is not positive definite, as conjugate gradients need it"};
  if (!a.scaled->spectrum) return {"diagonal", "the iteration ends at once"};
  const double condition = a.scaled->spectrum->condition();
  if (condition <= small_condition)
    return {
        "diagonal",
        fmt::format("with it the condition is about {:.3g}: some ten iterations, which anything else would "
                    "make dearer than it makes them fewer",
                    condition)};
  if (a.colours.front().colours == 2)
    return {"auto",
            ill_conditioned(condition) +
                "; two colours are enough, so half of the rows are solved for in half of the iterations, "
                "unless all diagonal entries are equal"};
  return on_gpu ? for_gpus(a, condition) : for_cores(a, condition);
}

}  // namespace asterism::tools
