// Jacobi's sweeps: one a launch, in several ways to read a node's neighbours, or several in one pass through
// memory.

#include "jacobi.cuh"

#include <utility>

namespace asterism::relaxation::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

// ---- One sweep a launch ----------------------------------------------------------------------------------

constexpr int tile_x = 64, tile_y = 4;   // threads of a block
constexpr int shared_rows = 4 * tile_y;  // that it relaxes in shared memory

/// A step out of place: rows [begin, end) of a stripe in natural arrangement.
template <class T>
struct Step {
  const T* from;
  T* to;
  const T* source;  ///< or nullptr
  Index from_ld, to_ld, source_ld, nodes, begin, end;
  FivePoint<T> a;
};

/// Where a node's neighbours are read from.
enum class Reading { global, readonly, shared };

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

template <Reading reading, class T>
void launch_step(Stream stream, const Step<T>& step) {
  constexpr bool shared = reading == Reading::shared;
  const auto blocks = static_cast<unsigned>(parts(step.nodes, tile_x) *
                                            parts(step.end - step.begin, shared ? shared_rows : tile_y));
  const dim3 block(tile_x, tile_y);
  if constexpr (shared)
    jacobi_shared_kernel<<<blocks, block, 0, native(stream)>>>(step);
  else
    jacobi_step_kernel<reading><<<blocks, block, 0, native(stream)>>>(step);
  check_launch("jacobi");
}

template <Reading reading, class T>
void jacobi_in_steps(Stream stream, const JacobiArgs& args, InOut<T> u, InOut<T> other, In<T> g,
                     const Exchange<T>& with) {
  const Stripe& stripe = args.stripe;
  fill_ghosts<T>(stream, stripe, {u, with.above, with.below});
  for (Index sweep = 1; sweep <= args.sweeps; ++sweep) {
    launch_step<reading, T>(
        stream, {u.data, other.data, args.has_source ? g.data : nullptr, u.ld, other.ld, g.ld, stripe.nodes,
                 stripe.begin(sweep), stripe.end(sweep), weights<T>(args)});
    std::swap(u, other);
  }
  copy_edges<T>(stream, stripe, {relaxation::reading(u), with.top, with.bottom});
}

// ---- Several sweeps a launch -----------------------------------------------------------------------------

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

/// A pass of so many sweeps.
template <int sweeps, bool has_source, bool cached = true, class P>
void launch_jacobi_pass(Stream stream, const P& pass) {
  using S = JacobiShape<typename P::Element, sweeps, has_source, cached>;
  launch_pass<S, jacobi_pass_kernel<S, has_source, P>>(stream, pass);
}

template <bool has_source, class T>
void launch_sweep(Stream stream, const ExchangingPass<T>& pass) {
  if constexpr (!has_source)
    if (!in_cache(pass)) return launch_jacobi_pass<1, false, false>(stream, pass);
  launch_jacobi_pass<1, has_source>(stream, pass);
}

template <bool has_source, class T>
void launch_jacobi_sweeps(Stream stream, int sweeps, const Pass<T>& pass) {
  switch (sweeps) {
    case 1:
      return launch_sweep<has_source>(stream, ExchangingPass<T>(pass));
    case 2:
      return launch_jacobi_pass<2, has_source>(stream, pass);
    case 4:
      return launch_jacobi_pass<4, has_source>(stream, pass);
    default:
      if constexpr (!has_source) launch_jacobi_pass<8, false>(stream, pass);
  }
}

/// The fastest way.
template <class T>
void sweep_jacobi(Stream stream, const JacobiArgs& args, InOut<T> u, InOut<T> other, In<T> g,
                  const Exchange<T>& with) {
  const bool piped =
      aligned(u) && aligned(other) && (!args.has_source || aligned(g)) && aligned(args.stripe, with);
  if (!piped) return jacobi_in_steps<Reading::global>(stream, args, u, other, g, with);
  const Stripe& stripe = args.stripe;
  const Pass<T> pass = pass_over(stripe, weights<T>(args), T{1}, g);
  if (args.sweeps == 1) {
    ExchangingPass<T> sweep = exchanging(pass, stripe, with);
    between(sweep, u, other, stripe.begin(jacobi_reach(1)), stripe.end(jacobi_reach(1)));
    return args.has_source ? launch_sweep<true>(stream, sweep) : launch_sweep<false>(stream, sweep);
  }
  sweep_in_passes(stream, stripe, pass, args.sweeps, deepest_jacobi_pass(args.has_source), jacobi_reach(1), u,
                  other, with, [&](int depth, const Pass<T>& next) {
                    args.has_source ? launch_jacobi_sweeps<true>(stream, depth, next)
                                    : launch_jacobi_sweeps<false>(stream, depth, next);
                  });
}

}  // namespace

template <class T>
void jacobi_global(Stream stream, const JacobiArgs& args, SweepPorts<AsPorts, T> p) {
  jacobi_in_steps<Reading::global, T>(stream, args, p.u, p.other, p.g, {p.above, p.below, p.top, p.bottom});
}
template <class T>
void jacobi_shared(Stream stream, const JacobiArgs& args, SweepPorts<AsPorts, T> p) {
  jacobi_in_steps<Reading::shared, T>(stream, args, p.u, p.other, p.g, {p.above, p.below, p.top, p.bottom});
}
template <class T>
void jacobi_readonly(Stream stream, const JacobiArgs& args, SweepPorts<AsPorts, T> p) {
  jacobi_in_steps<Reading::readonly, T>(stream, args, p.u, p.other, p.g, {p.above, p.below, p.top, p.bottom});
}
template <class T>
void jacobi_blocked(Stream stream, const JacobiArgs& args, SweepPorts<AsPorts, T> p) {
  sweep_jacobi<T>(stream, args, p.u, p.other, p.g, {p.above, p.below, p.top, p.bottom});
}

template <class T>
void jacobi_border(Stream stream, const JacobiArgs& args, BorderPorts<AsPorts, T> p) {
  relax_border(stream, sweep_jacobi<T>, args, p);
}
template <class T>
void jacobi_interior(Stream stream, const JacobiArgs& args, InteriorPorts<AsPorts, T> p) {
  sweep_jacobi<T>(stream, args, p.u, p.other, p.g, {p.above, p.below, {}, {}});
}

#define ASTERISM_INSTANTIATE(T)                                                     \
  template void jacobi_global(Stream, const JacobiArgs&, SweepPorts<AsPorts, T>);   \
  template void jacobi_shared(Stream, const JacobiArgs&, SweepPorts<AsPorts, T>);   \
  template void jacobi_readonly(Stream, const JacobiArgs&, SweepPorts<AsPorts, T>); \
  template void jacobi_blocked(Stream, const JacobiArgs&, SweepPorts<AsPorts, T>);  \
  template void jacobi_border(Stream, const JacobiArgs&, BorderPorts<AsPorts, T>);  \
  template void jacobi_interior(Stream, const JacobiArgs&, InteriorPorts<AsPorts, T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::relaxation::cuda
