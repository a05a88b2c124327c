/// \file
/// Codelets: a kernel for CPUs and one for CUDA under one name, ready to be submitted as tasks.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ports.hpp"
#include "tile.hpp"

/// A CUDA kernel in a codelet's definition: nullptr in a build without CUDA, where it does not exist.
#ifdef ASTERISM_WITH_CUDA
#define ASTERISM_CUDA_KERNEL(...) __VA_ARGS__
#else
#define ASTERISM_CUDA_KERNEL(...) nullptr
#endif

namespace asterism {

/// Which workers may run a task.
enum class Where { anywhere, cpu, cuda };

/// What the submitter knows about one task.
struct Hints {
  Where where = Where::anywhere;
  int priority = 0;          ///< larger first
  double flops = 0;          ///< for traces
  std::uint64_t cost = 0;    ///< distinguishes tasks of one codelet and equal tile sizes whose costs differ
  std::string label = {};    ///< names the task in messages beside the codelet ("slab 3")
  /// The worker that must run the task: its number, from 0, among those of the kind in `where` on the rank that runs it
  /// (2: the third GPU); -1: whichever StarPU chooses. StarPU brings the tiles to that worker as soon as the task is
  /// ready. For streams, whose submitter knows best; an unlucky choice leaves the other workers idle.
  int worker = -1;
  /// Whether Runtime::wait_for_room counts the task: false for those beside a stream that need little memory.
  bool streams = true;
};

namespace detail {

enum class Access { read, write, read_write, scratch };

template <class Port>
struct PortTraits;
template <class T>
struct PortTraits<In<T>> {
  using Element = T;
  static constexpr Access access = Access::read;
};
template <class T>
struct PortTraits<Out<T>> {
  using Element = T;
  static constexpr Access access = Access::write;
};
template <class T>
struct PortTraits<InOut<T>> {
  using Element = T;
  static constexpr Access access = Access::read_write;
};
template <class T>
struct PortTraits<Scratch<T>> {
  using Element = T;
  static constexpr Access access = Access::scratch;
};

/// A tile as a task finds it, without its type.
struct Matrix {
  void* data;
  Index rows, cols, ld;
};

template <class Port>
Port port(const Matrix& m) {
  return {static_cast<typename Port::Element*>(m.data), m.rows, m.cols, m.ld};
}

using Kernel = void (*)();  // a kernel whose type was forgotten; cast back before the call
using CpuCall = void (*)(Kernel, const void* args, const Matrix* ports);
using CudaCall = void (*)(Kernel, Stream, const void* args, const Matrix* ports);

/// Everything of a codelet that does not depend on types.
class CodeletCore {
 public:
  CodeletCore(std::string name, std::vector<Access> accesses, CpuCall call_cpu, std::vector<Kernel> cpu,
              CudaCall call_cuda, std::vector<Kernel> cuda);
  CodeletCore(const CodeletCore&) = delete;
  CodeletCore& operator=(const CodeletCore&) = delete;
  ~CodeletCore();

  void submit(std::shared_ptr<const void> args, const TileBase* const* tiles, const Hints& hints) const;
  [[nodiscard]] const std::string& name() const;

  struct State;
  [[nodiscard]] State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace detail

/// A named operation with kernels for CPUs and for CUDA. Codelets are made once (usually as constants) and live as long
/// as the process.
///
///     void cpu_axpy(const double& a, In<double> x, InOut<double> y);
///     void cuda_axpy(Stream stream, const double& a, In<double> x, InOut<double> y);
///     const Codelet axpy{"axpy_f64", cpu_axpy, cuda_axpy};
///     axpy(2.0, x, y);   // submits a task on two Tile<double>
///
/// The name appears in traces, messages and StarPU's performance models: give each precision its own.
template <class Args, class... Ports>
class Codelet {
 public:
  using Cpu = void (*)(const Args&, Ports...);
  using Cuda = void (*)(Stream, const Args&, Ports...);

  /// nullptr: no such implementation.
  Codelet(const std::string& name, Cpu cpu, Cuda cuda)
      : Codelet(name, cpu == nullptr ? std::initializer_list<Cpu>{} : std::initializer_list<Cpu>{cpu},
                cuda == nullptr ? std::initializer_list<Cuda>{} : std::initializer_list<Cuda>{cuda}) {}
  Codelet(const std::string& name, Cpu cpu, std::nullptr_t = nullptr) : Codelet(name, cpu, Cuda{nullptr}) {}

  /// Several implementations for one kind of worker: StarPU picks by their measured speed.
  Codelet(const std::string& name, std::initializer_list<Cpu> cpu, std::initializer_list<Cuda> cuda)
      : core_(name, {detail::PortTraits<Ports>::access...}, &call_cpu, erase(cpu), &call_cuda, erase(cuda)) {}

  /// Submits a task that runs after the earlier tasks on the same tiles that conflict with it. Never waits for its
  /// result; waits only while Options::window tasks are in flight.
  /// @param args copied. The copy ends in a thread that submits or waits, some time after the task: it may own tiles.
  /// @throw Error: a tile is empty, or its Runtime has ended; no worker can run it; its tiles do not fit in any memory
  /// where it could run; its written tiles belong to different ranks; a tile that it reads cannot be sent to another
  /// rank; there is no such worker as Hints::worker (seen only by the rank that runs the task); a tile that it reads
  /// was never written, or lost by a failure that wait() has thrown (seen only by the rank that owns the tile).
  void operator()(const Args& args, const Tile<typename detail::PortTraits<Ports>::Element>&... tiles,
                  const Hints& hints = {}) const {
    const std::array<const detail::TileBase*, sizeof...(Ports)> bases{&tiles...};
    core_.submit(std::make_shared<const Args>(args), bases.data(), hints);
  }

  [[nodiscard]] const std::string& name() const { return core_.name(); }

 private:
  template <class F>
  static std::vector<detail::Kernel> erase(std::initializer_list<F> kernels) {
    std::vector<detail::Kernel> erased;
    for (F kernel : kernels) erased.push_back(reinterpret_cast<detail::Kernel>(kernel));
    return erased;
  }

  static void call_cpu(detail::Kernel kernel, const void* args, const detail::Matrix* ports) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      reinterpret_cast<Cpu>(kernel)(*static_cast<const Args*>(args), detail::port<Ports>(ports[i])...);
    }(std::index_sequence_for<Ports...>{});
  }

  static void call_cuda(detail::Kernel kernel, Stream stream, const void* args, const detail::Matrix* ports) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      reinterpret_cast<Cuda>(kernel)(stream, *static_cast<const Args*>(args), detail::port<Ports>(ports[i])...);
    }(std::index_sequence_for<Ports...>{});
  }

  detail::CodeletCore core_;
};

/// The Args of a codelet that needs none.
struct NoArgs {};

/// "solve_f64": the name of a codelet for one precision.
template <class T>
std::string typed_name(const std::string& verb) {
  static_assert(std::is_floating_point_v<T>);
  return verb + (sizeof(T) == 4 ? "_f32" : "_f64");
}

template <class Args, class... Ports>
Codelet(const char*, void (*)(const Args&, Ports...), void (*)(Stream, const Args&, Ports...))
    -> Codelet<Args, Ports...>;
template <class Args, class... Ports>
Codelet(const char*, void (*)(const Args&, Ports...), std::nullptr_t) -> Codelet<Args, Ports...>;
template <class Args, class... Ports>
Codelet(const char*, void (*)(const Args&, Ports...)) -> Codelet<Args, Ports...>;

}  // namespace asterism
