/// \file
/// cuBLAS, loaded when first used, for `.cu` files only.
#pragma once

#include <cublas_v2.h>

#include <string>

#include "../cuda.hpp"
#include "library.hpp"

namespace asterism::cuda {

/// Its functions by shorter names. Codelets call these, as a program linked to cuBLAS would load it at every start.
struct Cublas {
  LoadedLibrary library{"cuBLAS", "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR)};

  decltype(&cublasGetStatusString) status_string = library["cublasGetStatusString"];
  decltype(&cublasCreate) create = library["cublasCreate_v2"];
  decltype(&cublasDestroy) destroy = library["cublasDestroy_v2"];
  decltype(&cublasSetStream) set_stream = library["cublasSetStream_v2"];
  decltype(&cublasSetMathMode) set_math_mode = library["cublasSetMathMode"];
  decltype(&cublasSetPointerMode) set_pointer_mode = library["cublasSetPointerMode_v2"];
  decltype(&cublasSetWorkspace) set_workspace = library["cublasSetWorkspace_v2"];

  decltype(&cublasSdot) sdot = library["cublasSdot_v2"];
  decltype(&cublasDdot) ddot = library["cublasDdot_v2"];
  decltype(&cublasSaxpy) saxpy = library["cublasSaxpy_v2"];
  decltype(&cublasDaxpy) daxpy = library["cublasDaxpy_v2"];
  decltype(&cublasSscal) sscal = library["cublasSscal_v2"];
  decltype(&cublasDscal) dscal = library["cublasDscal_v2"];
  decltype(&cublasSgemm_64) sgemm_64 = library["cublasSgemm_v2_64"];
  decltype(&cublasDgemm_64) dgemm_64 = library["cublasDgemm_v2_64"];
};

/// @throw Error: see LoadedLibrary
inline const Cublas& cublas() {
  static const Cublas functions;
  return functions;
}

inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(std::string(what) + ": cuBLAS says " + cublas().status_string(status), Blame::task);
}

}  // namespace asterism::cuda
