// baseline_poisson MxN [repeats]
//
// The fast Poisson solver as one would write it without a runtime system: FFTW and OpenMP, the whole grid in
// memory. What the task-based solver is measured against. Solves u_xx + u_yy = f on the unit square with zero
// Dirichlet values, f the discrete Laplacian of random numbers, float64, and prints the best time of the
// repeats as a line of JSON.

#include <fftw3.h>
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <vector>

#include "codelets/grid/laplacian.hpp"

using asterism::Index;
using namespace asterism::grid;

namespace {

// Columns that one thread eliminates together. The pivots and the unknowns of one strip stay in a core's
// second-level cache on the way down and back up, so that the grid passes through memory once.
constexpr Index strip = 16;
// Rows at a distance of a large power of two would fall into the same few cache sets.
Index padded(Index n) { return ((n + 7) / 8 | 1) * 8; }

// Column k of v: v[j-1] - d_k v[j] + v[j+1] = scale v[j], in place.
void thomas(double* v, Index m, Index n, Index ld, const double* d, double scale, double* pivots) {
  double c[strip] = {}, g[strip] = {};
  for (Index j = 0; j < m; ++j)
    for (Index k = 0; k < n; ++k) {
      double& x = v[j * ld + k];
      c[k] = 1 / (d[k] - c[k]);
      g[k] = c[k] * (g[k] - scale * x);
      pivots[j * strip + k] = c[k];
      x = g[k];
    }
  for (Index j = m - 2; j >= 0; --j)
    for (Index k = 0; k < n; ++k) v[j * ld + k] += pivots[j * strip + k] * v[(j + 1) * ld + k];
}

void transform(fftw_plan plan, double* v, Index m, Index ld) {
#pragma omp parallel for schedule(static)
  for (Index i = 0; i < m; ++i) fftw_execute_r2r(plan, v + i * ld, v + i * ld);
}

void solve(fftw_plan plan, double* v, Index m, Index n, Index ld, const double* d, double scale) {
  transform(plan, v, m, ld);
#pragma omp parallel
  {
    std::vector<double> pivots(static_cast<std::size_t>(m * strip));
#pragma omp for schedule(static)
    for (Index k = 0; k < n; k += strip)
      if (n - k >= strip)
        thomas(v + k, m, strip, ld, d + k, scale, pivots.data());
      else
        thomas(v + k, m, n - k, ld, d + k, scale, pivots.data());
  }
  transform(plan, v, m, ld);
}

}  // namespace

int main(int argc, char** argv) {
  long long m = 0, n = 0;
  if (argc < 2 || std::sscanf(argv[1], "%lldx%lld", &m, &n) != 2 || m < 1 || n < 1) {
    std::fprintf(stderr, "usage: baseline_poisson MxN [repeats]\n");
    return 2;
  }
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 3;

  const Index ld = padded(n);
  const std::size_t bytes = static_cast<std::size_t>(m * ld) * sizeof(double);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "baseline_poisson: no room for %zu bytes\n", bytes);
    return 3;
  }
  madvise(memory, bytes, MADV_HUGEPAGE);
  double* u = static_cast<double*>(memory);

  const double hx = 1.0 / static_cast<double>(n + 1), hy = 1.0 / static_cast<double>(m + 1);
  const double per_hx2 = 1 / (hx * hx), per_hy2 = 1 / (hy * hy);
  const auto laplacian = [&](const auto& at, Index i, Index j) {
    const double centre = at(i, j);
    return per_hx2 * ((at(i, j - 1) - centre) + (at(i, j + 1) - centre)) +
           per_hy2 * ((at(i - 1, j) - centre) + (at(i + 1, j) - centre));
  };
  const auto axis = [](Index nodes) {
    return Axis{nodes, 1, Condition::dirichlet, Condition::dirichlet, Centering::node};
  };
  const ModelProblem problem{Model::random, 1, axis(m), {no_axis, axis(n), 0}};
  const auto known = [&](Index i, Index j) { return j < 0 || j >= n ? 0.0 : random_solution(problem, i, j); };
  const auto f = [&](Index i, Index j) { return laplacian(known, i, j); };

  std::vector<double> d(static_cast<std::size_t>(n));
  for (Index k = 0; k < n; ++k) {
    const double s = (hy / hx) * std::sin(static_cast<double>(k + 1) * std::numbers::pi * hx / 2);
    d[static_cast<std::size_t>(k)] = 2 + 4 * s * s;
  }
  const fftw_plan plan = fftw_plan_r2r_1d(static_cast<int>(n), u, u, FFTW_RODFT00, FFTW_MEASURE);

  double seconds = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < repeats; ++repeat) {
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) u[i * ld + j] = f(i, j);
    const auto start = std::chrono::steady_clock::now();
    solve(plan, u, m, n, ld, d.data(), hy * hy / (2.0 * static_cast<double>(n + 1)));
    seconds =
        std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  double residual2 = 0, u2 = 0, f2 = 0;
#pragma omp parallel for schedule(static) reduction(+ : residual2, u2, f2)
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      const auto at = [&](Index y, Index x) {
        return y < 0 || y >= m || x < 0 || x >= n ? 0.0 : u[y * ld + x];
      };
      const double rhs = f(i, j), r = rhs - laplacian(at, i, j);
      residual2 += r * r;
      u2 += u[i * ld + j] * u[i * ld + j];
      f2 += rhs * rhs;
    }
  const double norm = 4 * (per_hx2 + per_hy2);
  std::printf(
      "{\"grid\":[%lld,%lld],\"threads\":%d,\"seconds\":%.6f,\"scaled_residual\":%.3e,\"repeats\":%d}\n", m,
      n, omp_get_max_threads(), seconds, std::sqrt(residual2) / (norm * std::sqrt(u2) + std::sqrt(f2)),
      repeats);
}
