// What the program prints: reports for programs and for people, warnings, the machine, benchmarks, help.

#include <doctest/doctest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "../support/command_line.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

TEST_CASE("both models, both precisions: the documented report and nothing else") {
  for (const std::string model : {"sine", "random"})
    for (const std::string precision : {"f32", "f64"}) {
      CAPTURE(model);
      CAPTURE(precision);
      const json j = report_of(
          on_all_cores({"poisson", "--json", "--model", model, "--precision", precision, "--grid", "61x83"}));
      std::vector<std::string> documented{
          "solver", "method", "mode",      "dimensions", "grid",    "lengths",        "conditions",
          "values", "model",  "centering", "lambda",     "seconds", "solver_seconds", "precision",
          "error",  "slabs",  "unknowns",  "workers",    "bytes",   "scaled_residual", "reason"};
      if (model == "random") documented.push_back("seed");
      CHECK(keys(j) == sorted(documented));
      CHECK(j["model"] == model);
      CHECK(j["lengths"] == (model == "sine" ? json{2, 2} : json{1, 1}));
      if (model == "random") CHECK(j["seed"] == 1);
      CHECK(j["mode"] == "incore");
      CHECK(j["dimensions"] == 2);
      CHECK(j["grid"] == json{61, 83});
      CHECK(j["conditions"] == json{{"y", {"dirichlet", "dirichlet"}}, {"x", {"dirichlet", "dirichlet"}}});
      CHECK(j["centering"] == "node");
      CHECK(j["lambda"] == 0);
      CHECK(j["precision"] == precision);
      CHECK(j["unknowns"] == 61 * 83);
      double sum = 0;
      for (const char* part : {"setup", "allocate", "fill", "solve", "check"}) {
        CHECK(j["seconds"][part] >= 0);
        sum += j["seconds"][part].get<double>();
      }
      CHECK(j["seconds"]["total"].get<double>() == doctest::Approx(sum));
      CHECK(j["scaled_residual"].get<double>() <= 2 * (precision == "f32" ? eps32 : eps));
      CHECK(j["error"].get<double>() < (model == "sine" ? 1e-2 : precision == "f32" ? 1e-5 : 1e-13));
      CHECK(keys(j["workers"]) == sorted({"cpu", "cuda", "ranks"}));
      CHECK(j["workers"]["cpu"] >= 1);
      CHECK(j["workers"]["ranks"] == 1);
      CHECK(
          j["bytes"] ==
          json{{"to_device", 0}, {"from_device", 0}, {"to_disk", 0}, {"from_disk", 0}, {"between_ranks", 0}});
      CHECK(j["slabs"] >= 1);
      CHECK(j["reason"] == "solved");
    }
}

TEST_CASE("options of the method reach the solver") {
  CHECK(poisson({"--grid", "61x83", "--slab", "7"})["slabs"] == 9);
  CHECK(poisson({"--grid", "61x83", "--slab", "1", "--mode", "streaming"})["mode"] == "streaming");
  CHECK(poisson({"--grid", "1x1", "--model", "random"})["unknowns"] == 1);
  const json unchecked = poisson({"--grid", "61x83", "--no-check"});
  CHECK(!unchecked.contains("scaled_residual"));
  CHECK(!unchecked.contains("error"));
  CHECK(!unchecked["seconds"].contains("check"));
  CHECK(poisson({"--grid", "61x83", "--cpus", "1"})["workers"]["cpu"] == 1);
  const auto error = [](const char* seed) {
    return poisson({"--model", "random", "--grid", "61x83", "--cpus", "1", "--seed", seed})["error"]
        .get<double>();
  };
  CHECK(error("1") == error("1"));
  CHECK(error("1") != error("2"));
}

TEST_CASE("the report for people, and silence") {
  const Result text = run(one_process({"poisson", "--grid", "61x83", "--slab", "61"}));
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  has(text.out,
      {"problem    u_xx + u_yy = f, model sine: 61 x 83 unknowns", "in f64", "incore: 1 slab of 61 rows",
       "seconds    setup ", "residual ", "error ", "result     solved\n"});
  CHECK(text.out.find("conditions") == std::string::npos);
  const Result solid =
      run(one_process({"poisson", "--grid", "8x9x10", "--slab", "4", "--batch", "2", "--bc-y", "d,n",
                       "--bc-x", "p", "--centering", "cell", "--lambda", "-1.5"}));
  CHECK(solid.status == 0);
  has(solid.out, {"problem    u_xx + u_yy + u_zz - 1.5 u = f, model sine: 2 problems of 8 x 9 x 10 unknowns",
                  "conditions z dirichlet, y dirichlet to neumann, x periodic; cell-centred\n",
                  "incore: 4 slabs of 4 planes"});
  const Result quiet = run(one_process({"poisson", "--grid", "61x83", "--quiet"}));
  CHECK(quiet.status == 0);
  CHECK((quiet.out + quiet.err).empty());
}

TEST_CASE("options without effect say so, and why, and nothing else is said") {
  const auto said = [](const Words& options) {
    const Result result = run(one_process(Words{"poisson", "--quiet", "--grid", "9x9"} + options));
    CHECK(result.status == 0);
    CHECK(result.out.empty());
    return result.err;
  };
  const std::string warning = "asterism: warning: ";
  CHECK(said({"--seed", "3"}) == warning + "--seed has no effect: only --model random draws numbers\n");
  CHECK(said({"--seed", "3", "--model", "random"}).empty());
  CHECK(said({"--gpu-memory", "1G"}) == warning + "--gpu-memory has no effect: there is no GPU worker\n");
  has(said({"--project-mean"}), {warning + "--project-mean has no effect: "});
  has(said({"--project-mean", "--bc", "n", "--lambda", "-1"}), {warning + "--project-mean has no effect: "});
  CHECK(said({"--project-mean", "--bc", "n"}).empty());
  has(said({"--bc", "n", "--bc-x", "d", "--bc-y", "d"}), {warning + "--bc has no effect: "});
  CHECK(said({"--bc", "n", "--bc-x", "d"}).empty());
  const fs::path folder = fresh_folder("warned");
  save(folder / "f.npy", random_array({4, 5}));
  const Result file = run(one_process({"poisson", "--quiet", (folder / "f.npy").string(), "--seed", "3"}));
  CHECK(file.err == warning + "--seed has no effect: f comes from a file\n");
  const Result ranks = run(on_ranks(2, {"poisson", "--quiet", "--grid", "9x9", "--seed", "3"}));
  CHECK(ranks.err == warning + "--seed has no effect: only --model random draws numbers\n");
}

TEST_CASE("not a number has no sign") {
  const fs::path folder = fresh_folder("huge");
  Array f({8, 8});
  std::fill(f.values.begin(), f.values.end(), 1e308);
  f.values[3] = -1e308;
  save(folder / "f.npy", f);
  const Result text = run(one_process({"poisson", (folder / "f.npy").string(), "--lengths", "1e9x1e9"}));
  CHECK(text.status == 1);
  CHECK(text.out.find("-nan") == std::string::npos);
}

TEST_CASE("the program does not start with libraries that take longer to load than all else") {
  const Result needed = run({"readelf", "--dynamic", std::getenv("ASTERISM_PROGRAM")});
  REQUIRE(needed.status == 0);
  REQUIRE(needed.out.find("Shared library: [libstarpu-") != std::string::npos);
  for (const char* library : {"libcublas", "libcusparse", "libcusolver", "libnvJitLink"})
    CHECK(needed.out.find(library) == std::string::npos);
}

TEST_CASE("info shows the machine") {
  const json j = report_of(on_all_cores({"info", "--json"}));
  CHECK(keys(j) == sorted({"host", "features", "cores", "workers", "memories", "links", "scheduler", "scheduler_reason",
                           "schedulers"}));
  CHECK(j["cores"]["usable"] >= 1);
  CHECK(j["cores"]["usable"] <= j["cores"]["installed"]);
  CHECK((j["cores"]["usable"] < j["cores"]["installed"]) == !j["cores"]["reason"].get<std::string>().empty());
  CHECK(!j["workers"].empty());
  CHECK(j["workers"][0]["kind"] == "cpu");
  CHECK(j["memories"][0]["bytes"] > 0);
  CHECK(std::count(j["schedulers"].begin(), j["schedulers"].end(), j["scheduler"]) == 1);
  const Result text = run(one_process({"info", "--cpus", "1"}));
  CHECK(text.status == 0);
  has(text.out, {"StarPU 1.", "cores\n  ", " to use, of ", "workers\n  CPU 0", "memories\n", "schedulers", "dmdas"});
  CHECK(j["scheduler"] == "prio");  // of cores alone
  has(text.out, {"(in use: prio, there are no GPUs)"});
  has(run(one_process({"info", "--cpus", "1", "--scheduler", "lws"})).out, {"(in use: lws, asked for)"});
}

TEST_CASE("what mpirun binds a rank to by itself is left, what somebody has asked for is not") {
  const char* const mpiexec = std::getenv("ASTERISM_MPIEXEC");
  const auto cores_of = [&](const Words& mpi_options, const Words& wrapper = {}) -> int {
    const Words mpirun{"env", "-u", "STARPU_NCPU", "-u", "STARPU_WORKERS_NOBIND", "-u",
                       "OMPI_MCA_hwloc_base_binding_policy", mpiexec != nullptr ? mpiexec : "mpirun"};
    const Result info = run(mpirun + mpi_options + wrapper + one_process({"info", "--json"}));
    CHECK_MESSAGE(info.status == 0, info.err);
    return json::parse(info.out)["cores"]["usable"];
  };
  const int all = report_of(on_all_cores({"info", "--json"}))["cores"]["usable"];
  CHECK(cores_of({"-n", "1"}) == all);
  CHECK(cores_of({"-n", "1", "--map-by", "node"}) == all);
  CHECK(cores_of({"-n", "1", "--bind-to", "none"}) == all);
  CHECK(cores_of({"-n", "1", "--bind-to", "core"}) == 1);
  CHECK(cores_of({"-n", "1", "--map-by", "slot:PE=1"}) == 1);
  if (cpu_set_t mine; sched_getaffinity(0, sizeof mine, &mine) == 0 && all > 1) {
    int last = CPU_SETSIZE - 1;
    while (CPU_ISSET(static_cast<unsigned>(last), &mine) == 0) --last;
    CHECK(cores_of({"-n", "1"}, {"taskset", "-c", std::to_string(last)}) == 1);
  }
}

TEST_CASE("processes that a launcher has started, and of which MPI does not know, solve nothing") {
  const Words of_four{"env", "PMI_SIZE=4"};
  for (const char* process : {"0", "1"}) {
    const Result refused = run(of_four + Words{std::string("PMI_RANK=") + process} +
                               one_process({"poisson", "--grid", "9x9", "-o", "four.npy"}));
    CHECK(refused.status == 2);
    CHECK(refused.out.empty());
    CHECK((refused.err.find("has started 4 processes (PMI_SIZE), but MPI (") != std::string::npos) ==
          (*process == '0'));  // one tells
    CHECK_FALSE(std::filesystem::exists("four.npy"));
  }
}

TEST_CASE("bench defaults: each solver as it comes beside a search over its options") {
  const json found = report_of(one_process(
      {"bench", "defaults", "--solvers", "poisson", "--rounds", "1", "--seconds", "0", "--gpus", "0", "--json"}));
  CHECK(found["scheduler"] == "prio");
  REQUIRE(found["problems"].size() >= 6);
  for (const json& row : found["problems"]) {
    CHECK(row["solver"] == "poisson");
    CHECK(row["default_seconds"] > 0);
    CHECK(row["best_seconds"] <= row["default_seconds"]);
    CHECK(row["ratio"].get<double>() ==
          doctest::Approx(row["best_seconds"].get<double>() / row["default_seconds"].get<double>()));
  }
  const Result unknown = run(one_process({"bench", "defaults", "--solvers", "poisson,magic"}));
  CHECK(unknown.status == 2);
  has(unknown.err, {"there is no solver 'magic'", "poisson, relax, wavefront, linear, qap"});
}

TEST_CASE("bench tasks: codelets' tasks beside StarPU's own, one object for all cores") {
  const json both = report_of(one_process({"bench", "tasks", "--tasks", "200", "--repeats", "1", "--json"}));
  for (const char* figure : {"submitted", "completed", "bare_submitted", "bare_completed", "cost"})
    for (const char* cores : {"_1", "_2"}) CHECK(both[std::string(figure) + cores] > 0);
}

TEST_CASE("bench measures beside the machine's ceilings") {
  const json solver =
      report_of(one_process({"bench", "poisson", "--grid", "255x255", "--repeats", "1", "--json"}));
  for (const char* figure :
       {"host_copy", "allocate_seconds", "solve_seconds", "gcells_per_second", "bytes_per_cell"})
    CHECK(solver[figure] > 0);
  CHECK(solver["scaled_residual_eps"] < 2);
  CHECK(solver["grid"] == json{255, 255});
  CHECK(solver["model"] == "random");
  CHECK(solver["seed"] == 1);
  const json solid =
      report_of(one_process({"bench", "poisson", "--grid", "31x32x33", "--bc-x", "n", "--bc-y", "p",
                             "--centering", "cell", "--batch", "2", "--repeats", "1", "--json"}));
  CHECK(solid["grid"] == json{31, 32, 33});
  CHECK(solid["batch"] == 2);
  CHECK(solid["scaled_residual_eps"] < 4);
  const json dense = report_of(one_process(
      {"bench", "poisson", "--grid", "63x66", "--method", "gemm", "--resident", "--repeats", "1", "--json"}));
  CHECK(dense["method"] == "gemm");
  CHECK(solver["method"] == "fft");
  CHECK(dense["solve_seconds"] > 0);
  CHECK(dense["scaled_residual_eps"] < 4);
  const json stream = report_of(one_process({"bench", "stream", "--chunk", "1M", "--chunks", "4", "--json"}));
  for (const char* figure : {"host_copy", "tasks_to_device", "tasks_both_ways"}) CHECK(stream[figure] > 0);
  const Result text = run(one_process({"bench", "stream", "--chunk", "1M", "--chunks", "4"}));
  CHECK(text.status == 0);
  has(text.out, {"GB/s", "4 chunks of 1.0 MiB"});
}

TEST_CASE("bench compares the methods on lines with good FFTs and poor ones") {
  const Words command{"bench", "methods", "--columns", "15,36", "--rows", "9", "--repeats", "1"};
  const json j = report_of(one_process(command + Words{"--precision", "f32", "--json"}));
  CHECK(keys(j) == sorted({"precision", "workers", "lengths", "gemm_faster_up_to", "verdict"}));
  CHECK(j["precision"] == "f32");
  REQUIRE(j["lengths"].size() == 2);
  for (const json& length : j["lengths"]) {
    CHECK(keys(length) == sorted({"columns", "rows", "intervals", "good_fft", "fft_seconds", "gemm_seconds",
                                  "ratio", "fft_residual_eps", "gemm_residual_eps"}));
    const auto number = [&](const char* key) { return length[key].get<double>(); };
    CHECK(number("fft_seconds") > 0);
    CHECK(number("ratio") == doctest::Approx(number("fft_seconds") / number("gemm_seconds")));
    CHECK(number("fft_residual_eps") < 4);
    CHECK(number("gemm_residual_eps") < 4);
    CHECK(length["rows"] == 9);
    // Only one length of each kind: gemm was faster up to it, or never.
    const bool good = length["good_fft"];
    const json faster = j["gemm_faster_up_to"][good ? "good_fft" : "poor_fft"];
    CHECK((number("ratio") > 1 ? faster == length["columns"] : faster.is_null()));
  }
  CHECK(j["lengths"][0]["columns"] == 15);
  CHECK(j["lengths"][0]["intervals"] == "2^4");
  CHECK(j["lengths"][0]["good_fft"] == true);
  CHECK(j["lengths"][1]["columns"] == 36);
  CHECK(j["lengths"][1]["intervals"] == "37");
  CHECK(j["lengths"][1]["good_fft"] == false);
  const json smooth = report_of(
      one_process({"bench", "methods", "--columns", "15,16,59", "--rows", "9", "--repeats", "1", "--json"}));
  CHECK(smooth["precision"] == "f64");
  CHECK(smooth["lengths"][1]["intervals"] == "17");
  CHECK(smooth["lengths"][2]["intervals"] == "2^2 * 3 * 5");
  CHECK(smooth["gemm_faster_up_to"]["poor_fft"].is_null());
  has(smooth["verdict"], {"gemm was ", "not measured where it is poor."});
  const Result text = run(one_process(command));
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  has(text.out, {"9 x n unknowns in f64", "fft / gemm", "15  2^4 ", "36  37 ", "gemm was "});
}

TEST_CASE("help explains every option of every subcommand") {
  for (const Words& subcommand : {Words{},
                                  {"poisson"},
                                  {"info"},
                                  {"bench"},
                                  {"bench", "stream"},
                                  {"bench", "poisson"},
                                  {"bench", "methods"},
                                  {"relax"},
                                  {"linear"},
                                  {"bench", "jacobi"},
                                  {"bench", "defaults"},
                                  {"bench", "linear"},
                                  {"bench", "relax"}}) {
    const Result result = run(one_process(subcommand + Words{"--help"}));
    CHECK(result.status == 0);
    CHECK(result.err.empty());
    std::istringstream lines(result.out);
    int options = 0;
    for (std::string line, next; std::getline(lines, line);) {
      CHECK(line.size() <= 110);
      if (!line.starts_with("  -")) continue;
      CAPTURE(line);
      ++options;
      // Explained in the right column, of the same line or of the next one.
      if (line.size() <= 30) std::getline(lines, line);
      CHECK(line.find_last_of(' ', 30) < line.size() - 1);
      CHECK(line.size() > 30);
    }
    CHECK(options >= 1);
  }
  const Result version = run(one_process({"--version"}));
  CHECK(version.status == 0);
  CHECK(version.out.starts_with("asterism 0."));
  CHECK(version.out.ends_with("\n"));
}
