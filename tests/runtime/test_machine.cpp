// What the machine has, its memory and bandwidths, and what its workers are given to do.

#include "runtime/hardware/machine.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "../support/skip.hpp"
#include "runtime/codelet.hpp"
#include "runtime/collectives.hpp"
#include "runtime/hardware/bandwidth.hpp"
#include "runtime/hardware/pinned_buffer.hpp"
#include "working_runtime.hpp"

using namespace asterism;
using namespace asterism::test;

TEST_CASE("runtime: the machine") {
  Runtime runtime(with([](Options& o) { o.cpu_memory = std::size_t{40} << 20; }));
  const Machine machine = runtime.machine();
  CHECK_FALSE(machine.host.empty());
  CHECK(machine.count(WorkerKind::cpu) + machine.count(WorkerKind::cuda) ==
        static_cast<int>(machine.workers.size()));
  CHECK(machine.rank == 0);
  CHECK(machine.ranks == 1);
  CHECK(machine.capacity(MemoryKind::main) == std::size_t{40} << 20);
  REQUIRE_FALSE(machine.memories.empty());
  CHECK(machine.memories[0].kind == MemoryKind::main);
  for (const Worker& worker : machine.workers) CHECK(worker.node < machine.memories.size());
  for (const Link& link : machine.links) CHECK(link.bytes_per_second > 0);
  CHECK(std::find(machine.schedulers.begin(), machine.schedulers.end(), machine.scheduler) !=
        machine.schedulers.end());
  const Traffic none = runtime.traffic() - runtime.traffic();
  CHECK(none.to_device + none.from_device + none.to_disk + none.from_disk + none.between_ranks == 0);
  CHECK(broadcast(runtime, "text") == "text");
  double sums[] = {1, 2};
  sum_over_ranks(runtime, sums, 2);
  CHECK(sums[0] == 1);
  CHECK(sums[1] == 2);
  runtime.barrier();
}

TEST_CASE("runtime: main memory without a limit is no more than there is") {
  const Runtime runtime;
  CHECK(runtime.machine().capacity(MemoryKind::main) > 0);
  CHECK(runtime.machine().capacity(MemoryKind::main) < physical_memory());
}

TEST_CASE("runtime: numbers and names for people") {
  CHECK(human_bytes(0) == "0 bytes");
  CHECK(human_bytes(1023) == "1023 bytes");
  CHECK(human_bytes(1536) == "1.5 KiB");
  CHECK(human_bytes(1LL << 40) == "1.0 TiB");
  CHECK(human_bytes(9.7e9) == "9.0 GiB");
  REQUIRE_FALSE(build_features().empty());
  CHECK(build_features()[0].starts_with("StarPU 1."));
  CHECK(to_string(Reason::not_finite) == "not finite");
  CHECK(to_string(Reason::inaccurate) == "inaccurate");
}

TEST_CASE("runtime: page-locked memory") {
  Runtime runtime;
  const PinnedBuffer none(runtime, 0), byte(runtime, 1);
  CHECK(none.bytes() == 0);
  CHECK(none.data() == nullptr);
  CHECK(byte.bytes() == 1);
  CHECK(*byte.as<char>() == 0);

  constexpr std::size_t count = 3'000'001;
  PinnedBuffer large(runtime, count * sizeof(double));
  double* const data = large.as<double>();
  CHECK(std::all_of(data, data + count, [](double x) { return x == 0; }));
  CHECK(reinterpret_cast<std::uintptr_t>(data) % static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) == 0);
  data[count - 1] = 7;
  const PinnedBuffer moved = std::move(large);
  CHECK(moved.as<double>() == data);
  CHECK(moved.as<double>()[count - 1] == 7);

  try {
    const PinnedBuffer huge(runtime, std::size_t{1} << 50);
    FAIL("a pebibyte was found");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).starts_with("1.0 PiB of main memory are needed, this machine has "));
    CHECK(error.blame() == Blame::machine);
  }
}

TEST_CASE("runtime: large tiles lie in huge pages") {
  Runtime runtime;
  // Beside GPUs StarPU cuts tiles of up to 4 MiB from chunks of 32.
  for (const Index elements : {Index{1}, Index{1} << 20, Index{3'000'001}}) {
    const Tile<double> tile(runtime, 1, elements);
    const HostView<double> view(tile, HostView<double>::Access::write);
    std::fill_n(view.row(0), elements, 7.0);
    CHECK(view(0, elements - 1) == 7);
    if (static_cast<std::size_t>(elements) * sizeof(double) >= huge_page)
      CHECK(reinterpret_cast<std::uintptr_t>(view.row(0)) % huge_page == 0);
  }
}

namespace {

/// In bytes, as the kernel tells it: "VmRSS", or "VmHWM", the most since forget_peak().
std::size_t memory_in_use(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string name, rest; status >> name && std::getline(status, rest);)
    if (name == what + ":") return std::stoull(rest) * 1024;
  return 0;
}
bool forget_peak() { return static_cast<bool>(std::ofstream("/proc/self/clear_refs") << "5" << std::flush); }

}  // namespace

/// Memory that nobody has written is read from a single page of zeros, and copies of it are several times as fast.
TEST_CASE("runtime: what bandwidths are measured with lies in memory" *
          SkipUnless(forget_peak(), "the kernel does not tell how much memory was in use")) {
  Runtime runtime(with([](Options& o) { o.gpus = 0; }));  // page-locked memory is there anyway
  constexpr std::size_t bytes = std::size_t{1} << 28;
  REQUIRE(forget_peak());
  const std::size_t before = memory_in_use("VmRSS");
  measure_bandwidth(runtime, bytes);
  CHECK(memory_in_use("VmHWM") > before + 2 * bytes - bytes / 8);  // but for what no core has a share of
}

TEST_CASE("runtime: bandwidths are measured") {
  Runtime runtime;
  const Bandwidth measured = measure_bandwidth(runtime, std::size_t{1} << 22);
  if (runtime.machine().count(WorkerKind::cpu) > 0) CHECK(measured.host_copy > 0);
  const int gpus = runtime.machine().count(WorkerKind::cuda);
  CHECK((measured.to_device > 0) == (gpus > 0));
  CHECK(measured.gpus == gpus);
  CHECK((measured.all_to_device > 0) == (gpus > 0));
  CHECK((measured.all_both_ways > 0) == (gpus > 0));
}

#ifdef ASTERISM_WITH_CUDA
TEST_CASE("gpu: bandwidths of all GPUs together") {
  Runtime all;
  const auto start = std::chrono::steady_clock::now();
  const Bandwidth measured = measure_bandwidth(all);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  MESSAGE("measured in " << seconds.count() << " s: " << measured.gpus << " GPU(s), up "
                         << measured.all_to_device / 1e9 << " GB/s (one: " << measured.to_device / 1e9
                         << "), each way " << measured.all_both_ways / 1e9
                         << " GB/s (one: " << measured.both_ways / 1e9 << ")");
  // Wide: the machine may be busy elsewhere. Of one GPU both ways of measuring must agree; several are no
  // slower than one.
  if (measured.gpus == 1) {
    CHECK(measured.all_to_device < 1.5 * measured.to_device);
    CHECK(measured.all_both_ways < 1.5 * measured.both_ways);
  }
  CHECK(measured.all_to_device > 0.6 * measured.to_device);
  CHECK(measured.all_both_ways > 0.6 * measured.both_ways);

  // The same copies, one pass after the other, of memory that somebody has.
  const PinnedBuffer memory(all, std::size_t{1} << 30);
  const auto bytes = static_cast<double>(memory.bytes());
  const double passes = measure_two_passes(all, memory.data(), memory.bytes());
  const double expected = measured.gpus == 0 ? 0 : bytes / measured.all_to_device + bytes / measured.all_both_ways;
  CHECK(passes <= 1.7 * expected);
  CHECK(passes >= expected / 1.7);
}
#endif

TEST_CASE("runtime: on one worker") {
  Runtime runtime;
  int calls = 0;
  runtime.on_worker(WorkerKind::cpu, 0, [&] { ++calls; });
  CHECK(calls == 1);
  CHECK_THROWS_WITH_AS(runtime.on_worker(WorkerKind::cpu, 0, [] { throw std::runtime_error("no plan"); }),
                       "task on a worker failed: no plan", TaskFailure);
  for (const int number : {-1, runtime.machine().count(WorkerKind::cpu)})
    CHECK_THROWS_AS(runtime.on_worker(WorkerKind::cpu, number, [] {}), Error);
}

TEST_CASE("runtime: on each worker") {
  Runtime runtime(with([](Options& o) { o.cpus = 2, o.gpus = 0; }));
  std::atomic<int> calls = 0;
  runtime.on_each_worker(WorkerKind::cpu, [&] { ++calls; });
  CHECK(calls == 2);
  runtime.on_each_worker(WorkerKind::cuda, [&] { ++calls; });
  CHECK(calls == 2);
  CHECK_THROWS_WITH_AS(runtime.on_each_worker(WorkerKind::cpu, [] { throw std::runtime_error("no plan"); }),
                       "task on a worker failed: no plan", TaskFailure);
  CHECK_THROWS_WITH_AS(runtime.on_each_worker(WorkerKind::cpu, [] { throw 1; }),
                       "task on a worker failed: something was thrown that is no std::exception",
                       TaskFailure);
  CHECK(works(runtime));
}

TEST_CASE("runtime: cores without work rest, and wake for tasks") {
  Runtime runtime;
  const Codelet<int, Out<double>> write{"rest_write",
                                        [](const int& value, Out<double> x) { *x.data = value; }};
  const Tile<double> x(runtime, 1, 1);
  const auto share_of_core = [] {  // that this process uses while nothing is to be done
    const auto cpu_seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
    constexpr auto wall = std::chrono::milliseconds(200);
    const double before = cpu_seconds();
    std::this_thread::sleep_for(wall);
    return (cpu_seconds() - before) / std::chrono::duration<double>(wall).count();
  };
  const auto run_tasks = [&] {
    for (int k = 1; k <= 20; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      write(k, x);
      CHECK(HostView<double>(x, HostView<double>::Access::read)(0, 0) == k);
    }
  };
  run_tasks();
  const double workers = runtime.machine().count(WorkerKind::cpu);
  if (runtime.machine().count(WorkerKind::cuda) == 0) CHECK(share_of_core() < 0.5 * workers);
  run_tasks();
}
