/// \file
/// Relaxation: problems, solves of the whole grid on all ranks, and the methods by their definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "../support/skip.hpp"
#include "../support/worst.hpp"
#include "algorithms/relaxation/solver.hpp"
#include "runtime/collectives.hpp"

namespace asterism::test {

using relaxation::Arrangement;
using relaxation::Balance;
using relaxation::Exchange;
using relaxation::Method;
using relaxation::Problem;
using relaxation::Settings;

constexpr double pi = std::numbers::pi;
constexpr Method all_methods[] = {Method::jacobi, Method::gauss_seidel, Method::sor, Method::ssor};

template <class T>
constexpr double eps = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

template <class T>
std::vector<T> random_numbers(Index count, unsigned seed, double from = -1) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(from, 1.0);
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (T& number : numbers) number = static_cast<T>(static_cast<float>(uniform(engine)));
  return numbers;
}

/// value(i, j) at every node.
template <class T, class Value>
std::vector<T> on_grid(const Problem& p, Value value) {
  std::vector<T> numbers;
  for (Index i = 0; i < p.shape[0]; ++i)
    for (Index j = 0; j < p.shape[1]; ++j) numbers.push_back(static_cast<T>(value(i, j)));
  return numbers;
}

/// Where node number i of n on an axis lies.
inline double position(Index i, Index n, double length = 1) {
  return length * static_cast<double>(i + 1) / static_cast<double>(n + 1);
}

inline double norm(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

template <class T, class Settings = relaxation::Settings>
struct Run {
  Report report;
  Settings settings;
  std::vector<relaxation::Share> shares;
  std::vector<T> u;  ///< of all ranks
};

/// Solves with f and a first guess of the whole grid.
template <class T, template <class> class Solver = relaxation::Solver, class Settings = relaxation::Settings>
Run<T, Settings> run(Runtime& runtime, const Problem& problem, const std::type_identity_t<Settings>& settings,
                     const std::vector<T>& f, const std::vector<T>& guess) {
  Solver<T> solver(runtime, problem, settings);
  const auto first = static_cast<std::ptrdiff_t>(solver.first_row() * problem.shape[1]);
  const auto end = first + static_cast<std::ptrdiff_t>(solver.row_count() * problem.shape[1]);
  std::vector<T> u(guess.begin() + first, guess.begin() + end);
  Run<T, Settings> result;
  result.report = solver.solve(f.empty() ? nullptr : f.data() + first, u.data());
  result.settings = solver.settings();
  result.shares = solver.shares();
  std::vector<double> all(guess.size());
  std::copy(u.begin(), u.end(), all.begin() + first);
  sum_over_ranks(runtime, all.data(), static_cast<Index>(all.size()));
  result.u.assign(all.begin(), all.end());
  return result;
}

template <class T>
std::vector<T> zeros(const Problem& p) {
  return std::vector<T>(static_cast<std::size_t>(p.shape[0] * p.shape[1]));
}

/// The methods by their definition, one node after the other.
template <class T>
class Twin {
 public:
  Twin(const Problem& p, const std::vector<T>& f, const std::vector<T>& guess)
      : p_(p), m_(p.shape[0]), n_(p.shape[1]), f_(f), v_(guess) {
    const double ly = p.lengths.empty() ? 1 : p.lengths[0], lx = p.lengths.empty() ? 1 : p.lengths[1];
    const double hy = ly / static_cast<double>(m_ + 1), hx = lx / static_cast<double>(n_ + 1);
    y_ = 1 / (hy * hy);
    x_ = 1 / (hx * hx);
  }

  void sweep(Method method, double omega) {
    if (method == Method::jacobi) {
      const std::vector<T> before = v_;
      std::vector<T> after = v_;
      for (Index i = 0; i < m_; ++i)
        for (Index j = 0; j < n_; ++j) after[at(i, j)] = equation(i, j);
      v_ = after;
      return;
    }
    relax(0, omega);
    relax(1, omega);
    if (method != Method::ssor) return;
    relax(1, omega);
    relax(0, omega);
  }

  [[nodiscard]] const std::vector<T>& v() const { return v_; }

 private:
  [[nodiscard]] std::size_t at(Index i, Index j) const { return static_cast<std::size_t>(i * n_ + j); }

  [[nodiscard]] double neighbour(Index i, Index j) const {
    if (i < 0) return static_cast<T>(value_at(p_.y_lower, j));
    if (i == m_) return static_cast<T>(value_at(p_.y_upper, j));
    if (j < 0) return static_cast<T>(value_at(p_.x_lower, i));
    if (j == n_) return static_cast<T>(value_at(p_.x_upper, i));
    return v_[at(i, j)];
  }

  /// What node (i, j) is if all its neighbours are right.
  [[nodiscard]] T equation(Index i, Index j) const {
    const double sum =
        y_ * (neighbour(i - 1, j) + neighbour(i + 1, j)) + x_ * (neighbour(i, j - 1) + neighbour(i, j + 1));
    return static_cast<T>((sum - (f_.empty() ? 0 : static_cast<double>(f_[at(i, j)]))) / (2 * y_ + 2 * x_));
  }

  void relax(Index colour, double omega) {
    for (Index i = 0; i < m_; ++i)
      for (Index j = 0; j < n_; ++j)
        if ((i + j) % 2 == colour) {
          const double v = v_[at(i, j)];
          v_[at(i, j)] = static_cast<T>(v + omega * (static_cast<double>(equation(i, j)) - v));
        }
  }

  const Problem& p_;
  Index m_, n_;
  double y_ = 0, x_ = 0;
  const std::vector<T>& f_;
  std::vector<T> v_;
};

/// Different values on every side.
inline Problem with_sides(Index rows, Index nodes) {
  Problem p{.shape = {rows, nodes}, .lengths = {1.5, 0.8}};
  p.y_lower.values = random_numbers<double>(nodes, 1);
  p.y_upper.value = -0.75;
  p.x_lower.value = 0.5;
  p.x_upper.values = random_numbers<double>(rows, 2);
  return p;
}

/// The same sweeps, residuals and u, but for the factor, for 2^power times f, the sides and the first guess.
/// @param solve solve(problem, f, guess): a Run
template <class T, class Solve>
void check_scaling(const Problem& problem, const std::vector<int>& powers, const Solve& solve) {
  const Index unknowns = problem.shape[0] * problem.shape[1];
  const auto solved = [&](int power) {
    const auto times = [&](auto numbers) {
      for (auto& number : numbers) number = std::ldexp(number, power);
      return numbers;
    };
    Problem scaled = problem;
    for (relaxation::Side* side : {&scaled.y_lower, &scaled.y_upper, &scaled.x_lower, &scaled.x_upper}) {
      side->value = std::ldexp(side->value, power);
      side->values = times(side->values);
    }
    return solve(scaled, times(random_numbers<T>(unknowns, 5)), times(random_numbers<T>(unknowns, 6)));
  };
  const auto once = solved(0);
  CHECK(once.report.reason == Reason::solved);
  CHECK(once.report.iterations > 0);
  for (const int power : powers) {
    CAPTURE(power);
    const auto scaled = solved(power);
    CHECK(scaled.report.reason == Reason::solved);
    CHECK(scaled.report.iterations == once.report.iterations);
    const std::vector<double>&found = scaled.report.residual_history,
          &expected = once.report.residual_history;
    REQUIRE(found.size() == expected.size());
    for (std::size_t k = 0; k < found.size(); ++k)
      CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-13));
    std::vector<T> u = once.u;
    for (T& value : u) value = std::ldexp(value, power);
    CHECK(scaled.u == u);
  }
}

inline std::string description(const Settings& s) {
  return std::string("method ") + std::to_string(static_cast<int>(s.method)) + ", sweeps per task " +
         std::to_string(s.sweeps_per_task) + ", stripes " + std::to_string(s.stripes) + ", exchange " +
         std::to_string(static_cast<int>(s.exchange)) +
         (s.arrangement == Arrangement::natural ? ", natural" : ", separated");
}

}  // namespace asterism::test
