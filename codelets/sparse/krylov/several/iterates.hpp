/// \file
/// What several iterations, or several blocks of one, have of their vectors and scalars.
#pragma once

#include "../conjugate_gradients.hpp"

namespace asterism::sparse {

/// One of each for every iteration, or block. @param rz where M is a diagonal, else none
template <template <class> class As, class T>
struct IteratesPorts {
  As<Many<InOut<T>>> x;
  As<Many<InOut<T>>> r;
  As<Many<InOut<T>>> p;
  As<Many<InOut<T>>> q;
  As<Many<InOut<double>>> pq;
  As<Many<InOut<double>>> rr;
  As<Many<InOut<double>>> rz;
  As<Many<InOut<CgState>>> state;
};

}  // namespace asterism::sparse
