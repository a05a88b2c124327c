/// \file
/// Domain decomposition in `asterism linear`: its options, its solvers, what is told of it.
#pragma once

#include <memory>
#include <optional>

#include "../../algorithms/decomposition/dbds.hpp"
#include "../../algorithms/decomposition/dcg.hpp"
#include "../cli/report.hpp"
#include "options.hpp"
#include "stated_problem.hpp"

namespace asterism::tools {

/// What a solve by subdomains has found out before it began.
struct DecompositionOutcome {
  Index subdomains = 1;
  std::optional<decomposition::SchwarzFacts> facts = {};  ///< none: of dcg
  Index bytes_between_ranks = 0;                          ///< in each iteration, for subdomains
};

/// Whether a method works on subdomains.
inline bool has_subdomains(std::optional<LinearMethod> method) {
  return method == LinearMethod::dcg || method == LinearMethod::dbds;
}
/// Whether a method needs a symmetric matrix.
bool needs_symmetry(const LinearOptions& options);

/// @throw Error: options of subdomains that do not go together, or with the method
void require_decomposition(const LinearOptions& options, const StatedLinear& stated);

/// @param shares of the ranks, as they have rows
decomposition::SubdomainSettings subdomains_of(const Runtime& runtime, const LinearOptions& options,
                                               const std::vector<double>& shares);
/// @param matrix_class what the blocks are factorised as
decomposition::SchwarzSettings schwarz_of(const Runtime& runtime, const LinearOptions& options,
                                          const std::vector<double>& shares,
                                          sparse::MatrixClass matrix_class);

/// The subdomains' blocks, factorised in the precision of the options. @param facts becomes what there is to tell
template <class T>
std::shared_ptr<sparse::OuterPreconditioner<T>> make_schwarz(
    Runtime& runtime, const sparse::Csr<T>& mine, const LinearOptions& options,
    const std::vector<double>& shares, sparse::MatrixClass matrix_class,
    std::function<decomposition::SchwarzFacts()>& facts) {
  const decomposition::SchwarzSettings settings = schwarz_of(runtime, options, shares, matrix_class);
  const auto made = [&](auto schwarz) -> std::shared_ptr<sparse::OuterPreconditioner<T>> {
    facts = [schwarz] { return schwarz->facts(); };
    return schwarz;
  };
  if constexpr (sizeof(T) == sizeof(double))
    if (options.decomposition.factors == FactorPrecision::f32)
      return made(std::make_shared<decomposition::Schwarz<T, float>>(runtime, mine, settings));
  return made(std::make_shared<decomposition::Schwarz<T>>(runtime, mine, settings));
}

/// Lines and keys of the report.
void say_decomposition(Section& section, const LinearOptions& options, const StatedLinear& stated,
                       const DecompositionOutcome& outcome);

/// "subdomains", "overlap" and so on of a solve, in words for a message.
std::string advice_on_subdomains(const LinearOptions& options);

/// [Czapinski 2014] (7.35): rho of the matrix of the 2D Poisson problem on n x n nodes, with a line in each subdomain.
double rho_of_lines(Index n);

}  // namespace asterism::tools
