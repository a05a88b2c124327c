// `asterism bench linear`: its keys, its table, and what it refuses.

#include <doctest/doctest.h>

#include <string>

#include "../../support/command_line.hpp"
#include "../bad_inputs.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

Words bench(const Words& arguments) {
  return one_process(Words{"bench", "linear", "--cpus", "1", "--gpus", "0", "--repeats", "1"} + arguments);
}

/// Bytes, GB/s and share of a run.
void check_speed(const json& speed, double bytes, const json& run, double ceiling) {
  CHECK(keys(speed) == Words{"bytes", "gbytes_per_second", "share"});
  CHECK(speed["bytes"].get<double>() == doctest::Approx(bytes));
  const double expected = bytes / run["microseconds_per_iteration"].get<double>() / 1e3;
  CHECK(speed["gbytes_per_second"].get<double>() == doctest::Approx(expected));
  CHECK(speed["share"].get<double>() == doctest::Approx(expected / ceiling));
}

}  // namespace

TEST_CASE("a run for programs: all keys, bytes by both counts, Eigen beside it") {
  const json j = report_of(bench({"--models", "poisson2d:64x64", "--preconditioners", "none", "--json"}));
  for (const char* key : {"precision", "preconditioner_precision", "workers", "ceiling", "tolerance",
                          "about_baselines", "models"})
    CHECK(j.contains(key));
  CHECK(j["host_triad"] > 0);
  CHECK(j["about_baselines"].size() == 1);
  has(j["about_baselines"]["Eigen"], {"ConjugateGradient", "one thread"});
  REQUIRE(j["models"].size() == 1);
  const json& model = j["models"][0];
  CHECK(keys(model) == sorted({"model", "rows", "entries", "runs", "baselines"}));
  const double n = 64 * 64, entries = 5 * n - 4 * 64, ceiling = j["ceiling"]["gbytes_per_second"];
  CHECK(model["rows"] == n);
  CHECK(model["entries"] == entries);

  REQUIRE(model["runs"].size() == 1);
  const json& run = model["runs"][0];
  CHECK(keys(run) ==
        sorted({"preconditioner", "format", "blocks", "setup_seconds", "setup", "timed_iterations",
                "microseconds_per_iteration", "timed_residual", "model", "kernels", "reason", "iterations",
                "residual", "solve_seconds", "seconds_with_setup"}));
  CHECK(run["preconditioner"] == "none");
  CHECK(run["reason"] == "solved");
  CHECK(run["residual"] <= 1.1e-6);
  CHECK(run["iterations"] > 64);
  CHECK(run["blocks"] == 1);
  const double spmv = 8 * (entries + 2 * n) + 4 * (entries + n + 1), step = 8 * (2 * n + 1);
  check_speed(run["model"], spmv + 5 * step, run, ceiling);
  CHECK(run["format"] == "stencil");
  check_speed(run["kernels"], 10 * 8 * n, run, ceiling);

  REQUIRE(model["baselines"].size() == 1);
  const json& eigen = model["baselines"][0];
  CHECK(keys(eigen) == sorted({"name", "preconditioner", "detail", "timed_iterations",
                               "microseconds_per_iteration", "timed_residual", "model", "of_ours"}));
  CHECK(eigen["timed_iterations"] == run["timed_iterations"]);
  check_speed(eigen["model"], spmv + 5 * step, eigen, ceiling);
}

TEST_CASE("so many iterations are the same in both solvers, with a diagonal too") {
  const json j = report_of(bench({"--models", "circuit-like:2000", "--preconditioners", "diagonal,mc-ilu:1,2",
                                  "--formats", "csr,sliced-ell", "--iterations", "20", "--json"}));
  const json& runs = j["models"][0]["runs"];
  REQUIRE(runs.size() == 4);
  for (const int at : {0, 1, 2, 3}) {
    CHECK(runs[at]["preconditioner"] == (at < 2 ? "diagonal" : "mc-ilu:1,2"));
    CHECK(runs[at]["format"] == (at % 2 == 0 ? "csr" : "sliced-ell"));
    CHECK(runs[at]["timed_iterations"] == 20);
    CHECK(runs[at]["kernels"].is_null() == (at >= 2));
  }
  const double n = 2000, entries = j["models"][0]["entries"];
  CHECK(runs[0]["kernels"]["bytes"].get<double>() ==
        doctest::Approx(12 * entries + 4 * (n + 1) + (10 + 2) * 8 * n));  // columns and begins of 4 bytes

  const json& others = j["models"][0]["baselines"];
  REQUIRE(others.size() == 1);  // none has mc-ilu
  CHECK(others[0]["preconditioner"] == "diagonal");
  CHECK(others[0]["timed_residual"].get<double>() ==
        doctest::Approx(runs[0]["timed_residual"].get<double>()).epsilon(1e-4));
}

TEST_CASE("a format that a matrix cannot have is told, and the others go on") {
  const Words command{"--models", "ecology-like:20x20", "--preconditioners",
                      "diagonal", "--formats",          "stencil,csr"};
  const json runs = report_of(bench(command + Words{"--json"}))["models"][0]["runs"];
  REQUIRE(runs.size() == 2);
  CHECK(keys(runs[0]) == sorted({"preconditioner", "format", "refusal"}));
  CHECK(runs[0]["format"] == "stencil");
  has(runs[0]["refusal"], {"format stencil"});
  CHECK(runs[1]["reason"] == "solved");
}

TEST_CASE("a table for people, numbers in float32") {
  const Result text = run(bench({"--models", "poisson2d:32x32,triangulation-like:20x20", "--preconditioners",
                                 "none,chebyshev:2", "--precision", "f32", "--tolerance", "1e-3"}));
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  has(text.out,
      {"Baseline Eigen", "poisson2d:32x32: 1024 rows, 4992 entries", "triangulation-like:20x20: 400 rows",
       "preconditioner", "triad", "\nnone ", "\nchebyshev:2 ", "times as long", "relative residual 0.001"});
}

TEST_CASE("an end before the tolerance is told") {
  const json j = report_of(bench({"--models", "poisson2d:64x64", "--preconditioners", "none",
                                  "--max-iterations", "10", "--preconditioner-precision", "f32", "--json"}));
  CHECK(j["preconditioner_precision"] == "f32");
  CHECK(j["models"][0]["runs"][0]["reason"] == "iteration limit");
  CHECK(j["models"][0]["runs"][0]["iterations"] == 10);
}

TEST_CASE("bad options are refused") {
  const BadInputs bad;
  const std::vector<Refusal> cases{
      {{"--models", "poisson2d"}, 2, {"--models", "poisson2d"}},
      {{"--models", "poisson2d:8x8,"}, 2, {"--models"}},
      {{"--preconditioners", "none,magic"}, 2, {"--preconditioners", "magic", "mc-ilu:P,Q"}},
      {{"--preconditioners", "1,2"}, 2, {"--preconditioners", "1"}},
      {{"--formats", "auto,coo"}, 2, {"--formats", "'coo'", "sliced-ell"}},
      {{"--workers", "some"}, 2, {"--workers", "'some'", "fastest|all"}},
      {{"--tolerance", "0"}, 2, {"--tolerance", "'0'", "between 0 and 1"}},
      {{"--iterations", "0"}, 2, {"--iterations", "'0'", "from 1 on"}},
      {{"--precision", "f32", "--preconditioner-precision", "f64"},
       2,
       {"--preconditioner-precision f64", "--precision f64"}},
  };
  bad.refused(one_process({"bench"}), 2, {"tile-model, linear"});
  for (const Refusal& c : cases) bad.refused(bench(c.arguments), c.status, c.words);
}
