/// \file
/// cuSOLVER, loaded when first used, for `.cu` files only.
#pragma once

#include <cusolverDn.h>

#include <string>

#include "../cuda.hpp"
#include "library.hpp"

namespace asterism::cuda {

/// What makes its handles; who solves with them is linked to it. See Cublas.
struct Cusolver {
  LoadedLibrary library{"cuSOLVER", "libcusolver.so." + std::to_string(CUSOLVER_VER_MAJOR)};

  decltype(&cusolverDnCreate) create = library["cusolverDnCreate"];
  decltype(&cusolverDnDestroy) destroy = library["cusolverDnDestroy"];
  decltype(&cusolverDnSetStream) set_stream = library["cusolverDnSetStream"];
};

/// @throw Error: see LoadedLibrary
inline const Cusolver& cusolver() {
  static const Cusolver functions;
  return functions;
}

/// cuSOLVER has no words for its statuses, which `cusolverStatus_t` numbers.
inline void check(cusolverStatus_t status, const char* what) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw Error(
        std::string(what) + ": cuSOLVER says " +
            (status == CUSOLVER_STATUS_ALLOC_FAILED ? "out of memory" : "status " + std::to_string(status)),
        Blame::task);
}

}  // namespace asterism::cuda
