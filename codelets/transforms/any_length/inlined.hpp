/// \file
/// Functions that become part of their kernel: a call would keep in memory what registers have.
#pragma once

#ifdef __CUDACC__
#define ASTERISM_INLINED __host__ __device__ __forceinline__
#else
#define ASTERISM_INLINED inline
#endif
