// How the values of options are written, and what is said of those that are not.

#include <doctest/doctest.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "../support/messages.hpp"
#include "runtime/error.hpp"
#include "tools/cli/command_line.hpp"
#include "tools/cli/options.hpp"
#include "tools/poisson/options.hpp"

using namespace asterism;
using namespace asterism::tools;
using test::message_has;
using test::message_of;

namespace {

/// The options of `asterism solve ARGUMENTS...`.
CommonOptions parsed(std::vector<const char*> arguments) {
  CLI::App app("test");
  CommonOptions options;
  add_common_options(*app.add_subcommand("solve"), options);
  arguments.insert(arguments.begin(), {"asterism", "solve"});
  const Parsed outcome = parse_command_line(app, static_cast<int>(arguments.size()), arguments.data());
  CHECK(outcome == Parsed::run);
  return options;
}

}  // namespace

TEST_CASE("sizes") {
  CHECK(parse_size("0") == 0);
  CHECK(parse_size("123") == 123);
  CHECK(parse_size("123B") == 123);
  CHECK(parse_size("1K") == 1024);
  CHECK(parse_size("512M") == 512U << 20);
  CHECK(parse_size("4G") == std::size_t{4} << 30);
  CHECK(parse_size("4g") == std::size_t{4} << 30);
  CHECK(parse_size("4GB") == std::size_t{4} << 30);
  CHECK(parse_size("4GiB") == std::size_t{4} << 30);
  CHECK(parse_size("2T") == std::size_t{2} << 40);
  CHECK(parse_size("1.5G") == std::size_t{3} << 29);
  CHECK(parse_size("0.5K") == 512);
  CHECK(parse_size("18446744073709551615") == UINT64_MAX);
  CHECK(parse_size("16777215T") == std::size_t{16777215} << 40);

  for (const char* text : {"", "G", "-1G", "+1G", "x", ".", "1.2.3G", "nan", "inf", "0x10"}) {
    CAPTURE(text);
    message_has(message_of([&] { parse_size(text); }), {"size '", text, "like 512M or 1.5G"});
  }
  for (const char* text : {"4 G", "4X", "4GG", "4KM", "4BB", "1e3"})
    message_has(message_of([&] { parse_size(text); }), {"size '", text, "unknown unit"});
  for (const char* text : {"18446744073709551616", "16777216T", "16777216.0T", "99999999999999999999G"})
    message_has(message_of([&] { parse_size(text); }), {"size '", text, "beyond 64 bits"});
  message_has(message_of([] { parse_size("1.5"); }), {"size '1.5'", "fraction of a byte"});
}

TEST_CASE("grids") {
  using Extents = std::vector<Index>;
  for (const char* text : {"4095x1023", "4095X1023",
                           "4095\xc3\x97"
                           "1023"})
    CHECK(parse_grid(text) == Extents{4095, 1023});
  CHECK(parse_grid("1x1") == Extents{1, 1});
  CHECK(parse_grid("2x3x4") == Extents{2, 3, 4});
  CHECK(parse_grid("2X3\xc3\x97"
                   "4") == Extents{2, 3, 4});
  CHECK(message_of([] { parse_grid("0x5"); }) == "grid is 0 x 5: every extent must be at least 1");
  CHECK(message_of([] { parse_grid("5x-3"); }) == "grid is 5 x -3: every extent must be at least 1");
  CHECK(message_of([] { parse_grid("5x3x0"); }) == "grid is 5 x 3 x 0: every extent must be at least 1");
  message_has(message_of([] { parse_grid("4095"); }), {"grid '4095'", "has no 'x'", "4095x1023"});
  message_has(message_of([] { parse_grid(""); }), {"grid ''", "has no 'x'"});
  message_has(message_of([] { parse_grid("4kx5"); }), {"grid '4kx5'", "'4k' is not a whole number"});
  message_has(message_of([] { parse_grid("x5"); }), {"'' is not a whole number"});
  message_has(message_of([] { parse_grid("5x"); }), {"'' is not a whole number"});
  message_has(message_of([] { parse_grid("5xx5"); }), {"'' is not a whole number"});
  message_has(message_of([] { parse_grid("5 x 5"); }), {"'5 ' is not a whole number"});
  message_has(message_of([] { parse_grid("5.0x5"); }), {"'5.0' is not a whole number"});
  message_has(message_of([] { parse_grid("2x3x4x5"); }), {"grid '2x3x4x5'", "has 4 extents"});
  message_has(message_of([] { parse_grid("99999999999999999999x5"); }),
              {"'99999999999999999999' is too large"});
  message_has(message_of([] { parse_grid("4294967296x4294967296"); }), {"more points than can be counted"});
  message_has(message_of([] { parse_grid("2000000x2000000x2000000"); }), {"more points than can be counted"});
}

TEST_CASE("lengths") {
  using Lengths = std::vector<double>;
  CHECK(parse_lengths("1x2.5") == Lengths{1, 2.5});
  CHECK(parse_lengths("1e-3X.5") == Lengths{1e-3, 0.5});
  CHECK(parse_lengths("3x1x2.5") == Lengths{3, 1, 2.5});
  for (const char* text : {"0x1", "-1x1", "infx1", "nanx1", "1x1x0"})
    message_has(message_of([&] { parse_lengths(text); }), {"lengths '", text, "is not positive and finite"});
  for (const char* text : {"ax1", "x1", "1m x1", "1e999x1", "1x2x"})
    message_has(message_of([&] { parse_lengths(text); }), {"lengths '", text, "is not a number"});
  message_has(message_of([] { parse_lengths("1"); }), {"lengths '1'", "has no 'x'"});
  message_has(message_of([] { parse_lengths("1x2x3x4"); }), {"lengths '1x2x3x4'", "has 4 lengths"});
}

TEST_CASE("conditions") {
  using enum poisson::Condition;
  const auto is = [](const char* text, poisson::Condition lower, poisson::Condition upper) {
    CAPTURE(text);
    const Conditions conditions = parse_conditions(text);
    CHECK(conditions.lower == lower);
    CHECK(conditions.upper == upper);
  };
  is("dirichlet", dirichlet, dirichlet);
  is("n", neumann, neumann);
  is("periodic", periodic, periodic);
  is("dirichlet,neumann", dirichlet, neumann);
  is("n,d", neumann, dirichlet);
  is("p,n", periodic, neumann);  // what goes together is for the solver to say
  for (const char* text : {"", "robin", "Dirichlet", "d,", ",d", "dn", "d n"})
    message_has(message_of([&] { parse_conditions(text); }),
                {"is unknown", "dirichlet, neumann or periodic", "LOWER,UPPER"});
  message_has(message_of([] { parse_conditions("d,n,d"); }),
              {"'d,n,d' has 3 conditions", "LOWER,UPPER", "--bc-y"});
}

TEST_CASE("values given at the ends") {
  const GivenValues one = parse_values("-1.5"), two = parse_values("2,side.npy"),
                    files = parse_values("a.npy");
  CHECK(one.lower.number == -1.5);
  CHECK(one.upper.number == -1.5);
  CHECK(one.lower.file.empty());
  CHECK(two.lower.number == 2);
  CHECK(two.lower.file.empty());
  CHECK(two.upper.file == "side.npy");
  CHECK(files.lower.file == "a.npy");
  CHECK(files.upper.file == "a.npy");
  for (const char* text : {"", "x", "1,", "1,2,3", "side.txt"})
    message_has(message_of([&] { parse_values(text); }), {"is not a number, nor the name of a .npy file"});
  message_has(message_of([] { parse_values("nan"); }), {"'nan' is not finite"});
}

TEST_CASE("the common options reach the runtime") {
  const CommonOptions none = parsed({});
  CHECK(none.runtime.cpus == -1);
  CHECK(none.runtime.scheduler == Options{}.scheduler);
  CHECK(!none.precision);
  CHECK(none.output.empty());
  CHECK(!none.json);
  CHECK(none.verbosity == Verbosity::normal);

  const CommonOptions all =
      parsed({"--cpus",          "3",           "--gpus=0", "--memory", "1.5G",
              "--gpu-memory=4G", "--scheduler", "dmda",     "--spill",  "/tmp",
              "--precision",     "f32",         "-o",       "u.npy",    "--json",
              "--trace",         "t",           "--quiet",  "--seed",   "18446744073709551615"});
  CHECK(all.runtime.cpus == 3);
  CHECK(all.runtime.gpus == 0);
  CHECK(all.runtime.cpu_memory == std::size_t{3} << 29);
  CHECK(all.runtime.gpu_memory == std::size_t{4} << 30);
  CHECK(all.runtime.scheduler == "dmda");
  CHECK(all.runtime.spill == "/tmp");
  CHECK(all.runtime.trace == "t");
  CHECK(all.precision == Precision::f32);
  CHECK(all.output == "u.npy");
  CHECK(all.json);
  CHECK(all.verbosity == Verbosity::quiet);
  CHECK(all.seed == UINT64_MAX);
}

TEST_CASE("wrong command lines name the option and the value") {
  const auto message = [](std::vector<const char*> arguments) {
    return message_of([&] { parsed(arguments); });
  };
  message_has(message({"--cpus", "many"}), {"--cpus: 'many' is not a whole number"});
  message_has(message({"--gpus", "-2"}), {"--gpus: '-2' is not a whole number"});
  message_has(message({"--cpus", "9999999999"}), {"--cpus: '9999999999' is too large"});
  message_has(message({"--cpus"}), {"--cpus: its value is missing; it follows the option: --cpus N"});
  message_has(message({"-o"}), {"--output: its value is missing; it follows the option: --output FILE"});
  message_has(message({"--cpus", "1", "--cpus", "2"}), {"--cpus is given 2 times; give it once"});
  message_has(message({"--gpu-memory", "4X"}), {"--gpu-memory: size '4X' has an unknown unit"});
  message_has(message({"--precision", "f16"}), {"--precision: 'f16' is unknown; choose one of f32|f64"});
  message_has(message({"--seed", "-1"}), {"--seed: '-1' is not a whole number"});
  message_has(message({"--colour"}), {"--colour", "--help"});
  message_has(message({"surplus"}), {"surplus"});
}

TEST_CASE("help explains every option and ends the program well") {
  CLI::App app("test");
  CommonOptions options;
  add_common_options(app, options);
  const std::string help = app.help();
  message_has(help, {"--cpus N", "--gpu-memory SIZE", "powers of 1024", "--precision f32|f64",
                     "-o,--output FILE", "--quiet"});
}
