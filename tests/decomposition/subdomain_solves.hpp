/// \file
/// Systems that all ranks solve on subdomains, and what the algorithms say, by dense matrices and one step after the other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../sparse/linear_solves.hpp"
#include "../support/dense.hpp"
#include "../support/worst.hpp"
#include "algorithms/decomposition/dbds.hpp"
#include "algorithms/decomposition/dcg.hpp"
#include "algorithms/sparse/models/models.hpp"

namespace asterism::test {

inline sparse::Csr<double> model(const std::string& name) {
  return sparse::model_matrix(sparse::parse_matrix_model(name));
}

struct SubdomainSolution {
  std::vector<double> x;  ///< all of it, on every rank
  sparse::LinearReport report;
};

/// From zero. @param b all of it
template <class Solver, class T = double>
SubdomainSolution solve_from_zero(Runtime& runtime, Solver& solver, const std::vector<double>& b) {
  const auto first = b.begin() + solver.first_row();
  const std::vector<T> mine(first, first + solver.row_count());
  std::vector<T> x(mine.size());
  SubdomainSolution solution{{}, solver.solve(mine.data(), x.data())};
  const std::vector<T> all = gather_lists(runtime, x);
  solution.x.assign(all.begin(), all.end());
  return solution;
}

/// With a preconditioner of subdomains; Solver: Dbds, ConjugateGradients, BiCgStab or Gmres.
template <class Solver, class V = double>
SubdomainSolution solve_by_schwarz(Runtime& runtime, const sparse::Csr<double>& a,
                                   const std::vector<double>& b,
                                   const decomposition::SchwarzSettings& schwarz,
                                   const sparse::LinearSettings& settings = {}) {
  const sparse::Csr<double> mine = rows_of_this_rank(runtime, a);
  Solver solver(runtime, mine, settings,
                std::make_shared<decomposition::Schwarz<double, V>>(runtime, mine, schwarz));
  return solve_from_zero(runtime, solver, b);
}

inline SubdomainSolution solve_by_dcg(Runtime& runtime, const sparse::Csr<double>& a,
                                      const std::vector<double>& b,
                                      const decomposition::SubdomainSettings& subdomains,
                                      const sparse::LinearSettings& settings) {
  decomposition::Dcg<double> solver(runtime, rows_of_this_rank(runtime, a), settings, subdomains);
  return solve_from_zero(runtime, solver, b);
}

/// [Czapinski 2014] algorithm 7.2: L_p x_p = b_p - H_p x^, each subdomain gives others its own rows.
inline DenseVector twin_of_dbds(const Dense& a, const DenseVector& b,
                                const std::vector<decomposition::Subdomain>& subdomains, int iterations) {
  DenseVector x(b.size());
  for (int r = 0; r < iterations; ++r) {
    DenseVector next = x;
    for (const decomposition::Subdomain& s : subdomains) {
      DenseVector outside = x;  // x^
      for (const Index row : s.rows) outside[static_cast<std::size_t>(row)] = 0;
      const DenseVector right = b - a * outside;
      const DenseVector local = solve_dense(part_of(a, s.rows, s.rows), part_of(right, s.rows));
      for (const std::int32_t place : s.owned) {
        const auto at = static_cast<std::size_t>(place);
        next[static_cast<std::size_t>(s.rows[at])] = local[at];
      }
    }
    x = next;
  }
  return x;
}

/// [Czapinski 2014] algorithm 7.1, line by line.
inline DenseVector twin_of_dcg(const Dense& a, const DenseVector& b,
                               const std::vector<decomposition::Subdomain>& subdomains, int iterations) {
  struct Local {
    Dense l;
    DenseVector x, r, p;
  };
  std::vector<Local> locals;
  for (const decomposition::Subdomain& s : subdomains) {
    const DenseVector right = part_of(b, s.rows);
    locals.push_back({part_of(a, s.rows, s.rows), DenseVector(right.size()), right, right});
  }
  DenseVector x(b.size());
  for (int r = 0; r < iterations; ++r) {
    const DenseVector before = x;
    for (std::size_t k = 0; k < locals.size(); ++k) {
      Local& its = locals[k];
      const DenseVector lp = its.l * its.p;
      const double alpha = dot(its.r, its.r) / dot(lp, its.p);
      its.x += alpha * its.p;
      its.r -= alpha * lp;
      for (const std::int32_t place : subdomains[k].owned) {
        const auto at = static_cast<std::size_t>(place);
        x[static_cast<std::size_t>(subdomains[k].rows[at])] = its.x[at];
      }
    }
    for (std::size_t k = 0; k < locals.size(); ++k) {
      Local& its = locals[k];
      DenseVector change = x - before;
      for (const Index row : subdomains[k].rows) change[static_cast<std::size_t>(row)] = 0;
      its.r -= part_of(a * change, subdomains[k].rows);
      its.p -= dot(its.r, its.p) / dot(its.r, its.r) * its.r;
      const DenseVector lp = its.l * its.p;
      const double beta = -dot(its.r, lp) / dot(its.p, lp);
      its.p = its.r + beta * its.p;
    }
  }
  return x;
}

inline double difference(const std::vector<double>& x, const DenseVector& known) {
  return largest_difference(x, std::vector<double>(std::begin(known), std::end(known)));
}

}  // namespace asterism::test
