/// \file
/// Codelets: a kernel for CPUs and one for CUDA under one name, ready to be submitted as tasks.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "arguments/tile_arguments.hpp"
#include "ports.hpp"
#include "task.hpp"
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
  /// The rank that runs the task, the same on all ranks; -1: the one that owns what it writes. What it reads travels
  /// there, and what it has written to its owners, which may be several, when it has ended; a copy stays there for the
  /// next task. What has not come when its owner hears of a failure counts as lost, and after cancel(), too, if the task
  /// was to write it and not to change it: even though the task may have ended well.
  int rank = -1;
  /// Several GPUs of the rank work on the task together: it runs on one of them (`where` is Where::cuda; `worker` says
  /// which), whose kernel finds every tile on the GPU that is its home (Tile::set_home; without one, on its own), and
  /// launches on all of them (cuda::Team): iterations that would cost a task on each GPU need no more than its kernels
  /// then. The GPUs have to see each other's memory (Runtime::gpus_see_each_other).
  bool together = false;
  /// Whether Runtime::wait_for_room counts the task: false for those beside a stream that need little memory.
  bool streams = true;
};

namespace detail {

using Kernel = void (*)();  // a kernel whose type was forgotten; cast back before the call
using CpuCall = void (*)(Kernel, const void* args, PortReader);
using CudaCall = void (*)(Kernel, Stream, const void* args, PortReader);

/// How arguments of one type are copied and ended.
struct ArgsType {
  std::size_t bytes, alignment;
  void (*copy)(void* to, const void* from);
  void (*end)(void* copy);  // nullptr: there is nothing to do
};
template <class Args>
inline constexpr ArgsType args_type{sizeof(Args), alignof(Args),
                                    [](void* to, const void* from) { new (to) Args(*static_cast<const Args*>(from)); },
                                    std::is_trivially_destructible_v<Args>
                                        ? nullptr
                                        : +[](void* copy) { static_cast<Args*>(copy)->~Args(); }};

/// Arguments without their type.
struct KernelArgs {
  const void* args;
  const ArgsType* type;
};

/// Everything of a codelet that does not depend on types.
class CodeletCore {
 public:
  CodeletCore(std::string name, CpuCall call_cpu, std::vector<Kernel> cpu, CudaCall call_cuda,
              std::vector<Kernel> cuda);
  CodeletCore(const CodeletCore&) = delete;
  CodeletCore& operator=(const CodeletCore&) = delete;
  ~CodeletCore();

  Task submit(const KernelArgs& args, const TaskTiles& tiles, const Hints& hints) const;
  [[nodiscard]] const std::string& name() const;

  struct State;
  [[nodiscard]] State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace detail

/// The Args of a codelet that needs none.
struct NoArgs {};

namespace detail {
/// A kernel's first parameter that is no port: its arguments.
template <class First>
concept ByValue = !std::is_reference_v<First> && !is_port<First>;
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
///
/// A kernel is a function, or a lambda that captures nothing: see codelet(). It takes its arguments by reference or by
/// value; one that needs none takes its ports alone. Ports are taken by value:
///
/// | Port                            | The task                             | At the call                            |
/// |---------------------------------|--------------------------------------|----------------------------------------|
/// | `In<T>`, `Out<T>`, `InOut<T>`   | reads, writes, changes a tile        | a `Tile<T>`                            |
/// | `Commute<T>`                    | changes it, in any order with others | a `Tile<T>`                            |
/// | `Scratch<T>`                    | works in it, and keeps nothing       | a `Tile<T>`, for its size              |
/// | `Many<In<T>>`, ...              | any number of tiles                  | `{a, b}`, a `Tiles<T>`: TileList       |
/// | `Optional<In<T>>`, ...          | a tile, or none                      | a `Tile<T>`, its address, or `nullptr` |
/// | `Struct<AsPorts>`, see AsPorts  | several ports, each with its name    | `{.x = x, .y = y}`: `Struct<AsTiles>`  |
///
/// A tile may be given to several ports of a task: they see the same memory.
template <class Args, class... Ports>
class Codelet {
  static_assert(sizeof...(Ports) > 0, "a codelet's kernels have at least one port, which is taken by value");

 public:
  using Cpu = void (*)(const Args&, Ports...);
  using Cuda = void (*)(Stream, const Args&, Ports...);
  using CpuByValue = void (*)(Args, Ports...);
  using CudaByValue = void (*)(Stream, Args, Ports...);
  using CpuOfPorts = void (*)(Ports...);  ///< without arguments
  using CudaOfPorts = void (*)(Stream, Ports...);

  /// nullptr: no such implementation.
  Codelet(const std::string& name, Cpu cpu, Cuda cuda)
      : core_(name, &call_cpu<Cpu>, erase(cpu), &call_cuda<Cuda>, erase(cuda)) {}
  Codelet(const std::string& name, Cpu cpu, std::nullptr_t = nullptr) : Codelet(name, cpu, Cuda{nullptr}) {}
  Codelet(const std::string& name, CpuByValue cpu, CudaByValue cuda = nullptr)
      : core_(name, &call_cpu<CpuByValue>, erase(cpu), &call_cuda<CudaByValue>, erase(cuda)) {}
  Codelet(const std::string& name, CpuOfPorts cpu, CudaOfPorts cuda = nullptr) requires std::same_as<Args, NoArgs>
      : core_(name, &call_cpu<CpuOfPorts>, erase(cpu), &call_cuda<CudaOfPorts>, erase(cuda)) {}

  /// Several implementations for one kind of worker, at most 4: StarPU picks by their measured speed.
  Codelet(const std::string& name, std::initializer_list<Cpu> cpu, std::initializer_list<Cuda> cuda)
      : core_(name, &call_cpu<Cpu>, erase(cpu), &call_cuda<Cuda>, erase(cuda)) {}

  /// Submits a task that runs after the earlier tasks on the same tiles that conflict with it. Never waits for its
  /// result; waits only while Options::window tasks are in flight.
  /// @return the task, for those who want to wait for it alone
  /// @param args copied. The copy ends in a thread that submits or waits, some time after the task: it may own tiles.
  /// @throw Error: a tile is empty, or its Runtime has ended; no worker can run it; its tiles do not fit in any memory
  /// where it could run; it writes no tile, or tiles of different ranks without Hints::rank; that is no rank; a tile
  /// cannot be sent to or from the rank that runs it; a tile that it reads was changed by a HostView after it was sent
  /// there (seen only by the rank that owns the tile); there is no such worker as Hints::worker (seen only by the rank
  /// that runs the task); a tile that it reads was never written, or lost by a failure that wait() has thrown (seen only
  /// by the rank that owns the tile); the codelet has too many implementations.
  Task operator()(const Args& args, const AsTiles<Ports>&... tiles, const Hints& hints = {}) const {
    detail::TaskTiles all;
    (detail::PortTraits<Ports>::add(all, tiles), ...);
    return core_.submit({&args, &detail::args_type<Args>}, all, hints);
  }
  /// The same for one that needs no arguments.
  Task operator()(const AsTiles<Ports>&... tiles, const Hints& hints = {}) const requires std::same_as<Args, NoArgs> {
    return (*this)(NoArgs{}, tiles..., hints);
  }

  [[nodiscard]] const std::string& name() const { return core_.name(); }

 private:
  template <class Function>
  static std::vector<detail::Kernel> erase(std::initializer_list<Function> kernels) {
    std::vector<detail::Kernel> erased;
    for (Function kernel : kernels) erased.push_back(reinterpret_cast<detail::Kernel>(kernel));
    return erased;
  }
  template <class Function>
  static std::vector<detail::Kernel> erase(Function kernel) {
    return kernel == nullptr ? std::vector<detail::Kernel>{} : erase<Function>({kernel});
  }

  template <class Function>
  static void call_cpu(detail::Kernel kernel, const void* args, detail::PortReader reader) {
    call(reinterpret_cast<Function>(kernel), args, reader);
  }
  template <class Function>
  static void call_cuda(detail::Kernel kernel, Stream stream, const void* args, detail::PortReader reader) {
    call(reinterpret_cast<Function>(kernel), args, reader, stream);
  }
  /// Calls a kernel with what is before its arguments, its arguments if it takes them, and its ports.
  template <class Function, class... Before>
  static void call(Function kernel, const void* args, detail::PortReader reader, Before... before) {
    const std::tuple<Ports...> all{detail::PortTraits<Ports>::read(reader)...};  // from left to right
    std::apply(
        [&](const Ports&... ports) {
          if constexpr (std::invocable<Function, Before..., const Args&, Ports...>)
            kernel(before..., *static_cast<const Args*>(args), ports...);
          else
            kernel(before..., ports...);
        },
        all);
  }

  detail::CodeletCore core_;
};

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
template <detail::ByValue Args, class... Ports>
Codelet(const char*, void (*)(Args, Ports...), void (*)(Stream, Args, Ports...)) -> Codelet<Args, Ports...>;
template <detail::ByValue Args, class... Ports>
Codelet(const char*, void (*)(Args, Ports...), std::nullptr_t) -> Codelet<Args, Ports...>;
template <detail::ByValue Args, class... Ports>
Codelet(const char*, void (*)(Args, Ports...)) -> Codelet<Args, Ports...>;
template <class... Ports>
Codelet(const char*, void (*)(Ports...), void (*)(Stream, Ports...)) -> Codelet<NoArgs, Ports...>;
template <class... Ports>
Codelet(const char*, void (*)(Ports...), std::nullptr_t) -> Codelet<NoArgs, Ports...>;
template <class... Ports>
Codelet(const char*, void (*)(Ports...)) -> Codelet<NoArgs, Ports...>;

namespace detail {
template <class Lambda>
concept captures_nothing = requires(Lambda lambda) { +lambda; };
}  // namespace detail

/// A codelet whose kernels are lambdas:
///
///     const auto axpy = codelet("axpy", [](double a, In<double> x, InOut<double> y) { ... });
template <class Cpu>
auto codelet(const char* name, Cpu cpu) {
  static_assert(detail::captures_nothing<Cpu>, "a kernel captures nothing: what it needs are arguments");
  return Codelet(name, +cpu);
}
template <class Cpu, class Cuda>
auto codelet(const char* name, Cpu cpu, Cuda cuda) {
  static_assert(detail::captures_nothing<Cpu> && detail::captures_nothing<Cuda>,
                "a kernel captures nothing: what it needs are arguments");
  return Codelet(name, +cpu, +cuda);
}

}  // namespace asterism
