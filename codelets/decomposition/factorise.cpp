#include "factorise.hpp"

#include <Eigen/SparseLU>
#include <cmath>
#include <iostream>
#include <numeric>
#include <ranges>

#include "../../runtime/error.hpp"
#include "supernodes/cholesky.hpp"

namespace asterism::decomposition::cpu {
namespace {

template <class V>
using Columns = Eigen::SparseMatrix<V, Eigen::ColMajor, std::int32_t>;
using KeepsOrder = Eigen::NaturalOrdering<std::int32_t>;

template <class V>
Eigen::Map<const Columns<V>> matrix_of(const LocalBlock<V>& block) {
  return {block.size,          block.size,          block.begins.back(),
          block.begins.data(), block.places.data(), block.values.data()};
}

template <class V>
void forget_matrix(LocalBlock<V>& block) {
  block.begins = {};
  block.places = {};
  block.values = {};
}

template <class V>
void factorise_symmetric(LocalBlock<V>& block) {
  const auto bad =
      factorise_supernodes<V>(*block.supernodes, {block.begins, block.places, block.values}, block.panels);
  forget_matrix(block);
  if (bad)
    block.defect = Defect{std::isfinite(bad->pivot) ? Defect::Kind::not_positive : Defect::Kind::not_finite,
                          bad->column, bad->pivot};
}

/// A triangle whose arrays are its own.
template <class V>
struct OwnTriangle {
  std::vector<std::int32_t> begins = {0}, places;
  std::vector<V> values;
  std::vector<std::int32_t> levels;
  [[nodiscard]] Triangle<V> view() const { return {begins, places, values, levels}; }
};

template <class V>
struct LuFactors {
  OwnTriangle<V> lower, upper;
};

/// The number that Eigen's message ends with: how many columns there were up to the one without a pivot.
std::int32_t column_in(const std::string& message) {
  const std::size_t digits = message.find_last_not_of("0123456789");
  return digits + 1 < message.size() ? std::stoi(message.substr(digits + 1)) - 1 : 0;
}

/// Columns to rows, each of which is multiplied by a factor: of U D and D^-1 to those of U.
template <class V>
OwnTriangle<V> by_rows(const OwnTriangle<V>& columns, const std::vector<V>& row_factors) {
  OwnTriangle<V> rows;
  rows.begins.assign(columns.begins.size(), 0);
  for (const std::int32_t row : columns.places) ++rows.begins[static_cast<std::size_t>(row) + 1];
  std::partial_sum(rows.begins.begin(), rows.begins.end(), rows.begins.begin());
  rows.places.resize(columns.places.size());
  rows.values.resize(columns.values.size());
  std::vector<std::int32_t> next(rows.begins.begin(), rows.begins.end() - 1);
  for (std::size_t j = 0; j + 1 < columns.begins.size(); ++j)
    for (auto k = static_cast<std::size_t>(columns.begins[j]);
         k < static_cast<std::size_t>(columns.begins[j + 1]); ++k) {
      const auto row = static_cast<std::size_t>(columns.places[k]);
      const auto at = static_cast<std::size_t>(next[row]++);
      rows.places[at] = static_cast<std::int32_t>(j);
      rows.values[at] = columns.values[k] * row_factors[row];
    }
  return rows;
}

/// Of a triangle by rows. @param rows all of them, each after those that it has entries at
template <class V, class RowsInOrder>
std::vector<std::int32_t> levels_of(const OwnTriangle<V>& triangle, const RowsInOrder& rows) {
  std::vector<std::int32_t> levels(triangle.begins.size() - 1, 0);
  for (const std::int32_t i : rows)
    for (std::int32_t k = triangle.begins[i]; k < triangle.begins[i + 1]; ++k)
      levels[i] = std::max(levels[i], levels[triangle.places[k]] + 1);
  return levels;
}

/// What Eigen keeps in supernodes, in triangles.
template <class V, class Solver>
void take_triangles(const Solver& solver, LocalBlock<V>& block) {
  const auto upper = solver.matrixU();
  auto factors = std::make_shared<LuFactors<V>>();
  OwnTriangle<V> right;
  for (std::int32_t j = 0; j < block.size; ++j) {
    const auto add = [](OwnTriangle<V>& to, Index place, V value) {
      if (value == V{}) return;
      to.places.push_back(static_cast<std::int32_t>(place));
      to.values.push_back(value);
    };
    for (typename std::decay_t<decltype(upper.m_mapU)>::InnerIterator it(upper.m_mapU, j); it; ++it)
      add(right, it.index(), it.value());
    V pivot{};
    for (typename std::decay_t<decltype(upper.m_mapL)>::InnerIterator it(upper.m_mapL, j); it; ++it) {
      if (it.index() == j) pivot = it.value();
      if (it.index() != j) add(it.index() < j ? right : factors->lower, it.index(), it.value());
    }
    block.inverse_pivots.push_back(1 / pivot);
    if (!block.defect && (pivot == V{} || !std::isfinite(pivot)))
      block.defect = Defect{pivot == V{} ? Defect::Kind::singular : Defect::Kind::not_finite, j, pivot};
    right.begins.push_back(static_cast<std::int32_t>(right.places.size()));
    factors->lower.begins.push_back(static_cast<std::int32_t>(factors->lower.places.size()));
  }
  if (block.defect) return;
  factors->upper = by_rows(right, block.inverse_pivots);
  if (block.for_gpu) {
    factors->lower = by_rows(factors->lower, std::vector<V>(static_cast<std::size_t>(block.size), V(1)));
    const auto rows = std::views::iota(0, block.size);
    factors->lower.levels = levels_of(factors->lower, rows);
    factors->upper.levels = levels_of(factors->upper, std::views::reverse(rows));
  }
  block.lower = factors->lower.view();
  block.upper = factors->upper.view();
  block.storage = std::move(factors);
}

/// order[place] of a permutation that says where each index goes.
template <class Permutation>
std::vector<std::int32_t> order_of(const Permutation& permutation) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(permutation.size()));
  for (Index i = 0; i < permutation.size(); ++i)
    order[static_cast<std::size_t>(permutation.indices()[i])] = static_cast<std::int32_t>(i);
  return order;
}

/// L U with pivots from the diagonal unless another entry of the column is ten times as large.
template <class V>
void factorise_general(LocalBlock<V>& block) {
  Eigen::SparseLU<Columns<V>, KeepsOrder> solver;
  solver.setPivotThreshold(V(0.1));
  {
    const Columns<V> matrix = matrix_of(block);
    forget_matrix(block);
    solver.analyzePattern(matrix);
    solver.factorize(matrix);
  }
  block.column_order = order_of(solver.colsPermutation());
  if (solver.info() != Eigen::Success) {
    const std::int32_t column = std::min(column_in(solver.lastErrorMessage()), block.size - 1);
    block.defect = Defect{Defect::Kind::singular, block.column_order[static_cast<std::size_t>(column)], 0};
    return;
  }
  block.row_order = order_of(solver.rowsPermutation());
  take_triangles(solver, block);
  if (block.defect) block.defect->place = block.column_order[static_cast<std::size_t>(block.defect->place)];
}

}  // namespace

template <class V>
void factorise(const FactoriseArgs<V>& args, Out<double> ended) {
  LocalBlock<V>& block = *args.block;
  if (block.symmetric)
    factorise_symmetric(block);
  else
    factorise_general(block);
  ended.data[0] = seconds_now();
}

template <class V>
void publish(Many<In<double>>, InOut<V>) {}

template void factorise(const FactoriseArgs<float>&, Out<double>);
template void factorise(const FactoriseArgs<double>&, Out<double>);
template void publish(Many<In<double>>, InOut<float>);
template void publish(Many<In<double>>, InOut<double>);

}  // namespace asterism::decomposition::cpu
