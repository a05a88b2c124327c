// Triangular systems by stages. Large stages are a kernel each. Where many small ones follow each other (levels of a
// factorisation in the natural order) a single kernel does them all, whose threads meet after each.

#include "triangular.cuh"

#include <cooperative_groups.h>

#include <algorithm>

#include "../common/chained_launch.cuh"
#include "../common/occupancy.cuh"
#include "row_products.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::launch_chained;
using asterism::cuda::native;
using asterism::cuda::wait_for_previous_kernel;

namespace {

constexpr int stage_threads = 128, stage_blocks = 12, small_threads = 1024;

/// What happens to a row, with F = L or U.
enum class Work {
  forward,   ///< z = y - F g
  both,      ///< z = d (y - F g): forward, and backward where U is empty
  backward,  ///< z = d y - F g
};

/// Consecutive stages.
template <class T, class V>
struct StageWork {
  Work work;
  const T* y;  ///< r or z
  const T* g;  ///< r or z, with foreign elements
  T* z;
  const V* d;
  const std::int32_t* begins;  ///< Stages
  Index groups, stages;
  Index first,
      count;  ///< of them that are worked on; where only one follows the other, upwards forward, downwards backward
  bool ends_with_both;  ///< forward: whether the last of them is Work::both
};

template <class Rows, class T, class V>
__device__ void work_on_row(const Rows& rows, const StageWork<T, V>& at, Work work, Index i) {
  const T y = at.y[i];
  const T d = work == Work::forward ? T{1} : static_cast<T>(at.d[i]);
  const T product = product_of_row<4>(rows, i, Changing<T>{at.g});
  at.z[i] = work == Work::backward ? multiply_add(d, y, -product) : d * (y - product);
}

/// The rows of a stage in some groups: arguments of the kernel, as blocks of threads that had to read them from memory
/// would wait before their first row.
struct GroupRows {
  static constexpr Index most = 64;
  std::int32_t begins[most], ends[most];
};

/// One stage. @param chunks that a group's rows are in
template <class Rows, class T, class V>
__global__ void __launch_bounds__(stage_threads, stage_blocks)
    stage_kernel(Rows rows, const __grid_constant__ StageWork<T, V> at,
                 const __grid_constant__ GroupRows groups, unsigned chunks) {
  wait_for_previous_kernel();
  const unsigned group = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
  const Index i = groups.begins[group] + Index{chunk} * stage_threads + threadIdx.x;
  if (i < groups.ends[group]) work_on_row(rows, at, at.work, i);
}

/// All of them. @param longest rows of a stage in one group @tparam alone whether there is only one block of threads
template <bool alone, class Rows, class T, class V>
__global__ void __launch_bounds__(small_threads, 1)
    stages_kernel(Rows rows, const __grid_constant__ StageWork<T, V> at, Index longest) {
  const Index threads = Index{gridDim.x} * small_threads, places = at.groups * longest;
  for (Index k = 0; k < at.count; ++k) {
    const Index stage = at.work == Work::backward ? at.first + at.count - 1 - k : at.first + k;
    const Work work = at.ends_with_both && k + 1 == at.count ? Work::both : at.work;
    for (Index place = blockIdx.x * Index{small_threads} + threadIdx.x; place < places; place += threads) {
      const Index group = at.groups == 1 ? 0 : place / longest, row = place - group * longest;
      const std::int32_t* const begins = at.begins + group * (at.stages + 1) + stage;
      const Index i = __ldg(begins) + row;
      if (i < __ldg(begins + 1)) work_on_row(rows, at, work, i);
    }
    if constexpr (alone)
      __syncthreads();
    else
      cooperative_groups::this_grid().sync();
  }
}

/// Blocks of a kernel that run at once; 0: they cannot meet.
template <class Kernel>
int blocks_that_meet(Kernel kernel) {
  int device = 0, cooperates = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&cooperates, cudaDevAttrCooperativeLaunch, device), "cudaDeviceGetAttribute");
  return cooperates == 0 ? 0 : asterism::cuda::blocks_at_once(kernel, small_threads);
}

/// @param first of the groups, as many of them as it takes
GroupRows rows_of_groups(const Stages& stages, Index stage, Index first) {
  GroupRows rows{};
  for (Index g = first; g < std::min(stages.groups, first + GroupRows::most); ++g) {
    const std::int32_t* const begins = stages.begins.data() + g * (stages.stages + 1) + stage;
    rows.begins[g - first] = begins[0];
    rows.ends[g - first] = begins[1];
  }
  return rows;
}

/// Rows of a stage in the largest of these groups.
Index longest_of(const GroupRows& rows) {
  Index longest = 0;
  for (Index g = 0; g < GroupRows::most; ++g)
    longest = std::max<Index>(longest, rows.ends[g] - rows.begins[g]);
  return longest;
}

template <class Rows, class T, class V>
void launch_one_by_one(Stream stream, const Rows& rows, const StageWork<T, V>& all, const Stages& stages) {
  for (Index k = 0; k < all.count; ++k) {
    StageWork<T, V> at = all;
    at.first = all.work == Work::backward ? all.first + all.count - 1 - k : all.first + k;
    if (all.ends_with_both && k + 1 == all.count) at.work = Work::both;
    for (Index first = 0; first < stages.groups; first += GroupRows::most) {
      const GroupRows groups = rows_of_groups(stages, at.first, first);
      const Index longest = longest_of(groups);
      if (longest == 0) continue;
      const auto chunks = static_cast<unsigned>(parts(longest, stage_threads));
      launch_chained<stage_kernel<Rows, T, V>>(
          "triangular stage", stream,
          chunks * static_cast<unsigned>(std::min(GroupRows::most, stages.groups - first)), stage_threads,
          rows, at, groups, chunks);
    }
  }
}

/// @return whether it could
template <class Rows, class T, class V>
bool launch_at_once(Stream stream, const Rows& rows, const StageWork<T, V>& at, const Stages& stages) {
  constexpr Index few = 4;
  if (at.count < few) return false;
  const Index longest = stages.longest;
  const Index needed = parts(stages.groups * longest, small_threads);
  if (needed <= 1) {
    stages_kernel<true, Rows, T, V><<<1, small_threads, 0, native(stream)>>>(rows, at, longest);
    check_launch("triangular stages");
    return true;
  }
  static const int at_most = blocks_that_meet(stages_kernel<false, Rows, T, V>);
  if (at_most == 0 || needed > at_most) return false;
  const auto blocks = static_cast<unsigned>(needed);
  void* arguments[] = {const_cast<Rows*>(&rows), const_cast<StageWork<T, V>*>(&at),
                       const_cast<Index*>(&longest)};
  check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&stages_kernel<false, Rows, T, V>),
                                    dim3(blocks), dim3(small_threads), arguments, 0, native(stream)),
        "triangular stages");
  return true;
}

template <class T, class V>
void launch(Stream stream, const BlockShape& shape, const BlockPorts<AsPorts, V>& factor,
            const StageWork<T, V>& at, const Stages& stages) {
  if (at.count <= 0) return;
  with_device_rows<V>(shape, factor, [&](const auto& rows) {
    if (!launch_at_once(stream, rows, at, stages)) launch_one_by_one(stream, rows, at, stages);
  });
}

}  // namespace

template <class T, class V>
void triangular_stages(Stream stream, const TriangularArgs& args, TriangularPorts<AsPorts, T, V> ports) {
  unpack(stream, ports.arrivals, ports.z.data);
  const bool forward = args.half == Half::forward;
  T* const z = ports.z.data + args.shape.own;
  const StageWork<T, V> at{.work = forward ? Work::forward : Work::backward,
                           .y = forward ? ports.r.data : z,
                           .g = ports.z.data,
                           .z = z,
                           .d = ports.inverse_diagonal.data,
                           .begins = ports.stages.data,
                           .groups = args.stages.groups,
                           .stages = args.stages.stages,
                           .first = args.first_stage,
                           .count = args.end_stage - args.first_stage,
                           .ends_with_both = false};
  launch(stream, args.shape, ports.factor, at, args.stages);
  pack(stream, static_cast<const T*>(z), ports.departures);
}

template <class T, class V>
void apply_triangular(Stream stream, const PreconditionerShape& shape,
                      const PreconditionerPorts<AsPorts, T, V>& ports, In<T> r) {
  const Stages& stages = shape.stages;
  T* const z = ports.z.data;
  StageWork<T, V> forward{.work = Work::forward,
                          .y = r.data,
                          .g = z,
                          .z = z,
                          .d = ports.inverse_diagonal.data,
                          .begins = ports.stages.data,
                          .groups = stages.groups,
                          .stages = stages.stages,
                          .first = 0,
                          .count = stages.stages,
                          .ends_with_both = true};
  StageWork<T, V> backward = forward;
  backward.work = Work::backward;
  backward.count = stages.stages - 1;
  backward.ends_with_both = false;
  if (stages.stages == 2) {  // the first stage is r itself
    forward.first = forward.count = 1;
    forward.g = r.data;
    backward.y = r.data;
  } else {
    backward.y = z;
  }
  launch(stream, shape.left, ports.left, forward, stages);
  launch(stream, shape.right, ports.right, backward, stages);
}

#define ASTERISM_INSTANTIATE(T, V)                                                                \
  template void triangular_stages(Stream, const TriangularArgs&, TriangularPorts<AsPorts, T, V>); \
  template void apply_triangular(Stream, const PreconditionerShape&,                              \
                                 const PreconditionerPorts<AsPorts, T, V>&, In<T>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cuda
