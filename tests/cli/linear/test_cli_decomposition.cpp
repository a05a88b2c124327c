// `asterism linear --solver dcg|dbds`: its report, what it finds out, what it refuses; `asterism bench dbds`.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "../bad_inputs.hpp"
#include "linear_runs.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

json on_subdomains(const Words& arguments) {
  return linear(Words{"--model", "poisson2d:32x32", "--rhs", "random", "--solver"} + arguments);
}

}  // namespace

TEST_CASE("dbds: subdomains, factors, memory as predicted, seconds of the parts") {
  const json j = on_subdomains({"dbds", "--subdomains", "4", "--overlap", "64"});
  CHECK(j["method"] == "dbds");
  CHECK(j["subdomains"] == 4);
  CHECK(j["cut"] == "rows");
  CHECK(j["overlap"] == 64);
  CHECK(j["rows_with_overlap"] == 1024 + 6 * 64);
  CHECK(j["factor_precision"] == "f64");
  CHECK(j["factor_entries"] > 4 * 1024);
  CHECK(j["factor_bytes"] == j["factor_bytes_predicted"]);
  CHECK(j["bytes_between_ranks_each_time"] == 0);
  for (const char* part : {"partition", "factorise", "solve"}) CHECK(j["seconds"].contains(part));
  CHECK(j["true_residual"] <= 1.1e-8);
  CHECK(j["reason"] == "solved");
  CHECK(!j.contains("preconditioner"));
}

TEST_CASE("mixed precision, acceleration and a coarse space save memory and iterations") {
  const json plain = on_subdomains({"dbds", "--subdomains", "8", "--overlap", "32"});
  const json mixed = on_subdomains({"dbds", "--subdomains", "8", "--overlap", "32", "--mixed"});
  CHECK(mixed["factor_precision"] == "f32");
  CHECK(std::abs(mixed["iterations"].get<int>() - plain["iterations"].get<int>()) <= 2);
  CHECK(mixed["factor_bytes"][0].get<double>() < 0.75 * plain["factor_bytes"][0].get<double>());
  for (const char* method : {"cg", "bicgstab", "gmres"}) {
    CAPTURE(method);
    const json j = on_subdomains({"dbds", "--subdomains", "8", "--cut", "graph", "--overlap", "2",
                                  "--accelerate", method, "--coarse", "4"});
    CHECK(j["accelerate"] == method);
    CHECK(j["cut"] == "graph");
    CHECK(j["coarse_rows"] == 32);
    CHECK(4 * j["iterations"].get<int>() < plain["iterations"].get<int>());
  }
}

TEST_CASE(
    "dcg has neither factors nor a preconditioner; a matrix that is not symmetric gets general factors") {
  const json j = on_subdomains({"dcg", "--subdomains", "2"});
  CHECK(j["method"] == "dcg");
  CHECK(j["subdomains"] == 2);
  CHECK(!j.contains("factor_bytes"));
  const json k = linear({"--model", "convection2d:20x20", "--solver", "dbds", "--subdomains", "3"});
  CHECK(k["error"] < 1e-6);
  CHECK(k["factor_entries"] > 2 * 3 * 400);
}

TEST_CASE("with two ranks: the same iterations, and what crosses between them") {
  const Words what{"linear", "--json",       "--model", "poisson2d:32x32", "--rhs", "random", "--solver",
                   "dbds",   "--subdomains", "4",       "--overlap",       "64"};
  Words equally = what;
  equally.insert(equally.end(), {"--balance", "equal"});
  const json one = report_of(one_process(what));
  const json two = report_of(on_ranks(2, equally));
  const json by_speed = report_of(on_ranks(2, what));  // which may give one of them all
  for (const json& its : {two, by_speed}) {
    CHECK(its["iterations"] == one["iterations"]);
    CHECK(its["residual_history"] == one["residual_history"]);
    CHECK(its["factor_bytes"].size() == 2);
  }
  CHECK(two["bytes_between_ranks_each_time"] == 2 * 64 * 8);
}

TEST_CASE("--analyse --solver dbds tells rho, and what theory says where it knows") {
  const json j = report_of(one_process({"linear", "--json", "--analyse", "--model", "poisson2d:24x24",
                                        "--solver", "dbds", "--subdomains", "24"}));
  CHECK(j["subdomains"] == 24);
  CHECK(std::abs(j["rho"].get<double>() - j["rho_known"].get<double>()) < 1e-4);
  CHECK(j["rho_known"].get<double>() == doctest::Approx(0.984353).epsilon(1e-6));
  const json other = report_of(one_process({"linear", "--json", "--analyse", "--model", "poisson2d:24x24",
                                            "--solver", "dbds", "--subdomains", "5", "--overlap", "24"}));
  CHECK(!other.contains("rho_known"));
  CHECK(other["rho"] < j["rho"]);
}

TEST_CASE("what does not go together, and what cannot be cut or factorised, is refused") {
  const BadInputs bad;
  const std::string good = line_matrix(bad.folder / "line.mtx", 40);
  const std::string minus = matrix_file(bad.folder / "minus.mtx", "3 3 3", "1 1 4\n2 2 -3\n3 3 4\n");
  const std::string zero = matrix_file(bad.folder / "zero.mtx", "3 3 4", "1 1 4\n1 2 1\n3 2 1\n2 3 1\n");
  const std::vector<std::pair<Words, Words>> cases{
      {{good, "--subdomains", "4"}, {"--subdomains: it is of --solver dcg and dbds"}},
      {{good, "--solver", "cg", "--mixed"}, {"--mixed: it is of --solver"}},
      {{good, "--solver", "dbds", "--subdomains", "41"}, {"41 subdomains of 40 rows"}},
      {{good, "--solver", "dbds", "--subdomains", "4", "--overlap", "11"}, {"overlap of 11 rows", "has 10"}},
      {{good, "--solver", "dcg", "--coarse", "4"}, {"--solver dcg has no factors"}},
      {{good, "--solver", "dbds", "--preconditioner", "ic0"}, {"--preconditioner ic0", "leave it away"}},
      {{good, "--solver", "dbds", "--mixed", "--precision", "f32"}, {"--mixed: the arithmetic is in f32"}},
      {{minus, "--solver", "dbds", "--subdomains", "3", "--accelerate", "cg"},
       {"subdomain 1", "not positive definite", "row 1", "-3"}},
      {{zero, "--solver", "dbds", "--subdomains", "3"}, {"subdomain 1", "singular", "row 1"}},
      {{good, "--solver", "dbds", "--overlap", "-1"}, {"--overlap"}},
  };
  for (const auto& [arguments, words] : cases) {
    CAPTURE(arguments);
    const Result result = run(one_process(Words{"linear"} + arguments));
    CHECK(result.status == 2);
    for (const std::string& word : words) {
      CAPTURE(result.err);
      CAPTURE(word);
      CHECK(result.err.find(word) != std::string::npos);
    }
  }
}

TEST_CASE("bench dbds: all methods in one table") {
  const json j = report_of(
      one_process({"bench", "dbds", "--model", "poisson2d:24x24", "--subdomains", "2,4", "--json"}));
  REQUIRE(j["runs"].size() == 3 + 8 + 2);
  for (const json& run : j["runs"]) {
    CAPTURE(run.dump());
    CHECK(run["reason"] == "solved");
    CHECK(run["total_seconds"] > 0);
  }
  CHECK(j["runs"][2]["method"] == "direct solver alone");
  CHECK(j["runs"][2]["iterations"] <= 2);
}
