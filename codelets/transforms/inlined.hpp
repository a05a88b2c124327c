/// \file
/// Functions that become part of their caller, and loops without a counter: numbers stay in registers, which a call, or a
/// place that is not known, would keep in memory.
#pragma once

#ifdef __CUDACC__
#define ASTERISM_INLINED __host__ __device__ __forceinline__
#else
#define ASTERISM_INLINED [[gnu::always_inline]] inline
#endif

#ifdef __CUDA_ARCH__
#define ASTERISM_UNROLL _Pragma("unroll")
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define ASTERISM_UNROLL _Pragma("GCC unroll 17")
#else
#define ASTERISM_UNROLL
#endif
