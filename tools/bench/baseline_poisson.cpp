// baseline_poisson MxN|LxMxN [repeats]
//
// The fast Poisson solver as one would write it without a runtime system: FFTW and OpenMP, the whole grid in memory. What the
// task-based solver is measured against. Solves u_xx + u_yy (+ u_zz) = f on the unit square or cube with zero Dirichlet
// values, f the discrete Laplacian of random numbers, float64, and prints the best time of the repeats as a line of JSON.

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

// Columns that one thread eliminates together. The pivots and the unknowns of one strip stay in a core's second-level cache
// on the way down and back up, so that the grid passes through memory once.
constexpr Index strip = 16;

// Planes of rows; in two dimensions a plane is a single row.
struct Grid {
  Index planes, rows, cols;
  bool is_3d;

  // Rows at a distance of a large power of two would fall into the same few cache sets.
  [[nodiscard]] Index ld() const { return ((cols + 7) / 8 | 1) * 8; }
  [[nodiscard]] Index plane() const { return rows * ld(); }
  [[nodiscard]] Index at(Index i, Index j, Index k) const { return i * plane() + j * ld() + k; }
};

double step(Index nodes) { return 1.0 / static_cast<double>(nodes + 1); }
double square(double x) { return x * x; }

// Column k of v: v[i-1] - d_k v[i] + v[i+1] = scale v[i], in place.
void thomas(double* v, Index planes, Index cols, Index plane, const double* d, double scale, double* pivots) {
  double c[strip] = {}, g[strip] = {};
  for (Index i = 0; i < planes; ++i)
    for (Index k = 0; k < cols; ++k) {
      double& x = v[i * plane + k];
      c[k] = 1 / (d[k] - c[k]);
      g[k] = c[k] * (g[k] - scale * x);
      pivots[i * strip + k] = c[k];
      x = g[k];
    }
  for (Index i = planes - 2; i >= 0; --i)
    for (Index k = 0; k < cols; ++k) v[i * plane + k] += pivots[i * strip + k] * v[(i + 1) * plane + k];
}

void transform(fftw_plan plan, double* v, const Grid& grid) {
#pragma omp parallel for schedule(static)
  for (Index i = 0; i < grid.planes; ++i) fftw_execute_r2r(plan, v + i * grid.plane(), v + i * grid.plane());
}

void solve(fftw_plan plan, double* v, const Grid& grid, const double* d, double scale) {
  transform(plan, v, grid);
#pragma omp parallel
  {
    std::vector<double> pivots(static_cast<std::size_t>(grid.planes * strip));
#pragma omp for schedule(static) collapse(2)
    for (Index j = 0; j < grid.rows; ++j)
      for (Index k = 0; k < grid.cols; k += strip) {
        double* const first = v + grid.at(0, j, k);
        const double* const its_d = d + j * grid.cols + k;
        if (grid.cols - k >= strip)
          thomas(first, grid.planes, strip, grid.plane(), its_d, scale, pivots.data());
        else
          thomas(first, grid.planes, grid.cols - k, grid.plane(), its_d, scale, pivots.data());
      }
  }
  transform(plan, v, grid);
}

// The sine transforms of a plane's rows, and in three dimensions of its columns.
fftw_plan plan_of(const Grid& grid, double* v) {
  const int sizes[2] = {static_cast<int>(grid.rows), static_cast<int>(grid.cols)};
  const int room[2] = {sizes[0], static_cast<int>(grid.ld())};
  const fftw_r2r_kind kinds[2] = {FFTW_RODFT00, FFTW_RODFT00};
  const int axes = grid.is_3d ? 2 : 1, first = 2 - axes;
  return fftw_plan_many_r2r(axes, sizes + first, 1, v, room + first, 1, 0, v, room + first, 1, 0, kinds,
                            FFTW_MEASURE);
}

// What stands on the diagonals of the columns' systems.
std::vector<double> diagonals(const Grid& grid) {
  const double h = step(grid.planes);
  const auto eigenvalue = [&](Index k, Index nodes) {
    return square(h / step(nodes) *
                  std::sin(static_cast<double>(k + 1) * std::numbers::pi * step(nodes) / 2));
  };
  std::vector<double> d;
  for (Index j = 0; j < grid.rows; ++j)
    for (Index k = 0; k < grid.cols; ++k)
      d.push_back(2 + 4 * (eigenvalue(k, grid.cols) + (grid.is_3d ? eigenvalue(j, grid.rows) : 0)));
  return d;
}

}  // namespace

int main(int argc, char** argv) {
  long long sizes[3] = {};
  const int axes = argc < 2 ? 0 : std::sscanf(argv[1], "%lldx%lldx%lld", sizes, sizes + 1, sizes + 2);
  if (axes < 2 || std::any_of(sizes, sizes + axes, [](long long n) { return n < 1; })) {
    std::fprintf(stderr, "usage: baseline_poisson MxN|LxMxN [repeats]\n");
    return 2;
  }
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 3;
  const Grid grid = axes == 2 ? Grid{sizes[0], 1, sizes[1], false} : Grid{sizes[0], sizes[1], sizes[2], true};

  const std::size_t bytes = static_cast<std::size_t>(grid.planes * grid.plane()) * sizeof(double);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "baseline_poisson: no room for %zu bytes\n", bytes);
    return 3;
  }
  madvise(memory, bytes, MADV_HUGEPAGE);
  double* const u = static_cast<double*>(memory);

  const double per_hz2 = 1 / square(step(grid.planes)), per_hx2 = 1 / square(step(grid.cols)),
               per_hy2 = grid.is_3d ? 1 / square(step(grid.rows)) : 0;
  const auto laplacian = [&](const auto& at, Index i, Index j, Index k) {
    const double centre = at(i, j, k);
    return per_hx2 * ((at(i, j, k - 1) - centre) + (at(i, j, k + 1) - centre)) +
           per_hy2 * ((at(i, j - 1, k) - centre) + (at(i, j + 1, k) - centre)) +
           per_hz2 * ((at(i - 1, j, k) - centre) + (at(i + 1, j, k) - centre));
  };
  const auto is_inside = [&](Index i, Index j, Index k) {
    return i >= 0 && i < grid.planes && j >= 0 && j < grid.rows && k >= 0 && k < grid.cols;
  };
  const auto axis = [](Index nodes) {
    return Axis{nodes, 1, Condition::dirichlet, Condition::dirichlet, Centering::node};
  };
  const ModelProblem problem{
      Model::random, 1, axis(grid.planes), {grid.is_3d ? axis(grid.rows) : no_axis, axis(grid.cols), 0}};
  const auto known = [&](Index i, Index j, Index k) {
    return is_inside(i, j, k) ? random_solution(problem, i, j * grid.cols + k) : 0.0;
  };
  const auto f = [&](Index i, Index j, Index k) { return laplacian(known, i, j, k); };

  const std::vector<double> d = diagonals(grid);
  const double scale =
      square(step(grid.planes)) * step(grid.cols) / 2 * (grid.is_3d ? step(grid.rows) / 2 : 1);
  const fftw_plan plan = plan_of(grid, u);

  double seconds = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < repeats; ++repeat) {
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < grid.planes; ++i)
      for (Index j = 0; j < grid.rows; ++j)
        for (Index k = 0; k < grid.cols; ++k) u[grid.at(i, j, k)] = f(i, j, k);
    const auto start = std::chrono::steady_clock::now();
    solve(plan, u, grid, d.data(), scale);
    seconds =
        std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  double residual2 = 0, u2 = 0, f2 = 0;
  const auto found = [&](Index i, Index j, Index k) {
    return is_inside(i, j, k) ? u[grid.at(i, j, k)] : 0.0;
  };
#pragma omp parallel for schedule(static) reduction(+ : residual2, u2, f2)
  for (Index i = 0; i < grid.planes; ++i)
    for (Index j = 0; j < grid.rows; ++j)
      for (Index k = 0; k < grid.cols; ++k) {
        const double rhs = f(i, j, k);
        residual2 += square(rhs - laplacian(found, i, j, k));
        u2 += square(found(i, j, k));
        f2 += square(rhs);
      }
  const double norm = 4 * (per_hx2 + per_hy2 + per_hz2);
  std::printf("{\"grid\":\"%s\",\"threads\":%d,\"seconds\":%.6f,\"scaled_residual\":%.3e,\"repeats\":%d}\n",
              argv[1], omp_get_max_threads(), seconds,
              std::sqrt(residual2) / (norm * std::sqrt(u2) + std::sqrt(f2)), repeats);
}
