#include <algorithm>
#include <map>
#include <mutex>
#include <type_traits>

#include "../../runtime/contents.hpp"
#include "../../runtime/cuda.hpp"
#include "../../runtime/loaded/cublas.hpp"
#include "gemm_transform.hpp"

namespace asterism::poisson::cuda {
namespace {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::cublas;
using asterism::cuda::native;

/// cuBLAS on one device. A handle belongs to one thread at a time, from the choice of its stream to the
/// launch.
class Blas {
 public:
  Blas() {
    check(cublas().create(&handle_), "start of cuBLAS");
    // The default, and said nevertheless: no TF32, no emulation by shorter numbers.
    check(cublas().set_math_mode(handle_, CUBLAS_DEFAULT_MATH), "cuBLAS' choice of arithmetic");
  }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  /// C = A B + beta C, column-major.
  template <class T>
  void multiply(cudaStream_t stream, Index m, Index n, Index k, const T* a, Index lda, const T* b, Index ldb,
                T beta, T* c, Index ldc) {
    const std::scoped_lock lock(mutex_);
    constexpr T one = 1;
    check(cublas().set_stream(handle_, stream), "cuBLAS' stream");
    const auto status_of = [&](auto gemm) {
      return gemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, lda, b, ldb, &beta, c, ldc);
    };
    if constexpr (std::is_same_v<T, float>)
      check(status_of(cublas().sgemm_64), "SGEMM");
    else
      check(status_of(cublas().dgemm_64), "DGEMM");
  }

 private:
  std::mutex mutex_;
  cublasHandle_t handle_ = nullptr;
};

/// That of the calling thread's current device.
Blas& blas() {
  static auto& of_device = *new std::map<int, Blas>;  // when the process ends CUDA may have ended before
  static std::mutex mutex;
  int device = 0;
  check(cudaGetDevice(&device), "the current device");
  const std::scoped_lock lock(mutex);
  return of_device[device];
}

constexpr unsigned matrix_threads = 256;

/// Threads walk along the rows, block rows down them.
template <class T>
__global__ void __launch_bounds__(matrix_threads) transform_matrix_kernel(TransformPart part, Out<T> matrix) {
  const Index j = Index{blockIdx.x} * matrix_threads + threadIdx.x;
  if (j >= matrix.cols) return;
  for (Index i = blockIdx.y; i < matrix.rows; i += gridDim.y)
    matrix.row(i)[j] =
        static_cast<T>(transform_entry(part.kind, part.n, part.first_row + i, part.first_column + j));
}

}  // namespace

void plan_multiply() { blas(); }

template <class T>
void transform_matrix(Stream stream, const TransformPart& part, Out<T> matrix) {
  constexpr Index most = 65535;  // block rows of a grid
  const dim3 blocks(static_cast<unsigned>(parts(matrix.cols, matrix_threads)),
                    static_cast<unsigned>(std::min(matrix.rows, most)));
  transform_matrix_kernel<<<blocks, matrix_threads, 0, native(stream)>>>(part, matrix);
  check_launch("transform_matrix");
}

/// The rows of a row-major matrix are the columns of its transpose, and C^T = B^T A^T.
template <class T>
void multiply(Stream stream, const Product& product, In<T> a, In<T> b, InOut<T> c) {
  blas().multiply(native(stream), c.cols, product.rows, a.cols, b.data, b.ld, a.row(product.from), a.ld,
                  product.result == Result::adds ? T{1} : T{0}, c.row(product.to), c.ld);
}

template <class T>
void set_first_column(Stream stream, In<T> column, InOut<T> matrix) {
  detail::copy_on_gpu(stream, column.data, column.ld, matrix.data, matrix.ld, matrix.rows, 1, sizeof(T));
}

#define ASTERISM_INSTANTIATE(T)                                           \
  template void transform_matrix(Stream, const TransformPart&, Out<T>);   \
  template void multiply(Stream, const Product&, In<T>, In<T>, InOut<T>); \
  template void set_first_column(Stream, In<T>, InOut<T>);
ASTERISM_INSTANTIATE(float)
ASTERISM_INSTANTIATE(double)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::poisson::cuda
