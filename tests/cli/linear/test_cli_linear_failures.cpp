// `asterism linear` on machines that are unlike, and where a rank or a disk fails.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../../support/small_disk.hpp"
#include "../bad_inputs.hpp"
#include "linear_runs.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

namespace {

/// Two ranks with the same command, each in a folder of its own.
Words in_two_folders(const fs::path& first, const fs::path& second, const Words& arguments) {
  Words command = on_ranks(1, arguments);
  const Words program = one_process(arguments);
  command.insert(command.end() - static_cast<std::ptrdiff_t>(program.size()), {"-wdir", first.string()});
  return command + Words{":", "-np", "1", "-wdir", second.string()} + program;
}

/// One message, and that of `rank`.
void ends_with_message_of(int rank, const Words& command, const Words& words) {
  CAPTURE(line_of(command));
  const Result result = run(command, 30);
  CHECK(result.status == 2);
  CHECK(result.out.empty());
  has(result.err, words);
  const std::string begin = "asterism: rank " + std::to_string(rank);
  const std::size_t message = result.err.find("asterism: ");
  CHECK_MESSAGE(result.err.substr(message, begin.size()) == begin, result.err);
  CHECK_MESSAGE(result.err.find("asterism: ", message + 1) == std::string::npos, result.err);
}

}  // namespace

TEST_CASE("ranks of one and of two cores: the iterations and the solution of one rank") {
  const fs::path folder = fresh_folder("unlike");
  const auto file = [&](const char* name) { return (folder / name).string(); };
  for (const char* preconditioner : {"diagonal", "chebyshev:2", "mc-ilu0", "ic0"}) {
    CAPTURE(preconditioner);
    const auto with = [&](const char* output, const char* cores) {
      return Words{"linear",           "--json",       "--model",     "ecology-like:300x300",
                   "--preconditioner", preconditioner, "--tolerance", "1e-6",
                   "--max-iterations", "30",           "-o",          file(output),
                   "--cpus",           cores,          "--balance",   "equal"};
    };
    const Result alone = run(one_process(with("one.npy", "1")));
    const Result unlike =
        run(on_ranks(1, with("two.npy", "1")) + Words{":", "-np", "1"} + one_process(with("two.npy", "2")));
    CAPTURE(unlike.err);
    CHECK(unlike.status == alone.status);
    const json one = json::parse(alone.out), two = json::parse(unlike.out);
    CHECK(two["workers"]["cpu"] == 3);
    CHECK(two["blocks"].size() == 3);
    CHECK(two["iterations"] == one["iterations"]);
    CHECK(two["true_residual"] == one["true_residual"]);
    CHECK(load(file("one.npy")) == load(file("two.npy")));
  }
}

TEST_CASE("a rank that cannot read its file, or whose rows are damaged, ends all of them") {
  const fs::path good = fresh_folder("good"), bad = fresh_folder("damaged");
  line_matrix(good / "a.mtx", 3000);
  const auto solve = [&](const Words& more) {
    return in_two_folders(good, bad, Words{"linear", "a.mtx", "--balance", "equal"} + more);
  };
  ends_with_message_of(1, solve({}), {"a.mtx", "cannot be opened"});
  ends_with_message_of(1, solve({"--assume-symmetric"}), {"a.mtx", "cannot be opened"});
  ends_with_message_of(1, solve({"--analyse"}), {"a.mtx", "cannot be opened"});
  fs::copy_file(good / "a.mtx", bad / "a.mtx");
  fs::resize_file(bad / "a.mtx", fs::file_size(bad / "a.mtx") - 200);
  ends_with_message_of(1, solve({"--assume-symmetric"}), {"a.mtx: line ", "the file ends here"});
  line_matrix(bad / "a.mtx", 2000);
  ends_with_message_of(1, solve({"--assume-symmetric"}),
                       {"was given other things than rank 0: \"rows: 2000\" for"});

  std::string lines;
  for (int i = 1; i <= 3000; ++i)
    lines += std::to_string(i) + " " + std::to_string(i) + (i == 2999 ? " 0\n" : " 2\n");
  for (const fs::path& folder : {good, bad}) matrix_file(folder / "a.mtx", "3000 3000 3000", lines);
  ends_with_message_of(1, solve({"--assume-symmetric"}), {"a.mtx: row 2999 has 0 on its diagonal"});
}

TEST_CASE("a full disk: NumPy files before solving, text when it is written; old files stay" *
          disks_can_be_mounted()) {
  const SmallDisk disk("size=128K");
  const fs::path folder = disk.folder();
  for (const char* name : {"x.npy", "x.mtx"})
    for (const int ranks : {1, 2}) {
      CAPTURE(name);
      CAPTURE(ranks);
      const fs::path target = folder / name;
      std::ofstream(target) << "what was there before\n";
      const Words solve{"linear", "--model", "poisson2d:150x150", "--rhs", "random", "--max-iterations",
                        "9",      "-o",      target.string()};
      const Result result = run(ranks == 1 ? one_process(solve) : on_ranks(ranks, solve));
      CHECK(result.status == 3);
      CHECK(result.out.empty());
      has(result.err, {name, "No space left"});
      CHECK(load(target) == "what was there before\n");
      CHECK(temporaries(folder) == 0);
    }
}

TEST_CASE("x as a Matrix Market array: the numbers of the NumPy file, which can be read again") {
  const fs::path folder = fresh_folder("text");
  const auto file = [&](const char* name) { return (folder / name).string(); };
  const std::string a = line_matrix(folder / "a.mtx", 3000);
  Array b({3000, 2});
  b.fill_random(3);
  save(folder / "b.npy", b);
  const Words solve{"linear", "--json", a, file("b.npy"), "--tolerance", "0.5"};
  report_of(one_process(solve + Words{"-o", file("x.npy")}));
  CHECK(report_of(one_process(solve + Words{"-o", file("x.mtx")}))["output"] == file("x.mtx"));
  report_of(on_ranks(2, solve + Words{"-o", file("two.mtx")}));
  CHECK(load(file("two.mtx")) == load(file("x.mtx")));
  const Array x = read_array(file("x.npy"));
  std::ifstream text(file("x.mtx"));
  std::string banner;
  std::getline(text, banner);
  CHECK(banner == "%%MatrixMarket matrix array real general");
  Index rows = 0, columns = 0;
  text >> rows >> columns;
  REQUIRE(rows == 3000);
  REQUIRE(columns == 2);
  std::size_t unlike = 0;
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < 3000; ++i) {
      double value = 0;
      text >> value;
      unlike += value != x.values[2 * i + k] ? 1 : 0;
    }
  CHECK(text);
  CHECK(unlike == 0);
  CHECK(temporaries(folder) == 0);
}

TEST_CASE("a right-hand side of zeros has the solution 0, at once") {
  const fs::path folder = fresh_folder("zero");
  save(folder / "b.npy", Array({900}));
  const std::string x = (folder / "x.npy").string();
  const std::string a = line_matrix(folder / "a.mtx", 900);
  const json j = linear({a, (folder / "b.npy").string(), "-o", x});
  CHECK(j["reason"] == "solved");
  CHECK(j["iterations"] == 0);
  CHECK(j["true_residual"] == 0);
  for (const double value : read_array(x).values) CHECK(value == 0);
}
