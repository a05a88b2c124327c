/// \file
/// Poisson problems of all conditions, on both kinds of grid, as tests of their solvers want them.
#pragma once

#include <string>
#include <vector>

#include "../support/skip.hpp"
#include "algorithms/poisson/solver.hpp"

namespace asterism::test {

/// The conditions that both ends of an axis can have.
const poisson::Ends all_ends[] = {
    {{poisson::Condition::dirichlet}, {poisson::Condition::dirichlet}},
    {{poisson::Condition::dirichlet}, {poisson::Condition::neumann}},
    {{poisson::Condition::neumann}, {poisson::Condition::dirichlet}},
    {{poisson::Condition::neumann}, {poisson::Condition::neumann}},
    {{poisson::Condition::periodic}, {poisson::Condition::periodic}},
};

inline std::string letters(const std::vector<poisson::Ends>& ends) {
  std::string text;
  for (const poisson::Ends& e : ends)
    for (const poisson::Condition c : {e.lower.condition, e.upper.condition})
      text += "DNP"[static_cast<int>(c)];
  return text;
}

/// Every combination of conditions on the axes of `shape`, on both kinds of grid.
inline std::vector<poisson::Problem> all_combinations(const std::vector<Index>& shape) {
  std::vector<poisson::Problem> problems;
  const std::size_t axes = shape.size();
  for (std::size_t combination = 0; combination < (axes == 2 ? 25 : 125); ++combination)
    for (const poisson::Centering centering : {poisson::Centering::node, poisson::Centering::cell}) {
      poisson::Problem problem{.shape = shape, .centering = centering};
      for (std::size_t a = 0, rest = combination; a < axes; ++a, rest /= 5)
        problem.ends.push_back(all_ends[rest % 5]);
      const double lengths[] = {1.3, 0.9, 1.7};
      problem.lengths.assign(lengths, lengths + axes);
      problems.push_back(problem);
    }
  return problems;
}

inline std::string description(const poisson::Problem& problem) {
  return poisson::to_string(problem.shape) +
         (problem.centering == poisson::Centering::node ? " nodes " : " cells ") + letters(problem.ends) +
         (problem.coordinates.empty() ? "" : " stretched") + " lambda " + std::to_string(problem.lambda);
}

/// In these shapes some combinations are enough: what they add does not depend on the combination within the planes.
inline bool is_brief() { return shape_is("mpi") || shape_is("disk") || shape_is("one_worker"); }

/// Every combination of conditions, or some of them.
inline std::vector<poisson::Problem> combinations(const std::vector<Index>& shape) {
  const std::vector<poisson::Problem> all = all_combinations(shape);
  if (!is_brief()) return all;
  std::vector<poisson::Problem> some;
  for (std::size_t i = 0; i < all.size(); i += 7) some.push_back(all[i]);
  return some;
}

/// Coordinates that are closer at one end, over [0.5, 0.5 + length], as many as the slowest axis of the problem wants.
inline std::vector<double> stretched(const poisson::Problem& problem, double length) {
  const poisson::Grid grid = poisson::discretise(problem);
  const Index cells = grid.slow.cells();
  std::vector<double> coordinates;
  for (Index i = 0; i <= cells; ++i) {
    const double s = static_cast<double>(i) / static_cast<double>(cells);
    coordinates.push_back(0.5 + length * (s + 0.25 * s * (1 - s)));
  }
  return coordinates;
}

}  // namespace asterism::test
