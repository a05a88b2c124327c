// What `asterism linear` refuses, and in which words.

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "../bad_inputs.hpp"
#include "linear_runs.hpp"

using namespace asterism;
using namespace asterism::test;

TEST_CASE("bad command lines and files: status, exact words, and the old output stays") {
  const BadInputs bad;
  const auto file = [&](const char* name, const char* sizes, const char* lines,
                        const char* kind = "real general") {
    return matrix_file(bad.folder / name, sizes, lines, kind);
  };
  const std::string good = line_matrix(bad.folder / "line.mtx", 40);
  const std::string wide = file("wide.mtx", "2 3 2", "1 1 1\n2 2 1\n");
  const std::string skew = file("skew.mtx", "3 3 5", "1 1 4\n2 2 4\n3 3 4\n1 3 2\n3 1 7\n");
  const std::string lone = file("lone.mtx", "2 2 3", "1 1 4\n2 2 4\n1 2 1\n");
  const std::string hole = file("hole.mtx", "3 3 2", "1 1 4\n3 3 4\n");
  const std::string bare = file("bare.mtx", "2 2 3", "1 1 4\n2 1 1\n1 2 1\n");
  const std::string minus = file("minus.mtx", "2 2 2", "1 1 4\n2 2 -3\n");
  const std::string huge = file("huge.mtx", "1 1 1", "1 1 1e300\n");
  const std::string nan = file("nan.mtx", "1 1 1", "1 1 nan\n");
  const std::string short_file = file("short.mtx", "2 2 3", "1 1 4.00000\n2 2 4.00000\n");
  const std::string vast = file("vast.mtx", "900000000 900000000 1000000000", "1 1 4\n");
  const std::string beyond = file("beyond.mtx", "99999999999999999999 2 1", "1 1 4\n");
  const std::string outside = file("outside.mtx", "3 3 1", "1 4 4\n");
  const std::string pattern = file("pattern.mtx", "2 2 2", "1 1\n2 2\n", "pattern general");
  const std::string at_one = " (numbered from 1, as in the file)";
  const std::vector<Refusal> cases{
      {{}, 2, {"asterism: there is no matrix; give a file, or --model poisson2d:1000x1000, say\n"}},
      {{good, "--model", "poisson2d:9x9"},
       2,
       {good + " and --model poisson2d:9x9: the matrix is either; leave one away\n"}},
      {{"--model", "poisson2d"},
       2,
       {"--model: matrix \"poisson2d\": sizes are missing, say poisson2d:NXxNY"}},
      {{"--model", "poisson2d:9x9", "--pattern-values", "laplacian"},
       2,
       {"--pattern-values: they are for a file without values"}},
      {{good, "--pattern-values", "laplacian"}, 2, {"--pattern-values: " + good + " has values of its own"}},
      {{good, bad / "five.npy", "--rhs", "ones"},
       2,
       {bad / "five.npy", " and --rhs ones: the right-hand side is either"}},
      {{good, "--analyse"}, 2, {"--analyse solves nothing: there is nothing to write to "}},
      {{good, "--solver", "cgs"}, 2, {"--solver: 'cgs' is unknown; choose one of auto|cg|bicgstab|gmres"}},
      {{good, "--restart", "1000"}, 2, {"--restart: '1000' vectors are too many; give at most 256"}},
      {{skew, "--preconditioner", "ic0"},
       2,
       {"preconditioner ic0 is for symmetric positive definite matrices"}},
      {{"--model", "convection2d:9x9", "--solver", "cg"},
       2,
       {"convection2d:9x9: not symmetric, as conjugate"}},
      {{good, "--preconditioner", "jacobi"},
       2,
       {"--preconditioner: preconditioner jacobi: there is none of that name"}},
      {{good, "--preconditioner", "mc-ssor:2"}, 2, {"OMEGA must be between 0 and 2"}},
      {{good, "--precision", "f32", "--preconditioner-precision", "f64"},
       2,
       {"--preconditioner-precision f64: the arithmetic is in f32 (--precision), and its preconditioner, too\n"}},
      {{good, "--tolerance", "0"}, 2, {"--tolerance: '0' does not lie between 0 and 1, both excluded"}},
      {{good, "--max-iterations", "0"}, 2, {"--max-iterations: '0'", "from 1 on"}},
      {{good, "--format", "ellpack"},
       2,
       {"'ellpack' is unknown; choose one of auto|csr|sliced-ell|diagonals|stencil"}},
      {{skew, "--assume-symmetric", "--format", "stencil"},
       2,
       {"format stencil: the rows are not those of a grid"}},
      {{wide}, 2, {"asterism: " + wide + ": the matrix is 2 x 3: only square ones are solved with\n"}},
      {{skew, "--solver", "cg"},
       2,
       {"asterism: " + skew +
        ": not symmetric, as conjugate gradients need it: the entry (1, 3) is 2, (3, 1) is 7" + at_one +
        "; --solver bicgstab and --solver gmres are for such matrices, --assume-symmetric skips this check\n"}},
      {{lone, "--solver", "cg"}, 2, {"the entry (1, 2) is 1, (2, 1) is 0" + at_one}},
      {{hole}, 2, {"asterism: " + hole + ": row 2 is empty" + at_one + ": the matrix is singular\n"}},
      {{bare}, 2, {bare + ": row 2 has no entry on its diagonal" + at_one}},
      {{minus, "--solver", "cg"},
       2,
       {minus + ": row 2 has -3 on its diagonal" + at_one, "--preconditioner none"}},
      {{huge, "--precision", "f32"},
       2,
       {huge + ": the entry (1, 1) is 1e+300" + at_one + ": too large for f32; use --precision f64"}},
      {{nan}, 2, {nan + ": line 3: ", "nan"}},
      {{short_file}, 2, {short_file + ": line 4: the file ends here, after 2 of the 3 entries announced"}},
      {{vast}, 2, {vast + ": line 2: 1000000000 entries are announced"}},
      {{beyond}, 2, {beyond + ": line 2: ", "99999999999999999999"}},
      {{outside}, 2, {outside + ": line 3: ", "4"}},
      {{pattern},
       2,
       {"asterism: " + pattern +
        ": a pattern, which says where entries are but not which; --pattern-values laplacian gives it "
        "values\n"}},
      {{good, bad / "five.npy"},
       2,
       {bad / "five.npy", ": right-hand sides of 5 rows; " + good + " has 40\n"}},
      {{good, bad / "nan.npy"}, 2, {"nan.npy: byte ", "[33, 7] is nan"}},
      {{good, bad / "none.npy"}, 2, {"none.npy", "cannot be opened"}},
      {{bad / "none.mtx"}, 2, {"none.mtx", "cannot be opened"}},
      {{bad / "text.npy"}, 2, {"text.npy: line 1: "}},
      {{good, "--cpus", "0", "--gpus", "0"}, 3, {"no worker"}},
  };
  bad.refused(one_process({"linear", good, "-o", bad / "none/x.mtx"}), 2,
              {"none/x.mtx: cannot be written: its folder ", "No such file or directory"});
  for (const Refusal& c : cases)
    bad.refused(one_process(Words{"linear", "-o", bad / "old.npy"} + c.arguments), c.status, c.words);
  const std::vector<Refusal> on_two{{{skew, "--solver", "cg"}, 2, {"the entry (1, 3) is 2, (3, 1) is 7"}},
                                    {{hole, "--assume-symmetric"}, 2, {"row 2 is empty"}},
                                    {{good, bad / "five.npy"}, 2, {"right-hand sides of 5 rows"}}};
  for (const Refusal& c : on_two)
    bad.refused(on_ranks(2, Words{"linear", "-o", bad / "old.npy"} + c.arguments), c.status, c.words);
}

TEST_CASE("checks that are skipped, and what is only odd") {
  const auto folder = fresh_folder("odd");
  // Almost symmetric: conjugate gradients get there all the same.
  const std::string skew = matrix_file(folder / "skew.mtx", "2 2 4", "1 1 4\n2 2 4\n1 2 1\n2 1 1.001\n");
  CHECK(run(one_process({"linear", skew, "--assume-symmetric", "--tolerance", "1e-3"})).status == 0);
  const std::string twice = matrix_file(folder / "twice.mtx", "2 2 3", "1 1 1\n2 2 4\n1 1 3\n");
  const Result odd = run(one_process({"linear", twice}));
  CHECK(odd.status == 0);
  CHECK(odd.err == "asterism: warning: 1 entry of the file has the place of another: they were added\n");
  const Result seed = run(one_process({"linear", twice, "--seed", "3", "--quiet"}));
  has(seed.err, {"--seed has no effect: it is of --rhs random"});
}
