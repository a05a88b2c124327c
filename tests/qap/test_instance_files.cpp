// QAPLIB's instances: read, written, and refused where they are wrong.

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "random_instances.hpp"
#include "tools/qap/instance_file.hpp"
#include "tools/qap/solution_file.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;

namespace {

Problem read_text(const std::string& text) {
  const Folder folder;
  store(folder / "a.dat", text);
  return read_instance(folder / "a.dat");
}

void refused(const std::string& text, std::initializer_list<const char*> words) {
  const Folder folder;
  store(folder / "a.dat", text);
  const std::string message = message_of([&] { read_instance(folder / "a.dat"); });
  message_has(message, words);
  CHECK(message.starts_with((folder / "a.dat").string() + ": "));
}

std::filesystem::path instances() {
  const char* const data = std::getenv("ASTERISM_DATA");
  return data != nullptr ? std::filesystem::path(data) / "qaplib" : std::filesystem::path();
}

}  // namespace

TEST_CASE("instances with any white space") {
  const Problem expected{.n = 2, .d = {0, -1, 2, 3}, .f = {4, 5, 6, 7}};
  for (const char* text : {"2\n0 -1\n2 3\n\n4 5\n6 7\n", "2 0 -1 2 3 4 5 6 7",
                           "\n\n\t2\r\n\r\n0\t-1  2\r\n 3 4\n5 +6\n7\n\n \n"}) {
    const Problem problem = read_text(text);
    CHECK(problem.n == expected.n);
    CHECK(problem.d == expected.d);
    CHECK(problem.f == expected.f);
  }
}

TEST_CASE("the smallest instances") {
  CHECK(read_text("0\n").n == 0);
  const Problem one = read_text("1\n5\n7\n");
  CHECK(one.n == 1);
  CHECK(cost_of(one, Permutation{0}) == 35);
}

TEST_CASE("wrong instances are refused with the line") {
  refused("two\n", {"line 1: the size is 'two', which is no whole number"});
  refused("\n\n-3\n", {"line 3: the size is '-3', which is not in 0 to 16384"});
  refused("99999\n", {"line 1: the size is '99999', which is not in 0 to 16384"});
  refused("3000\n1 2 3\n", {"line 1: the size is 3000, which makes 18000000 numbers", "cannot hold them"});
  refused("2\n1 2\n3 x4\n5 6 7 8\n",
          {"line 3: the number of the first matrix is 'x4', which is no whole number"});
  refused("2\n1 2\n3 4\n5 6 7 8.5\n",
          {"line 4: the number of the second matrix is '8.5', which is no whole number"});
  refused("2\n1 2 3 4\n5 99999999999999999999 7 8\n",
          {"line 3", "is '99999999999999999999', which is beyond 64 bits"});
  refused("2\n1 2 3 4\n5 6 7",
          {"line 3: the file ends after 3 of the 2 x 2 = 4 numbers of the second matrix"});
  refused("2\n1 2 3      \n     ", {"the file ends after 3 of the 2 x 2 = 4 numbers of the first matrix"});
  refused("2\n1 2 3 4\n5 6 7 8\n9\n", {"line 4: '9' is too much: the file ends with the second matrix"});
  refused("  \n\n", {"the file has no number"});
  refused("2\n0 4611686018427387904\n0 0\n0 1\n0 0\n", {"may reach 2^62"});
  const Folder folder;
  message_has(message_of([&] { read_instance(folder / "none.dat"); }), {"none.dat", "cannot be opened"});
}

TEST_CASE("an instance that was written is read again") {
  const Folder folder;
  for (const Index n : {0, 1, 2, 9}) {
    const Problem problem = random_problem(n, Kind::asymmetric, Diagonals::any, -99999999, 99999999);
    write_instance(folder / "w.dat", problem);
    const Problem again = read_instance(folder / "w.dat");
    CHECK(again.n == n);
    CHECK(again.d == problem.d);
    CHECK(again.f == problem.f);
  }
}

TEST_CASE("QAPLIB: every instance is read, every solution has its cost" *
          SkipUnless(std::filesystem::exists(instances()), "ASTERISM_DATA names no folder with qaplib/")) {
  std::ifstream table(instances() / "best-known.tsv");
  std::string line;
  std::getline(table, line);
  int count = 0, inverse = 0;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string name, symmetric;
    Index n = 0;
    Cost best = 0;
    words >> name >> n >> symmetric >> best;
    CAPTURE(name);
    const Problem problem = read_instance(instances() / (name + ".dat"));
    CHECK(problem.n == n);
    CHECK((facts_of(problem).symmetry != qap::Symmetry::none) == (symmetric == "yes"));
    ++count;
    if (!std::filesystem::exists(instances() / (name + ".sln"))) continue;
    const Solution solution = read_solution(instances() / (name + ".sln"), problem);
    CHECK(solution.cost == cost_of(problem, solution.permutation));
    CHECK(solution.cost >= best);
    if (solution.convention == Convention::locations) ++inverse;
  }
  CHECK(count > 80);
  CHECK(inverse > 0);
}
