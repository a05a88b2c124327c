#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "mlssor.hpp"
#include "../../runtime/cuda.hpp"

namespace asterism::relaxation::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

/// An axis as the kernels for one kind of tiles see it. What they read of subdomain s, its footprint, begins
/// at the position s n + base, one node before the first one that is written.
struct Line {
  Index origin;        ///< row or column of the tile where position 0 lies,
  int step;            ///< and the way to the next one: 1 or -1
  Index begin, end;    ///< positions of the grid; the frame lies one further on either side
  Index subdomains;    ///< of the whole grid: P
  Index first, count;  ///< those to be relaxed
  Part part;
  int base;

  __device__ Index at(Index position) const { return origin + step * position; }
  __device__ bool has(Index position) const { return begin <= position && position < end; }
  __device__ bool or_frame_has(Index position) const { return begin - 1 <= position && position <= end; }
};

/// All tiles of one kind in a stripe.
struct KindOfTiles {
  Line rows, columns;
  int n, layers;
  double along_y, along_x, omega;

  /// Nodes that are written along an axis, in all layers.
  __host__ __device__ int extent(Part part) const { return part == Part::first ? n - 1 : 2 * layers - 1; }
};

Line line(const CutAxis& axis, Part part, Index layers, const Span& subdomains, Index shift) {
  const bool forward = axis.direction == Direction::forward;
  const Span grid = axis.grid();
  return {axis.mirrored(0) + shift,
          forward ? 1 : -1,
          grid.begin,
          grid.end,
          axis.subdomains(),
          subdomains.begin,
          subdomains.end - subdomains.begin,
          part,
          static_cast<int>(part == Part::first ? -1 : axis.subdomain - layers - 1)};
}

KindOfTiles tiles_of(const MultiLayer& m, Direction direction, Part of_rows, Part of_columns) {
  const CutAxis rows = m.rows(direction), columns = m.columns(direction);
  return {line(rows, of_rows, m.layers, m.subdomains(direction), m.stripe.halo - m.stripe.first_row),
          line(columns, of_columns, m.layers, {0, columns.subdomains()}, 1),
          static_cast<int>(m.subdomain),
          static_cast<int>(m.layers),
          m.along_y,
          m.along_x,
          m.omega};
}

/// Numbers [first, last], those of layers or of nodes, counted from where a subdomain begins; none where
/// last < first.
struct Range {
  int first, last;
  __device__ bool has(int i) const { return first <= i && i <= last; }
};

/// The part of subdomain s in layer k: CutAxis::span.
__device__ Range nodes_in_layer(const Line& line, int n, Index s, int k) {
  const Index start = s * n;
  const int cut = n - 1 - k;
  // The grid's ends, as far as they may matter here.
  const int begin = static_cast<int>(max(line.begin - start, Index{-1}));
  const int end = static_cast<int>(min(line.end - start, Index{2 * n}));
  const int from = line.part == Part::second ? cut : s == 0 ? begin : k;
  const int to = line.part == Part::first ? cut : s == line.subdomains - 1 ? end : n + k;
  return {max(from, begin), min(to, end) - 1};
}

/// The layers in which the part of subdomain s has its node l: the same, read the other way.
__device__ Range layers_with_node(const Line& line, int n, int layers, Index s, int l) {
  if (!line.has(s * n + l)) return {0, -1};
  if (line.part == Part::first) {
    const int last = min(layers - 1, n - 2 - l);
    return {0, s == 0 ? last : min(last, l)};
  }
  const int first = max(0, n - 1 - l);
  return {s == line.subdomains - 1 ? first : max(first, l - n + 1), layers - 1};
}

template <class T>
__device__ T relax_node(const FivePoint<T>& a, T omega, T above, T below, T left, T right, T centre,
                        T source) {
  return relaxed(omega, centre, balance(a, above, below, left, right) + source);
}

// ---- Whole footprints in shared memory
// -----------------------------------------------------------------------

constexpr int threads = 128;  // of a block

/// Between rows in shared memory. Lane i works one column behind lane i - 1 of the row before, so that rows
/// that are one more than a multiple of the banks apart, less that column, keep the lanes of a subdomain, and
/// those beside each other, in banks of their own.
__host__ __device__ constexpr int row_pitch(int width) { return (width - 2 + 31) / 32 * 32 + 2; }

/// A block relaxes threads / lanes subdomains next to each other. Their footprints overlap by a column, and
/// share one strip of shared memory.
///
/// A lane has a row i of a subdomain's footprint and passes through all layers of it, column by column,
/// without a pause; lane i is i steps behind lane 0. With off(k) the step where column 0 of layer k would be
/// reached, node (k, i, j) is relaxed in step i + off(k) + j, after (k, i-1, j) and (k, i, j-1), and, as long
/// as off(k) - off(k-1) >= 2, after (k-1, i+1, j) and before (k, i+1, j): the order of the sequential sweep.
/// @tparam fixed n, or 0: any n up to lanes + 1
template <int lanes, int fixed, bool has_source, class T>
__global__ void __launch_bounds__(threads)
    relax_whole_kernel(KindOfTiles tiles, T* __restrict__ u, Index ld, const T* __restrict__ g, Index g_ld) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int subdomains = threads / lanes;
  const int n = fixed > 0 ? fixed : tiles.n, layers = tiles.layers;
  const int width = subdomains * n + 1, pitch = row_pitch(width);
  const Line &rows = tiles.rows, &columns = tiles.columns;
  const int height = tiles.extent(rows.part) + 2;
  T* const nodes = reinterpret_cast<T*>(memory);
  T* const sources = nodes + (n + 1) * pitch;

  const auto blocks_of_a_row = static_cast<unsigned>((columns.count + subdomains - 1) / subdomains);
  const Index s = rows.first + blockIdx.x / blocks_of_a_row;
  const Index first = static_cast<Index>(blockIdx.x % blocks_of_a_row) * subdomains;  // of the columns
  const Index row_start = s * n + rows.base, column_start = first * n + columns.base;
  const int thread = static_cast<int>(threadIdx.x);

  const auto load = [&](int r, int c) {
    const Index i = row_start + r, j = column_start + c;
    if (!rows.or_frame_has(i) || !columns.or_frame_has(j)) return;
    __pipeline_memcpy_async(nodes + r * pitch + c, u + rows.at(i) * ld + columns.at(j), sizeof(T));
    if (has_source && r > 0 && r < height - 1)
      __pipeline_memcpy_async(sources + r * pitch + c, g + rows.at(i) * g_ld + columns.at(j), sizeof(T));
  };
  for (int r = 0; r < height; ++r)
    for (int c = thread; c < width - 1; c += threads) load(r, c);
  for (int r = thread; r < height; r += threads) load(r, width - 1);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();

  const int lane = thread % lanes, subdomain = thread / lanes;
  const Index t = first + subdomain;
  const FivePoint<T> a{static_cast<T>(tiles.along_y), static_cast<T>(tiles.along_x)};
  const T omega = static_cast<T>(tiles.omega);
  const Range active = layers_with_node(rows, n, layers, s, rows.base + 1 + lane);
  const int place = (lane + 1) * pitch + subdomain * n - columns.base;
  int k = lane < height - 2 && t < columns.count ? 0 : layers;
  Range span = nodes_in_layer(columns, n, t, k);
  int j = span.first;
  for (int step = 0; __any_sync(~0u, k < layers); ++step) {
    if (k < layers && step >= lane) {
      if (span.has(j) && active.has(k)) {
        T* const node = nodes + place + j;
        node[0] = relax_node(a, omega, node[-pitch], node[pitch], node[-1], node[1], node[0],
                             has_source ? sources[place + j] : T{0});
      }
      if (j < span.last) {
        ++j;
      } else {
        ++k;
        span = nodes_in_layer(columns, n, t, k);
        j = min(span.first, j - 1);  // so that off(k) - off(k-1) >= 2
      }
    }
    __syncwarp();
  }
  __syncthreads();

  for (int r = 1; r < height - 1; ++r) {
    const Index i = row_start + r;
    if (!rows.has(i)) continue;
    T* const to = u + rows.at(i) * ld;
    for (int c = thread; c < width - 1; c += threads) {
      const Index column = column_start + c;
      // Columns between the subdomains' tiles, which no block writes to, get back what they had.
      if (c > 0 && columns.has(column)) to[columns.at(column)] = nodes[r * pitch + c];
    }
  }
}

template <class Kernel>
void allow_shared(Kernel kernel, std::size_t bytes) {
  if (bytes > 48 << 10)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
          "shared memory for mlssor");
}

template <int lanes, int fixed, bool has_source, class T>
void launch_whole(cudaStream_t stream, const KindOfTiles& tiles, const InOut<T>& u, const In<T>& g) {
  constexpr int subdomains = threads / lanes;
  const Index blocks = tiles.rows.count * ((tiles.columns.count + subdomains - 1) / subdomains);
  const int pitch = row_pitch(subdomains * tiles.n + 1);
  const std::size_t bytes =
      static_cast<std::size_t>((tiles.n + 1) * pitch) * (has_source ? 2 : 1) * sizeof(T);
  const auto kernel = relax_whole_kernel<lanes, fixed, has_source, T>;
  allow_shared(kernel, bytes);
  kernel<<<static_cast<unsigned>(blocks), threads, bytes, stream>>>(tiles, u.data, u.ld, g.data, g.ld);
  check_launch("mlssor, whole footprints");
}

template <bool has_source, class T>
void relax_whole(cudaStream_t stream, const KindOfTiles& tiles, const InOut<T>& u, const In<T>& g) {
  switch (tiles.n) {
    case 4:
      return launch_whole<4, 4, has_source>(stream, tiles, u, g);
    case 8:
      return launch_whole<8, 8, has_source>(stream, tiles, u, g);
    case 16:
      return launch_whole<16, 16, has_source>(stream, tiles, u, g);
    case 32:
      return launch_whole<32, 32, has_source>(stream, tiles, u, g);
    default:
      return launch_whole<32, 0, has_source>(stream, tiles, u, g);
  }
}

/// The largest n of relax_whole_kernel.
constexpr int largest_whole = 33;

// ---- Three rows in shared memory
// -----------------------------------------------------------------------------

constexpr int warp = 32;

/// How subdomains next to each other are dealt to the lanes of a warp, and where its rows are kept.
struct Strip {
  int subdomains, width, shift;

  __host__ __device__ explicit Strip(int n)
      : subdomains(n <= 32 ? warp : max_of(1, 1024 / n)), width(subdomains * n + 1), shift(n < 32 ? 4 : 5) {}
  /// Where column c lies: lanes are n apart, which must not be a multiple of the banks.
  __host__ __device__ int at(int c) const { return c + (c >> shift); }
  __host__ __device__ int pitch() const { return at(width - 1) + 1; }

 private:
  __host__ __device__ static int max_of(int a, int b) { return a > b ? a : b; }
};

/// A block is one warp, each lane of which relaxes a tile, all of them row by row together. The row in work
/// and the two beside it are in shared memory, with the row of g; rows come and go once in every layer.
template <bool has_source, class T>
__global__ void __launch_bounds__(warp)
    relax_rows_kernel(KindOfTiles tiles, T* __restrict__ u, Index ld, const T* __restrict__ g, Index g_ld) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int n = tiles.n, lane = static_cast<int>(threadIdx.x);
  const Strip strip(n);
  const Line &rows = tiles.rows, &columns = tiles.columns;
  T* const ring = reinterpret_cast<T*>(memory);
  T* const source = ring + 3 * strip.pitch();

  const auto blocks_of_a_row =
      static_cast<unsigned>((columns.count + strip.subdomains - 1) / strip.subdomains);
  const Index s = rows.first + blockIdx.x / blocks_of_a_row;
  const Index first = static_cast<Index>(blockIdx.x % blocks_of_a_row) * strip.subdomains;
  const Index t = first + lane, column_start = first * n + columns.base;
  const bool works = lane < strip.subdomains && t < columns.count;
  const FivePoint<T> a{static_cast<T>(tiles.along_y), static_cast<T>(tiles.along_x)};
  const T omega = static_cast<T>(tiles.omega);

  const auto in_ring = [&](int i) { return ring + (i + 3) % 3 * strip.pitch(); };
  const auto load = [&](T* to, const T* from) {
    for (int c = lane; c < strip.width; c += warp)
      if (columns.or_frame_has(column_start + c))
        __pipeline_memcpy_async(to + strip.at(c), from + columns.at(column_start + c), sizeof(T));
  };
  const auto row_of = [&](int i) { return rows.at(s * n + i); };
  for (int k = 0; k < tiles.layers; ++k) {
    const Range lines = nodes_in_layer(rows, n, s, k);
    if (lines.last < lines.first) continue;
    const Range span = nodes_in_layer(columns, n, t, k);
    load(in_ring(lines.first - 1), u + row_of(lines.first - 1) * ld);
    load(in_ring(lines.first), u + row_of(lines.first) * ld);
    for (int i = lines.first; i <= lines.last; ++i) {
      load(in_ring(i + 1), u + row_of(i + 1) * ld);
      if (has_source) load(source, g + row_of(i) * g_ld);
      __pipeline_commit();
      __pipeline_wait_prior(0);
      __syncwarp();
      T *const above = in_ring(i - 1), *const here = in_ring(i), *const below = in_ring(i + 1);
      if (works && span.first <= span.last) {
        const int place = lane * n - columns.base;
        T left = here[strip.at(place + span.first - 1)], centre = here[strip.at(place + span.first)];
        for (int j = span.first; j <= span.last; ++j) {
          const int c = strip.at(place + j);
          const T right = here[strip.at(place + j + 1)];
          left = relax_node(a, omega, above[c], below[c], left, right, centre, has_source ? source[c] : T{0});
          here[c] = left;
          centre = right;
        }
      }
      __syncwarp();
      T* const to = u + row_of(i) * ld;
      for (int c = lane; c < strip.width - 1; c += warp)
        if (c > 0 && columns.has(column_start + c)) to[columns.at(column_start + c)] = here[strip.at(c)];
    }
    __syncwarp();  // what was written is there for the next layer
  }
}

template <bool has_source, class T>
void relax_rows(cudaStream_t stream, const KindOfTiles& tiles, const InOut<T>& u, const In<T>& g) {
  const Strip strip(tiles.n);
  const Index blocks = tiles.rows.count * ((tiles.columns.count + strip.subdomains - 1) / strip.subdomains);
  const std::size_t bytes = static_cast<std::size_t>((has_source ? 4 : 3) * strip.pitch()) * sizeof(T);
  const auto kernel = relax_rows_kernel<has_source, T>;
  allow_shared(kernel, bytes);
  kernel<<<static_cast<unsigned>(blocks), warp, bytes, stream>>>(tiles, u.data, u.ld, g.data, g.ld);
  check_launch("mlssor, three rows");
}

// ---- Halves of sweeps
// ----------------------------------------------------------------------------------------

enum class Kept { whole, rows };

/// @param kept what is kept in shared memory
template <Kept kept, class T>
void relax_half(Stream stream, const MultiLayer& m, Direction direction, Part of_rows, const InOut<T>& u,
                const In<T>& g) {
  for (const Part of_columns : {Part::first, Part::second}) {
    const KindOfTiles tiles = tiles_of(m, direction, of_rows, of_columns);
    if (kept == Kept::whole && m.subdomain <= largest_whole) {
      if (m.has_source)
        relax_whole<true>(native(stream), tiles, u, g);
      else
        relax_whole<false>(native(stream), tiles, u, g);
    } else {
      if (m.has_source)
        relax_rows<true>(native(stream), tiles, u, g);
      else
        relax_rows<false>(native(stream), tiles, u, g);
    }
  }
}

template <class From, class To>
void copy_rows(Stream stream, Index count, Index columns, const From& from, Index from_row, const To& to,
               Index to_row) {
  const auto bytes = [](Index elements) { return static_cast<std::size_t>(elements) * sizeof(*To::data); };
  check(cudaMemcpy2DAsync(to.row(to_row), bytes(to.ld), from.row(from_row), bytes(from.ld), bytes(columns),
                          static_cast<std::size_t>(count), cudaMemcpyDeviceToDevice, native(stream)),
        "copying rows");
}

template <Kept kept, class T>
void first_half(Stream stream, const HalfSweep& args, const InOut<T>& u, const In<T>& g, const In<T>& trail,
                const Out<T>& lead) {
  const MultiLayer& m = args.problem;
  mlssor_receive(stream, args, u, trail);
  relax_half<kept>(stream, m, args.direction, Part::first, u, g);
  if (m.has_previous(args.direction)) copy_rows(stream, m.layers, u.cols, u, m.lead(args.direction), lead, 0);
}

template <Kept kept, class T>
void second_half(Stream stream, const HalfSweep& args, const InOut<T>& u, const In<T>& g, const In<T>& lead,
                 const Out<T>& trail) {
  const MultiLayer& m = args.problem;
  if (m.has_next(args.direction))
    copy_rows(stream, m.layers, u.cols, lead, 0, u, m.lead_ghosts(args.direction));
  relax_half<kept>(stream, m, args.direction, Part::second, u, g);
  if (m.has_next(args.direction)) copy_rows(stream, m.layers, u.cols, u, m.trail(args.direction), trail, 0);
}

template <Kept kept, class T>
void sweeps(Stream stream, const WholeSweeps& args, const InOut<T>& u, const In<T>& g) {
  Direction direction = args.first;
  for (Index sweep = 0; sweep < args.sweeps; ++sweep) {
    relax_half<kept>(stream, args.problem, direction, Part::first, u, g);
    relax_half<kept>(stream, args.problem, direction, Part::second, u, g);
    if (args.alternate) direction = reversed(direction);
  }
}

}  // namespace

template <class T>
void mlssor_receive(Stream stream, const HalfSweep& args, InOut<T> u, In<T> trail) {
  const MultiLayer& m = args.problem;
  if (args.arrives && m.has_previous(args.arriving))
    copy_rows(stream, m.layers, u.cols, trail, 0, u, m.arriving(args.arriving));
}

template <class T>
void mlssor_first_whole(Stream stream, const HalfSweep& args, InOut<T> u, In<T> g, In<T> trail, Out<T> lead) {
  first_half<Kept::whole>(stream, args, u, g, trail, lead);
}
template <class T>
void mlssor_second_whole(Stream stream, const HalfSweep& args, InOut<T> u, In<T> g, In<T> lead,
                         Out<T> trail) {
  second_half<Kept::whole>(stream, args, u, g, lead, trail);
}
template <class T>
void mlssor_sweeps_whole(Stream stream, const WholeSweeps& args, InOut<T> u, In<T> g) {
  sweeps<Kept::whole>(stream, args, u, g);
}

template <class T>
void mlssor_first_rows(Stream stream, const HalfSweep& args, InOut<T> u, In<T> g, In<T> trail, Out<T> lead) {
  first_half<Kept::rows>(stream, args, u, g, trail, lead);
}
template <class T>
void mlssor_second_rows(Stream stream, const HalfSweep& args, InOut<T> u, In<T> g, In<T> lead, Out<T> trail) {
  second_half<Kept::rows>(stream, args, u, g, lead, trail);
}
template <class T>
void mlssor_sweeps_rows(Stream stream, const WholeSweeps& args, InOut<T> u, In<T> g) {
  sweeps<Kept::rows>(stream, args, u, g);
}

#define ASTERISM_INSTANTIATE(T)                                                                \
  template void mlssor_first_whole(Stream, const HalfSweep&, InOut<T>, In<T>, In<T>, Out<T>);  \
  template void mlssor_second_whole(Stream, const HalfSweep&, InOut<T>, In<T>, In<T>, Out<T>); \
  template void mlssor_sweeps_whole(Stream, const WholeSweeps&, InOut<T>, In<T>);              \
  template void mlssor_first_rows(Stream, const HalfSweep&, InOut<T>, In<T>, In<T>, Out<T>);   \
  template void mlssor_second_rows(Stream, const HalfSweep&, InOut<T>, In<T>, In<T>, Out<T>);  \
  template void mlssor_sweeps_rows(Stream, const WholeSweeps&, InOut<T>, In<T>);               \
  template void mlssor_receive(Stream, const HalfSweep&, InOut<T>, In<T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::relaxation::cuda
