// What all solvers report alike: the same keys with values of the same type, the same lines, in the same order.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "../support/command_line.hpp"
#include "tools/cli/report.hpp"
#include "tools/grid/report.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;
using nlohmann::ordered_json;
using tools::GridStatement;
using tools::Section;
using tools::SolverReport;

namespace {

using Names = std::vector<std::string>;

Names keys_in_order(const ordered_json& object) {
  Names names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

/// The labels of a text report's lines.
Names labels(const std::string& text) {
  Names names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) names.push_back(line.substr(0, line.find(' ')));
  return names;
}

/// Those of `all` that are in `some`, in the order of `all`.
Names only(const Names& all, const Names& some) {
  Names kept;
  for (const std::string& name : all)
    if (std::find(some.begin(), some.end(), name) != some.end()) kept.push_back(name);
  return kept;
}

std::string type_of(const ordered_json& value) {
  if (value.is_number_integer()) return "whole number";
  return value.is_number() ? "number" : value.type_name();
}

/// Checks that both have values of the same types, in objects wherever they have the same keys.
void same_types(const std::string& where, const ordered_json& a, const ordered_json& b) {
  CAPTURE(where);
  CHECK(type_of(a) == type_of(b));
  if (a.is_object() && b.is_object())
    for (const auto& [key, value] : a.items())
      if (b.contains(key)) same_types(where + "." + key, value, b[key]);
  if (a.is_array() && b.is_array() && !a.empty() && !b.empty()) same_types(where + "[0]", a[0], b[0]);
}

std::string output_of(const Words& words) {
  const Result result = run(one_process(words));
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  return result.out;
}

/// On grids; `linear` has a matrix instead.
const std::vector<Words> solvers{{"poisson"},
                                 {"poisson", "--method", "gemm"},
                                 {"relax"},
                                 {"relax", "--method", "mlssor"},
                                 {"relax", "--method", "wavefront"}};

/// A report with something in each of its places.
SolverReport full_report() {
  SolverReport report{.solver = "patience", .method = "wait"};
  report.problem.line("problem", "none");
  report.problem.add("problem_key", 1);
  report.choices.add("silent", 2);
  report.choices.say("spoken", 3, ", {} of them");
  report.choices.line("details");
  report.choices.say("detail", 4.5, "{:.2f} deep");
  say_iterations(report.speed, "nap", 7, 0.25);
  say_residual(report.accuracy, std::numeric_limits<double>::quiet_NaN(), "as it began");
  say_residual_history(report.accuracy, {{0, 1.0}, {7, 0.5}});
  say_error(report.accuracy, 0.125, tools::Exact::difference_equation, ", or so");
  report.run.workers = {2, 1, 3};
  report.run.slices = {4, 5, 0};
  report.run.stopwatch.lap("setup");
  report.run.report.seconds["naps"] = 1.5;
  report.run.report.traffic.to_disk = 1024;
  report.output = "u.npy";
  report.unfinished = ", unfinished";
  report.verdict = "!";
  return report;
}

}  // namespace

TEST_CASE("a report says the same to people and to programs, in the same order") {
  const SolverReport report = full_report();
  const ordered_json j = as_json(report);
  CHECK(keys_in_order(j) == Names{"solver", "method", "problem_key", "silent", "spoken", "detail", "seconds",
                                  "solver_seconds", "naps", "seconds_per_nap", "scaled_residual",
                                  "residual_history", "error", "workers", "slices_of_ranks", "bytes",
                                  "output", "reason"});
  CHECK(j["spoken"] == 3);
  CHECK(j["seconds_per_nap"] == 0.25);
  CHECK(j["residual_history"] == ordered_json{{0, 1.0}, {7, 0.5}});
  CHECK(j["workers"] == ordered_json{{"cpu", 2}, {"cuda", 1}, {"ranks", 3}});
  CHECK(j["slices_of_ranks"] == ordered_json{4, 5, 0});
  CHECK(j["output"] == "u.npy");

  const std::string text = as_text(report);
  CHECK(labels(text) == Names{"problem", "method", "details", "workers", "seconds", "naps", "moved",
                              "residual", "error", "written", "result"});
  has(text, {"problem    none\n", "method     patience, 3 of them\n", "details    4.50 deep\n",
             "workers    2 CPU, 1 CUDA, 3 ranks with 4 + 5 + 0 slices\n", "naps       7, 0.25 s each\n",
             "moved      1.0 KiB to disk\n", "residual   nan scaled, as it began\n",
             "error      1.25e-01 relative to the exact solution of the difference equation, or so\n",
             "written    u.npy\n", "result     solved!\n"});
}

TEST_CASE("what was written is told as it ended") {
  SolverReport report = full_report();
  report.run.report.reason = Reason::iteration_limit;
  has(as_text(report), {"written    u.npy, unfinished\n", "result     iteration limit"});
  CHECK(as_json(report)["output"] == "u.npy");
  report.run.report.reason = Reason::not_finite;
  has(as_text(report), {"written    nothing, as u is not finite\n"});
  CHECK(!as_json(report).contains("output"));
  report.output.clear();
  CHECK(as_text(report).find("written") == std::string::npos);
}

TEST_CASE("problems on grids") {
  GridStatement statement{.equation = tools::equation_text(3, -2),
                          .shape = {2, 3, 4},
                          .batch = 5,
                          .lengths = {1, 1, 2},
                          .conditions = {{"d", "n"}, {"p", "p"}, {"d", "d"}},
                          .input = {},
                          .model = "sine",
                          .seed = 8,
                          .values = std::vector<tools::GivenValues>{{{1.5}, {0, "z.npy"}}, {}, {}}};
  const Section section = problem_section(statement);
  CHECK(section.text() ==
        "problem    u_xx + u_yy + u_zz - 2 u = f, model sine: 5 problems of 2 x 3 x 4 unknowns "
        "(0.00012 million) in f64\n");
  CHECK(keys_in_order(section.json()) == Names{"dimensions", "grid", "batch", "lengths", "conditions",
                                               "model", "seed", "precision", "unknowns", "values"});
  CHECK(section.json()["conditions"] ==
        ordered_json{{"z", {"d", "n"}}, {"y", {"p", "p"}}, {"x", {"d", "d"}}});
  CHECK(section.json()["values"]["z"] == ordered_json{1.5, "z.npy"});
  CHECK(section.json()["unknowns"] == 120);
  statement.input = "f.npy";
  CHECK(!problem_section(statement).json().contains("model"));
}

TEST_CASE("all solvers: every shared key, with values of the same type, in the same order") {
  const fs::path folder = fresh_folder("shared");
  const Names shared{
      "version",        "command",         "solver", "method",    "dimensions", "grid",   "lengths",
      "conditions",     "model",           "seed",   "precision", "unknowns",   "values", "seconds",
      "solver_seconds", "scaled_residual", "error",  "workers",   "bytes",      "output", "reason"};
  const Words problem{"--model", "random", "--seed", "3",
                      "--grid",  "17x15",  "-o",     (folder / "u.npy").string()};
  const auto report = [&](const Words& solver) {
    return ordered_json::parse(output_of(solver + problem + Words{"--json"}));
  };
  const ordered_json first = report(solvers.front());
  for (const Words& solver : solvers) {
    CAPTURE(line_of(solver));
    const ordered_json j = report(solver);
    CHECK(only(keys_in_order(j), shared) == shared);
    for (const std::string& key : shared) same_types(key, first[key], j[key]);
    for (const char* part : {"setup", "allocate", "fill", "solve", "check", "write", "total"})
      CHECK(type_of(j["seconds"][part]) == "number");
    // What states the problem is the same to the letter.
    for (const char* key : {"dimensions", "grid", "lengths", "conditions", "model", "seed", "precision",
                            "unknowns", "values", "output", "reason"})
      CHECK(j[key] == first[key]);
  }
}

TEST_CASE("all solvers: every shared line, in the same order") {
  const fs::path folder = fresh_folder("lines");
  const Names shared{"problem", "method", "workers", "seconds", "residual", "error", "written", "result"};
  const Words problem{"--model", "random", "--grid", "17x15", "-o", (folder / "u.npy").string()};
  for (const Words& solver : solvers) {
    CAPTURE(line_of(solver));
    const std::string text = output_of(solver + problem);
    CHECK(only(labels(text), shared) == shared);
    has(text, {"problem    u_xx + u_yy = f, model random: 17 x 15 unknowns (0.000255 million) in f64\n",
               "result     solved\n"});
  }
}

TEST_CASE("a solver of matrices: the keys and lines that it shares with those on grids, alike") {
  const fs::path folder = fresh_folder("matrices");
  const Words shared_keys{"version",   "command",  "solver",  "method",         "model",
                          "precision", "unknowns", "seconds", "solver_seconds", "scaled_residual",
                          "error",     "workers",  "bytes",   "output",         "reason"};
  const Names shared_lines{"problem",  "method", "workers", "seconds",
                           "residual", "error",  "written", "result"};
  const Words output{"-o", (folder / "x.npy").string()};
  const Words grid = Words{"relax", "--model", "random", "--grid", "17x15"} + output;
  const Words matrix = Words{"linear", "--model", "poisson2d:17x15"} + output;
  const ordered_json on_grid = ordered_json::parse(output_of(grid + Words{"--json"}));
  const ordered_json j = ordered_json::parse(output_of(matrix + Words{"--json"}));
  CHECK(only(keys_in_order(j), shared_keys) == shared_keys);
  for (const std::string& key : shared_keys) same_types(key, on_grid[key], j[key]);
  same_types("residual_history", on_grid["residual_history"], j["residual_history"]);
  for (const char* key : {"precision", "unknowns", "output", "reason"}) CHECK(j[key] == on_grid[key]);
  for (const char* part : {"fill", "solve", "check", "write", "total"})
    CHECK(type_of(j["seconds"][part]) == "number");
  const std::string text = output_of(matrix);
  CHECK(only(labels(text), shared_lines) == shared_lines);
  has(text, {"result     solved\n"});
}

TEST_CASE("a search of assignments: the keys and lines that it shares with solvers on grids, alike") {
  const fs::path folder = fresh_folder("assignments");
  const Words shared_keys{"version",        "command", "solver", "method", "seconds",
                          "solver_seconds", "workers", "bytes",  "output", "reason"};
  const Names shared_lines{"problem", "method", "workers", "seconds", "written", "result"};
  std::ofstream(folder / "a.dat") << "3\n0 1 2\n1 0 3\n2 3 0\n0 5 6\n5 0 7\n6 7 0\n";
  const Words search{"qap", (folder / "a.dat").string(), "--generations", "2",
                     "-o",  (folder / "a.sln").string()};
  const ordered_json on_grid = ordered_json::parse(output_of(
      {"relax", "--model", "random", "--grid", "7x5", "-o", (folder / "x.npy").string(), "--json"}));
  const ordered_json j = ordered_json::parse(output_of(search + Words{"--json"}));
  CHECK(only(keys_in_order(j), shared_keys) == shared_keys);
  for (const std::string& key : shared_keys) same_types(key, on_grid[key], j[key]);
  CHECK(type_of(j["seconds"]["total"]) == "number");
  CHECK(only(labels(output_of(search)), shared_lines) == shared_lines);
}

TEST_CASE("what was not solved is told in the solver's words") {
  SolverReport report = full_report();
  report.solution = "x";
  report.run.report.reason = Reason::not_finite;
  has(as_text(report), {"written    nothing, as x is not finite\n"});
  report.run.report.reason = Reason::zero_pivot;
  has(as_text(report), {"written    nothing, as nothing was solved\n"});
  CHECK(!as_json(report).contains("output"));
}

TEST_CASE("ranks of one and of two cores: who has how much") {
  const Words problem{"--model", "random", "--grid", "1023x255"};
  for (const Words& solver : solvers) {
    if (solver.back() == "wavefront") continue;  // for one rank
    CAPTURE(line_of(solver));
    const auto with_cores = [&](const char* cores) {
      return solver + problem + Words{"--json", "--sweeps", "8", "--cpus", cores};
    };
    Words one = with_cores("1"), two = with_cores("2");
    if (solver.front() == "poisson")  // no sweeps
      for (Words* words : {&one, &two}) words->erase(words->end() - 4, words->end() - 2);
    const Result result = run(on_ranks(1, one) + Words{":", "-np", "1"} + one_process(two));
    CAPTURE(result.err);
    REQUIRE(result.status == 0);
    const ordered_json j = ordered_json::parse(result.out);
    const Index first = j["slices_of_ranks"][0], second = j["slices_of_ranks"][1];
    CHECK(first + second == 1023);
    if (solver == solvers.front()) {  // by the number of workers, in whole slabs
      CHECK(second > 1.4 * static_cast<double>(first));
      CHECK(second < 2.8 * static_cast<double>(first));
    }
  }
}
