#include "gemm_transform.hpp"

#include <algorithm>

// A program that is linked with Asterism may have an Eigen of its own, compiled for other instructions. Under
// one name the linker would take the functions of either for those of both.
#define Eigen asterism_eigen
#define EIGEN_DONT_PARALLELIZE  // the workers do
#include <Eigen/Core>

namespace asterism::poisson::cpu {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// `rows` rows of a port from `first` on, as Eigen sees them.
template <class Port>
auto eigen(const Port& port, Index first, Index rows) {
  using Element = typename Port::Element;
  using Matrix = RowMajor<std::remove_const_t<Element>>;
  using View = Eigen::Map<std::conditional_t<std::is_const_v<Element>, const Matrix, Matrix>,
                          Eigen::Unaligned, Eigen::OuterStride<>>;
  return View(port.row(first), rows, port.cols, Eigen::OuterStride<>(port.ld));
}

}  // namespace

template <class T>
void transform_matrix(const TransformPart& part, Out<T> matrix) {
  for (Index i = 0; i < matrix.rows; ++i)
    for (Index j = 0; j < matrix.cols; ++j)
      matrix.row(i)[j] =
          static_cast<T>(transform_entry(part.kind, part.n, part.first_row + i, part.first_column + j));
}

template <class T>
void multiply(const Product& product, In<T> a, In<T> b, InOut<T> c) {
  const auto from = eigen(a, product.from, product.rows), by = eigen(b, 0, b.rows);
  auto to = eigen(c, product.to, product.rows);
  if (product.result == Result::replaces)
    to.noalias() = from * by;
  else
    to.noalias() += from * by;
}

template <class T>
void set_first_column(In<T> column, InOut<T> matrix) {
  for (Index i = 0; i < matrix.rows; ++i) matrix.row(i)[0] = column.row(i)[0];
}

#define ASTERISM_INSTANTIATE(T)                                   \
  template void transform_matrix(const TransformPart&, Out<T>);   \
  template void multiply(const Product&, In<T>, In<T>, InOut<T>); \
  template void set_first_column(In<T>, InOut<T>);
ASTERISM_INSTANTIATE(float)
ASTERISM_INSTANTIATE(double)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::poisson::cpu
