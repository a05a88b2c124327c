#include "triangular_factors.hpp"

#include <functional>

#include "../graph/levels.hpp"
#include "../graph/numbering.hpp"
#include "fill.hpp"

namespace asterism::sparse {
namespace {

/// An order of elimination: new numbers of the rows, none where the natural one stays.
struct Order {
  Colouring stages;
  Numbering numbering;  // empty: natural
};

Order by_colour(const Csr<double>& matrix, int q, int threads) {
  Colouring colours = colour(matrix, q, threads);
  Numbering numbering = number_by_colour(colours, matrix.total_rows);
  return {std::move(colours), std::move(numbering)};
}

/// By levels of the natural order, in which a row comes after all those before it that it has an entry in common with.
Order by_level(const Csr<double>& matrix, int threads) {
  const Levels levels = levels_of(neighbours(matrix, threads), Triangle::lower);
  return {{static_cast<int>(levels.count()), {levels.of_rows.begin(), levels.of_rows.end()}}, {}};
}

Factorisation shifted(DiagonalShift shift, const std::function<Factorisation(double)>& factorise) {
  return shift == DiagonalShift::automatic ? with_growing_shift(factorise) : factorise(0);
}

/// The entries of rows for which keep(i, j) is, each as value(i, j, a).
template <class Keep, class Value>
Csr<double> part_of(const Csr<double>& matrix, Keep keep, Value value) {
  Csr<double> part;
  part.total_rows = part.cols = matrix.total_rows;
  part.row_begin.reserve(matrix.row_begin.size());
  for (Index i = 0; i < matrix.rows(); ++i) {
    for (Index k = matrix.row_begin[i]; k < matrix.row_begin[i + 1]; ++k)
      if (const Index j = matrix.columns[k]; keep(i, j)) {
        part.columns.push_back(j);
        part.values.push_back(value(i, j, matrix.values[k]));
      }
    part.row_begin.push_back(static_cast<Index>(part.columns.size()));
  }
  return part;
}

std::vector<double> diagonal_of(const Csr<double>& matrix) {
  std::vector<double> diagonal(static_cast<std::size_t>(matrix.rows()));
  for (Index i = 0; i < matrix.rows(); ++i)
    for (Index k = matrix.row_begin[i]; k < matrix.row_begin[i + 1]; ++k)
      if (matrix.columns[k] == matrix.first_row + i) diagonal[i] = matrix.values[k];
  return diagonal;
}

/// [Weiss 2011]: L = omega L_A D_A^-1, U = omega D_A^-1 R_A, D = D_A / (omega (2 - omega)), where L_A has the entries
/// whose columns are of earlier colours and R_A the others.
void symmetric_relaxation(const Csr<double>& matrix, double omega, TriangularFactors& factors) {
  const std::vector<double> d = diagonal_of(matrix);
  const std::vector<int>& colour = factors.stages.of_rows;
  factors.lower = part_of(
      matrix, [&](Index i, Index j) { return colour[j] < colour[i]; },
      [&](Index, Index j, double a) { return omega * a / d[j]; });
  factors.upper = part_of(
      matrix, [&](Index i, Index j) { return colour[j] > colour[i]; },
      [&](Index i, Index, double a) { return omega * a / d[i]; });
  factors.diagonal = d;
  for (double& value : factors.diagonal) value /= omega * (2 - omega);
}

/// From L' + U with L' = I + L: D = diag(U), and D^-1 U = I + U of (Q3).
void split_lu(const Csr<double>& lu, TriangularFactors& factors) {
  factors.diagonal = diagonal_of(lu);
  factors.lower = part_of(
      lu, [](Index i, Index j) { return j < i; }, [](Index, Index, double a) { return a; });
  factors.upper = part_of(
      lu, [](Index i, Index j) { return j > i; },
      [&](Index i, Index, double a) { return a / factors.diagonal[i]; });
}

Csr<double> transposed_matrix(const Csr<double>& matrix) {
  Csr<double> to;
  to.total_rows = to.cols = matrix.total_rows;
  to.row_begin.assign(static_cast<std::size_t>(matrix.total_rows) + 1, 0);
  to.columns.resize(matrix.columns.size());
  to.values.resize(matrix.values.size());
  for (const Index j : matrix.columns) ++to.row_begin[j + 1];
  for (Index j = 0; j < matrix.total_rows; ++j) to.row_begin[j + 1] += to.row_begin[j];
  std::vector<Index> next(to.row_begin.begin(), to.row_begin.end() - 1);
  for (Index i = 0; i < matrix.rows(); ++i)
    for (Index k = matrix.row_begin[i]; k < matrix.row_begin[i + 1]; ++k) {
      const Index at = next[matrix.columns[k]]++;
      to.columns[at] = i;
      to.values[at] = matrix.values[k];
    }
  return to;
}

/// From C with A ~ C C^T: D = diag(C)^2, I + L = C diag(C)^-1, U = L^T.
void split_cholesky(const Csr<double>& c, TriangularFactors& factors) {
  const std::vector<double> d = diagonal_of(c);
  factors.lower = part_of(
      c, [](Index i, Index j) { return j < i; }, [&](Index, Index j, double a) { return a / d[j]; });
  factors.upper = transposed_matrix(factors.lower);
  factors.diagonal = d;
  for (double& value : factors.diagonal) value *= value;
}

/// Back to the natural order.
void renumber(const Numbering& numbering, TriangularFactors& factors) {
  if (numbering.rows() == 0) return;
  Numbering back;
  back.new_of_old = numbering.old_of_new;
  back.old_of_new = numbering.new_of_old;
  factors.lower = permuted(factors.lower, back);
  factors.upper = permuted(factors.upper, back);
  std::vector<double> diagonal(factors.diagonal.size());
  for (Index i = 0; i < numbering.rows(); ++i) diagonal[numbering.old_of_new[i]] = factors.diagonal[i];
  factors.diagonal = std::move(diagonal);
}

}  // namespace

TriangularFactors triangular_factors(const Csr<double>& matrix, const PreconditionerChoice& choice,
                                     DiagonalShift shift, int threads) {
  using enum PreconditionerMethod;
  TriangularFactors factors;
  if (choice.method == mc_ssor) {
    factors.stages = colour(matrix, 1, threads);
    symmetric_relaxation(matrix, choice.omega, factors);
    return factors;
  }
  const bool coloured = choice.method == mc_ilu;
  Order order = coloured ? by_colour(matrix, choice.q, threads) : by_level(matrix, threads);
  const Csr<double>& eliminated = coloured ? permuted(matrix, order.numbering, threads) : matrix;
  factors.stages = std::move(order.stages);
  Factorisation result;
  if (choice.method == ic0) {
    result = shifted(shift, [&](double s) { return incomplete_cholesky(eliminated, eliminated, s); });
  } else {
    const Pattern pattern = fill_pattern(eliminated, choice.p, order.numbering.segments, threads);
    result = shifted(shift, [&](double s) { return incomplete_lu(eliminated, pattern, s); });
  }
  factors.shift = result.shift;
  factors.breakdown = result.breakdown;
  if (result.breakdown) {
    if (coloured) factors.breakdown->row = order.numbering.old_of_new[result.breakdown->row];
    return factors;
  }
  if (choice.method == ic0)
    split_cholesky(result.factor, factors);
  else
    split_lu(result.factor, factors);
  renumber(order.numbering, factors);
  return factors;
}

}  // namespace asterism::sparse
