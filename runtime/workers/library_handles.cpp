#include "library_handles.hpp"

#include "../loaded/cublas.hpp"
#include "../loaded/cusolver.hpp"

namespace asterism::detail {

LibraryHandles::~LibraryHandles() {
  if (cublas_ != nullptr) cuda::cublas().destroy(cublas_);
  if (cusolver_ != nullptr) cuda::cusolver().destroy(cusolver_);
}

cublasHandle_t LibraryHandles::cublas(cudaStream_t stream) {
  if (cublas_ == nullptr) {
    cuda::check(cuda::cublas().create(&cublas_), "start of cuBLAS");
    cuda::check(cuda::cublas().set_stream(cublas_, stream), "cuBLAS' stream");
  }
  return cublas_;
}

cusolverDnHandle_t LibraryHandles::cusolver(cudaStream_t stream) {
  if (cusolver_ == nullptr) {
    cuda::check(cuda::cusolver().create(&cusolver_), "start of cuSOLVER");
    cuda::check(cuda::cusolver().set_stream(cusolver_, stream), "cuSOLVER's stream");
  }
  return cusolver_;
}

}  // namespace asterism::detail
