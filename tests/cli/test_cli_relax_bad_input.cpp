// Bad input of `asterism relax`: an exit status, a message, and no output touched.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../support/command_line.hpp"
#include "bad_inputs.hpp"

using namespace asterism;
using namespace asterism::test;

TEST_CASE("bad input: an exit status, a message, no output touched") {
  const BadInputs bad;
  save(bad.folder / "four.npy", random_array({1, 2, 3, 4}));
  const std::string good = bad / "good.npy";
  const std::vector<Refusal> cases{
      {{"--omega", "2"}, 2, {"--omega: omega is 2", "between 0 and 2"}},
      {{"--omega", "0"}, 2, {"--omega: omega is 0", "between 0 and 2"}},
      {{"--omega", "-0.5"}, 2, {"--omega: omega is -0.5"}},
      {{"--omega", "nan"}, 2, {"--omega: 'nan' is not finite"}},
      {{"--omega", "much"}, 2, {"--omega: 'much' is not a number"}},
      {{"--omega", "1.5", "--method", "jacobi"},
       2,
       {"--omega", "--method jacobi knows no such thing", "sor"}},
      {{"--method", "multigrid"}, 2, {"'multigrid'", "jacobi|gauss-seidel|sor|ssor|mlssor|wavefront"}},
      {{"--layout", "diagonal"}, 2, {"--layout", "'diagonal'", "natural|separated"}},
      {{"--layout", "natural", "--method", "jacobi"}, 2, {"--layout", "gauss-seidel, sor and ssor"}},
      {{"--subdomain", "8"}, 2, {"--subdomain", "--method sor", "mlssor"}},
      {{"--layers", "4"}, 2, {"--layers", "--method sor", "mlssor"}},
      {{"--no-alternation"}, 2, {"--no-alternation", "--method sor", "mlssor"}},
      {{"--blocking", "--method", "wavefront"}, 2, {"--blocking", "--method wavefront"}},
      {{"--stripes", "2", "--method", "wavefront"}, 2, {"--stripes", "--method wavefront"}},
      {{"--sweeps-per-task", "2", "--method", "mlssor"}, 2, {"--sweeps-per-task", "--method mlssor"}},
      {{"--method", "mlssor", "--subdomain", "1"}, 2, {"--subdomain"}},
      {{"--method", "mlssor", "--subdomain", "8", "--layers", "5"}, 2, {"5 layers (--layers)"}},
      {{"--gpus", "0", "--method", "wavefront", "--tile", "4x2"},
       2,
       {"4 sweeps x 2 slices", "--tile", "no more sweeps than slices"}},
      {{"--sweeps", "0"}, 2, {"--sweeps: '0'", "from 1 on"}},
      {{"--tolerance", "0"}, 2, {"--tolerance: '0' does not lie between 0 and 1", "--sweeps alone"}},
      {{"--tolerance", "-1e-3"}, 2, {"--tolerance: '-1e-3' does not lie between 0 and 1"}},
      {{"--tolerance", "2"}, 2, {"--tolerance: '2' does not lie between 0 and 1"}},
      {{"--check-every", "0"}, 2, {"--check-every: '0'"}},
      {{"--stripes", "0"}, 2, {"--stripes: '0'"}},
      {{"--grid", "5x5", "--stripes", "99"}, 2, {"99", "--stripes"}},
      {{"--stripes", "4611686018427387904"}, 2, {"4611686018427387904", "--stripes"}},
      {{"--stripes", "4611686018427387904", "--method", "mlssor"}, 2, {"4611686018427387904", "--stripes"}},
      {{"--sweeps-per-task", "4611686018427387904"}, 2, {"--sweeps-per-task", "1048576 at most"}},
      {{"--grid", "536870912x1"}, 3, {"main memory"}},
      {{"--grid", "0x5"}, 2, {"--grid", "0 x 5", "at least 1"}},
      {{"--grid", "2x3x4x5"}, 2, {"--grid", "4 extents"}},
      {{"--grid", "7x8x9"}, 2, {"--method sor works in two dimensions", "7 x 8 x 9", "wavefront"}},
      {{"--grid", "7x8x9", "--method", "mlssor"}, 2, {"--method mlssor works in two dimensions"}},
      {{"--grid", "19"}, 2, {"two dimensions", "19"}},
      {{"--grid", "7x8x9", "--method", "wavefront", "--model", "laplace"},
       2,
       {"--model laplace", "7 x 8 x 9"}},
      {{"--lengths", "1x1x1"}, 2, {"--lengths", "3 lengths", "2 axes"}},
      {{"--lengths", "1x0"}, 2, {"--lengths", "'0'", "positive"}},
      {{"--value-z", "1"}, 2, {"--value-z", "two dimensions", "y (from row to row) and x"}},
      {{"--value-x", "hot"}, 2, {"--value-x: 'hot' is not a number", ".npy"}},
      {{"--value-x", "1", "--model", "laplace"}, 2, {"--model laplace", "--value-x"}},
      {{"--model", "cosine"}, 2, {"'cosine'", "laplace|sine|random"}},
      {{good, "--value-x", bad / "five.npy"}, 2, {"five.npy", "(5,)", "x axis", "40 x 30", "(40,)"}},
      {{good, "--value-y", "1," + (bad / "none.npy")}, 2, {"none.npy", "cannot be opened"}},
      {{good, "--model", "sine"}, 2, {"good.npy", "--model"}},
      {{good, "--grid", "30x40"}, 2, {"good.npy holds 40 x 30", "30 x 40"}},
      {{good, "--initial", bad / "five.npy"}, 2, {"five.npy", "(5,)", "(40, 30)"}},
      {{good, "--initial", bad / "nan.npy"}, 2, {"nan.npy: byte ", "[33, 7] is nan"}},
      {{bad / "nan.npy"}, 2, {"nan.npy: byte ", "[33, 7] is nan"}},
      {{bad / "cube.npy"}, 2, {"two dimensions", "2 x 3 x 4", "wavefront"}},
      {{bad / "four.npy", "--method", "wavefront"}, 2, {"four.npy", "4 dimensions"}},
      {{bad / "none.npy"}, 2, {"none.npy", "cannot be opened"}},
      {{"--grid", "3000000x1000000"}, 3, {"main memory", "more ranks"}},
      {{"--cpus", "0", "--gpus", "0"}, 3, {"no worker"}},
  };
  for (const Refusal& c : cases)
    bad.refused(one_process(Words{"relax", "-o", bad / "old.npy"} + c.arguments), c.status, c.words);
  const std::vector<Refusal> on_two{
      {{"--omega", "2"}, 2, {"omega is 2"}},
      {{bad / "nan.npy"}, 2, {"[33, 7] is nan"}},  // on the last rank only
      {{"--method", "wavefront"}, 2, {"rank"}},
  };
  for (const Refusal& c : on_two)
    bad.refused(on_ranks(2, Words{"relax", "-o", bad / "old.npy"} + c.arguments), c.status, c.words);
}
