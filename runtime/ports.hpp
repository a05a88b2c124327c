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

struct cublasContext;  // what CUDA's headers have a cublasHandle_t and a cusolverDnHandle_t point to
struct cusolverDnContext;

namespace asterism {

/// Every count and index of elements: 64 bits, because a grid of 49,151 x 49,151 already has more than 2^31 points.
using Index = std::int64_t;

/// n elements in parts of at most `size`: how many these are. In `size` parts: how many elements the largest has.
ASTERISM_HOST_DEVICE constexpr Index parts(Index n, Index size) { return (n + size - 1) / size; }

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

/// What has been written, to be read.
template <template <class> class Port, class T>
ASTERISM_HOST_DEVICE In<T> as_in(const Port<T>& port) {
  return {port.data, port.rows, port.cols, port.ld};
}

/// As InOut, where updates may be made in any order (sums, best values so far): tasks that follow each other on the tile
/// with this port alone run in whatever order they are ready, one at a time. A task with another port on it runs after
/// all those before it and before all those after it, as ever. Sums of floating-point numbers then differ from run to run.
template <class T>
struct Commute {
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

/// A port for any number of tiles, none included: `Many<In<T>>`, `Many<InOut<T>>` and so on, in the order in which they
/// were listed at the call. The views lie in main memory while the kernel's host code runs; their data is where the
/// kernel is. A CUDA kernel's host code launches for each of them, or copies them into the arguments of one launch.
template <class Port>
struct Many {
  using Element = typename Port::Element;
  const Port* views;
  Index count;
  [[nodiscard]] Index size() const { return count; }
  [[nodiscard]] const Port& operator[](Index i) const { return views[i]; }
  [[nodiscard]] const Port* begin() const { return views; }
  [[nodiscard]] const Port* end() const { return views + count; }
};

/// A port for a tile or none: `Optional<In<T>>` and so on. Where there is none, `data` is nullptr and the extents are 0.
template <class Port>
struct Optional : Port {
  ASTERISM_HOST_DEVICE explicit operator bool() const { return this->data != nullptr; }
};

/// What makes of a struct of ports what a kernel is given. Such a struct names several ports that belong together:
///
///     template <template <class> class As>
///     struct AxpyPorts {
///       As<In<double>> x;
///       As<InOut<double>> y;
///     };
///     void cpu_axpy(const double& a, AxpyPorts<AsPorts> p);  // p.x is an In<double>
///     axpy(2.0, {.x = x_tile, .y = y_tile});                 // an AxpyPorts<AsTiles>: see tile_arguments.hpp
///
/// Its members are ports of all kinds, and structs like it (a sparse matrix: `Csr<As> matrix;`), 16 at most. Further
/// parameters are types: `template <template <class> class As, class T> struct Csr`.
template <class Port>
using AsPorts = Port;

/// The CUDA stream that a CUDA kernel must launch into (`static_cast<cudaStream_t>(stream.handle)`); spelled without
/// CUDA's header so that a program without CUDA can name it. Launches are asynchronous: do not synchronise.
struct Stream {
  void* handle;

  /// The worker's handles of CUDA's libraries, `cublasHandle_t` and `cusolverDnHandle_t`, in this stream: made when first
  /// asked for, ended with the Runtime. They are as the libraries make them; a kernel that sets a mode sets it back.
  /// @throw Error: the library cannot be loaded; not in a CUDA kernel's host code, nor in Runtime::on_worker
  [[nodiscard]] cublasContext* cublas() const;
  [[nodiscard]] cusolverDnContext* cusolver() const;

  /// A word of the GPU's memory for what the kernel has to say of itself (cuSOLVER's `devInfo`): 0 at first. What it is when
  /// the kernel has ended is looked at before any task begins that waits for this one; unless it is 0 the task has failed,
  /// for the reason "WHAT NUMBER" ("no positive definite matrix: leading minor 17"). Nothing is held up for it.
  /// @param what a text that lives as long as the program
  /// @throw Error: not in a CUDA kernel's host code; CUDA refuses
  [[nodiscard]] int* status(const char* what) const;

  /// That of the worker in whose thread this is called (Runtime::on_worker): to ask libraries how much working memory they
  /// will want, say. @throw Error: in no CUDA worker's
  [[nodiscard]] static Stream of_worker();
};

}  // namespace asterism
