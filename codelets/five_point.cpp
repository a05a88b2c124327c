#include "five_point.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace asterism::kernels::cpu {
namespace {

/// A row of values in float64 with a zero on either side.
class PaddedRow {
 public:
  explicit PaddedRow(Index n) : values_(static_cast<std::size_t>(n) + 2) {}
  double* begin() { return values_.data() + 1; }

 private:
  std::vector<double> values_;
};

/// Three consecutive rows of a grid, moving down.
struct Rows {
  explicit Rows(Index n) : north(n), centre(n), south(n) {}

  /// Moves down by one row; the new south is to be filled.
  double* advance() {
    std::swap(north, centre);
    std::swap(centre, south);
    return south.begin();
  }

  PaddedRow north, centre, south;
};

/// A u of the row in the middle.
void apply(const FivePoint& a, Rows& rows, Index n, double* result) {
  const double* const north = rows.north.begin();
  const double* const centre = rows.centre.begin();
  const double* const south = rows.south.begin();
  for (Index j = 0; j < n; ++j)
    result[j] = laplacian(a, centre[j], centre[j - 1], centre[j + 1], north[j], south[j]);
}

void random_row(const ModelProblem& problem, Index i, double* u) {
  for (Index j = 0; j < problem.cols; ++j) u[j] = random_solution(problem, i, j);
}

std::vector<double> sine_row(const ModelProblem& problem) {
  std::vector<double> factors(static_cast<std::size_t>(problem.cols));
  for (Index j = 0; j < problem.cols; ++j)
    factors[static_cast<std::size_t>(j)] = sine_factor(problem.x0, problem.hx, j);
  return factors;
}

/// The sum of value(j)^2 in several interleaved parts, which vectorises and keeps the rounding small.
template <class Value>
double sum_of_squares(Index n, Value value) {
  std::array<double, 16> parts{};
  constexpr auto width = static_cast<Index>(parts.size());
  const Index whole = n - n % width;
  for (Index j = 0; j < whole; j += width)
    for (Index l = 0; l < width; ++l) {
      const double v = value(j + l);
      parts[static_cast<std::size_t>(l)] += v * v;
    }
  double sum = 0.0;
  for (Index j = whole; j < n; ++j) sum += value(j) * value(j);
  for (const double part : parts) sum += part;
  return sum;
}

}  // namespace

template <class T>
void model_rhs(const ModelProblem& problem, Index first_row, Out<T> f) {
  if (problem.model == Model::sine) {
    const std::vector<double> factors = sine_row(problem);
    for (Index i = 0; i < f.rows; ++i) {
      const double factor = sine_eigenvalue * sine_factor(problem.y0, problem.hy, first_row + i);
      std::transform(factors.begin(), factors.end(), f.row(i),
                     [&](double x) { return static_cast<T>(factor * x); });
    }
    return;
  }
  const FivePoint a = five_point(problem.hx, problem.hy);
  Rows u(f.cols);
  random_row(problem, first_row - 1, u.centre.begin());
  random_row(problem, first_row, u.south.begin());
  std::vector<double> applied(static_cast<std::size_t>(f.cols));
  for (Index i = 0; i < f.rows; ++i) {
    random_row(problem, first_row + i + 1, u.advance());
    apply(a, u, f.cols, applied.data());
    std::transform(applied.begin(), applied.end(), f.row(i), [](double x) { return static_cast<T>(x); });
  }
}

template <class T>
void residual(const SlabProblem& slab, In<T> u, In<T> above, In<T> below, In<T> f, Out<double> sums) {
  const Index n = u.cols;
  const bool sine = slab.known && slab.problem.model == Model::sine;
  const std::vector<double> factors = sine ? sine_row(slab.problem) : std::vector<double>();
  std::vector<double> applied(static_cast<std::size_t>(n)), known(applied);
  std::fill_n(sums.data, Index{residual_sums}, 0.0);

  Rows rows(n);
  std::copy_n(above.data, n, rows.centre.begin());
  std::copy_n(u.row(0), n, rows.south.begin());
  for (Index i = 0; i < u.rows; ++i) {
    std::copy_n(i + 1 < u.rows ? u.row(i + 1) : below.data, n, rows.advance());
    apply(slab.a, rows, n, applied.data());
    const T* const rhs = f.row(i);
    const double* const centre = rows.centre.begin();
    sums.data[residual2] += sum_of_squares(
        n, [&](Index j) { return static_cast<double>(rhs[j]) - applied[static_cast<std::size_t>(j)]; });
    sums.data[rhs2] += sum_of_squares(n, [&](Index j) { return static_cast<double>(rhs[j]); });
    sums.data[solution2] += sum_of_squares(n, [&](Index j) { return centre[j]; });
    if (!slab.known) continue;
    if (sine) {
      const double factor = sine_factor(slab.problem.y0, slab.problem.hy, slab.first_row + i);
      std::transform(factors.begin(), factors.end(), known.begin(), [&](double x) { return factor * x; });
    } else {
      random_row(slab.problem, slab.first_row + i, known.data());
    }
    sums.data[error2] +=
        sum_of_squares(n, [&](Index j) { return centre[j] - known[static_cast<std::size_t>(j)]; });
    sums.data[known2] += sum_of_squares(n, [&](Index j) { return known[static_cast<std::size_t>(j)]; });
  }
}

template void model_rhs(const ModelProblem&, Index, Out<float>);
template void model_rhs(const ModelProblem&, Index, Out<double>);
template void residual(const SlabProblem&, In<float>, In<float>, In<float>, In<float>, Out<double>);
template void residual(const SlabProblem&, In<double>, In<double>, In<double>, In<double>, Out<double>);

}  // namespace asterism::kernels::cpu
