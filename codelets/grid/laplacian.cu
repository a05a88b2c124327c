#include <algorithm>

#include "../../runtime/cuda.hpp"
#include "../sums/block_sums.cuh"
#include "laplacian.hpp"

namespace asterism::grid::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int threads = 256;     // one column of a slab each
constexpr int box_width = 64;    // of them along x in three dimensions
constexpr int planes_each = 32;  // that a thread walks through

// Of `residual` on a multiprocessor: left to itself, the compiler takes 74 registers, which leaves room for
// three. With 64 for each thread nothing spills.
constexpr int residual_blocks_at_once = 4;

/// The columns that a block of threads walks down together: a line along x in two dimensions, in three a
/// rectangle, where most neighbours along y are the block's own.
dim3 block_shape(const Operator& a) { return a.y.n == 1 ? dim3(threads, 1) : dim3(box_width, threads / box_width); }

/// The patches of block_shape x planes_each nodes that a slab is cut into, numbered along x first, then y.
/// (Numbers of 32 bits, which divide fast: 2^32 patches are 2^45 nodes.)
struct Patches {
  unsigned x, y, z;

  Patches(const Operator& a, Index rows)
      : x(static_cast<unsigned>(parts(a.x.n, block_shape(a).x))),
        y(static_cast<unsigned>(parts(a.y.n, block_shape(a).y))),
        z(static_cast<unsigned>(parts(rows, planes_each))) {}

  __host__ __device__ unsigned count() const { return x * y * z; }
};

/// A thread's part of a patch: planes first_row ... end_row - 1 of one column.
struct Walk {
  Index x, y, column, first_row, end_row;
  bool inside;  ///< whether the slab has such a column

  __device__ Walk(const Patches& patches, unsigned patch, const Operator& a, Index rows)
      : x(static_cast<Index>(patch % patches.x) * blockDim.x + threadIdx.x),
        y(static_cast<Index>(patch / patches.x % patches.y) * blockDim.y + threadIdx.y),
        column(y * a.x.n + x),
        first_row(static_cast<Index>(patch / patches.x / patches.y) * planes_each),
        end_row(min(first_row + planes_each, rows)),
        inside(x < a.x.n && y < a.y.n) {}
};

__device__ int thread_of_block() { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }

/// What all nodes of a plane share.
struct Plane {
  Weights between;  ///< to the planes before and after
  double factor;    ///< of the sine model, times a scale
};

/// Fills `planes` with those of the block's patch; all threads of the block call it.
/// @param sine_scale 0: no factors are wanted
__device__ void load_planes(const Walk& walk, const Axis& slow, double sine_scale, const In<double>& axis,
                            Plane* planes) {
  __syncthreads();  // all have walked through the patch before
  const int t = thread_of_block();
  if (walk.first_row + t < walk.end_row) {
    const double* const row = axis.row(walk.first_row + t);
    planes[t].between = weights_between_planes(row);
    planes[t].factor =
        sine_scale != 0.0 ? sine_scale * sine_factor(slow, row[position_column] / slow.length) : 0.0;
  }
  __syncthreads();
}

/// The sine model's factor of a column.
__device__ double sine_factor_of_column(const Operator& a, const Walk& walk) {
  return sine_factor(a.y, a.y.fraction(walk.y)) * sine_factor(a.x, a.x.fraction(walk.x));
}

/// A neighbour within the plane, in the same place all the way down: (L2).
struct ColumnBeside {
  Index offset;  ///< from the thread's own column
  double factor;

  __device__ ColumnBeside(const Neighbour& neighbour, Index own, Index stride)
      : offset((neighbour.node - own) * stride), factor(neighbour.factor) {}

  /// @param at at(offset): the value there
  template <class At>
  __device__ double value(double centre, At at) const {
    return factor * (offset == 0 ? centre : at(offset));
  }
};

/// A u down a column.
struct ColumnOperator {
  PlaneWeights weights;
  ColumnBeside y_before, y_after, x_before, x_after;

  __device__ ColumnOperator(const Operator& a, const Walk& walk)
      : weights(a),
        y_before(neighbour_before(a.y, walk.y), walk.y, a.x.n),
        y_after(neighbour_after(a.y, walk.y), walk.y, a.x.n),
        x_before(neighbour_before(a.x, walk.x), walk.x, 1),
        x_after(neighbour_after(a.x, walk.x), walk.x, 1) {}

  /// @param at the value in the same plane, so many columns further
  template <class At>
  __device__ double apply(const Plane& plane, double centre, Sides z, At at) const {
    return grid::apply(weights, plane.between, centre, z,
                       {y_before.value(centre, at), y_after.value(centre, at)},
                       {x_before.value(centre, at), x_after.value(centre, at)});
  }
};

template <class T>
__global__ void __launch_bounds__(threads)
    sine_rhs_kernel(ModelProblem problem, Patches patches, double eigenvalue, In<double> axis, Out<T> f) {
  __shared__ Plane planes[planes_each];
  const Walk walk(patches, blockIdx.x, problem.a, f.rows);
  load_planes(walk, problem.slow, eigenvalue, axis, planes);
  if (!walk.inside) return;
  const double factor = sine_factor_of_column(problem.a, walk);
  for (Index i = walk.first_row; i < walk.end_row; ++i)
    f.row(i)[walk.column] = static_cast<T>(factor * planes[i - walk.first_row].factor);
}

template <class T>
__global__ void __launch_bounds__(threads)
    random_rhs_kernel(ModelProblem problem, Patches patches, Index first_row, In<double> axis, Out<T> f) {
  __shared__ Plane planes[planes_each];
  const Walk walk(patches, blockIdx.x, problem.a, f.rows);
  load_planes(walk, problem.slow, 0.0, axis, planes);
  if (!walk.inside) return;
  const ColumnOperator column(problem.a, walk);
  double before = random_solution(problem, first_row + walk.first_row - 1, walk.column);
  double centre = random_solution(problem, first_row + walk.first_row, walk.column);
  for (Index i = walk.first_row; i < walk.end_row; ++i) {
    const double after = random_solution(problem, first_row + i + 1, walk.column);
    f.row(i)[walk.column] =
        static_cast<T>(column.apply(planes[i - walk.first_row], centre, {before, after}, [&](Index offset) {
          return random_solution(problem, first_row + i, walk.column + offset);
        }));
    before = centre;
    centre = after;
  }
}

/// Adds the sums of all threads of the block and writes the totals.
template <Index count, class Sum>
__device__ void write_block_sums(const Sum (&own)[count], Sum* total) {
  const int t = thread_of_block();
  for (int s = 0; s < count; ++s) {
    const Sum sum = sums::cuda::sum_of_block<threads>(own[s], t);
    if (t == 0) total[s] = sum;
  }
}

template <class T>
__global__ void __launch_bounds__(threads, residual_blocks_at_once)
    residual_kernel(SlabProblem slab, Patches patches, In<T> u, In<T> before_slab, In<T> after_slab, In<T> f,
                    In<double> axis, sums::SquareSum* partial) {
  __shared__ Plane planes[planes_each];
  const ModelProblem& problem = slab.problem;
  const bool sine = slab.known && problem.model == Model::sine;
  sums::SquareSum sums[residual_sums] = {};
  for (unsigned patch = blockIdx.x; patch < patches.count(); patch += gridDim.x) {
    const Walk walk(patches, patch, problem.a, u.rows);
    load_planes(walk, problem.slow, sine ? 1.0 : 0.0, axis, planes);
    if (!walk.inside) continue;
    const Index j = walk.column;
    const auto value = [&](Index i) -> double {
      return i < 0 ? before_slab.data[j] : i < u.rows ? u.row(i)[j] : after_slab.data[j];
    };
    const ColumnOperator column(problem.a, walk);
    const double factor = sine ? sine_factor_of_column(problem.a, walk) : 0.0;
    double before = value(walk.first_row - 1), centre = value(walk.first_row);
    for (Index i = walk.first_row; i < walk.end_row; ++i) {
      const double after = value(i + 1);
      const T* const node = u.row(i) + j;
      const Plane& plane = planes[i - walk.first_row];
      const double rhs = f.row(i)[j];
      const double r = rhs - column.apply(plane, centre, {before, after},
                                          [&](Index offset) -> double { return node[offset]; });
      sums[residual2].add(r);
      sums[rhs2].add(rhs);
      sums[solution2].add(centre);
      if (slab.known) {
        const double known = sine ? factor * plane.factor : random_solution(problem, slab.first_row + i, j);
        sums[error2].add(centre - known);
        sums[known2].add(known);
      }
      before = centre;
      centre = after;
    }
  }
  write_block_sums(sums, partial + static_cast<Index>(blockIdx.x) * residual_sums);
}

/// Blocks so many for each plane: each has every so many-th lot of lines along x, with `across` threads on each. Of a line
/// `at_once` numbers a thread are under way at a time.
template <class T, unsigned across>
__global__ void __launch_bounds__(threads)
    moments_kernel(Operator a, In<T> f, In<double> axis, Out<double> of_blocks) {
  constexpr unsigned lines = threads / across;
  constexpr Index at_once = 8;
  const Index blocks = of_blocks.rows / f.rows, i = blockIdx.x / blocks;
  double sums[moments_count] = {};
  for (Index y = blockIdx.x % blocks * lines + threadIdx.y; y < a.y.n; y += blocks * lines) {
    const T* const line = f.row(i) + y * a.x.n;
    double of_line[moments_count] = {};
    const auto add = [&](Index x, T value) {
      const double weighted = relative_width(a.x, x) * static_cast<double>(value);
      of_line[first_moment] += weighted;
      of_line[absolute_moment] += fabs(weighted);
    };
    Index x = threadIdx.x;
    for (; x + (at_once - 1) * across < a.x.n; x += at_once * across) {
      T values[at_once];
#pragma unroll
      for (Index k = 0; k < at_once; ++k) values[k] = line[x + k * across];
#pragma unroll
      for (Index k = 0; k < at_once; ++k) add(x + k * across, values[k]);
    }
    for (; x < a.x.n; x += across) add(x, line[x]);
    const double width = axis.row(i)[width_column] * relative_width(a.y, y);
    for (int s = 0; s < moments_count; ++s) sums[s] += width * of_line[s];
  }
  write_block_sums(sums, of_blocks.row(blockIdx.x));
}

template <unsigned across, class T>
void launch_moments(Stream stream, const Operator& a, In<T> f, In<double> axis, Out<double> of_blocks) {
  moments_kernel<T, across><<<static_cast<unsigned>(of_blocks.rows), dim3(across, threads / across), 0, native(stream)>>>(
      a, f, axis, of_blocks);
  check_launch("moments");
}

__global__ void __launch_bounds__(threads) add_moments_kernel(In<double> of_blocks, Out<double> sums) {
  const Index i = static_cast<Index>(blockIdx.x) * threads + threadIdx.x, blocks = of_blocks.rows / sums.rows;
  if (i >= sums.rows) return;
  for (int s = 0; s < moments_count; ++s) {
    double sum = 0.0;
    for (Index b = 0; b < blocks; ++b) sum += of_blocks.row(i * blocks + b)[s];
    sums.row(i)[s] = sum;
  }
}

__global__ void __launch_bounds__(threads)
    add_partial_sums_kernel(const sums::SquareSum* partial, Index blocks, sums::SquareSum* total) {
  sums::SquareSum sums[residual_sums] = {};
  for (Index b = threadIdx.x; b < blocks; b += threads)
    for (int s = 0; s < residual_sums; ++s) sums[s] += partial[b * residual_sums + s];
  write_block_sums(sums, total);
}

Index summing_blocks_of(const Patches& patches) { return std::min<Index>(patches.count(), summing_blocks); }

}  // namespace

template <class T>
void model_rhs(Stream stream, const ModelProblem& problem, Index first_row, In<double> axis, Out<T> f) {
  const Patches patches(problem.a, f.rows);
  const dim3 block = block_shape(problem.a);
  if (problem.model == Model::sine)
    sine_rhs_kernel<<<patches.count(), block, 0, native(stream)>>>(problem, patches, sine_eigenvalue(problem),
                                                                   axis, f);
  else
    random_rhs_kernel<<<patches.count(), block, 0, native(stream)>>>(problem, patches, first_row, axis, f);
  check_launch("model_rhs");
}

template <class T>
void residual(Stream stream, const SlabProblem& slab, In<T> u, In<T> before, In<T> after, In<T> f,
              In<double> axis, Out<sums::SquareSum> sums, Scratch<sums::SquareSum> work) {
  const Operator& a = slab.problem.a;
  const Patches patches(a, u.rows);
  const Index blocks = summing_blocks_of(patches);
  residual_kernel<<<static_cast<unsigned>(blocks), block_shape(a), 0, native(stream)>>>(
      slab, patches, u, before, after, f, axis, work.data);
  check_launch("residual");
  add_partial_sums_kernel<<<1, threads, 0, native(stream)>>>(work.data, blocks, sums.data);
  check_launch("residual sums");
}

template <class T>
void moments(Stream stream, const Operator& a, In<T> f, In<double> axis, Out<double> sums,
             Scratch<double> work) {
  const Index blocks = std::min(parts(a.y.n, block_shape(a).y), plane_blocks);
  const Out<double> of_blocks =
      blocks == 1 ? sums : Out<double>{work.data, f.rows * blocks, moments_count, moments_count};
  if (a.y.n == 1)
    launch_moments<threads>(stream, a, f, axis, of_blocks);
  else
    launch_moments<box_width>(stream, a, f, axis, of_blocks);
  if (blocks == 1) return;
  add_moments_kernel<<<static_cast<unsigned>(parts(f.rows, threads)), threads, 0, native(stream)>>>(as_in(of_blocks), sums);
  check_launch("moments' sums");
}

template void model_rhs(Stream, const ModelProblem&, Index, In<double>, Out<float>);
template void model_rhs(Stream, const ModelProblem&, Index, In<double>, Out<double>);
template void residual(Stream, const SlabProblem&, In<float>, In<float>, In<float>, In<float>, In<double>,
                       Out<sums::SquareSum>, Scratch<sums::SquareSum>);
template void residual(Stream, const SlabProblem&, In<double>, In<double>, In<double>, In<double>, In<double>,
                       Out<sums::SquareSum>, Scratch<sums::SquareSum>);
template void moments(Stream, const Operator&, In<float>, In<double>, Out<double>, Scratch<double>);
template void moments(Stream, const Operator&, In<double>, In<double>, Out<double>, Scratch<double>);

}  // namespace asterism::grid::cuda
