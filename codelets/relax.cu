#include <algorithm>
#include <climits>
#include <limits>
#include <vector>

#include "../runtime/cuda.hpp"
#include "relax.hpp"
#include "relax_pipeline.cuh"

namespace asterism::kernels::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int threads = 256;

__host__ __device__ constexpr Index parts(Index extent, Index of) { return (extent + of - 1) / of; }

template <class T>
In<T> reading(const InOut<T>& tile) {
  return {tile.data, tile.rows, tile.cols, tile.ld};
}

// ---- Rows in and out -------------------------------------------------------------------------------------

/// Which number of the extended row lies in a column of row r; more than n + 1: padding.
__device__ Index number_in(const Stripe& stripe, Index r, Index column) {
  if (stripe.arrangement == Arrangement::natural) return column;
  const Index half = stripe.half();
  return column < half ? 2 * column + stripe.start(Colour::red, r)
                       : 2 * (column - half) + stripe.start(Colour::black, r);
}

/// Where a number of the extended row of row r lies.
__device__ Index column_of(const Stripe& stripe, Index r, Index number) {
  if (stripe.arrangement == Arrangement::natural) return number;
  return number / 2 + ((number & 1) == stripe.start(Colour::red, r) ? 0 : stripe.half());
}

/// Calls at(r, column) for all of so many rows and columns: blocks take rows, or parts of them, in turn.
template <class At>
__device__ void for_each_element(Index rows, Index columns, const At& at) {
  const Index pieces = parts(columns, blockDim.x);
  for (Index piece = blockIdx.x; piece < rows * pieces; piece += gridDim.x) {
    const Index r = piece / pieces, column = piece % pieces * blockDim.x + threadIdx.x;
    if (column < columns) at(r, column);
  }
}
unsigned element_blocks(Index rows, Index columns) {
  return static_cast<unsigned>(std::clamp<Index>(rows * parts(columns, threads), 1, 1 << 16));
}

template <class T>
__global__ void __launch_bounds__(threads)
    fill_stripe_kernel(FillArgs args, In<T> f, In<T> initial, In<T> frame_rows, In<T> frame_columns, Out<T> u,
                       Out<T> other, Out<T> g) {
  const Stripe& stripe = args.stripe;
  const Index n = stripe.nodes, begin = stripe.halo, end = stripe.halo + stripe.rows;
  for_each_element(stripe.tile_rows(), stripe.tile_cols(), [&](Index r, Index column) {
    const Index c = number_in(stripe, r, column);
    const bool own = begin <= r && r < end;
    T value = 0, source = 0;
    if (c > n + 1)
      value = 0;
    else if (r < begin && stripe.first)
      value = frame_rows.row(0)[c];
    else if (r >= end && stripe.last)
      value = frame_rows.row(1)[c];
    else if (c == 0 || c == n + 1)
      value = frame_columns.row(r)[c == 0 ? 0 : 1];
    else if (own) {
      value = initial.row(r - begin)[c - 1];
      if (args.has_source)
        source = static_cast<T>(-static_cast<double>(f.row(r - begin)[c - 1]) / args.diagonal);
    }
    u.row(r)[column] = value;
    other.row(r)[column] = value;
    if (args.has_source) g.row(r)[column] = source;
  });
  if (!args.has_source && blockIdx.x == 0 && threadIdx.x == 0) *g.data = 0;
}

template <class T>
__global__ void __launch_bounds__(threads) store_stripe_kernel(Stripe stripe, In<T> u, Out<T> result) {
  for_each_element(stripe.rows, stripe.nodes, [&](Index i, Index j) {
    const Index r = stripe.halo + i;
    result.row(i)[j] = u.row(r)[column_of(stripe, r, j + 1)];
  });
}

/// Rows of one array to another.
template <class T>
struct RowCopy {
  const T* from;
  T* to;
  Index from_ld, to_ld, rows;
};

/// Two copies at once: what is done to the upper and the lower end of a stripe.
template <class T>
__global__ void __launch_bounds__(threads)
    copy_rows_kernel(RowCopy<T> upper, RowCopy<T> lower, Index columns) {
  for_each_element(upper.rows + lower.rows, columns, [&](Index r, Index column) {
    const bool above = r < upper.rows;
    const RowCopy<T>& copy = above ? upper : lower;
    const Index i = above ? r : r - upper.rows;
    copy.to[i * copy.to_ld + column] = copy.from[i * copy.from_ld + column];
  });
}

template <class T>
void copy_rows(Stream stream, const RowCopy<T>& upper, const RowCopy<T>& lower, Index columns) {
  if (upper.rows + lower.rows == 0) return;
  copy_rows_kernel<<<element_blocks(upper.rows + lower.rows, columns), threads, 0, native(stream)>>>(
      upper, lower, columns);
  check_launch("copy_rows");
}

// ---- One step of relaxation a launch ---------------------------------------------------------------------

constexpr int tile_x = 64, tile_y = 4;   // threads of a block
constexpr int shared_rows = 4 * tile_y;  // that it relaxes

/// A step out of place: rows [begin, end) of a stripe in natural arrangement.
template <class T>
struct Step {
  const T* from;
  T* to;
  const T* source;  ///< or nullptr
  Index from_ld, to_ld, source_ld, nodes, begin, end;
  FivePoint<T> a;
};

enum class Reading { global, readonly };

template <Reading reading, class T>
__device__ T value_at(const T* at) {
  if constexpr (reading == Reading::readonly)
    return __ldg(at);
  else
    return *at;
}

template <Reading reading, class T>
__global__ void __launch_bounds__(tile_x* tile_y) jacobi_step_kernel(Step<T> step) {
  const Index across = parts(step.nodes, tile_x);
  const Index c = 1 + blockIdx.x % across * tile_x + threadIdx.x;
  const Index r = step.begin + blockIdx.x / across * tile_y + threadIdx.y;
  if (c > step.nodes || r >= step.end) return;
  const T* const at = step.from + r * step.from_ld + c;
  const auto value = [&](Index offset) { return value_at<reading>(at + offset); };
  T next = balance(step.a, value(-step.from_ld), value(step.from_ld), value(-1), value(1));
  if (step.source) next = next + value_at<reading>(step.source + r * step.source_ld + c);
  step.to[r * step.to_ld + c] = next;
}

/// A block fetches its nodes and the rows and columns around them.
template <class T>
__global__ void __launch_bounds__(tile_x* tile_y) jacobi_shared_kernel(Step<T> step) {
  __shared__ T tile[shared_rows + 2][tile_x + 2];
  const Index across = parts(step.nodes, tile_x);
  const Index first_column = blockIdx.x % across * tile_x,
              first_row = step.begin - 1 + blockIdx.x / across * shared_rows;
  for (int y = threadIdx.y; y < shared_rows + 2; y += tile_y) {
    const Index r = min(first_row + y, step.end);
    for (int x = threadIdx.x; x < tile_x + 2; x += tile_x)
      if (first_column + x <= step.nodes + 1) tile[y][x] = step.from[r * step.from_ld + first_column + x];
  }
  __syncthreads();
  const int x = static_cast<int>(threadIdx.x) + 1;
  const Index c = first_column + x;
  if (c > step.nodes) return;
  for (int y = static_cast<int>(threadIdx.y) + 1; y <= shared_rows && first_row + y < step.end; y += tile_y) {
    const Index r = first_row + y;
    T next = balance(step.a, tile[y - 1][x], tile[y + 1][x], tile[y][x - 1], tile[y][x + 1]);
    if (step.source) next = next + step.source[r * step.source_ld + c];
    step.to[r * step.to_ld + c] = next;
  }
}

/// One colour's pass, in place, over rows [begin, end) in any arrangement.
template <class T>
struct ColourStep {
  Stripe stripe;
  Colour colour;
  Index relaxations, begin, end;
  FivePoint<T> a;
  T omega;
  InOut<T> u;
  In<T> g;
  bool has_source;
};

template <class T>
__global__ void __launch_bounds__(threads) colour_step_kernel(ColourStep<T> step) {
  const Stripe& stripe = step.stripe;
  const bool natural = stripe.arrangement == Arrangement::natural;
  const Index half = stripe.half();
  for_each_element(step.end - step.begin, stripe.nodes / 2 + 1, [&](Index row, Index k) {
    const Index r = step.begin + row, s = stripe.start(step.colour, r), number = 2 * k + s;
    if (number < 1 || number > stripe.nodes) return;
    const bool red = step.colour == Colour::red;
    const Index own = natural ? number : k + (red ? 0 : half);
    const Index across = natural ? number : k + (red ? half : 0);  // in the rows above and below
    const Index left = natural ? number - 1 : across - 1 + s, right = natural ? number + 1 : across + s;
    T* const u = step.u.row(r);
    T v = u[own];
    T target = balance(step.a, step.u.row(r - 1)[across], step.u.row(r + 1)[across], u[left], u[right]);
    if (step.has_source) target = target + step.g.row(r)[own];
    for (Index i = 0; i < step.relaxations; ++i) v = relaxed(step.omega, v, target);
    u[own] = v;
  });
}

// ---- Several steps a launch ------------------------------------------------------------------------------

/// The numbers of sweeps, powers of 2 up to `deepest`, of the passes that make up `sweeps`: so many passes,
/// an even or odd number, that the result lies where it should.
std::vector<int> depths_of(Index sweeps, int deepest) {
  std::vector<int> depths;
  Index left = sweeps;
  for (int depth = deepest; depth >= 1; depth /= 2)
    for (; left >= depth; left -= depth) depths.push_back(depth);
  if ((static_cast<Index>(depths.size()) - sweeps) % 2 != 0) {
    while (depths.back() == 1) depths.pop_back();  // put back below
    const int halved = depths.back() / 2;
    depths.back() = halved;
    depths.push_back(halved);
    Index sum = 0;
    for (const int depth : depths) sum += depth;
    for (; sum < sweeps; ++sum) depths.push_back(1);
  }
  return depths;
}

/// Warps of a kernel that a GPU runs at once.
template <class S, class Kernel>
int warps_at_once(Kernel kernel) {
  int device = 0, processors = 0, blocks = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, S::threads, 0), "occupancy");
  return std::max(1, processors * blocks * S::warps);
}

/// Rows of a chunk, so that the rounds of chunks that the GPU's warps need take the least time. A chunk of
/// `overlap` more rows than it writes takes as long as so many rows.
int chunk_rows(Index rows, Index strips, int warps, int overlap, Index most) {
  Index best = 1, least_time = std::numeric_limits<Index>::max();
  const Index fewest = parts(rows, most);
  const Index end = std::min(rows, std::max(4 * fewest, 8 * parts(warps, strips)));
  for (Index chunks = fewest; chunks <= end; ++chunks) {
    const Index time = parts(strips * chunks, warps) * (parts(rows, chunks) + overlap);
    if (time < least_time) {
      least_time = time;
      best = chunks;
    }
  }
  return static_cast<int>(parts(rows, best));
}

template <class S, class T, class Kernel>
void launch_pass(Stream stream, Pass<T> pass, Kernel kernel, int warps) {
  pass.strips = S::strips(pass.numbers);
  pass.chunk_rows = chunk_rows(pass.end - pass.begin, pass.strips, warps, 2 * S::levels, S::tallest);
  const Index parts_of_pass = Index{pass.strips} * parts(pass.end - pass.begin, pass.chunk_rows);
  kernel<<<static_cast<unsigned>(parts(parts_of_pass, S::warps)), S::threads, 0, native(stream)>>>(pass);
  check_launch("relaxation pass");
}

template <class S, bool has_source, class T>
void launch_jacobi(Stream stream, const Pass<T>& pass) {
  constexpr auto kernel = jacobi_pass_kernel<S, has_source, T>;
  static const int warps = warps_at_once<S>(kernel);
  launch_pass<S>(stream, pass, kernel, warps);
}

template <class S, bool has_source, class T>
void launch_colours(Stream stream, const Pass<T>& pass) {
  constexpr auto kernel = colour_pass_kernel<S, has_source, T>;
  static const int warps = warps_at_once<S>(kernel);
  launch_pass<S>(stream, pass, kernel, warps);
}

/// In sweeps; a source takes registers.
template <bool has_source>
constexpr int deepest_jacobi = has_source ? 4 : 8;
template <bool has_source>
constexpr int deepest_colours = has_source ? 2 : 4;

/// Whether both arrays of a pass fit in the L2 cache.
template <class T>
bool in_cache(const Pass<T>& pass) {
  static const Index cache = [] {
    int device = 0, bytes = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
    return bytes;
  }();
  const Index rows = pass.read_end - pass.read_begin, each = Index{pass.from_ld} + pass.to_ld;
  return rows * each * static_cast<Index>(sizeof(T)) <= cache;
}

template <bool has_source, class T>
void launch_jacobi(Stream stream, int sweeps, const Pass<T>& pass) {
  switch (sweeps) {
    case 1:
      if constexpr (!has_source)
        if (!in_cache(pass)) return launch_jacobi<JacobiShape<T, 1, false, false>, false>(stream, pass);
      return launch_jacobi<JacobiShape<T, 1, has_source>, has_source>(stream, pass);
    case 2:
      return launch_jacobi<JacobiShape<T, 2, has_source>, has_source>(stream, pass);
    case 4:
      return launch_jacobi<JacobiShape<T, 4, has_source>, has_source>(stream, pass);
    default:
      if constexpr (!has_source) launch_jacobi<JacobiShape<T, 8, false>, false>(stream, pass);
  }
}

template <bool has_source, class T>
void launch_colours(Stream stream, int sweeps, const Pass<T>& pass) {
  switch (sweeps) {
    case 1:
      return launch_colours<ColourShape<T, 1, has_source>, has_source>(stream, pass);
    case 2:
      return launch_colours<ColourShape<T, 2, has_source>, has_source>(stream, pass);
    default:
      if constexpr (!has_source) launch_colours<ColourShape<T, 4, false>, false>(stream, pass);
  }
}

/// Whether rows can be loaded 16 bytes at a time.
template <class Port>
bool aligned(const Port& tile) {
  constexpr std::size_t quad = 16, size = sizeof(typename Port::Element);
  return reinterpret_cast<std::uintptr_t>(tile.data) % quad == 0 &&
         static_cast<std::size_t>(tile.ld) * size % quad == 0;
}

/// A pass but for the rows to write and where it lies.
/// @param alone whether the rows beyond the stripe's own are to stay as they are, like the frame
template <class T>
Pass<T> pass_over(const Stripe& stripe, const FivePoint<T>& a, T omega, In<T> g, bool alone) {
  const bool first = stripe.first || alone, last = stripe.last || alone;
  const Index begin = stripe.halo, end = stripe.halo + stripe.rows;
  const bool natural = stripe.arrangement == Arrangement::natural;
  Pass<T> pass{};
  pass.source = g.data;
  pass.source_ld = static_cast<int>(g.ld);
  pass.read_begin = static_cast<int>(first ? begin - 1 : 0);
  pass.read_end = static_cast<int>(last ? end + 1 : stripe.tile_rows());
  pass.moves_from = first ? static_cast<int>(begin) : INT_MIN;
  pass.moves_end = last ? static_cast<int>(end) : INT_MAX;
  pass.columns = static_cast<int>(natural ? stripe.tile_cols() : stripe.half());
  pass.numbers = static_cast<int>(natural ? stripe.nodes + 2 : (stripe.nodes + 3) / 2);
  pass.nodes = static_cast<int>(stripe.nodes);
  pass.parity = static_cast<int>(stripe.parity(0));
  pass.a = a;
  pass.omega = omega;
  return pass;
}

template <class T>
void between(Pass<T>& pass, const InOut<T>& from, const InOut<T>& to) {
  pass.from = from.data;
  pass.to = to.data;
  pass.from_ld = static_cast<int>(from.ld);
  pass.to_ld = static_cast<int>(to.ld);
}

// ---- All sweeps of a task --------------------------------------------------------------------------------

enum class JacobiKernel { global, shared, readonly, blocked };

template <class T>
void launch_step(Stream stream, JacobiKernel kernel, const Step<T>& step) {
  const bool shared = kernel == JacobiKernel::shared;
  const auto blocks = static_cast<unsigned>(parts(step.nodes, tile_x) *
                                            parts(step.end - step.begin, shared ? shared_rows : tile_y));
  const dim3 block(tile_x, tile_y);
  if (shared)
    jacobi_shared_kernel<<<blocks, block, 0, native(stream)>>>(step);
  else if (kernel == JacobiKernel::readonly)
    jacobi_step_kernel<Reading::readonly><<<blocks, block, 0, native(stream)>>>(step);
  else
    jacobi_step_kernel<Reading::global><<<blocks, block, 0, native(stream)>>>(step);
  check_launch("jacobi");
}

/// @return where the result lies
template <class T>
InOut<T> sweep_jacobi(Stream stream, JacobiKernel kernel, const JacobiArgs& args, InOut<T> u, InOut<T> other,
                      In<T> g) {
  const Stripe& stripe = args.stripe;
  const FivePoint<T> a{static_cast<T>(args.along_y), static_cast<T>(args.along_x)};
  const bool source = args.has_source;
  const bool blocked =
      kernel == JacobiKernel::blocked && aligned(u) && aligned(other) && (!source || aligned(g));
  const int deepest = !blocked ? 1 : source ? deepest_jacobi<true> : deepest_jacobi<false>;
  Pass<T> pass = pass_over(stripe, a, T{1}, g, false);
  Index done = 0;
  for (const int depth : depths_of(args.sweeps, deepest)) {
    done += depth;
    const Index begin = stripe.begin(done), end = stripe.end(done);
    if (!blocked) {
      launch_step<T>(
          stream, kernel,
          {u.data, other.data, source ? g.data : nullptr, u.ld, other.ld, g.ld, stripe.nodes, begin, end, a});
    } else {
      between(pass, u, other);
      pass.begin = static_cast<int>(begin);
      pass.end = static_cast<int>(end);
      if (source)
        launch_jacobi<true>(stream, depth, pass);
      else
        launch_jacobi<false>(stream, depth, pass);
    }
    std::swap(u, other);
  }
  return u;
}

template <class T>
InOut<T> sweep_colours_in_place(Stream stream, const ColourArgs& args, InOut<T> u, InOut<T> other, In<T> g) {
  const Stripe& stripe = args.stripe;
  if (args.sweeps % 2 == 1) {
    copy_rows<T>(stream, {u.data, other.data, u.ld, other.ld, stripe.tile_rows()}, {}, stripe.tile_cols());
    u = other;
  }
  const FivePoint<T> a{static_cast<T>(args.along_y), static_cast<T>(args.along_x)};
  for (Index pass = 0; pass < args.passes(); ++pass) {
    const Index begin = args.begin(pass), end = args.end(pass);
    colour_step_kernel<<<element_blocks(end - begin, stripe.nodes / 2 + 1), threads, 0, native(stream)>>>(
        ColourStep<T>{stripe, args.colour(pass), args.relaxations(pass), begin, end, a,
                      static_cast<T>(args.omega), u, g, args.has_source});
    check_launch("relax_colours");
  }
  return u;
}

template <class T>
InOut<T> sweep_colours(Stream stream, const ColourArgs& args, InOut<T> u, InOut<T> other, In<T> g) {
  const Stripe& stripe = args.stripe;
  const bool piped = stripe.arrangement == Arrangement::separated && args.sweep == Sweep::red_black &&
                     aligned(u) && aligned(other) && (!args.has_source || aligned(g));
  if (!piped) return sweep_colours_in_place(stream, args, u, other, g);
  const FivePoint<T> a{static_cast<T>(args.along_y), static_cast<T>(args.along_x)};
  Pass<T> pass = pass_over(stripe, a, static_cast<T>(args.omega), g, args.stale_ghosts);
  Index done = 0;
  for (const int depth :
       depths_of(args.sweeps, args.has_source ? deepest_colours<true> : deepest_colours<false>)) {
    done += 2 * depth;
    between(pass, u, other);
    pass.begin = static_cast<int>(args.begin(done - 1));
    pass.end = static_cast<int>(args.end(done - 1));
    if (args.has_source)
      launch_colours<true>(stream, depth, pass);
    else
      launch_colours<false>(stream, depth, pass);
    std::swap(u, other);
  }
  return u;
}

template <class T>
InOut<T> sweep(Stream stream, const JacobiArgs& args, InOut<T> u, InOut<T> other, In<T> g) {
  return sweep_jacobi(stream, JacobiKernel::blocked, args, u, other, g);
}
template <class T>
InOut<T> sweep(Stream stream, const ColourArgs& args, InOut<T> u, InOut<T> other, In<T> g) {
  return sweep_colours(stream, args, u, other, g);
}

template <class T>
void jacobi(Stream stream, JacobiKernel kernel, const JacobiArgs& args, InOut<T> u, InOut<T> other, In<T> g,
            In<T> above, In<T> below, Out<T> top, Out<T> bottom) {
  fill_ghosts(stream, args.stripe, u, above, below);
  copy_edges(stream, args.stripe, reading(sweep_jacobi(stream, kernel, args, u, other, g)), top, bottom);
}

// ---- The border ahead of the interior --------------------------------------------------------------------

/// One end of a stripe as a stripe of its own: G rows, with G ghost rows on either side.
struct End {
  Stripe stripe;
  Index first_tile_row;  ///< of the whole stripe's tile

  static End upper(const Stripe& whole) {
    Stripe stripe = whole;
    stripe.rows = whole.halo;
    stripe.last = false;
    return {stripe, 0};
  }
  static End lower(const Stripe& whole) {
    Stripe stripe = whole;
    stripe.rows = whole.halo;
    stripe.first_row = whole.first_row + whole.rows - whole.halo;
    stripe.first = false;
    return {stripe, whole.rows - whole.halo};
  }
};

template <class T, class Args>
void relax_end(Stream stream, Args args, const End& end, In<T> u, In<T> g, In<T> above, In<T> below,
               Out<T> edge, T* work) {
  const Index rows = end.stripe.tile_rows(), columns = end.stripe.tile_cols(), halo = end.stripe.halo;
  args.stripe = end.stripe;
  const InOut<T> first{work, rows, columns, columns}, second{work + rows * columns, rows, columns, columns};
  const T* const from = u.row(end.first_tile_row);
  copy_rows<T>(stream, {from, first.data, u.ld, columns, rows}, {from, second.data, u.ld, columns, rows},
               columns);
  fill_ghosts(stream, end.stripe, first, above, below);
  const In<T> source = args.has_source ? In<T>{g.row(end.first_tile_row), rows, columns, g.ld} : g;
  const InOut<T> result = sweep(stream, args, first, second, source);
  copy_rows<T>(stream, {result.row(halo), edge.data, columns, edge.ld, halo}, {}, columns);
}

template <class T, class Args>
void relax_border(Stream stream, const Args& args, In<T> u, In<T> g, In<T> above, In<T> below, Out<T> top,
                  Out<T> bottom, Scratch<T> work) {
  const End upper = End::upper(args.stripe), lower = End::lower(args.stripe);
  // Towards the interior, the ghost rows are rows of the stripe itself.
  const auto rows_of_u = [&](Index tile_row) {
    return In<T>{u.row(tile_row), args.stripe.halo, u.cols, u.ld};
  };
  relax_end(stream, args, upper, u, g, above, rows_of_u(2 * args.stripe.halo), top, work.data);
  relax_end(stream, args, lower, u, g, rows_of_u(lower.first_tile_row), below, bottom,
            work.data + border_scratch(args.stripe) / 2);
}

// ---- The residual ----------------------------------------------------------------------------------------

/// Adds the sums of all threads of the block, always in the same order, and writes the total.
__device__ void write_block_sums(const double (&own)[residual_parts], double* total) {
  __shared__ double shared[residual_parts][threads];
  const int t = static_cast<int>(threadIdx.x);
  for (int s = 0; s < residual_parts; ++s) shared[s][t] = own[s];
  for (int width = threads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (t < width)
      for (int s = 0; s < residual_parts; ++s) shared[s][t] += shared[s][t + width];
  }
  if (t == 0)
    for (int s = 0; s < residual_parts; ++s) total[s] = shared[s][0];
}

/// Every block has some consecutive rows.
template <class T>
__global__ void __launch_bounds__(threads)
    residual_kernel(ResidualArgs args, In<T> u, In<T> g, In<T> above, In<T> below, double* partial) {
  const Stripe& stripe = args.stripe;
  const FivePoint<double> a{args.along_y, args.along_x};
  const bool natural = stripe.arrangement == Arrangement::natural;
  const Index half = stripe.half(), columns = stripe.tile_cols();
  const Index each = parts(stripe.rows, gridDim.x), first_row = min(blockIdx.x * each, stripe.rows);
  const Index end_row = min(first_row + each, stripe.rows);
  double sums[residual_parts] = {};
  for (Index i = first_row; i < end_row; ++i) {
    const Index r = stripe.halo + i;
    const T* const row = u.row(r);
    const T* const before = i == 0 && !stripe.first ? above.row(stripe.halo - 1) : u.row(r - 1);
    const T* const after = i == stripe.rows - 1 && !stripe.last ? below.row(0) : u.row(r + 1);
    for (Index column = threadIdx.x; column < columns; column += threads) {
      const Index number = number_in(stripe, r, column);
      if (number < 1 || number > stripe.nodes) continue;
      const bool red = column < half;
      const Index across = natural ? column : red ? column + half : column - half;
      const Index left = natural ? column - 1 : across - 1 + (number & 1),
                  right = natural ? column + 1 : across + (number & 1);
      const auto value = [](const T* values, Index k) { return static_cast<double>(values[k]); };
      const double v = row[column], source = args.has_source ? value(g.row(r), column) : 0.0;
      const double target =
          balance(a, value(before, across), value(after, across), value(row, left), value(row, right)) +
          source;
      const double residual = args.diagonal * (v - target), f = args.diagonal * source;
      sums[residual_squares] += residual * residual;
      sums[solution_squares] += v * v;
      sums[source_squares] += f * f;
    }
  }
  write_block_sums(sums, partial + static_cast<Index>(blockIdx.x) * residual_parts);
}

__global__ void __launch_bounds__(threads)
    add_partial_sums_kernel(const double* partial, Index blocks, double* total) {
  double sums[residual_parts] = {};
  for (Index b = threadIdx.x; b < blocks; b += threads)
    for (int s = 0; s < residual_parts; ++s) sums[s] += partial[b * residual_parts + s];
  write_block_sums(sums, total);
}

}  // namespace

template <class T>
void fill_stripe(Stream stream, const FillArgs& args, In<T> f, In<T> initial, In<T> frame_rows,
                 In<T> frame_columns, Out<T> u, Out<T> other, Out<T> g) {
  fill_stripe_kernel<<<element_blocks(args.stripe.tile_rows(), args.stripe.tile_cols()), threads, 0,
                       native(stream)>>>(args, f, initial, frame_rows, frame_columns, u, other, g);
  check_launch("fill_stripe");
}

template <class T>
void copy_edges(Stream stream, const Stripe& stripe, In<T> tile, Out<T> top, Out<T> bottom) {
  copy_rows<T>(stream, {tile.row(stripe.halo), top.data, tile.ld, top.ld, stripe.halo},
               {tile.row(stripe.rows), bottom.data, tile.ld, bottom.ld, stripe.halo}, stripe.tile_cols());
}

template <class T>
void fill_ghosts(Stream stream, const Stripe& stripe, InOut<T> tile, In<T> above, In<T> below) {
  copy_rows<T>(
      stream, {above.data, tile.data, above.ld, tile.ld, stripe.first ? 0 : stripe.halo},
      {below.data, tile.row(stripe.halo + stripe.rows), below.ld, tile.ld, stripe.last ? 0 : stripe.halo},
      stripe.tile_cols());
}

template <class T>
void store_stripe(Stream stream, const Stripe& stripe, In<T> u, Out<T> result) {
  store_stripe_kernel<<<element_blocks(stripe.rows, stripe.nodes), threads, 0, native(stream)>>>(stripe, u,
                                                                                                 result);
  check_launch("store_stripe");
}

template <class T>
void jacobi_global(Stream stream, const JacobiArgs& args, InOut<T> u, InOut<T> other, In<T> g, In<T> above,
                   In<T> below, Out<T> top, Out<T> bottom) {
  jacobi(stream, JacobiKernel::global, args, u, other, g, above, below, top, bottom);
}
template <class T>
void jacobi_shared(Stream stream, const JacobiArgs& args, InOut<T> u, InOut<T> other, In<T> g, In<T> above,
                   In<T> below, Out<T> top, Out<T> bottom) {
  jacobi(stream, JacobiKernel::shared, args, u, other, g, above, below, top, bottom);
}
template <class T>
void jacobi_readonly(Stream stream, const JacobiArgs& args, InOut<T> u, InOut<T> other, In<T> g, In<T> above,
                     In<T> below, Out<T> top, Out<T> bottom) {
  jacobi(stream, JacobiKernel::readonly, args, u, other, g, above, below, top, bottom);
}
template <class T>
void jacobi_blocked(Stream stream, const JacobiArgs& args, InOut<T> u, InOut<T> other, In<T> g, In<T> above,
                    In<T> below, Out<T> top, Out<T> bottom) {
  jacobi(stream, JacobiKernel::blocked, args, u, other, g, above, below, top, bottom);
}

template <class T>
void relax_colours(Stream stream, const ColourArgs& args, InOut<T> u, InOut<T> other, In<T> g, In<T> above,
                   In<T> below, Out<T> top, Out<T> bottom) {
  fill_ghosts(stream, args.stripe, u, above, below);
  if (args.stale_ghosts) fill_ghosts(stream, args.stripe, other, above, below);
  copy_edges(stream, args.stripe, reading(sweep_colours(stream, args, u, other, g)), top, bottom);
}

template <class T>
void jacobi_border(Stream stream, const JacobiArgs& args, In<T> u, In<T> g, In<T> above, In<T> below,
                   Out<T> top, Out<T> bottom, Scratch<T> work) {
  relax_border(stream, args, u, g, above, below, top, bottom, work);
}
template <class T>
void relax_colours_border(Stream stream, const ColourArgs& args, In<T> u, In<T> g, In<T> above, In<T> below,
                          Out<T> top, Out<T> bottom, Scratch<T> work) {
  relax_border(stream, args, u, g, above, below, top, bottom, work);
}
template <class T>
void jacobi_interior(Stream stream, const JacobiArgs& args, InOut<T> u, InOut<T> other, In<T> g, In<T> above,
                     In<T> below) {
  fill_ghosts(stream, args.stripe, u, above, below);
  sweep_jacobi(stream, JacobiKernel::blocked, args, u, other, g);
}
template <class T>
void relax_colours_interior(Stream stream, const ColourArgs& args, InOut<T> u, InOut<T> other, In<T> g,
                            In<T> above, In<T> below) {
  fill_ghosts(stream, args.stripe, u, above, below);
  if (args.stale_ghosts) fill_ghosts(stream, args.stripe, other, above, below);
  sweep_colours(stream, args, u, other, g);
}

template <class T>
void stripe_residual(Stream stream, const ResidualArgs& args, In<T> u, In<T> g, In<T> above, In<T> below,
                     Out<double> sums, Scratch<double> work) {
  const Index blocks = std::min(args.stripe.rows, residual_blocks);
  residual_kernel<<<static_cast<unsigned>(blocks), threads, 0, native(stream)>>>(args, u, g, above, below,
                                                                                 work.data);
  check_launch("stripe_residual");
  add_partial_sums_kernel<<<1, threads, 0, native(stream)>>>(work.data, blocks, sums.data);
  check_launch("stripe_residual sums");
}

#define INSTANTIATE_JACOBI(NAME, T) \
  template void NAME(Stream, const JacobiArgs&, InOut<T>, InOut<T>, In<T>, In<T>, In<T>, Out<T>, Out<T>)
#define INSTANTIATE(T)                                                                                      \
  template void fill_stripe(Stream, const FillArgs&, In<T>, In<T>, In<T>, In<T>, Out<T>, Out<T>, Out<T>);   \
  template void copy_edges(Stream, const Stripe&, In<T>, Out<T>, Out<T>);                                   \
  template void fill_ghosts(Stream, const Stripe&, InOut<T>, In<T>, In<T>);                                 \
  template void store_stripe(Stream, const Stripe&, In<T>, Out<T>);                                         \
  INSTANTIATE_JACOBI(jacobi_global, T);                                                                     \
  INSTANTIATE_JACOBI(jacobi_shared, T);                                                                     \
  INSTANTIATE_JACOBI(jacobi_readonly, T);                                                                   \
  INSTANTIATE_JACOBI(jacobi_blocked, T);                                                                    \
  template void relax_colours(Stream, const ColourArgs&, InOut<T>, InOut<T>, In<T>, In<T>, In<T>, Out<T>,   \
                              Out<T>);                                                                      \
  template void jacobi_border(Stream, const JacobiArgs&, In<T>, In<T>, In<T>, In<T>, Out<T>, Out<T>,        \
                              Scratch<T>);                                                                  \
  template void relax_colours_border(Stream, const ColourArgs&, In<T>, In<T>, In<T>, In<T>, Out<T>, Out<T>, \
                                     Scratch<T>);                                                           \
  template void jacobi_interior(Stream, const JacobiArgs&, InOut<T>, InOut<T>, In<T>, In<T>, In<T>);        \
  template void relax_colours_interior(Stream, const ColourArgs&, InOut<T>, InOut<T>, In<T>, In<T>, In<T>); \
  template void stripe_residual(Stream, const ResidualArgs&, In<T>, In<T>, In<T>, In<T>, Out<double>,       \
                                Scratch<double>)
INSTANTIATE(float);
INSTANTIATE(double);
#undef INSTANTIATE
#undef INSTANTIATE_JACOBI

}  // namespace asterism::kernels::cuda
