// Bad input: an exit status, a message, and no output touched.

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "../support/command_line.hpp"
#include "../support/skip.hpp"
#include "bad_inputs.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

TEST_CASE("bad input: an exit status, a message, no output touched") {
  const BadInputs bad;
  const std::string disk = fresh_folder("spill").string(), good = bad / "good.npy";
  const auto poisson = [&](const Words& words) { return Words{"poisson", "-o", bad / "old.npy"} + words; };
  const std::vector<Refusal> cases{
      {{}, 2, {"subcommand", "poisson, relax, linear, qap, info, bench, tune", "--help"}},
      {{"poison"}, 2, {"'poison'", "poisson, relax, linear, qap, info, bench, tune"}},
      {{"bench"}, 2, {"subcommand", "stream, poisson, methods, jacobi, relax, mlssor, tile-model"}},
      {{"bench", "methods", "--columns", "63,,127"}, 2, {"--columns: ''", "from 1 on"}},
      {{"bench", "methods", "--columns", "63,x"}, 2, {"--columns: 'x'", "from 1 on"}},
      {{"bench", "stream", "--chunks", "0"}, 2, {"--chunks: '0'", "from 1 on"}},
      {{"bench", "stream", "--chunk", "5"}, 2, {"--chunk: 5 bytes", "1K"}},
      {{"info", "-o", "x"}, 2, {"-o"}},
      {poisson({"--gird", "5x5"}), 2, {"--gird", "asterism poisson --help"}},
      {poisson({"--grid", "0x5"}), 2, {"--grid", "0 x 5", "at least 1"}},
      {poisson({"--grid", "5"}), 2, {"--grid", "'5'", "like 4095x1023"}},
      {poisson({"--grid", "axb"}), 2, {"--grid", "'a'", "whole number"}},
      {poisson({"--grid", "5000000000x5000000000"}), 2, {"more points than can be counted"}},
      {poisson({"--lengths", "0x1", "--model", "random"}), 2, {"--lengths", "'0'", "positive"}},
      {poisson({"--grid", "2x3x4x5"}), 2, {"--grid", "'2x3x4x5'", "4 extents"}},
      {poisson({"--lengths", "1x1x1"}), 2, {"--lengths", "3 lengths", "2 axes"}},
      {poisson({"--model", "cosine"}), 2, {"--model", "'cosine'", "sine|random"}},
      {poisson({"--mode", "fast"}), 2, {"--mode", "'fast'", "auto|incore|streaming"}},
      {poisson({"--method", "magic"}), 2, {"--method", "'magic'", "fft|gemm"}},
      {poisson({"--method", "gemm", "--grid", "8x9x10"}),
       2,
       {"two dimensions", "8 x 9 x 10", "--method fft"}},
      {poisson({"--method", "gemm", "--mode", "streaming"}), 2, {"cannot stream", "--method fft"}},
      {poisson({good, "--method", "gemm", "--bc", "neumann"}), 2, {"the mean of f is ", "--project-mean"}},
      {poisson({"--slab", "0"}), 2, {"--slab", "'0'", "from 1 on"}},
      {poisson({"--memory", "4X"}), 2, {"--memory", "'4X'", "512M"}},
      {poisson({"--precision", "f16"}), 2, {"--precision", "'f16'", "f32|f64"}},
      {poisson({"--seed", "-1"}), 2, {"--seed", "'-1'"}},
      {poisson({"--scheduler", "fastest"}), 2, {"scheduler 'fastest'", "dmdas"}},
      {poisson({"--cpus", "0", "--gpus", "0"}), 3, {"no worker"}},
      {poisson({bad / "missing.npy"}), 2, {"missing.npy", "cannot be opened"}},
      {poisson({bad.folder.string()}), 2, {"is a folder"}},
      {poisson({bad / "text.npy"}), 2, {"text.npy", "byte 0", "not a .npy file"}},
      {poisson({bad / "truncated.npy"}), 2, {"truncated.npy: byte 97", "the file ends here"}},
      {poisson({bad / "complex.npy"}), 2, {"complex.npy: byte ", "'<c16'", "astype"}},
      {poisson({bad / "fortran.npy"}), 2, {"fortran.npy: byte ", "fortran_order", "ascontiguousarray"}},
      {poisson({bad / "five_axes.npy"}),
       2,
       {"five_axes.npy", "(1, 2, 2, 3, 4)", "2 or 3 dimensions are wanted"}},
      {poisson({bad / "four_axes.npy"}), 2, {"four_axes.npy", "(2, 2, 3, 4)", "one more with --batch"}},
      {poisson({good, "--batch", "40"}), 2, {"good.npy", "(40, 30)", "with --batch 3 or 4 are wanted"}},
      {poisson({bad / "cube.npy", "--batch", "5"}),
       2,
       {"cube.npy", "(2, 3, 4), 2 problems", "--batch says 5"}},
      {poisson({"--batch", "0"}), 2, {"--batch: '0'", "from 1 on"}},
      {poisson({"--batch", "9000000000000000000"}), 2, {"more points than can be counted"}},
      {poisson({good, "--bc", "robin"}), 2, {"--bc: 'robin'", "dirichlet, neumann or periodic"}},
      {poisson({good, "--bc-x", "periodic,neumann"}),
       2,
       {"x axis", "periodic at one end, Neumann at the other"}},
      {poisson({good, "--bc-z", "neumann"}), 2, {"--bc-z", "two dimensions", "y (from row to row) and x"}},
      {poisson({good, "--value-z", "1"}), 2, {"--value-z", "two dimensions"}},
      {poisson({good, "--value-x", "hot"}), 2, {"--value-x: 'hot' is not a number", ".npy"}},
      {poisson({good, "--value-x", "0,1", "--bc-x", "periodic"}), 2, {"x axis, upper end", "periodic"}},
      {poisson({good, "--value-x", bad / "five.npy"}), 2, {"five.npy", "(5,)", "x axis", "40 x 30", "(40,)"}},
      {poisson({good, "--value-y", "1," + (bad / "five.npy")}), 2, {"five.npy", "(5,)", "y axis", "(30,)"}},
      {poisson({bad / "cube.npy", "--value-y", bad / "five.npy"}),
       2,
       {"five.npy", "(5,)", "y axis", "(2, 4)"}},
      {poisson({good, "--value-x", bad / "missing.npy"}), 2, {"missing.npy", "cannot be opened"}},
      {poisson({good, "--bc", "neumann"}), 2, {"the mean of f is ", "--project-mean"}},
      {poisson({good, "--bc", "p", "--slab", "7", "--mode", "streaming"}),
       2,
       {"the mean of f is ", "--project-mean"}},
      {poisson({"--grid", "4x4", "--bc", "p", "--lambda", "32", "--model", "random"}),
       2,
       {"lambda = 32", "eigenvalue"}},
      {poisson({good, "--lambda", "much"}), 2, {"--lambda: 'much' is not a number"}},
      {poisson({good, "--centering", "edge"}), 2, {"--centering", "'edge'", "node|cell"}},
      {poisson({good, "--coordinates", bad / "five.npy"}),
       2,
       {"--coordinates", "five.npy: coordinates: 5 are given", "42"}},
      {poisson({good, "--coordinates", bad / "standing.npy"}),
       2,
       {"--coordinates", "standing.npy: coordinates must increase: number 18 is 16 after 16"}},
      {poisson({"--grid", "40x4", "--lengths", "2x3", "--coordinates", bad / "rising.npy"}),
       2,
       {"--coordinates", "rising.npy: they span 41; --lengths says 2", "give 41"}},
      {poisson({good, "--coordinates", good}), 2, {"good.npy", "(40, 30)", "1 dimension is wanted"}},
      {poisson({bad / "nan.npy"}), 2, {"nan.npy: byte ", "[33, 7] is nan"}},
      {poisson({bad / "nan.npy", "--slab", "7", "--mode", "streaming"}), 2, {"[33, 7] is nan"}},
      {poisson({good, "--model", "sine"}), 2, {"good.npy", "--model"}},
      {poisson({good, "--grid", "30x40"}), 2, {"good.npy holds 40 x 30", "30 x 40"}},
      {poisson({good, "more.npy"}), 2, {"more.npy"}},
      {{"poisson", good, "-o", bad / "none/u.npy"}, 2, {"none", "No such file"}},
      {{"poisson", good, "-o", bad.folder.string()}, 2, {"is a folder"}},
      {{"poisson", good, "-o", bad / "good.npy/u.npy"}, 2, {"good.npy", "ot a"}},
      {{"poisson", good, "-o", "/proc/u.npy"}, 2, {"/proc/u.npy", "cannot be written"}},
      {poisson({good, "--spill", bad / "good.npy/spill"}), 2, {"spill folder", "good.npy/spill"}},
      {poisson({good, "--trace", bad / "good.npy/trace"}), 2, {"trace folder", "good.npy/trace"}},
      {poisson({"--grid", "3000x3000", "--spill", disk, "--memory", "20M", "--slab", "3000"}),
       3,
       {"slab of 3000 planes (68.7 MiB each)", "20.0 MiB", "--slab"}},
      {poisson({"--grid", "3000x3000", "--memory", "20M"}), 3, {"68.7 MiB", "20.0 MiB", "--spill"}},
      {poisson({"--grid", "1000x1000", "--memory", "20M", "--method", "gemm"}),
       3,
       {"matrices", "20.0 MiB", "--method fft"}},
      {poisson({"--grid", "3000000x1000000"}), 3, {"21.8 TiB", "main memory", "more ranks"}},
  };
  for (const Refusal& c : cases) bad.refused(one_process(c.arguments), c.status, c.words);
  CHECK(fs::is_empty(disk));
  bad.refused(one_process(poisson({bad / "nan.npy", "--json"})), 2, {"[33, 7]"});
  bad.refused(one_process(poisson({"--grid", "0x5", "--json", "--quiet"})), 2, {"0 x 5"});
}

TEST_CASE("a GPU where there is none: an exit status, a message, no output touched" *
          SkipUnless(!fs::exists("/dev/nvidia0"), "this machine has a GPU")) {
  const BadInputs bad;
  bad.refused(one_process({"poisson", "-o", bad / "old.npy", "--gpus", "1"}), 3,
              {"1 GPU asked for, none found"});
}

TEST_CASE("bad input under mpirun: all ranks end") {
  const BadInputs bad;
  const std::vector<Refusal> cases{
      {{"--grid", "0x5"}, 2, {"0 x 5"}},
      {{"--scheduler", "fastest"}, 2, {"'fastest'"}},
      {{bad / "truncated.npy"}, 2, {"truncated.npy"}},
      {{bad / "nan.npy", "--slab", "5"}, 2, {"[33, 7] is nan"}},  // on the last rank only
      {{"-o", bad / "none/u.npy"}, 2, {"none"}},                  // on the first rank only
      {{"--grid", "3000x3000", "--memory", "20M"}, 3, {"--spill"}},
      {{bad / "good.npy", "--bc", "neumann"}, 2, {"the mean of f is "}},
      {{"--grid", "9x9", "--bc-x", "d,p"}, 2, {"x axis", "periodic"}},
      {{"--grid", "9x9x9", "--method", "gemm"}, 2, {"two dimensions", "9 x 9 x 9"}},
  };
  for (const Refusal& c : cases) {
    const bool output = c.arguments.front() == "-o";
    const Words target = output ? Words{} : Words{"-o", bad / "old.npy"};
    bad.refused(on_ranks(2, Words{"poisson"} + target + c.arguments), c.status, c.words);
  }
}

TEST_CASE("ranks that are asked for different things say so, once, and end") {
  const BadInputs bad;
  const Words poisson{"poisson", "--grid", "40x30"}, output{"-o", bad / "old.npy"};
  const auto unlike = [&](const Words& first, const Words& second, int status, const Words& words) {
    const Words command = on_ranks(1, first) + Words{":", "-np", "1"} + one_process(second);
    bad.refused(command, status, words);
    const std::string& text = load("stderr.txt");
    const std::size_t message = text.find("asterism: ");
    CHECK_MESSAGE(text.find("asterism: ", message + 1) == std::string::npos, text);
    CHECK_MESSAGE(text.find("asterism (") == std::string::npos, text);
  };
  const char* const differs = "asterism: rank 1 was given other things than rank 0: ";
  unlike(poisson + output, poisson, 2, {differs, "nothing for \"--output: "});
  unlike(poisson + output, poisson + output + Words{"--bc-x", "p"}, 2, {differs, "--bc-x: p"});
  unlike({"relax", "--grid", "40x30"}, {"relax", "--grid", "30x40"}, 2,
         {differs, "\"--grid: 30x40\" for \"--grid: 40x30\""});
  unlike(poisson, {"relax", "--grid", "40x30"}, 2, {differs, "subcommand: relax"});
  unlike(poisson, poisson + Words{"--gird"}, 2, {"asterism: rank 1: ", "--gird"});
  unlike(poisson, {"poisson", bad / "missing.npy"}, 2, {"asterism: rank 1: ", "missing.npy"});
}

TEST_CASE("a spill folder that is not there is an error, and is not made") {
  const BadInputs bad;
  bad.refused(one_process({"poisson", "--grid", "9x9", "--spill", bad / "typo", "-o", bad / "old.npy"}), 2,
              {"spill folder ", "typo: there is no such folder; make it, or name one that is there"});
  CHECK(!fs::exists(bad / "typo"));
}
