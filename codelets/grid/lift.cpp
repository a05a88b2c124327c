#include "lift.hpp"

namespace asterism::grid::cpu {

template <class T>
void lift(const LiftedSlab& slab, InOut<T> f, In<double> x_sides, In<double> y_sides, In<double> z_sides,
          In<double> axis) {
  const Lift given(slab, f.rows, x_sides, y_sides, z_sides, axis);
  for (Index i = 0; i < f.rows; ++i)
    for (Index y = 0; y < slab.a.y.n; ++y) given.into(f.row(i) + y * slab.a.x.n, i, y, 0, 1);
}

template void lift(const LiftedSlab&, InOut<float>, In<double>, In<double>, In<double>, In<double>);
template void lift(const LiftedSlab&, InOut<double>, In<double>, In<double>, In<double>, In<double>);

}  // namespace asterism::grid::cpu
