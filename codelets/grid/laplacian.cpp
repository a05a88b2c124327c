#include "laplacian.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../sums/sums.hpp"

namespace asterism::grid {
namespace {

/// The sum of magnitudes in the line of (A1) at node i of n. A neighbour outside is no column; the only node of a
/// periodic axis is its own neighbour, which takes nothing away from it.
double line_sum(Index n, bool periodic, Index i, const Weights& w) {
  if (periodic && n == 1) return 0.0;
  const bool has_before = i > 0 || periodic, has_after = i + 1 < n || periodic;
  return (w.before + w.after) + (has_before ? w.before : 0.0) + (has_after ? w.after : 0.0);
}

/// ||D||_inf of one axis
double norm(const Axis& axis) {
  double largest = 0.0;
  for (Index i = 0; i < axis.n; ++i)
    largest = std::max(largest, line_sum(axis.n, axis.periodic(), i, weights(axis, axis.per_h2(), i)));
  return largest;
}

double norm(const Axis& axis, const std::vector<AxisRow>& rows) {
  double largest = 0.0;
  const auto n = static_cast<Index>(rows.size());
  for (Index i = 0; i < n; ++i) {
    const AxisRow& row = rows[static_cast<std::size_t>(i)];
    largest = std::max(largest, line_sum(n, axis.periodic(), i, {row.before / row.width, row.after / row.width}));
  }
  return largest;
}

double relative_length(const Axis& axis) {
  double sum = 0.0;
  for (Index i = 0; i < axis.n; ++i) sum += relative_width(axis, i);
  return sum;
}

}  // namespace

// Every axis has a node where its own sum is largest, and one node of the grid has all of these.
double operator_norm(const Operator& a, const Axis& slow, const std::vector<AxisRow>& rows) {
  return norm(slow, rows) + norm(a.y) + norm(a.x) + std::abs(a.lambda);
}

double measure(const Operator& a, const std::vector<AxisRow>& rows) {
  double widths = 0.0;
  for (const AxisRow& row : rows) widths += row.width;
  return relative_length(a.y) * relative_length(a.x) * widths;
}

namespace cpu {
namespace {

/// A line of nodes along x next to the one in hand, as (L2) wants it.
template <class T>
struct LineBeside {
  const T* values;
  double factor;
  double operator[](Index x) const { return factor * static_cast<double>(values[x]); }
};

/// The lines of a plane around line y.
template <class T>
LineBeside<T> line_beside(const Operator& a, const T* plane, const Neighbour& y) {
  return {plane + y.node * a.x.n, y.factor};
}

/// A u along line y of a plane.
/// @param before,plane,after the planes of u around it
template <class T>
void apply_line(const Operator& a, const Weights& between, const T* before, const T* plane, const T* after,
                Index y, double* result) {
  const PlaneWeights weights(a);
  const Index n = a.x.n;
  const T *const z_before = before + y * n, *const centre = plane + y * n, *const z_after = after + y * n;
  const LineBeside<T> y_before = line_beside(a, plane, neighbour_before(a.y, y)),
                      y_after = line_beside(a, plane, neighbour_after(a.y, y));
  const auto at = [&](Index x, double x_before, double x_after) {
    return apply(weights, between, static_cast<double>(centre[x]),
                 {static_cast<double>(z_before[x]), static_cast<double>(z_after[x])},
                 {y_before[x], y_after[x]}, {x_before, x_after});
  };
  const auto at_end = [&](Index x) {
    const LineBeside<T> x_before{centre, neighbour_before(a.x, x).factor},
        x_after{centre, neighbour_after(a.x, x).factor};
    return at(x, x_before[neighbour_before(a.x, x).node], x_after[neighbour_after(a.x, x).node]);
  };
  result[0] = at_end(0);
  for (Index x = 1; x < n - 1; ++x)
    result[x] = at(x, static_cast<double>(centre[x - 1]), static_cast<double>(centre[x + 1]));
  result[n - 1] = at_end(n - 1);
}

std::vector<double> sine_factors(const Axis& axis) {
  std::vector<double> factors(static_cast<std::size_t>(axis.n));
  for (Index i = 0; i < axis.n; ++i)
    factors[static_cast<std::size_t>(i)] = sine_factor(axis, axis.fraction(i));
  return factors;
}

/// The sine model's solution, whose factors along y and x are the same in every plane.
class SineSolution {
 public:
  explicit SineSolution(const ModelProblem& problem)
      : slow_(problem.slow), y_(sine_factors(problem.a.y)), x_(sine_factors(problem.a.x)) {}

  /// The solution along line y of the plane at `position`, times `scale`.
  template <class T>
  void write_line(double position, Index y, double scale, T* line) const {
    const double factor =
        scale * sine_factor(slow_, position / slow_.length) * y_[static_cast<std::size_t>(y)];
    std::transform(x_.begin(), x_.end(), line, [&](double x) { return static_cast<T>(factor * x); });
  }

 private:
  Axis slow_;
  std::vector<double> y_, x_;
};

template <class T>
void random_line(const ModelProblem& problem, Index i, Index y, T* line) {
  const Index n = problem.a.x.n;
  for (Index x = 0; x < n; ++x) line[x] = static_cast<T>(random_solution(problem, i, y * n + x));
}

void random_plane(const ModelProblem& problem, Index i, std::vector<float>& plane) {
  for (Index y = 0; y < problem.a.y.n; ++y) random_line(problem, i, y, plane.data() + y * problem.a.x.n);
}

template <class T>
void sine_rhs(const ModelProblem& problem, In<double> axis, Out<T> f) {
  const SineSolution u(problem);
  const double eigenvalue = sine_eigenvalue(problem);
  for (Index i = 0; i < f.rows; ++i)
    for (Index y = 0; y < problem.a.y.n; ++y)
      u.write_line(axis.row(i)[position_column], y, eigenvalue, f.row(i) + y * problem.a.x.n);
}

template <class T>
void random_rhs(const ModelProblem& problem, Index first_row, In<double> axis, Out<T> f) {
  const Operator& a = problem.a;
  std::vector<float> before(static_cast<std::size_t>(a.plane())), plane(before),
      after(before);  // exact in float32
  std::vector<double> applied(static_cast<std::size_t>(a.x.n));
  random_plane(problem, first_row - 1, plane);
  random_plane(problem, first_row, after);
  for (Index i = 0; i < f.rows; ++i) {
    std::swap(before, plane);
    std::swap(plane, after);
    random_plane(problem, first_row + i + 1, after);
    for (Index y = 0; y < a.y.n; ++y) {
      apply_line(a, weights_between_planes(axis.row(i)), before.data(), plane.data(), after.data(), y,
                 applied.data());
      std::transform(applied.begin(), applied.end(), f.row(i) + y * a.x.n,
                     [](double x) { return static_cast<T>(x); });
    }
  }
}

}  // namespace

template <class T>
void model_rhs(const ModelProblem& problem, Index first_row, In<double> axis, Out<T> f) {
  if (problem.model == Model::sine)
    sine_rhs(problem, axis, f);
  else
    random_rhs(problem, first_row, axis, f);
}

template <class T>
void residual(const SlabProblem& slab, In<T> u, In<T> before, In<T> after, In<T> f, In<double> axis,
              Out<sums::SquareSum> sums) {
  const ModelProblem& problem = slab.problem;
  const Operator& a = problem.a;
  const Index n = a.x.n;
  const bool sine = slab.known && problem.model == Model::sine;
  const SineSolution solution(sine ? problem : ModelProblem{});
  std::vector<double> applied(static_cast<std::size_t>(n)), known(applied);
  std::fill_n(sums.data, Index{residual_sums}, sums::SquareSum{});

  for (Index i = 0; i < u.rows; ++i)
    for (Index y = 0; y < a.y.n; ++y) {
      apply_line(a, weights_between_planes(axis.row(i)), i > 0 ? u.row(i - 1) : before.data, u.row(i),
                 i + 1 < u.rows ? u.row(i + 1) : after.data, y, applied.data());
      const T *const rhs = f.row(i) + y * n, *const centre = u.row(i) + y * n;
      sums.data[residual2] += sums::cpu::sum_of_squares(
          n, [&](Index j) { return static_cast<double>(rhs[j]) - applied[static_cast<std::size_t>(j)]; });
      sums.data[rhs2] += sums::cpu::sum_of_squares(n, [&](Index j) { return static_cast<double>(rhs[j]); });
      sums.data[solution2] +=
          sums::cpu::sum_of_squares(n, [&](Index j) { return static_cast<double>(centre[j]); });
      if (!slab.known) continue;
      if (sine)
        solution.write_line(axis.row(i)[position_column], y, 1.0, known.data());
      else
        random_line(problem, slab.first_row + i, y, known.data());
      sums.data[error2] += sums::cpu::sum_of_squares(
          n, [&](Index j) { return static_cast<double>(centre[j]) - known[static_cast<std::size_t>(j)]; });
      sums.data[known2] +=
          sums::cpu::sum_of_squares(n, [&](Index j) { return known[static_cast<std::size_t>(j)]; });
    }
}

template <class T>
void moments(const Operator& a, In<T> f, In<double> axis, Out<double> sums) {
  const Index n = a.x.n;
  std::vector<double> widths(static_cast<std::size_t>(n));
  for (Index x = 0; x < n; ++x) widths[static_cast<std::size_t>(x)] = relative_width(a.x, x);
  for (Index i = 0; i < f.rows; ++i) {
    double* const plane = sums.row(i);
    std::fill_n(plane, Index{moments_count}, 0.0);
    for (Index y = 0; y < a.y.n; ++y) {
      const T* const line = f.row(i) + y * n;
      const double width = axis.row(i)[width_column] * relative_width(a.y, y);
      const auto weighted = [&](Index x) {
        return widths[static_cast<std::size_t>(x)] * static_cast<double>(line[x]);
      };
      plane[first_moment] += width * sums::cpu::sum_of(n, weighted);
      plane[absolute_moment] += width * sums::cpu::sum_of(n, [&](Index x) { return std::abs(weighted(x)); });
    }
  }
}

template void model_rhs(const ModelProblem&, Index, In<double>, Out<float>);
template void model_rhs(const ModelProblem&, Index, In<double>, Out<double>);
template void residual(const SlabProblem&, In<float>, In<float>, In<float>, In<float>, In<double>,
                       Out<sums::SquareSum>);
template void residual(const SlabProblem&, In<double>, In<double>, In<double>, In<double>, In<double>,
                       Out<sums::SquareSum>);
template void moments(const Operator&, In<float>, In<double>, Out<double>);
template void moments(const Operator&, In<double>, In<double>, Out<double>);

}  // namespace cpu
}  // namespace asterism::grid
