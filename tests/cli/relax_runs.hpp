/// \file
/// Runs of `asterism relax`.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../support/command_line.hpp"

namespace asterism::test {

inline json relax(const Words& arguments) { return report_of(one_process(Words{"relax", "--json"} + arguments)); }

/// A run that ends with status 1, which is a result: its report.
inline json unsolved(const Words& arguments) {
  const Result result = run(one_process(Words{"relax", "--json"} + arguments));
  CAPTURE(result.err);
  CHECK(result.status == 1);
  CHECK(result.err.empty());
  return json::parse(result.out);
}

inline const std::vector<std::string> relax_methods{"jacobi", "gauss-seidel", "sor", "ssor", "mlssor", "wavefront"};

}  // namespace asterism::test
