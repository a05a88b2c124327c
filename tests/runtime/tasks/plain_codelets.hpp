/// \file
/// The codelets that tests of codelets submit where it is of no account what a task does.
#pragma once

#include "runtime/codelet.hpp"

namespace asterism::test {

inline void cpu_set_first(const double& value, Out<double> x) { *x.data = value; }
inline const Codelet set_first{"test_set", cpu_set_first};  // what the ports are follows from the kernel

inline void cpu_axpy(const double& a, In<double> x, InOut<double> y) {
  for (Index i = 0; i < y.rows; ++i)
    for (Index j = 0; j < y.cols; ++j) y.row(i)[j] += a * x.row(i)[j];
}
inline void cuda_nothing(Stream, const double&, In<double>, InOut<double>) {}
inline const Codelet axpy{"test_axpy", cpu_axpy, nullptr};

}  // namespace asterism::test
