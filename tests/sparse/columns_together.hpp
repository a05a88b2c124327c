/// \file
/// Several right-hand sides of a Krylov solver at once.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

#include "linear_solves.hpp"

namespace asterism::test {

/// Solves for ten right-hand sides, which end after unlike numbers of iterations, one of them at once, and compares
/// each with what the solver makes of it alone: the same bits, the same report.
/// @return their iterations
template <class Solver>
std::set<Index> check_columns_together(Solver& solver) {
  constexpr Index columns = 10;  // more than go along together
  const std::vector<double> noise = scattered(columns * (solver.first_row() + solver.row_count()));
  std::vector<double> b(static_cast<std::size_t>(solver.row_count() * columns)), x(b.size());
  for (Index i = 0; i < solver.row_count(); ++i)
    for (Index c = 0; c < columns; ++c) {
      const Index row = solver.first_row() + i;
      const double smooth = std::cos(static_cast<double>((c + 1) * row) * 1e-2);
      b[i * columns + c] = c == 4       ? 0
                           : c % 2 == 0 ? noise[row * columns + c]
                                        : smooth * std::exp2(9.0 * static_cast<double>(c));
      x[i * columns + c] = c == 7 ? 1 : 0;
    }
  const std::vector<double> guess = x;
  const std::vector<sparse::LinearReport> together = solver.solve(b.data(), x.data(), columns);
  REQUIRE(together.size() == columns);
  std::set<Index> counts;
  for (Index c = 0; c < columns; ++c) {
    CAPTURE(c);
    std::vector<double> its_b, its_x;
    for (Index i = 0; i < solver.row_count(); ++i) {
      its_b.push_back(b[i * columns + c]);
      its_x.push_back(guess[i * columns + c]);
    }
    const sparse::LinearReport alone = solver.solve(its_b.data(), its_x.data());
    const sparse::LinearReport& report = together[static_cast<std::size_t>(c)];
    CHECK(report.reason == alone.reason);
    CHECK(report.iterations == alone.iterations);
    CHECK(report.restarts == alone.restarts);
    CHECK(report.true_residual == alone.true_residual);
    CHECK(report.residual_history == alone.residual_history);
    counts.insert(report.iterations);
    Index different = 0;
    for (Index i = 0; i < solver.row_count(); ++i) different += x[i * columns + c] == its_x[i] ? 0 : 1;
    CHECK(different == 0);
  }
  return counts;
}

}  // namespace asterism::test
