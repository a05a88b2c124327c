// QAPLIB's solutions: both conventions of the permutation, written, and refused where they are wrong.

#include <doctest/doctest.h>

#include <string>

#include "../support/files.hpp"
#include "../support/messages.hpp"
#include "random_instances.hpp"
#include "tools/qap/solution_file.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;

namespace {

/// Not symmetric: most permutations and their inverses cost differently.
const Problem problem{.n = 3, .d = {0, 1, 2, 0, 0, 0, 0, 0, 0}, .f = {0, 3, 4, 5, 0, 6, 7, 8, 0}};
const Permutation p{1, 2, 0};

Solution solution_in(const std::string& text) {
  const Folder folder;
  store(folder / "a.sln", text);
  return read_solution(folder / "a.sln", problem);
}

void refused_solution(const std::string& text, std::initializer_list<const char*> words) {
  const std::string message = message_of([&] { solution_in(text); });
  message_has(message, words);
  CHECK(message.find("a.sln: ") != std::string::npos);
}

}  // namespace

TEST_CASE("both conventions are understood and told") {
  const Cost cost = cost_of(problem, p), of_inverse = cost_of(problem, qap::inverse_of(p));
  CHECK(cost == 1 * 6 + 2 * 5);
  CHECK(of_inverse == 1 * 7 + 2 * 8);
  const Solution as_written = solution_in("3 " + std::to_string(cost) + "\n2 3 1\n");
  CHECK(as_written.permutation == p);
  CHECK(as_written.cost == cost);
  CHECK(as_written.convention == Convention::facilities);
  const Solution inverse = solution_in("3\n" + std::to_string(cost) + " 3\n1\n\n2");
  CHECK(inverse.permutation == p);
  CHECK(inverse.convention == Convention::locations);
  CHECK(solution_in("3 " + std::to_string(cost_of(problem, Permutation{1, 0, 2})) + "\n2 1 3").convention ==
        Convention::either);
}

TEST_CASE("wrong solutions are refused") {
  refused_solution("4 16 1 2 3 4\n", {"line 1: a solution of 4 locations; the problem has 3"});
  refused_solution("-1 16\n", {"line 1: the size is '-1'"});
  refused_solution("3\n", {"line 1: the file ends before the cost"});
  refused_solution("3 x\n", {"line 1: the cost is 'x', which is no whole number"});
  refused_solution("3 16\n2 3\n", {"line 2: the file ends after 2 of the 3 numbers of the permutation"});
  refused_solution("3 16\n2 3 2\n", {"line 2: 2 is there twice: no permutation of 1 to 3"});
  refused_solution("3 16\n2 3 0\n", {"line 2: the number of the permutation is '0', which is not in 1 to 3"});
  refused_solution("3 16\n2 3 1 1\n", {"line 2: '1' is too much: the file ends with the permutation"});
  refused_solution("3 15\n2 3 1\n", {"the cost is 15, but that of the permutation is 16, and of its inverse 23"});
  refused_solution(" \n", {"the file has no number"});
}

TEST_CASE("a solution that was written is read again") {
  const Folder folder;
  PermutationFile(folder / "w.sln").write(p, cost_of(problem, p));
  CHECK(load(folder / "w.sln") == "3 16\n2 3 1\n");
  const Solution again = read_solution(folder / "w.sln", problem);
  CHECK(again.permutation == p);
  CHECK(again.convention == Convention::facilities);
  PermutationFile(folder / "w.sln").write({}, 0);
  CHECK(load(folder / "w.sln") == "0 0\n\n");
  CHECK(read_solution(folder / "w.sln", {}).permutation.empty());
}
