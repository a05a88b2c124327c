// `asterism linear --analyse` and `--help`.

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "linear_runs.hpp"
#include "tools/linear/analysis/analysis.hpp"
#include "tools/linear/report.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

/// Of a matrix whose rows have so many colours, of so many rows each, and so large a condition.
tools::MatrixAnalysis analysis_with(int colours, Index rows, double condition) {
  tools::MatrixAnalysis a;
  a.rows = a.cols = colours * rows;
  a.symmetry.emplace();
  a.colours.push_back({1, colours, rows, rows});
  a.plain = a.scaled = {Reason::solved, sparse::SpectrumEstimate{1, condition}};
  return a;
}

}  // namespace

TEST_CASE("recommendations: by condition, rows, and, for GPUs, colours") {
  CHECK(recommended(analysis_with(2, 100'000, 50), true).preconditioner == "diagonal");
  CHECK(recommended(analysis_with(2, 100'000, 1e4), true).preconditioner == "auto");
  CHECK(recommended(analysis_with(2, 9'999, 1e4), false).preconditioner == "auto");
  CHECK(recommended(analysis_with(4, 100'000, 1e4), true).preconditioner == "mc-ilu0");
  CHECK(recommended(analysis_with(4, 9'999, 1e4), true).preconditioner == "chebyshev:4");
  CHECK(recommended(analysis_with(4, 4'999, 1e4), false).preconditioner == "ic0");
  CHECK(recommended(analysis_with(40, 100'000, 1e4), true).preconditioner == "chebyshev:4");
  CHECK(recommended(analysis_with(40, 100'000, 1e4), false).preconditioner == "diagonal");
  tools::MatrixAnalysis indefinite = analysis_with(2, 100, 10);
  indefinite.plain->reason = Reason::indefinite;
  CHECK(recommended(indefinite, false).preconditioner.empty());
}

TEST_CASE("a colour with too few rows for a GPU is told") {
  tools::LinearOutcome outcome;
  outcome.facts.preconditioner.rows_of_colours = {20'000, 9'999};
  outcome.facts.blocks = {{.size = 29'999, .where = Where::cpu}};
  CHECK(warnings_of(outcome).empty());
  outcome.facts.blocks[0].where = Where::cuda;
  REQUIRE(warnings_of(outcome).size() == 1);
  has(warnings_of(outcome)[0],
      {"of 2 colours the smallest has 9999 rows", "fewer than 10000", "chebyshev:4"});
  outcome.facts.preconditioner.rows_of_colours = {20'000, 10'000};
  CHECK(warnings_of(outcome).empty());
}

TEST_CASE("what is told of a grid's matrix") {
  const json j = report_of(one_process({"linear", "--json", "--analyse", "--model", "poisson2d:30x20"}));
  CHECK(j["matrix"] == "poisson2d:30x20");
  CHECK(j["rows"] == 600);
  CHECK(j["columns"] == 600);
  CHECK(j["entries"] == 5 * 600 - 2 * 50);
  CHECK(j["symmetric_pattern"] == true);
  CHECK(j["symmetric_values"] == true);
  CHECK(j["dominant_rows"] == 600);
  CHECK(j["strictly_dominant_rows"] == 2 * 50 - 4);
  CHECK(j["bandwidth"] == json{{"lower", 30}, {"upper", 30}});
  CHECK(j["diagonals"] == 5);
  CHECK(j["entries_per_row"]["least"] == 3);
  CHECK(j["entries_per_row"]["most"] == 5);
  CHECK(j["entries_per_row"]["mean"].get<double>() == doctest::Approx(2900.0 / 600));
  REQUIRE(j["colours"].size() == 3);
  CHECK(j["colours"][0] == json{{"q", 1}, {"colours", 2}, {"fewest_rows", 300}, {"most_rows", 300}});
  CHECK(j["colours"][1]["colours"] >= 5);
  CHECK(j["colours"][2]["colours"] >= 8);
  const double cosines = std::cos(M_PI / 31) + std::cos(M_PI / 21);
  const double condition = (2 + cosines) / (2 - cosines);
  CHECK(j["condition_estimate"].get<double>() == doctest::Approx(condition).epsilon(0.01));
  CHECK(j["scaled_condition_estimate"].get<double>() == doctest::Approx(condition).epsilon(0.01));
  CHECK(j["recommended"] == "auto");
  CHECK(j["reason"].get<std::string>().find("two colours are enough") != std::string::npos);
}

TEST_CASE("conditions that are large" * matrices_are_there()) {
  const json j = report_of(one_process({"linear", "--json", "--analyse", kept_matrix("1138_bus.mtx")}));
  CHECK(j["condition_estimate"] > 5e4);
  CHECK(j["condition_estimate"] < 8.6e6);  // what it is
  CHECK(j["scaled_condition_estimate"] > 1e4);
}

TEST_CASE("what is told to people; matrices that are not for conjugate gradients") {
  const auto folder = fresh_folder("analyse");
  const auto text = [](const Words& words) {
    const Result result = run(one_process(Words{"linear", "--analyse"} + words));
    CAPTURE(result.err);
    CHECK(result.status == 0);
    return result.out;
  };
  has(text({line_matrix(folder / "line.mtx", 9)}),
      {"line.mtx: 9 rows, 25 entries\n", "rows       2 to 3 entries, 2.78 on average\n",
       "symmetry   the pattern is symmetric, so are the values\n",
       "diagonal   9 of 9 rows are dominant, 2 strictly\n",
       "bandwidth  1 below the diagonal, 1 above, 3 diagonals\n", "colours 1  2 of 4 to 5 rows",
       "colours 2  3 of 3 to 3 rows", "colours 3  4 of 2 to 3 rows",
       "advice     --preconditioner diagonal: with it the condition is about 39.9"});  // cot^2(pi / 20)
  has(text({matrix_file(folder / "u.mtx", "2 2 3", "1 1 4\n2 2 4\n1 2 1\n")}),
      {"symmetry   the pattern is not symmetric: 1 entry has no mirror image, 1 pair differ, first (1, 2) = 1 "
       "and (2, 1) = 0\n",
       "advice     the matrix is not symmetric, as conjugate gradients need it: --solver bicgstab and gmres do not\n"});
  has(text({matrix_file(folder / "w.mtx", "2 3 2", "1 1 4\n2 2 4\n")}),
      {"2 rows and 3 columns", "not square"});
  has(text({matrix_file(folder / "p.mtx", "2 2 2", "1 1\n2 2\n", "pattern general")}),
      {"advice     a pattern has no values to solve with; --pattern-values laplacian gives it some\n"});
  has(text({matrix_file(folder / "i.mtx", "2 2 3", "1 1 1\n2 1 2\n2 2 1\n", "real symmetric")}),
      {"condition  none: the matrix is not positive definite\n", "advice     negative curvature"});
}

TEST_CASE("help says what the options do, names preconditioners and models, and has examples") {
  const Result result = run(one_process({"linear", "--help"}));
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  std::string words;  // without line breaks
  std::istringstream lines(result.out);
  for (std::string word; lines >> word;) words += word + " ";
  has(words, {"--solver",
              "--preconditioner",
              "--preconditioner-precision",
              "--shift",
              "--format",
              "--workers",
              "--check-every",
              "--assume-symmetric",
              "--precision",
              "--model",
              "--rhs",
              "--pattern-values",
              "--analyse",
              "--tolerance",
              "--max-iterations",
              "1e-08 in f64, 1e-05 in f32",
              "mc-ilu:P,Q",
              "poisson2d:NXxNY",
              "ecology-like",
              "asterism linear A.mtx -o X.npy",
              "default: ones-solution",
              "Exit status 1"});
}
