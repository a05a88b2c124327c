/// \file
/// Systems that all ranks solve on subdomains, and what the algorithms say, by dense matrices and one step after the other.
#pragma once

#include <Eigen/Dense>
#include <memory>
#include <string>
#include <vector>

#include "../sparse/linear_solves.hpp"
#include "../support/worst.hpp"
#include "algorithms/decomposition/dbds.hpp"
#include "algorithms/decomposition/dcg.hpp"
#include "algorithms/sparse/models/models.hpp"

namespace asterism::test {

using Dense = Eigen::MatrixXd;
using DenseVector = Eigen::VectorXd;

inline sparse::Csr<double> model(const std::string& name) {
  return sparse::model_matrix(sparse::parse_matrix_model(name));
}

/// In (-1, 1), without any pattern.
inline std::vector<double> scattered(Index n) {
  std::vector<double> b;
  for (Index i = 0; i < n; ++i) b.push_back(std::sin(1.0 + 0.7 * static_cast<double>(i * i % 100'003)));
  return b;
}

inline Dense dense(const sparse::Csr<double>& a) {
  Dense full = Dense::Zero(a.total_rows, a.cols);
  for (Index i = 0; i < a.rows(); ++i)
    for (Index k = a.row_begin[static_cast<std::size_t>(i)]; k < a.row_begin[static_cast<std::size_t>(i) + 1];
         ++k)
      full(i, a.columns[static_cast<std::size_t>(k)]) = a.values[static_cast<std::size_t>(k)];
  return full;
}

inline sparse::Csr<double> csr_of(const Dense& full) {
  sparse::Csr<double> a;
  a.total_rows = a.cols = full.rows();
  for (Eigen::Index i = 0; i < full.rows(); ++i) {
    for (Eigen::Index j = 0; j < full.cols(); ++j)
      if (full(i, j) != 0) {
        a.columns.push_back(j);
        a.values.push_back(full(i, j));
      }
    a.row_begin.push_back(static_cast<Index>(a.columns.size()));
  }
  return a;
}

template <class T = double>
sparse::Csr<T> rows_of_this_rank(const Runtime& runtime, const sparse::Csr<double>& whole) {
  const auto [first, end] = sparse::rows_of_rank(whole.total_rows, runtime.rank(), runtime.ranks());
  return in_type<T>(sparse::rows_of(whole, Part{.first = first, .size = end - first}));
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

/// The rows of a list, and their columns in another.
inline Dense part_of(const Dense& a, const std::vector<Index>& rows, const std::vector<Index>& columns) {
  return a(rows, columns);
}

/// [Czapinski 2014] algorithm 7.2: L_p x_p = b_p - H_p x^, each subdomain gives others its own rows.
inline DenseVector twin_of_dbds(const Dense& a, const DenseVector& b,
                                const std::vector<decomposition::Subdomain>& subdomains, int iterations) {
  DenseVector x = DenseVector::Zero(b.size());
  for (int r = 0; r < iterations; ++r) {
    DenseVector next = x;
    for (const decomposition::Subdomain& s : subdomains) {
      const Dense l = part_of(a, s.rows, s.rows);
      DenseVector outside = x;  // x^
      outside(s.rows).setZero();
      const DenseVector right = b(s.rows) - (a * outside)(s.rows);
      const DenseVector local = l.partialPivLu().solve(right);
      for (const std::int32_t place : s.owned) next(s.rows[static_cast<std::size_t>(place)]) = local(place);
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
    const DenseVector right = b(s.rows);
    locals.push_back({part_of(a, s.rows, s.rows), DenseVector::Zero(right.size()), right, right});
  }
  DenseVector x = DenseVector::Zero(b.size());
  for (int r = 0; r < iterations; ++r) {
    const DenseVector before = x;
    for (std::size_t k = 0; k < locals.size(); ++k) {
      Local& its = locals[k];
      const DenseVector lp = its.l * its.p;
      const double alpha = its.r.dot(its.r) / lp.dot(its.p);
      its.x += alpha * its.p;
      its.r -= alpha * lp;
      for (const std::int32_t place : subdomains[k].owned)
        x(subdomains[k].rows[static_cast<std::size_t>(place)]) = its.x(place);
    }
    for (std::size_t k = 0; k < locals.size(); ++k) {
      Local& its = locals[k];
      DenseVector change = x - before;
      change(subdomains[k].rows).setZero();
      its.r -= (a * change)(subdomains[k].rows);
      its.p -= its.r.dot(its.p) / its.r.dot(its.r) * its.r;
      const DenseVector lp = its.l * its.p;
      its.p = its.r - its.r.dot(lp) / its.p.dot(lp) * its.p;
    }
  }
  return x;
}

inline double difference(const std::vector<double>& x, const DenseVector& known) {
  return largest_difference(x, std::vector<double>(known.begin(), known.end()));
}

}  // namespace asterism::test
