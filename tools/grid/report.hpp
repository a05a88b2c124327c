/// \file
/// What reports say of a problem on a grid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../cli/report.hpp"
#include "options.hpp"

namespace asterism::tools {

/// A problem on a grid as its user stated it.
struct GridStatement {
  std::string equation;  ///< "u_xx + u_yy = f"
  std::vector<Index> shape;
  Index batch = 1;  ///< so many problems
  std::vector<double> lengths;
  std::vector<std::pair<std::string, std::string>> conditions;  ///< at the ends of each axis: lower, upper
  std::string input;                                            ///< the file of f; empty: the model
  std::string model;
  std::optional<std::uint64_t> seed;  ///< where numbers were drawn
  Precision precision = Precision::f64;
  std::optional<std::vector<GivenValues>> values;  ///< on the sides, of each axis; none: the model says it

  [[nodiscard]] Index unknowns() const;
};

/// "u_xx + u_yy - 2 u = f" in so many dimensions.
std::string equation_text(std::size_t dimensions, double lambda = 0);

/// What is given along each axis of the grid.
std::vector<GivenValues> values_along(const GridOptions& options, std::size_t axes);

/// "u_xx + u_yy = f, model sine: 63 x 63 unknowns (0.003969 million) in f64", and the keys dimensions, grid, batch,
/// lengths, conditions, model, seed, precision, unknowns, values.
Section problem_section(const GridStatement& statement);

}  // namespace asterism::tools
