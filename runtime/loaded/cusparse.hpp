/// \file
/// cuSPARSE, loaded when first used, for `.cu` files only.
#pragma once

#include <cusparse.h>

#include <string>

#include "../cuda.hpp"
#include "library.hpp"

namespace asterism::cuda {

/// Its functions by shorter names: see Cublas.
struct Cusparse {
  LoadedLibrary library{"cuSPARSE", "libcusparse.so." + std::to_string(CUSPARSE_VER_MAJOR)};

  decltype(&cusparseGetErrorString) status_string = library["cusparseGetErrorString"];
  decltype(&cusparseCreate) create = library["cusparseCreate"];
  decltype(&cusparseDestroy) destroy = library["cusparseDestroy"];
  decltype(&cusparseSetStream) set_stream = library["cusparseSetStream"];

  decltype(&cusparseCreateCsr) create_csr = library["cusparseCreateCsr"];
  decltype(&cusparseDestroySpMat) destroy_matrix = library["cusparseDestroySpMat"];
  decltype(&cusparseCreateDnVec) create_vector = library["cusparseCreateDnVec"];
  decltype(&cusparseDestroyDnVec) destroy_vector = library["cusparseDestroyDnVec"];
  decltype(&cusparseDnVecSetValues) set_values = library["cusparseDnVecSetValues"];
  decltype(&cusparseSpMV_bufferSize) spmv_buffer_size = library["cusparseSpMV_bufferSize"];
  decltype(&cusparseSpMV_preprocess) spmv_preprocess = library["cusparseSpMV_preprocess"];
  decltype(&cusparseSpMV) spmv = library["cusparseSpMV"];
};

/// @throw Error: see LoadedLibrary
inline const Cusparse& cusparse() {
  static const Cusparse functions;
  return functions;
}

inline void check(cusparseStatus_t status, const char* what) {
  if (status != CUSPARSE_STATUS_SUCCESS)
    throw Error(std::string(what) + ": cuSPARSE says " + cusparse().status_string(status), Blame::task);
}

}  // namespace asterism::cuda
