// Starting and ending the runtime: options, the machine, what is refused and how that is said.

#include "runtime/runtime.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support/child.hpp"
#include "runtime/bandwidth.hpp"
#include "runtime/codelet.hpp"
#include "runtime/collectives.hpp"
#include "runtime/pinned_buffer.hpp"

extern char** environ;

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

namespace {

std::set<std::string> environment() {
  std::set<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.insert(*variable);
  return variables;
}

/// The error that a start with these options ends in.
Error refusal(const Options& options) {
  try {
    const Runtime runtime(options);
  } catch (const Error& error) {
    return error;
  }
  return Error("nothing was refused");
}

template <class Change>
Options with(Change change) {
  Options options;
  change(options);
  return options;
}

/// A new empty folder below the test's own.
fs::path empty_folder(const char* name) {
  fs::remove_all(name);
  fs::create_directories(name);
  return fs::absolute(name);
}

void cpu_increment(const NoArgs&, InOut<int> x) { ++*x.data; }
const Codelet<NoArgs, InOut<int>> increment{"test_increment", cpu_increment};

/// Whether a task changes a tile as it should.
bool works(Runtime& runtime) {
  int value = 41;
  {
    const Tile<int> tile(runtime, &value, 1, 1, 1);
    increment({}, tile);
  }
  return value == 42;
}

}  // namespace

TEST_CASE("runtime: what cannot start says why and what to do") {
  const auto before = environment();

  const Error scheduler = refusal(with([](Options& o) { o.scheduler = "magic"; }));
  CHECK(std::string(scheduler.what()).starts_with("unknown scheduler 'magic'; there are "));
  CHECK(std::string(scheduler.what()).find("dmdas") != std::string::npos);
  CHECK(scheduler.blame() == Blame::input);
  const Error patient = refusal(with([](Options& o) { o.scheduler = "graph_test"; }));  // would run no task
  CHECK(std::string(patient.what()).starts_with("unknown scheduler 'graph_test'; there are "));

  const Error workers = refusal(with([](Options& o) { o.cpus = o.gpus = 0; }));
  CHECK(std::string(workers.what()) == "no worker: 0 CPUs and 0 GPUs were asked for; ask for at least one");
  CHECK(workers.blame() == Blame::machine);

  const Error gpus = refusal(with([](Options& o) { o.gpus = 1000; }));
  CHECK(std::string(gpus.what()).starts_with("1000 GPUs asked for, "));
  CHECK(std::string(gpus.what()).find("ask for fewer") != std::string::npos);
  CHECK(gpus.blame() == Blame::machine);

  const Error window = refusal(with([](Options& o) { o.window = 0; }));
  CHECK(std::string(window.what()) == "window is 0 tasks: at least 1 must be allowed in flight");

  const Error spill = refusal(with([](Options& o) { o.spill = "/dev/null/spill"; }));
  CHECK(std::string(spill.what()) ==
        "spill folder /dev/null/spill: there is no such folder; make it, or name one that is there");
  const Error trace = refusal(with([](Options& o) { o.trace = "/dev/null/trace"; }));
  CHECK(std::string(trace.what()) == "trace folder /dev/null/trace: cannot be created; name a folder that can");

  const fs::path folder = empty_folder("spill");
  const Error small = refusal(with([&](Options& o) {
    o.spill = folder;
    o.spill_bytes = std::size_t{15} << 20;
  }));
  CHECK(std::string(small.what()) ==
        "spill folder " + folder.string() +
            ": 15.0 MiB of room, at least 16.0 MiB are needed; allow more or name "
            "another folder");
  CHECK(fs::is_empty(folder));

  CHECK(environment() == before);
  Runtime runtime;
  CHECK(works(runtime));
}

TEST_CASE("runtime: one at a time, any number in turn") {
  const auto before = environment();
  for (const int cpus : {1, 2, 1, -1}) {
    CAPTURE(cpus);
    Runtime runtime(with([&](Options& o) { o.cpus = cpus; }));
    CHECK_THROWS_WITH_AS(Runtime{}, "a Runtime exists already: StarPU can run once at a time in a process",
                         Error);
    if (cpus > 0) CHECK(runtime.machine().count(WorkerKind::cpu) == cpus);
    CHECK(works(runtime));
    CHECK(environment() == before);
  }
  {
    Runtime runtime(with([](Options& o) { o.scheduler = "eager"; }));
    CHECK(runtime.machine().scheduler == "eager");
    CHECK(works(runtime));
  }
  Runtime runtime;  // the options before are forgotten
  CHECK(runtime.machine().scheduler != "eager");
}

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

TEST_CASE("runtime: a trace, and none from the Runtime after it") {
  const fs::path folder = empty_folder("trace");
  {
    Runtime runtime(with([&](Options& o) { o.trace = folder; }));
    CHECK(works(runtime));
  }
  for (const char* file : {"paje.trace", "dag.dot", "summary.txt"}) {
    CAPTURE(file);
    CHECK(fs::exists(folder / file));
  }
  std::ifstream summary(folder / "summary.txt");
  const std::string text{std::istreambuf_iterator<char>(summary), {}};
  CHECK(text.find("test_increment") != std::string::npos);
  fs::remove_all(folder);
  {
    Runtime runtime;
    CHECK(works(runtime));
  }
  CHECK_FALSE(fs::exists(folder));
}

namespace {

Options with_spill() {
  return with([](Options& o) {
    o.gpus = 0;
    o.cpu_memory = std::size_t{20} << 20;
    o.spill = fs::absolute("abandoned");
    o.spill_bytes = std::size_t{64} << 20;
  });
}

/// Writes more than fits in main memory, so that files lie in the spill folder.
std::vector<Tile<double>> overflow(Runtime& runtime) {
  static const Codelet<double, Out<double>> fill{"test_overflow", [](const double& value, Out<double> x) {
                                                   for (Index i = 0; i < x.rows; ++i)
                                                     std::fill_n(x.row(i), x.cols, value);
                                                 }};
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < 20; ++k) fill(k, tiles.emplace_back(runtime, 512, 512));  // 2 MiB
  runtime.wait();
  return tiles;
}

std::set<std::string> names(const fs::path& folder) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.insert(entry.path().filename());
  return found;
}

}  // namespace

TEST_CASE("runtime: a child is killed while it spills" * doctest::skip()) {
  Runtime runtime(with_spill());
  const std::vector<Tile<double>> tiles = overflow(runtime);
  CHECK(runtime.traffic().to_disk > 0);
  ::kill(getpid(), SIGKILL);
}

TEST_CASE("runtime: what a killed process spilled is removed by the next one, and nothing else") {
  const fs::path folder = empty_folder("abandoned");
  const Child child = run_in_child("runtime: a child is killed while it spills");
  CHECK_MESSAGE(child.status == 128 + SIGKILL, child.text);
  REQUIRE(names(folder).size() == 1);
  const std::string left = *names(folder).begin();
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const std::string prefix = std::string("asterism-") + host + "-", dead = "2147483647";
  CHECK_MESSAGE(left.starts_with(prefix), left);
  CHECK(names(folder / left).size() > 1);  // the lock, and files of StarPU

  const std::string abandoned = prefix + dead + "-abcdef", locked = prefix + dead + "-locked";
  const std::set<std::string> others{prefix + std::to_string(getpid()) + "-abcdef",  // of a living process
                                     locked,  // of one that we cannot see
                                     "asterism-another-host-" + dead + "-abcdef",
                                     "asterism-x" + prefix + dead + "-abcdef",
                                     prefix + dead + "-abc",
                                     prefix + dead + "-abcdefg",
                                     prefix + dead + "-abc.ef",
                                     prefix + "-abcdef",
                                     prefix + "0-abcdef",
                                     prefix + dead,
                                     "results"};
  for (const std::string& name : others) fs::create_directories(folder / name / "below");
  fs::create_directories(folder / abandoned / "below");
  fs::create_directory_symlink(folder / "results", folder / (prefix + dead + "-linked"));
  std::ofstream(folder / (prefix + dead + "-afiles")) << "a file";
  const int lock = ::open((folder / locked / "lock").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(::flock(lock, LOCK_EX) == 0);

  std::set<std::string> expected = others;
  expected.insert({prefix + dead + "-linked", prefix + dead + "-afiles"});
  {
    Runtime runtime(with_spill());
    const std::vector<Tile<double>> tiles = overflow(runtime);
    std::set<std::string> now = names(folder);
    CHECK(now.size() == expected.size() + 1);
    for (const std::string& name : expected) CHECK_MESSAGE(now.erase(name) == 1, name);
    REQUIRE(now.size() == 1);
    CHECK_MESSAGE(now.begin()->starts_with(prefix + std::to_string(getpid()) + "-"), *now.begin());
    for (int k = 0; k < 20; ++k)
      CHECK(HostView<double>(tiles[static_cast<std::size_t>(k)], HostView<double>::Access::read)(511, 511) ==
            k);
  }
  CHECK(names(folder) == expected);
  for (const std::string& name : others) CHECK(fs::exists(folder / name / "below"));

  ::close(lock);
  expected.erase(locked);
  { const Runtime runtime(with_spill()); }
  CHECK(names(folder) == expected);
}

TEST_CASE("runtime: a child's run" * doctest::skip()) {
  Runtime runtime;
  CHECK(works(runtime));
}

TEST_CASE("runtime: a child's refusal" * doctest::skip()) { MESSAGE(std::string(refusal({}).what())); }

TEST_CASE("runtime: StarPU's variables are checked before it aborts at them") {
  const std::vector<std::pair<const char*, const char*>> wrong{
      {"STARPU_NCPU", "abc"}, {"STARPU_NCPU", "-1"},       {"STARPU_NCPU", "9999999999"},
      {"STARPU_NCUDA", "x"},  {"STARPU_SCHED_ALPHA", "a"}, {"STARPU_WORKERS_CPUID", "x"}};
  for (const auto& [variable, value] : wrong) {
    CAPTURE(variable);
    CAPTURE(value);
    const Child child =
        run_in_child("runtime: a child's refusal", {"-u", "STARPU_NCPU", fmt::format("{}={}", variable, value)});
    const std::string words = fmt::format("{} is '{}' in the environment: it must be a", variable, value);
    CHECK_MESSAGE(child.text.find(words) != std::string::npos, child.text);
  }
}

TEST_CASE("runtime: far more workers than cores are as many as there are cores") {
  for (const char* variable : {"STARPU_NCPU=1000", "STARPU_NCPUS=9999"}) {
    const Child child = run_in_child("runtime: a child's run", {"-u", "STARPU_NCPU", "STARPU_NCUDA=0", variable});
    CHECK_MESSAGE(child.status == 0, child.text);
    const std::string words = " CPU workers are asked for: as many start as there are cores, ";
    CHECK_MESSAGE(child.text.find(words) != std::string::npos, child.text);
  }
  const Runtime runtime(with([](Options& o) { o.cpus = 1000, o.gpus = 0; }));
  CHECK(runtime.machine().count(WorkerKind::cpu) <= static_cast<int>(std::thread::hardware_concurrency()));
}

TEST_CASE("runtime: performance models need no home") {
  const fs::path tmp = empty_folder("tmp");
  const Words homeless{"-u", "STARPU_PERF_MODEL_DIR", "-u", "XDG_CACHE_HOME",
                       "-u", "STARPU_HOME",           "-u", "HOME"};
  const Words unwritable = homeless + Words{"STARPU_HOME=/dev/null"};
  for (const Words& home : {homeless, unwritable}) {
    const Child child = run_in_child("runtime: a child's run", home + Words{"TMPDIR=" + tmp.string()});
    CHECK_MESSAGE(child.status == 0, child.text);
    CHECK(fs::exists(tmp / ("asterism-" + std::to_string(getuid())) / "bus"));
    empty_folder("tmp");
  }
  const Child nowhere = run_in_child("runtime: a child's run", unwritable + Words{"TMPDIR=/dev/null"});
  CHECK_MESSAGE(nowhere.status == 0, nowhere.text);
}

TEST_CASE("runtime: a child's unseen failure" * doctest::skip()) {
  static const Codelet<NoArgs, InOut<int>> fails{
      "test_unseen", [](const NoArgs&, InOut<int>) { throw std::runtime_error("lost otherwise"); }};
  int value = 3;
  {
    Runtime runtime;
    const Tile<int> tile(runtime, &value, 1, 1, 1);
    fails({}, tile);
  }
  CHECK(value == 3);
  Runtime again;
  CHECK(works(again));
}

TEST_CASE("runtime: a failure that nobody waited for is told at the end") {
  const Child child = run_in_child("runtime: a child's unseen failure");
  CHECK(child.status == 0);
  CHECK_MESSAGE(child.text.find("asterism: task test_unseen failed: lost otherwise") != std::string::npos,
                child.text);
}
