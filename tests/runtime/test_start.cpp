// Starting and ending the runtime: options, what is refused and how that is said, traces, StarPU's environment.

#include "runtime/runtime.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support/child.hpp"
#include "runtime/codelet.hpp"
#include "working_runtime.hpp"

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

}  // namespace

TEST_CASE("runtime: a scheduler that somebody wants, else the machine's") {
  const char* const kept = std::getenv("STARPU_SCHED");
  const std::string former = kept != nullptr ? kept : "";
  const auto chosen = [](const std::string& asked, const std::string& preferred = {}) {
    Options options;
    options.scheduler = asked;
    options.preferences.scheduler = preferred;
    const Runtime runtime(options);
    const Machine machine = runtime.machine();
    CHECK(machine.chooses_ahead == machine.scheduler.starts_with("dm"));
    return machine.scheduler + ", " + machine.scheduler_reason;
  };
  unsetenv("STARPU_SCHED");
  const bool has_gpus = Runtime().machine().count(WorkerKind::cuda) > 0;
  CHECK(chosen("") == (has_gpus ? "dmdas, there are GPUs" : "prio, there are no GPUs"));
  CHECK(chosen("", "eager") == "eager, preferred by the program");
  CHECK(chosen("lws", "eager") == "lws, asked for");
  setenv("STARPU_SCHED", "ws", 1);
  CHECK(chosen("", "eager") == "ws, $STARPU_SCHED");
  CHECK(chosen("lws") == "lws, asked for");
  kept != nullptr ? setenv("STARPU_SCHED", former.c_str(), 1) : unsetenv("STARPU_SCHED");
}

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

  const fs::path folder = fresh_folder("spill");
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

TEST_CASE("runtime: a trace, and none from the Runtime after it") {
  const fs::path folder = fresh_folder("trace");
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
  const fs::path tmp = fresh_folder("tmp");
  const Words homeless{"-u", "STARPU_PERF_MODEL_DIR", "-u", "XDG_CACHE_HOME",
                       "-u", "STARPU_HOME",           "-u", "HOME"};
  const Words unwritable = homeless + Words{"STARPU_HOME=/dev/null"};
  for (const Words& home : {homeless, unwritable}) {
    const Child child = run_in_child("runtime: a child's run", home + Words{"TMPDIR=" + tmp.string()});
    CHECK_MESSAGE(child.status == 0, child.text);
    CHECK(fs::exists(tmp / ("asterism-" + std::to_string(getuid())) / "bus"));
    fresh_folder("tmp");
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
