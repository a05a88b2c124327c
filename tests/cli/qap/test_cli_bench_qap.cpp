// `asterism bench qap`: its table and its figures.

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "../../qap/random_instances.hpp"
#include "../../support/command_line.hpp"
#include "tools/qap/instance_file.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

TEST_CASE("bench qap: each instance with several seeds") {
  const fs::path folder = fresh_folder("bench_qap");
  tools::write_instance(folder / "one.dat", random_problem(8, Kind::symmetric, Diagonals::zero, 1, 9));
  tools::write_instance(folder / "two.dat", random_problem(9, Kind::asymmetric, Diagonals::any, 1, 9));
  store(folder / "best.tsv", "name\tn\tbest\ntwo\t9\t999999\n");
  const Words arguments{"bench",
                        "qap",
                        (folder / "one.dat").string(),
                        (folder / "two.dat").string(),
                        "--best-known",
                        (folder / "best.tsv").string(),
                        "--repeats",
                        "2",
                        "--generations",
                        "2"};
  const json j = report_of(
      one_process(arguments + Words{"--search", "rots", "--walks", "3", "--islands", "2", "--json"}));
  REQUIRE(j["instances"].size() == 2);
  const json& one = j["instances"][0];
  CHECK(one["instance"] == "one");
  CHECK(one["n"] == 8);
  CHECK(!one.contains("best_known"));
  CHECK(one["runs"].size() == 2);
  CHECK(one["moves_per_second"].get<double>() > 0);
  CHECK(j["instances"][1]["best_known"] == 999999);
  CHECK(j["instances"][1]["reached"] == 2);
  const Result text = run(one_process(arguments));
  CHECK(text.status == 0);
  has(text.out, {"instance", "best known", "RPD [%]", "one             8            -",
                 "two             9       999999", "2/2"});
  Process stopped(one_process(
      {"bench", "qap", (folder / "one.dat").string(), (folder / "two.dat").string(), "--time", "100"}));
  std::this_thread::sleep_for(std::chrono::seconds(2));  // it has begun, even on a busy machine
  stopped.signal(SIGTERM);
  const Result part = stopped.wait(60);
  CHECK(part.status == 0);
  has(part.out, {"one             8            -", "0/1"});
  CHECK(part.out.find("two") == std::string::npos);
  store(folder / "bad.tsv", "name\tbest\none\tmany\n");
  const Result bad = run(one_process(
      {"bench", "qap", (folder / "one.dat").string(), "--best-known", (folder / "bad.tsv").string()}));
  CHECK(bad.status == 2);
  has(bad.err, {"bad.tsv: line 2: 'many' is no whole number"});
}
