/// \file
/// Eigen's conjugate gradients, what ours on cores are measured against.
#pragma once

#include <string>

#include "../relaxation/narrow_rows.hpp"

namespace asterism::tools {

enum class Diagonal { unused, preconditions };

struct BaselineTimes {
  Index iterations = 0;
  double seconds_per_iteration = 0;
  double residual = 0;  ///< ||b - A x|| / ||b|| after them
};

/// What it is, and with how many threads.
std::string about_eigen(int threads);

/// From x = 0, b = 1; the fastest of the repeats. What is done before the first iteration (a product, a norm, a copy)
/// counts as one more of them.
template <class T>
BaselineTimes eigen_cg(const NarrowRows<T>& a, Diagonal diagonal, int threads, Index iterations, int repeats);

}  // namespace asterism::tools
