// `asterism linear`: what it solves, in how many iterations, and what it reports.

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "../../support/worst.hpp"
#include "linear_runs.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

namespace {

void within_5_percent(const json& report, double iterations) {
  CHECK(report["iterations"].get<double>() >= 0.95 * iterations);
  CHECK(report["iterations"].get<double>() <= 1.05 * iterations);
}

/// The largest difference of an array's numbers from one.
double error_against_ones(const fs::path& path) {
  Worst worst;
  for (const double value : read_array(path).values) worst.take_in(value - 1);
  return static_cast<double>(worst.value());
}

}  // namespace

TEST_CASE("A times ones is solved by ones; the documented report") {
  const fs::path folder = fresh_folder("linear");
  const std::string x = (folder / "x.npy").string();
  const json j =
      linear({"--model", "poisson2d:100x100", "--preconditioner", "diagonal", "--check-every", "1", "-o", x});
  CHECK(keys(j) == sorted({"solver",
                           "method",
                           "model",
                           "rhs",
                           "precision",
                           "unknowns",
                           "n",
                           "entries",
                           "right_hand_sides",
                           "tolerance",
                           "check_every",
                           "preconditioner",
                           "preconditioner_precision",
                           "shift",
                           "reduced_rows",
                           "formats",
                           "bytes_per_row",
                           "blocks",
                           "bytes_exchanged",
                           "seconds",
                           "solver_seconds",
                           "iterations",
                           "seconds_per_iteration",
                           "restarts",
                           "condition_estimate",
                           "spectrum",
                           "scaled_residual",
                           "true_residual",
                           "residual_history",
                           "error",
                           "workers",
                           "bytes",
                           "output",
                           "reason"}));
  CHECK(j["solver"] == "conjugate gradients");
  CHECK(j["method"] == "cg");
  CHECK(j["model"] == "poisson2d:100x100");
  CHECK(j["rhs"] == "ones-solution");
  CHECK(j["n"] == 10000);
  CHECK(j["unknowns"] == 10000);
  CHECK(j["entries"] == 5 * 10000 - 4 * 100);
  CHECK(j["preconditioner"] == "diagonal");
  CHECK(j["tolerance"] == 1e-8);
  CHECK(j["reason"] == "solved");
  within_5_percent(j, 182);
  CHECK(j["true_residual"] <= 1.1e-8);
  CHECK(j["true_residual"].get<double>() ==
        doctest::Approx(j["scaled_residual"].get<double>()).epsilon(0.01));
  CHECK(j["error"] < 1e-6);
  // cot^2(pi / 202)
  CHECK(j["condition_estimate"].get<double>() ==
        doctest::Approx(std::pow(std::tan(M_PI / 202), -2)).epsilon(0.05));
  CHECK(j["formats"] == json{"stencil"});
  CHECK(j["blocks"][0]["format"] == "stencil");
  CHECK(j["blocks"][0]["first_row"] == 0);
  for (const char* part : {"read", "analyse", "factorise", "arrange", "solve", "write", "total"})
    CHECK(j["seconds"][part] >= 0);
  const json history = j["residual_history"];
  CHECK(history.size() == j["iterations"].get<std::size_t>() + 1);
  CHECK(history.front()[0] == 0);
  CHECK(history.front()[1] == 1);
  CHECK(history.back()[0] == j["iterations"]);
  CHECK(history.back()[1] == j["scaled_residual"]);
  CHECK(read_array(x).shape == std::vector<Index>{10000});
  CHECK(error_against_ones(x) < 1e-5);
  CHECK(temporaries(folder) == 0);
}

TEST_CASE("matrices of the collection: iterations with the diagonal" * matrices_are_there()) {
  struct Known {
    const char* name;
    double iterations;
  };
  for (const Known& known : {Known{"1138_bus", 934}, {"bcsstk16", 196}, {"bcsstk21", 321}, {"ex15", 217}}) {
    CAPTURE(known.name);
    const json j = linear({kept_matrix(std::string(known.name) + ".mtx"), "--preconditioner", "diagonal"});
    CHECK(j["reason"] == "solved");
    within_5_percent(j, known.iterations);
  }
}

TEST_CASE("every preconditioner solves; what is said of colours, levels and factors") {
  const Words problem{"--model", "poisson2d:60x50", "--preconditioner"};
  for (const char* name : {"auto", "none", "diagonal", "polynomial:2", "polynomial-diagonal:3", "chebyshev:4",
                           "ic0", "ilu0", "mc-sgs", "mc-ssor:1.3", "mc-ilu0", "mc-ilu:1,2"}) {
    CAPTURE(name);
    const json j = linear(problem + Words{name});
    CHECK(j["error"] < 1e-5);
    CHECK(j["preconditioner"] == (std::string(name) == "auto" ? "none" : name));
    const std::string text = name;
    CHECK(j.contains("colours") == text.starts_with("mc-"));
    CHECK(j.contains("levels") == (text == "ic0" || text == "ilu0"));
    CHECK(j.contains("fill") == (j.contains("colours") || j.contains("levels")));
  }
  CHECK(linear({"--model", "triangulation-like:30x20"})["preconditioner"] == "diagonal");
  const json automatic = linear({"--model", "ecology-like:30x20"});
  CHECK(automatic["preconditioner"] == "mc-ilu0");
  CHECK(automatic["reduced_rows"] == 300);
  CHECK(automatic["true_residual"] <= 1.1e-8);
  CHECK(linear({"--model", "ecology-like:30x20", "--preconditioner", "mc-sgs"})["reduced_rows"] == 0);
  const json coloured = linear(problem + Words{"mc-ilu0"});
  CHECK(coloured["colours"] == 2);
  CHECK(coloured["rows_of_colours"] == json{1500, 1500});
  CHECK(coloured["fill"] == 1);
  CHECK(coloured["shift"] == 0);
  CHECK(linear(problem + Words{"mc-ilu:1,2"})["fill"] > 1);
}

TEST_CASE("precisions, formats, workers") {
  const fs::path folder = fresh_folder("precisions");
  const std::string x = (folder / "x.npy").string();
  const Words problem{"--model", "poisson2d:60x50", "--preconditioner", "mc-ilu0"};
  const json single = linear(problem + Words{"--precision", "f32", "-o", x});
  CHECK(single["precision"] == "f32");
  CHECK(single["tolerance"] == 1e-5);
  CHECK(read_array(x).shape == std::vector<Index>{3000});
  const json mixed = linear(problem + Words{"--preconditioner-precision", "f32"});
  CHECK(mixed["precision"] == "f64");
  CHECK(mixed["preconditioner_precision"] == "f32");
  CHECK(mixed["true_residual"] <= 1.1e-8);
  for (const char* format : {"csr", "sliced-ell", "diagonals", "stencil"}) {
    CAPTURE(format);
    const json j = linear({"--model", "poisson2d:60x50", "--format", format, "--workers", "all"});
    CHECK(j["formats"] == json{format});
    CHECK(j["error"] < 1e-5);
  }
}

TEST_CASE("right-hand sides: ones, random by the seed, files, several columns") {
  const fs::path folder = fresh_folder("sides");
  const auto file = [&](const char* name) { return (folder / name).string(); };
  const std::string a = line_matrix(folder / "a.mtx", 40);
  linear({a, "--rhs", "ones", "-o", file("ones.npy")});
  const Array ones = read_array(file("ones.npy"));
  for (int i = 1; i <= 40; ++i) CHECK(ones.values[i - 1] == doctest::Approx(i * (41 - i) / 2.0));
  const json random = linear({a, "--rhs", "random", "--seed", "3", "-o", file("r3.npy")});
  CHECK(random["seed"] == 3);
  CHECK(!random.contains("error"));
  linear({a, "--rhs", "random", "--seed", "3", "-o", file("again.npy")});
  linear({a, "--rhs", "random", "--seed", "4", "-o", file("r4.npy")});
  CHECK(load(file("r3.npy")) == load(file("again.npy")));
  CHECK(difference(file("r3.npy"), file("r4.npy")) > 0.1);

  Array b({40, 3});
  for (std::size_t i = 0; i < 40; ++i) b.values[3 * i] = 1, b.values[3 * i + 2] = 2;
  save(folder / "b.npy", b);
  const json j = linear({a, file("b.npy"), "-o", file("x.npy")});
  CHECK(j["right_hand_sides"] == 3);
  CHECK(j["columns"].size() == 3);
  CHECK(j["columns"][1]["iterations"] == 0);  // zero: answered at once
  CHECK(j["iterations"] ==
        j["columns"][0]["iterations"].get<int>() + j["columns"][2]["iterations"].get<int>());
  CHECK(j["right_hand_side"] == file("b.npy"));
  const Array x = read_array(file("x.npy"));
  REQUIRE(x.shape == std::vector<Index>{40, 3});
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(x.values[3 * i] == doctest::Approx(ones.values[i]));
    CHECK(x.values[3 * i + 1] == 0);
    CHECK(x.values[3 * i + 2] == doctest::Approx(2 * ones.values[i]));
  }
  std::string column = "%%MatrixMarket matrix array real general\n40 1\n";
  for (int i = 0; i < 40; ++i) column += "1\n";
  std::ofstream(file("b.mtx")) << column;
  linear({a, file("b.mtx"), "-o", file("m.npy")});
  CHECK(difference(file("ones.npy"), file("m.npy")) < 1e-6);
}

TEST_CASE("ranks: the iterations and the solution of one") {
  const fs::path folder = fresh_folder("ranks");
  const auto file = [&](const char* name) { return (folder / name).string(); };
  const std::string a = line_matrix(folder / "a.mtx", 3000);
  const std::vector<Words> problems{
      {"--model", "poisson2d:60x50"},
      {"--model", "poisson2d:60x50", "--rhs", "random", "--preconditioner", "mc-ilu0"},
      {a, "--tolerance", "1e-10"},
      {a, "--assume-symmetric", "--tolerance", "1e-10"}};
  for (const Words& problem : problems) {
    CAPTURE(line_of(problem));
    const json one = linear(problem + Words{"--check-every", "1", "-o", file("one.npy")});
    const json two = report_of(on_ranks(
        2, Words{"linear", "--json"} + problem + Words{"--check-every", "1", "-o", file("two.npy")}));
    CHECK(two["workers"]["ranks"] == 2);
    CHECK(two["iterations"] == one["iterations"]);
    CHECK(two["residual_history"] == one["residual_history"]);
    CHECK(load(file("one.npy")) == load(file("two.npy")));
    CHECK(two["slices_of_ranks"][0].get<int>() + two["slices_of_ranks"][1].get<int>() == 3000);
  }
}

TEST_CASE("more ranks than grains of rows: some have nothing") {
  const fs::path folder = fresh_folder("few");
  const std::string x = (folder / "x.npy").string();
  const json j = report_of(on_ranks(2, {"linear", "--json", "--model", "poisson2d:3x3", "-o", x}));
  CHECK(j["n"] == 9);
  CHECK(error_against_ones(x) < 1e-8);
}

TEST_CASE("a pattern gets a Laplacian's values") {
  const fs::path folder = fresh_folder("pattern");
  const std::string pattern = matrix_file(folder / "p.mtx", "3 3 2", "2 1\n3 2\n", "pattern symmetric");
  const json j = linear({pattern, "--pattern-values", "laplacian", "-o", (folder / "x.npy").string()});
  CHECK(j["entries"] == 7);
  CHECK(j["error"] < 1e-8);
}

TEST_CASE("the report for people") {
  const Result result =
      run(one_process({"linear", "--model", "poisson2d:40x40", "--preconditioner", "mc-ilu0"}));
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  has(result.out,
      {"problem    A x = b, poisson2d:40x40: 1600 unknowns, 7840 entries in f64, b = A * ones\n",
       "method     conjugate gradients, tolerance 1e-08\n",
       "precond.   mc-ilu0, 2 colours of 800 + 800 rows, fill 1, reduced to 800 rows\n", "storage    ", " bytes a row, 1 block\n",
       "iterations ", " s each\n", "condition  ", " at least, with the preconditioner (eigenvalues from ",
       "residual   ", " computed anew from x, ", "relative to the exact solution of the linear system\n",
       "result     solved\n"});
}

TEST_CASE("breakdown and negative curvature are results, told in words") {
  const fs::path folder = fresh_folder("results");
  // Its second pivot is 1 - 4 = -3.
  const std::string broken =
      matrix_file(folder / "i.mtx", "3 3 5", "1 1 1\n2 1 2\n2 2 1\n3 2 0.5\n3 3 1\n", "real symmetric");
  const std::string x = (folder / "x.npy").string();
  const Words ic0{broken, "--preconditioner", "ic0", "--shift", "none", "-o", x};
  const json j = unsolved_linear(ic0);
  CHECK(j["reason"] == "zero pivot");
  CHECK(j["breakdown"]["row"] == 2);
  CHECK(j["breakdown"]["pivot"] == -3);
  CHECK(!fs::exists(x));
  const Result text = run(one_process(Words{"linear"} + ic0));
  has(text.out,
      {"result     zero pivot: the factorisation ic0 has the pivot -3 in row 2 (numbered from 1, as in the file); "
       "--shift auto tries again with a larger diagonal, or choose another --preconditioner\n",
       "written    nothing, as nothing was solved\n"});
  const json indefinite = unsolved_linear({broken, "--preconditioner", "none", "--rhs", "random"});
  CHECK(indefinite["reason"] == "not positive definite");
  CHECK(
      indefinite["explanation"] ==
      "negative curvature: the matrix is not positive definite; conjugate gradients are for those that are");
  const json limited = unsolved_linear({"--model", "poisson2d:40x40", "--max-iterations", "7"});
  CHECK(limited["reason"] == "iteration limit");
  CHECK(limited["iterations"] == 7);
  CHECK(limited["max_iterations"] == 7);
}

TEST_CASE("matrices that are not symmetric: BiCGStab unless another solver is asked for") {
  const fs::path folder = fresh_folder("unsymmetric");
  const Words flow{"--model", "convection2d:40x30", "--preconditioner", "mc-ilu0"};
  const json chosen = linear(flow);
  CHECK(chosen["method"] == "bicgstab");
  CHECK(chosen["solver_because"] == "A is not symmetric");
  CHECK(chosen["error"] < 1e-6);
  const json gmres = linear(flow + Words{"--solver", "gmres", "--restart", "12"});
  CHECK(gmres["method"] == "gmres");
  CHECK(gmres["restart"] == 12);
  CHECK(!gmres.contains("solver_because"));
  CHECK(gmres["error"] < 1e-6);
  has(run(one_process(Words{"linear"} + flow)).out,
      {"method     BiCGStab, as A is not symmetric, tolerance 1e-08\n"});
  const std::string minus = matrix_file(folder / "m.mtx", "2 2 2", "1 1 4\n2 2 -3\n");
  CHECK(linear({minus})["solver_because"] == "A is not positive definite");
  const std::string turn = matrix_file(folder / "t.mtx", "2 2 2", "1 2 1\n2 1 -1\n");
  const json broken =
      unsolved_linear({turn, "--preconditioner", "none", "--solver", "bicgstab", "--rhs", "ones"});
  CHECK(broken["reason"] == "breakdown");
  CHECK(linear({turn, "--preconditioner", "none", "--solver", "gmres", "--rhs", "ones"})["true_residual"] <
        1e-8);
}

TEST_CASE("a factorisation that breaks down is shifted") {
  const fs::path folder = fresh_folder("shifted");
  // Positive definite, but not what is left when the fill is dropped (Kershaw).
  const std::string a =
      matrix_file(folder / "k.mtx", "4 4 8", "1 1 3\n2 1 -2\n2 2 3\n3 2 -2\n3 3 3\n4 1 2\n4 3 -2\n4 4 3\n",
                  "real symmetric");
  const json j = linear({a, "--preconditioner", "ic0", "--rhs", "random"});
  CHECK(j["shift"] > 0);
  CHECK(unsolved_linear({a, "--preconditioner", "ic0", "--shift", "none"})["reason"] == "zero pivot");
}
