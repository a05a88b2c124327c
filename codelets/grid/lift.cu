#include <algorithm>

#include "../../runtime/cuda.hpp"
#include "lift.hpp"

namespace asterism::grid::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr unsigned warp = 32, lines_at_once = 8;  // of a thread block: a warp on each

template <class T>
__global__ void __launch_bounds__(warp* lines_at_once)
    lift_kernel(LiftedSlab slab, InOut<T> f, In<double> x_sides, In<double> y_sides, In<double> z_sides,
                In<double> axis) {
  const Lift given(slab, f.rows, x_sides, y_sides, z_sides, axis);
  const Index ny = slab.a.y.n;
  for (Index l = Index{blockIdx.x} * lines_at_once + threadIdx.y; l < f.rows * ny; l += Index{gridDim.x} * lines_at_once)
    given.into(f.row(l / ny) + l % ny * slab.a.x.n, l / ny, l % ny, threadIdx.x, warp);
}

}  // namespace

template <class T>
void lift(Stream stream, const LiftedSlab& slab, InOut<T> f, In<double> x_sides, In<double> y_sides,
          In<double> z_sides, In<double> axis) {
  constexpr Index most_blocks = 1 << 12;
  const Index blocks = (f.rows * slab.a.y.n + lines_at_once - 1) / lines_at_once;
  lift_kernel<T><<<static_cast<unsigned>(std::min(blocks, most_blocks)), dim3(warp, lines_at_once), 0,
                   native(stream)>>>(slab, f, x_sides, y_sides, z_sides, axis);
  check_launch("lift");
}

template void lift(Stream, const LiftedSlab&, InOut<float>, In<double>, In<double>, In<double>, In<double>);
template void lift(Stream, const LiftedSlab&, InOut<double>, In<double>, In<double>, In<double>, In<double>);

}  // namespace asterism::grid::cuda
