#include <algorithm>

#include "../runtime/cuda.hpp"
#include "five_point.hpp"

namespace asterism::kernels::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int threads = 256;     // one column each
constexpr Index rows_each = 32;  // that a thread walks down

__host__ __device__ constexpr Index parts(Index extent, Index of) { return (extent + of - 1) / of; }

/// The patches of threads x rows_each nodes that a grid is cut into, numbered along the rows first.
__host__ __device__ constexpr Index patches(Index rows, Index cols) {
  return parts(cols, threads) * parts(rows, rows_each);
}

/// A thread's part of a patch: rows first_row ... end_row - 1 of one column.
struct Walk {
  Index column, first_row, end_row;

  __device__ Walk(Index patch, Index rows, Index cols)
      : column(patch % parts(cols, threads) * threads + threadIdx.x),
        first_row(patch / parts(cols, threads) * rows_each),
        end_row(column < cols ? min(first_row + rows_each, rows) : first_row) {}
};

template <class T>
__global__ void __launch_bounds__(threads) sine_rhs_kernel(ModelProblem problem, Index first_row, Out<T> f) {
  const Walk walk(blockIdx.x, f.rows, f.cols);
  const double factor = sine_eigenvalue * sine_factor(problem.x0, problem.hx, walk.column);
  for (Index i = walk.first_row; i < walk.end_row; ++i)
    f.row(i)[walk.column] = static_cast<T>(factor * sine_factor(problem.y0, problem.hy, first_row + i));
}

template <class T>
__global__ void __launch_bounds__(threads)
    random_rhs_kernel(FivePoint a, ModelProblem problem, Index first_row, Out<T> f) {
  const Walk walk(blockIdx.x, f.rows, f.cols);
  const Index j = walk.column;
  double north = random_solution(problem, first_row + walk.first_row - 1, j);
  double centre = random_solution(problem, first_row + walk.first_row, j);
  for (Index i = walk.first_row; i < walk.end_row; ++i) {
    const Index row = first_row + i;
    const double south = random_solution(problem, row + 1, j);
    f.row(i)[j] = static_cast<T>(laplacian(a, centre, random_solution(problem, row, j - 1),
                                           random_solution(problem, row, j + 1), north, south));
    north = centre;
    centre = south;
  }
}

struct Sums {
  double values[residual_sums] = {};
};

/// Adds the sums of all threads of the block, always in the same order, and writes the total.
__device__ void write_block_sums(const Sums& own, double* total) {
  __shared__ double shared[residual_sums][threads];
  const int t = static_cast<int>(threadIdx.x);
  for (int s = 0; s < residual_sums; ++s) shared[s][t] = own.values[s];
  for (int width = threads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (t < width)
      for (int s = 0; s < residual_sums; ++s) shared[s][t] += shared[s][t + width];
  }
  if (t == 0)
    for (int s = 0; s < residual_sums; ++s) total[s] = shared[s][0];
}

template <class T>
__global__ void __launch_bounds__(threads)
    residual_kernel(SlabProblem slab, In<T> u, In<T> above, In<T> below, In<T> f, double* partial) {
  const ModelProblem& problem = slab.problem;
  const bool sine = slab.known && problem.model == Model::sine;
  const Index n = u.cols;
  Sums sums;
  for (Index patch = blockIdx.x; patch < patches(u.rows, n); patch += gridDim.x) {
    const Walk walk(patch, u.rows, n);
    const Index j = walk.column;
    if (j >= n) continue;
    const auto value = [&](Index i) -> double {
      return i < 0 ? above.data[j] : i < u.rows ? u.row(i)[j] : below.data[j];
    };
    const double factor = sine ? sine_factor(problem.x0, problem.hx, j) : 0.0;
    double north = value(walk.first_row - 1), centre = value(walk.first_row);
    for (Index i = walk.first_row; i < walk.end_row; ++i) {
      const double south = value(i + 1);
      const double west = j > 0 ? u.row(i)[j - 1] : T{0}, east = j + 1 < n ? u.row(i)[j + 1] : T{0};
      const double rhs = f.row(i)[j];
      const double r = rhs - laplacian(slab.a, centre, west, east, north, south);
      sums.values[residual2] += r * r;
      sums.values[rhs2] += rhs * rhs;
      sums.values[solution2] += centre * centre;
      if (slab.known) {
        const Index row = slab.first_row + i;
        const double known =
            sine ? factor * sine_factor(problem.y0, problem.hy, row) : random_solution(problem, row, j);
        sums.values[error2] += (centre - known) * (centre - known);
        sums.values[known2] += known * known;
      }
      north = centre;
      centre = south;
    }
  }
  write_block_sums(sums, partial + static_cast<Index>(blockIdx.x) * residual_sums);
}

__global__ void __launch_bounds__(threads)
    add_partial_sums_kernel(const double* partial, Index count, double* total) {
  Sums sums;
  for (Index b = threadIdx.x; b < count; b += threads)
    for (int s = 0; s < residual_sums; ++s) sums.values[s] += partial[b * residual_sums + s];
  write_block_sums(sums, total);
}

}  // namespace

template <class T>
void model_rhs(Stream stream, const ModelProblem& problem, Index first_row, Out<T> f) {
  const auto blocks = static_cast<unsigned>(patches(f.rows, f.cols));
  if (problem.model == Model::sine)
    sine_rhs_kernel<<<blocks, threads, 0, native(stream)>>>(problem, first_row, f);
  else
    random_rhs_kernel<<<blocks, threads, 0, native(stream)>>>(five_point(problem.hx, problem.hy), problem,
                                                              first_row, f);
  check_launch("model_rhs");
}

template <class T>
void residual(Stream stream, const SlabProblem& slab, In<T> u, In<T> above, In<T> below, In<T> f,
              Out<double> sums, Scratch<double> work) {
  const Index blocks = std::min(patches(u.rows, u.cols), residual_blocks);
  residual_kernel<<<static_cast<unsigned>(blocks), threads, 0, native(stream)>>>(slab, u, above, below, f,
                                                                                 work.data);
  check_launch("residual");
  add_partial_sums_kernel<<<1, threads, 0, native(stream)>>>(work.data, blocks, sums.data);
  check_launch("residual sums");
}

template void model_rhs(Stream, const ModelProblem&, Index, Out<float>);
template void model_rhs(Stream, const ModelProblem&, Index, Out<double>);
template void residual(Stream, const SlabProblem&, In<float>, In<float>, In<float>, In<float>, Out<double>,
                       Scratch<double>);
template void residual(Stream, const SlabProblem&, In<double>, In<double>, In<double>, In<double>,
                       Out<double>, Scratch<double>);

}  // namespace asterism::kernels::cuda
