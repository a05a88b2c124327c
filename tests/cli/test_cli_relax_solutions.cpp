// `asterism relax`: what it solves, in every way of running; when it ends.

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "../support/command_line.hpp"
#include "relax_runs.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

TEST_CASE("every method: the documented report, and the solution of `asterism poisson`") {
  const fs::path folder = fresh_folder("methods");
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  save(folder / "f.npy", random_array({21, 30}));
  save(folder / "y.npy", random_array({30}));
  const Words problem{file("f.npy"), "--value-y", "1.5," + file("y.npy"), "--value-x", "-2",
                      "--lengths",   "1x1.5"};
  poisson(problem + Words{"-o", file("exact.npy")});
  for (const std::string& method : relax_methods) {
    CAPTURE(method);
    const json j = report_of(
        on_all_cores(Words{"relax", "--json"} + problem + Words{"--method", method, "-o", file("u.npy")}));
    CHECK(difference(folder / "exact.npy", folder / "u.npy") < 1e-11);
    std::vector<std::string> expected{"solver",
                                      "method",
                                      "dimensions",
                                      "grid",
                                      "precision",
                                      "unknowns",
                                      "values",
                                      "output",
                                      "lengths",
                                      "conditions",
                                      "omega",
                                      "seconds",
                                      "solver_seconds",
                                      "check_every",
                                      "tolerance",
                                      "sweeps",
                                      "bytes",
                                      "workers",
                                      "seconds_per_sweep",
                                      "gbytes_per_second",
                                      "scaled_residual",
                                      "residual_history",
                                      "reason"};
    const bool layered = method == "mlssor", stripes = method != "wavefront" && !layered;
    if (layered || stripes) expected.push_back("stripes");
    if (stripes) expected.push_back("sweeps_per_task");
    if (stripes && method != "jacobi") expected.push_back("layout");
    if (layered) expected.insert(expected.end(), {"subdomain", "layers"});
    if (method == "wavefront") expected.push_back("tiles");
    CHECK(keys(j) == sorted(expected));
    CHECK(j["method"] == method);
    CHECK(j["grid"] == json{21, 30});
    CHECK(j["dimensions"] == 2);
    CHECK(j["values"]["x"] == json{-2, -2});
    CHECK(j["values"]["y"] == json{1.5, file("y.npy")});
    CHECK(j["output"] == file("u.npy"));
    CHECK(j["precision"] == "f64");
    CHECK(j["reason"] == "solved");
    CHECK(j["tolerance"] == 1e-14);
    CHECK(j["scaled_residual"] <= 1e-14);
    CHECK(j["workers"]["cpu"] >= 1);
    CHECK(keys(j["bytes"]) == sorted({"to_device", "from_device", "to_disk", "from_disk", "between_ranks"}));
    for (const char* part : {"setup", "allocate", "fill", "solve", "write", "total"})
      CHECK(j["seconds"][part] >= 0);
    const double bytes = (method == "jacobi" ? 2 : 3) * 21 * 30 * 8.0;
    CHECK(j["gbytes_per_second"].get<double>() ==
          doctest::Approx(bytes / 1e9 / j["seconds_per_sweep"].get<double>()));
    CHECK(j["seconds_per_sweep"].get<double>() * j["sweeps"].get<double>() ==
          doctest::Approx(j["solver_seconds"]["sweeps"].get<double>()));
    // The history: pairs, the first before any sweep, the last what was reached, and falling in between.
    const json history = j["residual_history"];
    REQUIRE(history.size() >= 2);
    CHECK(history.front()[0] == 0);
    CHECK(history.back()[0] == j["sweeps"]);
    CHECK(history.back()[1] == j["scaled_residual"]);
    CHECK(history.front()[1] > 1e-3);
    for (std::size_t i = 1; i < history.size(); ++i) CHECK(history[i][0] > history[i - 1][0]);
    // 2 / (1 + sqrt(1 - rho^2)), [Czapinski 2014] (4.1), with Jacobi's rho; Gauss-Seidel's and Jacobi's is 1, and so
    // is the best of symmetric SOR by colours.
    const double y2 = std::pow(22 / 1.0, 2), x2 = std::pow(31 / 1.5, 2);
    const double rho = (y2 * std::cos(M_PI / 22) + x2 * std::cos(M_PI / 31)) / (y2 + x2);
    const bool over = method == "sor" || method == "mlssor" || method == "wavefront";
    CHECK(j["omega"].get<double>() == doctest::Approx(over ? 2 / (1 + std::sqrt(1 - rho * rho)) : 1));
  }
  CHECK(temporaries(folder) == 0);
}

TEST_CASE("models: what is solved, and the error where the solution is known") {
  const fs::path folder = fresh_folder("models");
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  // The sine model's error is that of the discretisation, second order; the random model's is the solver's.
  const auto error = [](const Words& problem) { return relax(problem)["error"].get<double>(); };
  CHECK(error({"--grid", "15x15"}) / error({"--grid", "31x31"}) == doctest::Approx(4).epsilon(0.05));
  CHECK(error({"--model", "random", "--grid", "20x31"}) < 1e-11);
  CHECK(error({"--model", "random", "--grid", "20x31", "--precision", "f32"}) < 1e-3);
  CHECK(error({"--model", "random", "--grid", "7x8x9", "--method", "wavefront"}) < 1e-11);
  CHECK(error({"--model", "random", "--grid", "19", "--lengths", "3", "--method", "wavefront"}) < 1e-11);
  CHECK(error({"--model", "random", "--grid", "9x9", "--seed", "2", "--sweeps", "3"}) !=
        error({"--model", "random", "--grid", "9x9", "--seed", "3", "--sweeps", "3"}));
  CHECK(!relax({"--grid", "15x15", "--value-x", "1"}).contains("error"));
  CHECK(relax({"--grid", "15x15"})["model"] == "sine");

  // laplace: sin^2(pi y) on x = 0 and f = 0, stated to `asterism poisson` by files.
  Array side({24});
  for (std::size_t i = 0; i < 24; ++i)
    side.values[i] = std::pow(std::sin(M_PI * (static_cast<double>(i) + 1) / 25), 2);
  save(folder / "side.npy", side);
  save(folder / "zero.npy", Array({24, 17}));
  poisson({file("zero.npy"), "--value-x", file("side.npy") + ",0", "-o", file("exact.npy")});
  for (const std::string& method : relax_methods) {
    CAPTURE(method);
    const json j = relax({"--model", "laplace", "--grid", "24x17", "--method", method, "-o", file("u.npy")});
    CHECK(j["model"] == "laplace");
    CHECK(!j.contains("error"));
    CHECK(difference(folder / "exact.npy", folder / "u.npy") < 1e-11);
  }
}

TEST_CASE("options of the method reach the solver, and change no result") {
  const fs::path folder = fresh_folder("options");
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  const Words problem{"--model", "random", "--grid", "64x40", "--sweeps", "24"};
  for (const std::string method : {"jacobi", "sor", "ssor"}) {
    CAPTURE(method);
    const Words by{"--method", method};
    relax(problem + by + Words{"-o", file("one.npy"), "--stripes", "1", "--sweeps-per-task", "1"});
    std::vector<Words> ways{{"--stripes", "2", "--sweeps-per-task", "1"},
                            {"--stripes", "2", "--sweeps-per-task", "3"},
                            {"--stripes", "2", "--sweeps-per-task", "2", "--blocking"},
                            {"--cpus", "1", "--check-every", "6"}};
    if (method != "jacobi") ways.push_back({"--layout", "natural", "--stripes", "2"});
    for (const Words& way : ways) {
      CAPTURE(line_of(way));
      const json j = relax(problem + by + way + Words{"-o", file("u.npy")});
      CHECK(j["sweeps"] == 24);
      CHECK(difference(folder / "one.npy", folder / "u.npy") < 1e-14);
      if (way[0] == "--stripes") CHECK(j["stripes"] == 2);
      if (way.size() > 3 && way[2] == "--sweeps-per-task")
        CHECK(std::to_string(j["sweeps_per_task"].get<int>()) == way[3]);
      if (way[0] == "--layout") CHECK(j["layout"] == "natural");
      if (way[0] == "--cpus") CHECK(j["workers"]["cpu"] == 1);
    }
  }
  CHECK(relax(problem)["layout"] == "separated");
  CHECK(relax(problem)["omega"].get<double>() > 1.5);
  CHECK(relax(problem + Words{"--omega", "1.25"})["omega"] == 1.25);
  const json checked = relax(problem + Words{"--check-every", "6", "--sweeps-per-task", "3"});
  CHECK(checked["check_every"] == 6);
  CHECK(checked["residual_history"].size() == 5);
  CHECK(checked["residual_history"][1][0] == 6);
  // Omega 1 is Gauss-Seidel.
  const json one = relax(problem + Words{"--omega", "1", "-o", file("one.npy")});
  relax(problem + Words{"--method", "gauss-seidel", "-o", file("u.npy")});
  CHECK(difference(folder / "one.npy", folder / "u.npy") < 1e-14);

  const Words layered{"--method", "mlssor", "--subdomain", "8", "--layers", "3"};
  const json j = relax(problem + layered + Words{"-o", file("one.npy")});
  CHECK(j["subdomain"] == 8);
  CHECK(j["layers"] == 3);
  relax(problem + layered + Words{"--no-alternation", "-o", file("u.npy")});
  CHECK(difference(folder / "one.npy", folder / "u.npy") > 1e-6);
}

TEST_CASE("a first guess from a file, in the other precision too: sweeps go on where others ended") {
  const fs::path folder = fresh_folder("initial");
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  save(folder / "f.npy", random_array({33, 20}));
  for (const std::string& method : relax_methods) {
    if (method == "mlssor") continue;  // its direction alternates from sweep to sweep
    CAPTURE(method);
    const Words problem{file("f.npy"), "--value-x", "1", "--method", method, "--sweeps"};
    relax(problem + Words{"12", "-o", file("whole.npy")});
    relax(problem + Words{"6", "-o", file("half.npy")});
    relax(problem + Words{"6", "--initial", file("half.npy"), "-o", file("u.npy")});
    CHECK(difference(folder / "whole.npy", folder / "u.npy") < 1e-14);
  }
  relax({file("f.npy"), "-o", file("exact.npy")});
  const json j =
      relax({file("f.npy"), "--initial", file("exact.npy"), "--precision", "f32", "-o", file("u.npy")});
  CHECK(j["precision"] == "f32");
  CHECK(j["tolerance"] == 1e-6);
  CHECK(j["residual_history"][0][1] < 1e-6);
  CHECK(difference(folder / "exact.npy", folder / "u.npy") < 1e-4);
}

TEST_CASE(
    "limits: sweeps alone, a tolerance, both; what is not reached is status 1, reported, and written, so "
    "that "
    "sweeps can go on from it") {
  const fs::path folder = fresh_folder("limits");
  const Words problem{"--grid", "40x40"}, output{"-o", (folder / "u.npy").string()};
  for (const std::string& method : relax_methods) {
    CAPTURE(method);
    const Words by = problem + Words{"--method", method, "--check-every", "8"};
    const json alone = relax(by + Words{"--sweeps", "16"});
    CHECK(alone["sweeps"] == 16);
    CHECK(alone["reason"] == "solved");
    CHECK(!alone.contains("tolerance"));
    const json loose = relax(by + Words{"--tolerance", "1e-3"});
    CHECK(loose["scaled_residual"] <= 1e-3);
    CHECK(loose["residual_history"][0][1] > 1e-3);
    const json limited = unsolved(by + output + Words{"--sweeps", "16", "--tolerance", "1e-12"});
    CHECK(limited["reason"] == "iteration limit");
    CHECK(limited["sweeps"] == 16);
    CHECK(limited["output"] == output[1]);
    if (method == "mlssor") continue;  // its direction alternates from sweep to sweep
    relax(by + Words{"--sweeps", "48", "-o", (folder / "whole.npy").string()});
    relax(by + Words{"--quiet", "--sweeps", "32", "--initial"} + Words{output[1]} + output);
    CHECK(difference(folder / "whole.npy", folder / "u.npy") < 1e-14);
  }
  fs::remove(folder / "u.npy");
  CHECK(unsolved(problem + output + Words{"--tolerance", "1e-25"})["reason"] == "stagnation");
  CHECK(temporaries(folder) == 0);
  CHECK(fs::exists(folder / "u.npy"));
}

TEST_CASE("little memory and a disk: as many stripes as that asks for, and the result of a run in memory") {
  const fs::path folder = fresh_folder("memory");
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  fs::create_directory(folder / "spill");
  const Words problem{"--grid", "700x900", "--model", "random", "--sweeps", "4"},
      spill{"--spill", file("spill")};
  relax(problem + Words{"-o", file("whole.npy")});
  // 5 MB in each of three tiles a stripe.
  const std::vector<Words> limits{{"--memory", "9M", "--cpus", "2"},
                                  {"--memory", "6M", "--cpus", "1", "--stripes", "20"},
                                  {"--memory", "9M", "--cpus", "2", "--method", "mlssor", "--subdomain", "8"},
                                  {"--memory", "9M", "--cpus", "2", "--method", "wavefront", "--untuned"}};
  for (const Words& limit : limits) {
    CAPTURE(line_of(limit));
    const json j = relax(problem + limit + spill + Words{"-o", file("u.npy")});
    CHECK(j["bytes"]["to_disk"] > 0);
    if (j["method"] == "sor") CHECK(difference(folder / "whole.npy", folder / "u.npy") < 1e-14);
    if (j.contains("stripes")) CHECK(j["stripes"] > 2);
  }
  const auto refused = [&](const Words& given, const Words& words) {
    const Result result = run(one_process(Words{"relax", "--cpus", "2"} + problem + given));
    CAPTURE(line_of(given));
    CHECK(result.status == 3);
    has(result.err, words);
  };
  refused(spill + Words{"--memory", "9M", "--stripes", "2"}, {"2 stripes", "--stripes", "--memory"});
  refused(spill + Words{"--memory", "9M", "--stripes", "2", "--method", "mlssor"}, {"--stripes", "--memory"});
  for (const char* method : {"sor", "mlssor", "wavefront"})
    refused({"--memory", "9M", "--method", method}, {"9.0 MiB", "--memory", "--spill"});
}

TEST_CASE("a disk and one worker, which moves its tiles to make room for those of the task it makes ready") {
  const fs::path disk = fresh_folder("spill");
  const json j = relax({"--grid", "800x1500", "--sweeps", "2", "--memory", "4M", "--stripes", "37", "--cpus",
                        "1", "--spill", disk.string()});
  CHECK(j["bytes"]["to_disk"] > 0);
}

TEST_CASE("what overflows is a result: status 1 and a report") {
  const fs::path folder = fresh_folder("overflow");
  Array huge({40, 30});
  for (double& value : huge.values) value = 1e308;
  save(folder / "huge.npy", huge);
  const json j = unsolved({(folder / "huge.npy").string(), "-o", (folder / "u.npy").string(), "--sweeps",
                           "20000", "--tolerance", "1e-12", "--lengths", "10000x10000"});
  CHECK((j["reason"] == "not finite" || j["reason"] == "divergence"));
  CHECK(temporaries(folder) == 0);
  CHECK(fs::exists(folder / "u.npy") == (j["reason"] == "divergence"));
}

TEST_CASE("ranks: each reads and writes its rows, and the result is that of one") {
  const fs::path folder = fresh_folder("ranks");
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  save(folder / "f.npy", random_array({65, 32}));
  save(folder / "guess.npy", random_array({65, 32}));
  save(folder / "x.npy", random_array({65}));
  for (const std::string method : {"jacobi", "sor", "mlssor"}) {
    CAPTURE(method);
    const Words problem{"relax",           "--json",   file("f.npy"), "--initial",
                        file("guess.npy"), "--method", method,        "--value-x",
                        file("x.npy"),     "--sweeps", "32"};
    report_of(one_process(problem + Words{"-o", file("one.npy")}));
    // So small a grid would be one rank's, left to itself.
    const json j = report_of(on_ranks(2, problem + Words{"--stripes", "2", "-o", file("two.npy")}));
    CHECK(j["workers"] == json{{"cpu", 2}, {"cuda", 0}, {"ranks", 2}});
    CHECK(j["bytes"]["between_ranks"] > 0);
    CHECK(j["bytes"]["between_ranks"] < 32 * 65 * 32 * 8);
    CHECK(difference(folder / "one.npy", folder / "two.npy") < 1e-14);
  }
  const json j = report_of(on_ranks(2, {"relax", "--json", "--model", "random", "--grid", "65x32"}));
  CHECK(j["error"] < 1e-11);
  CHECK(temporaries(folder) == 0);
}
