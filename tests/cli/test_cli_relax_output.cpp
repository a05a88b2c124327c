// What `asterism relax` prints, and the benchmarks of relaxations.

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include "../support/command_line.hpp"
#include "../support/skip.hpp"
#include "relax_runs.hpp"

using namespace asterism;
using namespace asterism::test;

TEST_CASE("a seed that nothing is drawn with: told, and the run goes on") {
  const Result result = run(one_process({"relax", "--grid", "9x9", "--quiet", "--seed", "5"}));
  CHECK(result.status == 0);
  has(result.err, {"--seed has no effect: it is of --model random"});
}

TEST_CASE("the report for people, and silence") {
  const Result text = run(one_process({"relax", "--grid", "61x83", "--stripes", "2"}));
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  has(text.out, {"problem    u_xx + u_yy = f, model sine: 61 x 83 unknowns", "in f64",
                 "method     successive over-relaxation, red-black, omega 1.9", "separated layout, 2 stripes",
                 "sweeps     ", "GB/s (3 n^2 s bytes a sweep)", "balance    the last worker finished ",
                 "residual ", "error ", "result     solved\n"});
  const std::string output = (fresh_folder("people") / "u.npy").string();
  const Result limited =
      run(one_process({"relax", "--grid", "61x83", "--sweeps", "8", "--tolerance", "1e-12", "-o", output}));
  CHECK(limited.status == 1);
  has(limited.out,
      {"written    " + output + ", as it is: --initial goes on from it\n", "result     iteration limit\n"});
  const Result quiet = run(one_process({"relax", "--grid", "61x83", "--sweeps", "8", "--quiet"}));
  CHECK(quiet.status == 0);
  CHECK((quiet.out + quiet.err).empty());
}

TEST_CASE("help says what the options do, and what is chosen without them") {
  const Result result = run(one_process({"relax", "--help"}));
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  std::string words;  // without line breaks
  std::istringstream lines(result.out);
  for (std::string word; lines >> word;) words += word + " ";
  has(words, {"--method",
              "--omega",
              "--sweeps",
              "--tolerance",
              "--check-every",
              "--sweeps-per-task",
              "--layout",
              "--blocking",
              "--stripes",
              "--subdomain",
              "--layers",
              "--no-alternation",
              "--model",
              "--initial",
              "--value-x",
              "--value-y",
              "--grid",
              "--lengths",
              "1e-14 in f64, 1e-06 in f32",
              "2 / (1 + sin(pi h))",
              "Exit status 1",
              "default: 511x511",
              "default: sor",
              "default: separated"});
}

TEST_CASE("a long run's residual history is thinned out evenly") {
  const json j = relax({"--grid", "5x5", "--sweeps", "10000", "--check-every", "1", "--stripes", "1"});
  const json history = j["residual_history"];
  REQUIRE(history.size() > 2000);
  CHECK(history.size() <= 4096);
  CHECK(history.front()[0] == 0);
  CHECK(history[1][0] == 4);
  CHECK(history[history.size() - 2][0] == 4 * (history.size() - 2));
  CHECK(history.back()[0] == 10000);
  CHECK(history.back()[1] == j["scaled_residual"]);
}

TEST_CASE("on a terminal the progress line has sweep and residual" *
          SkipUnless(std::system("command -v script > /dev/null") == 0,
                     "the command `script`, which makes terminals")) {
  std::string command = "exec";
  for (const std::string& word : one_process({"relax", "--method", "jacobi", "--grid", "200x200", "--sweeps",
                                              "100000000", "--tolerance", "1e-300"}))
    command += " '" + word + "'";
  Process process({"script", "-qfc", command, "/dev/null"});
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string shown;
  while (shown.find(", residual ") == std::string::npos && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    shown = load("stdout.txt");
  }
  process.signal(SIGTERM);
  CHECK(shown.find("relaxing 200 x 200: sweep ") != std::string::npos);
  CHECK(shown.find(", residual ") != std::string::npos);
}

TEST_CASE("benchmarks: kernels and layouts beside the triad of the same run") {
  const Words small{"--sizes", "64,128", "--repeats", "1", "--json"};
  const json jacobi = report_of(
      one_process(Words{"bench", "jacobi", "--blocked-size", "96", "--sweeps-per-task", "1,2"} + small));
  CHECK(jacobi["host_triad"] > 0);
  CHECK(jacobi["kind"] == "cpu");
  REQUIRE(jacobi["sizes"].size() == 2);
  for (const json& size : jacobi["sizes"]) {
    CHECK(size["implementation"] == "cpu");
    const double speed =
        2 * std::pow(size["n"].get<double>(), 2) * 8 / size["seconds_per_sweep"].get<double>() / 1e9;
    CHECK(size["gbytes_per_second"].get<double>() == doctest::Approx(speed));
    CHECK(size["share"].get<double>() == doctest::Approx(speed / jacobi["host_triad"].get<double>()));
  }
  REQUIRE(jacobi["temporal_blocking"].size() == 2);
  CHECK(jacobi["temporal_blocking"][1]["sweeps_per_task"] == 2);
  CHECK(jacobi["temporal_blocking"][1]["gcells_per_second"] > 0);

  const json sor = report_of(one_process(Words{"bench", "relax", "--sweeps-per-task", "3"} + small));
  CHECK(sor["host_triad"] > 0);
  CHECK(sor["sweeps_per_task"] == 3);
  REQUIRE(sor["measured"].size() == 8);
  for (const json& m : sor["measured"]) {
    const double bytes = 3 * (m["precision"] == "f32" ? 4 : 8);
    for (const char* how : {"kernel", "one_sweep", "many_sweeps", "solver"})
      CHECK(m[how]["gbytes_per_second"].get<double>() ==
            doctest::Approx(bytes * m[how]["gcells_per_second"].get<double>()));
  }
  CHECK(sor["small_over_large_f32_separated"] > 0);
  const Result text =
      run(one_process({"bench", "relax", "--sizes", "64", "--precision", "f64", "--repeats", "1"}));
  CHECK(text.status == 0);
  has(text.out,
      {"Red-black SOR", "natural", "separated", "1 sweep a kernel", "1 sweep a task", "STREAM triad"});
}

TEST_CASE("benchmark: multi-layer SSOR beside SSOR and red-black SOR") {
  const Words command{"bench", "mlssor", "--grid", "64x64", "--error", "1e-3", "--repeats", "1"};
  const json report = report_of(one_process(command + Words{"--json"}));
  REQUIRE(report["convergence"].size() == 6);
  for (const json& method : report["convergence"]) {
    CHECK(method["sweeps"].size() == 3);
    CHECK(method.contains("forward_only") == (method["method"] != "red-black SOR"));
  }
  const json& methods = report["time_to_error"]["methods"];
  REQUIRE(methods.size() == 5);
  for (const json& method : methods) {
    CHECK(method["error"] <= 1e-3);
    CHECK(method["sweeps"] > 0);
    CHECK(method["speedup_over_red_black"].get<double>() ==
          doctest::Approx(methods[0]["seconds"].get<double>() / method["seconds"].get<double>()));
  }
  const Result text = run(one_process(command));
  CHECK(text.status == 0);
  has(text.out, {"SSOR, 4 layers", "MLSSOR 16 x 32 x 32", "in brackets: with forward sweeps only",
                 "time to a relative error of 1.0e-03"});
}
