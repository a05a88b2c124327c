/// \file
/// The ports of a kernel: plain views of the tiles that a task reads or writes. The type of a port is its access mode.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define ASTERISM_HOST_DEVICE __host__ __device__
#else
#define ASTERISM_HOST_DEVICE
#endif

namespace asterism {

/// Every count and index of elements: 64 bits, because a grid of 49,151 x 49,151 already has more than 2^31 points.
using Index = std::int64_t;

/// A row-major matrix of `rows` x `cols` elements; rows start `ld` elements apart.
template <class T>
struct In {
  using Element = const T;
  const T* data;
  Index rows, cols, ld;
  ASTERISM_HOST_DEVICE const T* row(Index i) const { return data + i * ld; }
};

/// As In, to be written completely: its old content is undefined.
template <class T>
struct Out {
  using Element = T;
  T* data;
  Index rows, cols, ld;
  ASTERISM_HOST_DEVICE T* row(Index i) const { return data + i * ld; }
};

/// As In, to be read and changed in place.
template <class T>
struct InOut {
  using Element = T;
  T* data;
  Index rows, cols, ld;
  ASTERISM_HOST_DEVICE T* row(Index i) const { return data + i * ld; }
};

/// Working memory of the task on whichever memory node it runs: undefined before, lost afterwards.
template <class T>
struct Scratch {
  using Element = T;
  T* data;
  Index rows, cols, ld;
  ASTERISM_HOST_DEVICE T* row(Index i) const { return data + i * ld; }
};

/// The CUDA stream that a CUDA kernel must launch into (`static_cast<cudaStream_t>(stream.handle)`); spelled without
/// CUDA's header so that a program without CUDA can name it. Launches are asynchronous: do not synchronise.
struct Stream {
  void* handle;
};

}  // namespace asterism
