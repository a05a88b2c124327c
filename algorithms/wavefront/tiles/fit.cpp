#include "fit.hpp"

#include <algorithm>
#include <cstddef>

// A program that is linked with Asterism may have an Eigen of its own, compiled for other instructions. Under
// one name the linker would take the functions of either for those of both.
#define Eigen asterism_eigen
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Dense>

namespace asterism::wavefront::tile_model {
namespace {

/// Lawson and Hanson's active sets: the x >= 0 that makes |a x - b| least.
Eigen::VectorXd non_negative_least_squares(Eigen::MatrixXd a, const Eigen::VectorXd& b) {
  using Eigen::Index;
  const Index unknowns = a.cols();
  Eigen::VectorXd unit(unknowns);  // columns in their own units
  for (Index k = 0; k < unknowns; ++k) {
    unit(k) = a.col(k).norm();
    if (unit(k) > 0) a.col(k) /= unit(k);
  }
  Eigen::VectorXd x = Eigen::VectorXd::Zero(unknowns);
  std::vector<Index> used;
  const auto solution = [&] {  // least squares in the columns that are used
    Eigen::MatrixXd part(a.rows(), static_cast<Index>(used.size()));
    for (std::size_t k = 0; k < used.size(); ++k) part.col(static_cast<Index>(k)) = a.col(used[k]);
    Eigen::VectorXd all = Eigen::VectorXd::Zero(unknowns);
    const Eigen::VectorXd s = part.colPivHouseholderQr().solve(b);
    for (std::size_t k = 0; k < used.size(); ++k) all(used[k]) = s(static_cast<Index>(k));
    return all;
  };
  for (Index step = 0; step < 10 * unknowns; ++step) {
    const Eigen::VectorXd gradient = a.transpose() * (b - a * x);
    Index best = -1;
    for (Index k = 0; k < unknowns; ++k)
      if (std::find(used.begin(), used.end(), k) == used.end() && gradient(k) > 1e-10 &&
          (best < 0 || gradient(k) > gradient(best)))
        best = k;
    if (best < 0) break;
    used.push_back(best);
    while (!used.empty()) {
      const Eigen::VectorXd s = solution();
      if (std::all_of(used.begin(), used.end(), [&](Index k) { return s(k) > 0; })) {
        x = s;
        break;
      }
      double part = 1;
      for (const Index k : used)
        if (s(k) <= 0) part = std::min(part, x(k) / (x(k) - s(k)));
      x += part * (s - x);
      std::erase_if(used, [&](Index k) {
        const bool out = x(k) <= 1e-14;
        if (out) x(k) = 0;
        return out;
      });
    }
  }
  for (Index k = 0; k < unknowns; ++k)
    if (unit(k) > 0) x(k) /= unit(k);
  return x;
}

}  // namespace

Terms fit(const std::vector<Terms>& counted, const std::vector<double>& seconds) {
  // Relative errors: each run's equation over its seconds.
  Eigen::MatrixXd a(static_cast<Eigen::Index>(counted.size()), static_cast<Eigen::Index>(terms));
  for (std::size_t i = 0; i < counted.size(); ++i)
    for (std::size_t k = 0; k < terms; ++k)
      a(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(k)) = counted[i][k] / seconds[i];
  const Eigen::VectorXd x = non_negative_least_squares(a, Eigen::VectorXd::Ones(a.rows()));
  Terms coefficients{};
  std::copy(x.begin(), x.end(), coefficients.begin());
  return coefficients;
}

void calibrate(Costs& costs, int multiprocessors, const std::vector<Run>& runs) {
  if (runs.empty()) return;
  const auto count = static_cast<Eigen::Index>(runs.size());
  Eigen::MatrixXd a(count, 5);
  Eigen::VectorXd b(count);
  const auto solve = [&](double least_border) {
    for (Eigen::Index i = 0; i < count; ++i) {
      const Run& run = runs[static_cast<std::size_t>(i)];
      const Parts parts = parts_of(costs, multiprocessors, run.args);
      a.row(i) << parts.border, parts.turns, parts.columns, parts.strands, parts.wavefronts;
      if (least_border > 0) a(i, 0) = 0;
      a.row(i) /= run.seconds;
      b(i) = (run.seconds - parts.fixed - least_border * parts.border) / run.seconds;
    }
    return non_negative_least_squares(a, b);
  };
  Eigen::VectorXd x = solve(0);
  costs.border = x(0);
  if (costs.border > 1) {
    x = solve(1);
    costs.border = 1;
  }
  costs.turn = x(1);
  costs.column = x(2);
  costs.strands = x(3);
  for (auto& [blocks, seconds] : costs.block) seconds += x(4);
}

}  // namespace asterism::wavefront::tile_model
