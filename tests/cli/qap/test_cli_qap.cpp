// `asterism qap`: what it finds, writes and reports, how it ends, and what it refuses.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../../qap/random_instances.hpp"
#include "../../support/command_line.hpp"
#include "../bad_inputs.hpp"
#include "tools/qap/instance_file.hpp"
#include "tools/qap/solution_file.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

namespace {

std::string instance(const fs::path& path, const Problem& problem) {
  tools::write_instance(path, problem);
  return path.string();
}

Problem grid_problem(Index n) { return random_problem(n, Kind::symmetric, Diagonals::zero, 0, 9); }

json qap_run(const Words& arguments) { return report_of(one_process(Words{"qap", "--json"} + arguments)); }

/// What does not depend on the clock.
json answer_of(json report) {
  for (const char* key : {"seconds", "solver_seconds", "moves_per_second", "seconds_to_best", "workers",
                          "batches", "bytes", "slices_of_ranks", "output"})
    report.erase(key);
  for (auto& entry : report["history"]) entry.erase(0);
  return report;
}

}  // namespace

TEST_CASE("the documented report, and the solution in a file") {
  const fs::path folder = fresh_folder("qap");
  const Problem problem = grid_problem(20);
  const std::string dat = instance(folder / "a.dat", problem), sln = (folder / "a.sln").string();
  const json j = qap_run({dat, "--generations", "3", "-o", sln});
  CHECK(keys(j) == sorted({"solver",
                           "method",
                           "instance",
                           "n",
                           "symmetry",
                           "diagonals",
                           "seed",
                           "islands",
                           "walks",
                           "batches",
                           "element_bits",
                           "longest_walk",
                           "seconds",
                           "solver_seconds",
                           "generations",
                           "iterations",
                           "moves_per_second",
                           "cost",
                           "seconds_to_best",
                           "verified",
                           "least_possible_cost",
                           "permutation",
                           "history",
                           "ending",
                           "workers",
                           "bytes",
                           "output",
                           "reason"}));
  CHECK(j["method"] == "auto");
  CHECK(j["n"] == 20);
  CHECK(j["symmetry"] == "symmetric");
  CHECK(j["element_bits"] == 16);
  CHECK(j["generations"] == 3);
  CHECK(j["iterations"].get<Index>() > 1000);
  CHECK(j["moves_per_second"].get<double>() > 1e4);
  CHECK(j["verified"] == true);
  CHECK(j["ending"] == "generations");
  CHECK(j["reason"] == "solved");
  const tools::Solution solution = tools::read_solution(sln, problem);
  CHECK(solution.cost == j["cost"]);
  Permutation told = j["permutation"];
  for (auto& facility : told) --facility;
  CHECK(cost_of(problem, told) == solution.cost);
  REQUIRE(!j["history"].empty());
  CHECK(j["history"].back()[1] == j["cost"]);
  for (std::size_t i = 1; i < j["history"].size(); ++i) {
    CHECK(j["history"][i][0] >= j["history"][i - 1][0]);
    CHECK(j["history"][i][1] < j["history"][i - 1][1]);
  }
  const Result text = run(one_process({"qap", dat, "--generations", "2", "--search", "pmts"}));
  CHECK(text.status == 0);
  has(text.out, {"problem    quadratic assignment, ", ": 20 locations, symmetric\n",
                 "method     parallel multistart tabu search, 8 islands, ", "cost       ", ", verified\n",
                 "result     solved: all generations were made\n"});
}

TEST_CASE("equal seeds, equal answers: one worker, two, two ranks") {
  const fs::path folder = fresh_folder("equal");
  const std::string dat =
      instance(folder / "a.dat", random_problem(15, Kind::asymmetric, Diagonals::any, 0, 9));
  for (const char* search : {"auto", "tempering"}) {
    CAPTURE(search);
    const Words arguments{"qap", "--json", "--search", search, "--seed", "4", dat, "--generations", "3"};
    const json one = answer_of(report_of(one_process(arguments)));
    CHECK(answer_of(report_of(on_all_cores(arguments))) == one);
    CHECK(answer_of(report_of(on_ranks(2, arguments))) == one);
  }
}

TEST_CASE("a start in either convention; the search never ends with worse") {
  const fs::path folder = fresh_folder("start");
  const Problem problem = random_problem(12, Kind::asymmetric, Diagonals::any, 0, 9);
  const std::string dat = instance(folder / "a.dat", problem), sln = (folder / "good.sln").string(),
                    turned = (folder / "turned.sln").string();
  const Index cost = qap_run({dat, "--generations", "4", "-o", sln})["cost"];
  const json again = qap_run({"--start", sln, "--time", "0", dat});
  CHECK(again["cost"] <= cost);
  CHECK(again["start_cost"] == cost);
  CHECK(again["start_convention"] == "number i is the facility at location i");
  CHECK(again["ending"] == "time");
  std::ofstream file(turned);
  file << fmt::format("12 {}\n", cost);
  for (const std::int32_t location : qap::inverse_of(tools::read_solution(sln, problem).permutation))
    file << location + 1 << ' ';
  file.close();
  const json inverse = qap_run({"--start", turned, "--time", "0", dat});
  CHECK(inverse["cost"] <= cost);
  CHECK(inverse["start_convention"] == "number i is the location of facility i");
}

TEST_CASE("the smallest instances") {
  const fs::path folder = fresh_folder("small");
  for (const auto& [text, cost, permutation] :
       std::initializer_list<std::tuple<const char*, Index, Permutation>>{
           {"0\n", 0, {}}, {"1 3 4\n", 12, {1}}, {"2  0 1 0 0  0 5 2 0\n", 2, {2, 1}}}) {
    CAPTURE(text);
    store(folder / "a.dat", text);
    const json j =
        qap_run({"-o", (folder / "a.sln").string(), (folder / "a.dat").string(), "--generations", "2"});
    CHECK(j["cost"] == cost);
    CHECK(j["permutation"] == json(permutation));
    CHECK(j["verified"] == true);
    CHECK(load(folder / "a.sln") == fmt::format("{} {}\n{}\n", permutation.size(), cost,
                                                permutation.empty()       ? ""
                                                : permutation.size() == 1 ? "1"
                                                                          : "2 1"));
  }
}

TEST_CASE("time, target and Ctrl-C end a search with the best so far") {
  const fs::path folder = fresh_folder("ends");
  const Problem problem = grid_problem(40);
  const std::string dat = instance(folder / "a.dat", problem), sln = (folder / "a.sln").string();
  const json timed = qap_run({dat, "--time", "0.3"});
  CHECK(timed["ending"] == "time");
  const Index cost = timed["cost"];
  CHECK(qap_run({dat, "--target", std::to_string(cost)})["ending"] == "target");
  for (const int signal : {SIGINT, SIGTERM}) {
    fs::remove(sln);
    Process search(one_process({"qap", dat, "--time", "100", "--quiet", "-o", sln}));
    std::this_thread::sleep_for(std::chrono::seconds(2));  // it has begun, even on a busy machine
    search.signal(signal);
    const Result result = search.wait(60);
    CHECK(result.status == 0);
    CHECK(tools::read_solution(sln, problem).cost > 0);
    CHECK(temporaries(folder) == 0);
  }
}

TEST_CASE("wrong input is refused with status 2, and nothing is left") {
  const BadInputs bad;
  const std::string dat = instance(bad.folder / "good.dat", grid_problem(5));
  store(bad.folder / "short.dat", "3\n1 2 3\n");
  store(bad.folder / "far.dat", "2\n0 9223372036854775807\n0 0\n0 9\n9 0\n");
  store(bad.folder / "other.sln", "4 10\n1 2 3 4\n");
  store(bad.folder / "cost.sln", "5 -3\n1 2 3 4 5\n");
  const std::vector<Refusal> cases{
      {{bad / "none.dat"}, 2, {"none.dat", "cannot be opened"}},
      {{bad / "short.dat"}, 2, {"short.dat: line 1: the size is 3, which makes 18 numbers"}},
      {{bad / "far.dat"}, 2, {"far.dat: a permutation's cost may reach 2^62"}},
      {{dat, "--start", bad / "other.sln"},
       2,
       {"other.sln: line 1: a solution of 4 locations; the problem has 5"}},
      {{dat, "--start", bad / "cost.sln"}, 2, {"cost.sln: the cost is -3, but that of the permutation is"}},
      {{dat, "--target", "-1"}, 2, {"a target of -1: no permutation costs less than "}},
      {{dat, "--target", "1.5"}, 2, {"--target: '1.5' is no whole number"}},
      {{dat, "--time", "-1"}, 2, {"--time: '-1': no time is negative"}},
      {{dat, "--generations", "0"}, 2, {"--generations: '0'"}},
      {{dat, "--offset", "0"}, 2, {"--offset: '0'"}},
      {{dat, "--search", "luck"}, 2, {"'luck' is unknown; choose one of auto|pmts|rots|tempering"}},
      {{dat, "--tenure", "long"}, 2, {"--tenure: 'long' is no tenure: fixed:L, or random:LO-HI"}},
      {{dat, "--tenure", "random:9-4"}, 2, {"9 is more than 4"}},
      {{dat, "--tenure", "fixed:3", "--tenures", "3,4"}, 2, {"--tenures and --tenure both"}},
      {{dat, "-o", (bad.folder / "no" / "a.sln").string()}, 2, {"cannot be written"}},
      {{}, 2, {"an instance is missing: `asterism qap INSTANCE.dat`"}},
      {{dat, "--cpus", "0", "--gpus", "0"}, 3, {"no worker"}},
      {{dat, "--cpus", "0"}, 2, {"GPUs alone are to walk, and there is a rank without any"}},
  };
  for (const Refusal& c : cases) bad.refused(one_process(Words{"qap"} + c.arguments), c.status, c.words);
}

TEST_CASE("tenures, walks and islands as they are asked for") {
  const fs::path folder = fresh_folder("options");
  const std::string dat = instance(folder / "a.dat", grid_problem(15));
  CHECK(qap_run({"--search", "pmts", "--islands", "2", "--initials", "3", "--offset", "4", "--tenures", "5,6",
                 dat, "--generations", "2"})["walks"] == 2 * 3 * 4 * 2);
  CHECK(qap_run({"--search", "pmts", "--islands", "1", "--tenure", "random:3-9", dat, "--generations",
                 "2"})["walks"] == 25);
  CHECK(qap_run({"--search", "rots", "--islands", "3", "--walks", "7", "--tenure", "fixed:8", dat,
                 "--generations", "2"})["walks"] == 21);
  const json grown = qap_run(
      {"--search", "pmts", "--iterations", "16", "--max-iterations", "50", dat, "--generations", "8"});
  CHECK(grown["longest_walk"] >= 16);
  CHECK(grown["longest_walk"] <= 50);
}
