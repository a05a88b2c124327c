#include "eigen_cg.hpp"

#include <Eigen/IterativeLinearSolvers>
#include <Eigen/SparseCore>
#include <algorithm>
#include <chrono>
#include <limits>

namespace asterism::tools {
namespace {

template <class T>
using Matrix = Eigen::SparseMatrix<T, Eigen::RowMajor, std::int32_t>;
template <class T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

/// x after so many iterations. @return seconds
template <class Solver, class T>
double solve(Solver& solver, const Vector<T>& b, Index iterations, Vector<T>& x) {
  solver.setMaxIterations(static_cast<Eigen::Index>(iterations));
  const auto start = std::chrono::steady_clock::now();
  x = solver.solve(b);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Preconditioner, class T>
BaselineTimes time_solver(const Matrix<T>& a, Index iterations, int repeats) {
  Eigen::ConjugateGradient<Matrix<T>, Eigen::Lower | Eigen::Upper, Preconditioner> solver;
  solver.setTolerance(0);
  solver.compute(a);
  const Vector<T> b = Vector<T>::Ones(a.rows());
  Vector<T> x(a.rows());
  double seconds = std::numeric_limits<double>::infinity();
  solve(solver, b, iterations, x);  // to warm up
  for (int i = 0; i < repeats; ++i) seconds = std::min(seconds, solve(solver, b, iterations, x));
  return {iterations, seconds / static_cast<double>(iterations + 1),
          static_cast<double>((b - a * x).norm() / b.norm())};
}

}  // namespace

std::string about_eigen(int threads) {
  const int used = (Eigen::setNbThreads(threads), Eigen::nbThreads());
  return fmt::format(
      "Eigen {}.{}.{}: its ConjugateGradient, compressed rows, Lower|Upper, {} in the products",
      EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION,
      used == 1 ? "one thread" : fmt::format("{} threads (OpenMP)", used));
}

template <class T>
BaselineTimes eigen_cg(const NarrowRows<T>& a, Diagonal diagonal, int threads, Index iterations,
                       int repeats) {
  Eigen::setNbThreads(threads);
  const Matrix<T> matrix = Eigen::Map<const Matrix<T>>(a.rows(), a.rows(), a.entries(), a.begins.data(),
                                                       a.columns.data(), a.values.data());
  return diagonal == Diagonal::preconditions
             ? time_solver<Eigen::DiagonalPreconditioner<T>, T>(matrix, iterations, repeats)
             : time_solver<Eigen::IdentityPreconditioner, T>(matrix, iterations, repeats);
}

template BaselineTimes eigen_cg(const NarrowRows<float>&, Diagonal, int, Index, int);
template BaselineTimes eigen_cg(const NarrowRows<double>&, Diagonal, int, Index, int);

}  // namespace asterism::tools
