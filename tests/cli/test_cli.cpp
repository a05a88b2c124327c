// The command-line program as its users meet it: options, reports, exit statuses, and what it leaves behind.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "../support/command_line.hpp"
#include "../support/small_disk.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

TEST_CASE("both models, both precisions: the documented report and nothing else") {
  for (const std::string model : {"sine", "random"})
    for (const std::string precision : {"f32", "f64"}) {
      CAPTURE(model);
      CAPTURE(precision);
      const json j = report_of(
          on_all_cores({"poisson", "--json", "--model", model, "--precision", precision, "--grid", "61x83"}));
      std::vector<std::string> documented{
          "solver", "method", "mode",      "dimensions", "grid",    "lengths",        "conditions",
          "values", "model",  "centering", "lambda",     "seconds", "solver_seconds", "precision",
          "error",  "slabs",  "unknowns",  "workers",    "bytes",   "scaled_residual", "reason"};
      if (model == "random") documented.push_back("seed");
      CHECK(keys(j) == sorted(documented));
      CHECK(j["model"] == model);
      CHECK(j["lengths"] == (model == "sine" ? json{2, 2} : json{1, 1}));
      if (model == "random") CHECK(j["seed"] == 1);
      CHECK(j["mode"] == "incore");
      CHECK(j["dimensions"] == 2);
      CHECK(j["grid"] == json{61, 83});
      CHECK(j["conditions"] == json{{"y", {"dirichlet", "dirichlet"}}, {"x", {"dirichlet", "dirichlet"}}});
      CHECK(j["centering"] == "node");
      CHECK(j["lambda"] == 0);
      CHECK(j["precision"] == precision);
      CHECK(j["unknowns"] == 61 * 83);
      double sum = 0;
      for (const char* part : {"setup", "allocate", "fill", "solve", "check"}) {
        CHECK(j["seconds"][part] >= 0);
        sum += j["seconds"][part].get<double>();
      }
      CHECK(j["seconds"]["total"].get<double>() == doctest::Approx(sum));
      CHECK(j["scaled_residual"].get<double>() <= 2 * (precision == "f32" ? eps32 : eps));
      CHECK(j["error"].get<double>() < (model == "sine" ? 1e-2 : precision == "f32" ? 1e-5 : 1e-13));
      CHECK(keys(j["workers"]) == sorted({"cpu", "cuda", "ranks"}));
      CHECK(j["workers"]["cpu"] >= 1);
      CHECK(j["workers"]["ranks"] == 1);
      CHECK(
          j["bytes"] ==
          json{{"to_device", 0}, {"from_device", 0}, {"to_disk", 0}, {"from_disk", 0}, {"between_ranks", 0}});
      CHECK(j["slabs"] >= 1);
      CHECK(j["reason"] == "solved");
    }
}

TEST_CASE("options of the method reach the solver") {
  CHECK(poisson({"--grid", "61x83", "--slab", "7"})["slabs"] == 9);
  CHECK(poisson({"--grid", "61x83", "--slab", "1", "--mode", "streaming"})["mode"] == "streaming");
  CHECK(poisson({"--grid", "1x1", "--model", "random"})["unknowns"] == 1);
  const json unchecked = poisson({"--grid", "61x83", "--no-check"});
  CHECK(!unchecked.contains("scaled_residual"));
  CHECK(!unchecked.contains("error"));
  CHECK(!unchecked["seconds"].contains("check"));
  CHECK(poisson({"--grid", "61x83", "--cpus", "1"})["workers"]["cpu"] == 1);
  const auto error = [](const char* seed) {
    return poisson({"--model", "random", "--grid", "61x83", "--cpus", "1", "--seed", seed})["error"]
        .get<double>();
  };
  CHECK(error("1") == error("1"));
  CHECK(error("1") != error("2"));
}

TEST_CASE("the report for people, and silence") {
  const Result text = run(one_process({"poisson", "--grid", "61x83", "--slab", "61"}));
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  has(text.out,
      {"problem    u_xx + u_yy = f, model sine: 61 x 83 unknowns", "in f64", "incore: 1 slab of 61 rows",
       "seconds    setup ", "residual ", "error ", "result     solved\n"});
  CHECK(text.out.find("conditions") == std::string::npos);
  const Result solid =
      run(one_process({"poisson", "--grid", "8x9x10", "--slab", "4", "--batch", "2", "--bc-y", "d,n",
                       "--bc-x", "p", "--centering", "cell", "--lambda", "-1.5"}));
  CHECK(solid.status == 0);
  has(solid.out, {"problem    u_xx + u_yy + u_zz - 1.5 u = f, model sine: 2 problems of 8 x 9 x 10 unknowns",
                  "conditions z dirichlet, y dirichlet to neumann, x periodic; cell-centred\n",
                  "incore: 4 slabs of 4 planes"});
  const Result quiet = run(one_process({"poisson", "--grid", "61x83", "--quiet"}));
  CHECK(quiet.status == 0);
  CHECK((quiet.out + quiet.err).empty());
}

TEST_CASE("options without effect say so, and why, and nothing else is said") {
  const auto said = [](const Words& options) {
    const Result result = run(one_process(Words{"poisson", "--quiet", "--grid", "9x9"} + options));
    CHECK(result.status == 0);
    CHECK(result.out.empty());
    return result.err;
  };
  const std::string warning = "asterism: warning: ";
  CHECK(said({"--seed", "3"}) == warning + "--seed has no effect: only --model random draws numbers\n");
  CHECK(said({"--seed", "3", "--model", "random"}).empty());
  CHECK(said({"--gpu-memory", "1G"}) == warning + "--gpu-memory has no effect: there is no GPU worker\n");
  has(said({"--project-mean"}), {warning + "--project-mean has no effect: "});
  has(said({"--project-mean", "--bc", "n", "--lambda", "-1"}), {warning + "--project-mean has no effect: "});
  CHECK(said({"--project-mean", "--bc", "n"}).empty());
  has(said({"--bc", "n", "--bc-x", "d", "--bc-y", "d"}), {warning + "--bc has no effect: "});
  CHECK(said({"--bc", "n", "--bc-x", "d"}).empty());
  const fs::path folder = fresh_folder("warned");
  save(folder / "f.npy", random_array({4, 5}));
  const Result file = run(one_process({"poisson", "--quiet", (folder / "f.npy").string(), "--seed", "3"}));
  CHECK(file.err == warning + "--seed has no effect: f comes from a file\n");
  const Result ranks = run(on_ranks(2, {"poisson", "--quiet", "--grid", "9x9", "--seed", "3"}));
  CHECK(ranks.err == warning + "--seed has no effect: only --model random draws numbers\n");
}

TEST_CASE("not a number has no sign") {
  const fs::path folder = fresh_folder("huge");
  Array f({8, 8});
  std::fill(f.values.begin(), f.values.end(), 1e308);
  f.values[3] = -1e308;
  save(folder / "f.npy", f);
  const Result text = run(one_process({"poisson", (folder / "f.npy").string(), "--lengths", "1e9x1e9"}));
  CHECK(text.status == 1);
  CHECK(text.out.find("-nan") == std::string::npos);
}

namespace {

/// A .npy file by hand, with whatever header.
void save_raw(const fs::path& path, const std::string& header, std::size_t bytes) {
  std::string text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  text.append(bytes, '\0');
  std::ofstream(path, std::ios::binary) << text;
}

/// Bad files in a folder, and an output that is there already.
struct BadInputs {
  fs::path folder = fresh_folder("bad");
  std::string old = "what was there before\n";

  BadInputs() {
    std::ofstream(folder / "old.npy") << old;
    Array f = random_array({40, 30});
    save(folder / "good.npy", f);
    save(folder / "cube.npy", random_array({2, 3, 4}));
    save(folder / "five.npy", random_array({5}));
    save(folder / "four_axes.npy", random_array({2, 2, 3, 4}));
    save(folder / "five_axes.npy", random_array({1, 2, 2, 3, 4}));
    f.values[33 * 30 + 7] = std::nan("");
    save(folder / "nan.npy", f);
    std::fill(f.values.begin(), f.values.end(), 1e308);
    save(folder / "huge.npy", f);
    Array line({42});
    for (std::size_t i = 0; i < 42; ++i) line.values[i] = static_cast<double>(i == 17 ? 16 : i);
    save(folder / "standing.npy", line);
    line.values[17] = 17;
    save(folder / "rising.npy", line);
    fs::copy_file(folder / "good.npy", folder / "truncated.npy");
    fs::resize_file(folder / "truncated.npy", fs::file_size(folder / "good.npy") - 5);
    save_raw(folder / "complex.npy", "{'descr': '<c16', 'fortran_order': False, 'shape': (2, 3), }\n", 96);
    save_raw(folder / "fortran.npy", "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }\n", 48);
    std::ofstream(folder / "text.npy") << "1 2 3\n";
  }

  [[nodiscard]] std::string operator/(const char* name) const { return (folder / name).string(); }

  /// Runs, expects the status and the words, and looks at what it left.
  void refused(const Words& command, int status, const Words& words) const {
    CAPTURE(line_of(command));
    const Result result = run(command, 30);
    CHECK(result.status == status);
    CHECK(result.out.empty());
    has(result.err, words);
    CHECK(load(folder / "old.npy") == old);
    CHECK(temporaries(folder) == 0);
  }
};

struct Case {
  Words arguments;
  int status;
  Words words;
};

}  // namespace

TEST_CASE("bad input: an exit status, a message, no output touched") {
  const BadInputs bad;
  const std::string disk = fresh_folder("spill").string(), good = bad / "good.npy";
  const auto poisson = [&](const Words& words) { return Words{"poisson", "-o", bad / "old.npy"} + words; };
  const std::vector<Case> cases{
      {{}, 2, {"subcommand", "poisson, relax, info, bench, tune", "--help"}},
      {{"poison"}, 2, {"'poison'", "poisson, relax, info, bench, tune"}},
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
  for (const Case& c : cases) bad.refused(one_process(c.arguments), c.status, c.words);
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
  const std::vector<Case> cases{
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
  for (const Case& c : cases) {
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

TEST_CASE("a breakdown is a result: reported, and no output touched") {
  const BadInputs bad;
  const Result result = run(one_process({"poisson", bad / "huge.npy", "-o", bad / "old.npy", "--json"}));
  CHECK(result.status == 1);
  const json j = json::parse(result.out);
  CHECK(j["reason"] == "not finite");
  CHECK(j["scaled_residual"].is_null());
  has(run(one_process({"poisson", bad / "huge.npy"})).out,
      {"residual   nan scaled, nan eps\n"});  // not "-nan"
  CHECK(load(bad.folder / "old.npy") == bad.old);
  CHECK(temporaries(bad.folder) == 0);
}

TEST_CASE("an interrupted run leaves the old output and nothing else") {
  const BadInputs bad;
  for (const int signal : {SIGINT, SIGTERM}) {
    Process process(
        one_process({"poisson", "--grid", "6000x6000", "--model", "random", "-o", bad / "old.npy"}));
    for (int i = 0; i < 2000 && temporaries(bad.folder) == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    REQUIRE(temporaries(bad.folder) == 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    process.signal(signal);
    const Result result = process.wait(20);
    CHECK(result.status == 128 + signal);
    CHECK(temporaries(bad.folder) == 0);
    CHECK(load(bad.folder / "old.npy") == bad.old);
  }
}

TEST_CASE("an interrupted run leaves nothing of what it spilled") {
  const fs::path disk = fresh_folder("spill"), folder = fresh_folder("spilled-out");
  const auto files = [&] {
    int count = 0;
    std::error_code changing;
    for (fs::recursive_directory_iterator file(disk, changing), end; !changing && file != end;
         file.increment(changing))
      ++count;
    return count;
  };
  for (const int signal : {SIGINT, SIGTERM, SIGABRT}) {
    Process process(one_process({"poisson", "--grid", "6000x6000", "--memory", "32M", "--spill",
                                 disk.string(), "-o", (folder / "u.npy").string()}));
    for (int i = 0; i < 4000 && files() < 8; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(files() >= 8);  // the run's folder, its lock, and tiles
    process.signal(signal);
    CHECK(process.wait(20).status == 128 + signal);
    CHECK(fs::is_empty(disk));
    CHECK(fs::is_empty(folder));
  }
}

TEST_CASE("a spill disk that others fill while tiles are evicted to it is told, and nothing is left" *
          disks_can_be_mounted()) {
  const SmallDisk disk("size=120M");
  const BadInputs bad;
  Process process(one_process({"poisson", "--grid", "3000x3000", "--model", "random", "--memory", "32M",
                               "--spill", disk.folder(), "-o", bad / "old.npy"}));
  for (int i = 0; i < 4000 && temporaries(bad.folder) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  disk.fill();
  const Result result = process.wait(30);
  CHECK(result.status == 3);
  CHECK(result.out.empty());
  has(result.err,
      {"asterism: spill folder " + disk.folder() + ": no room for ", "No space left", "larger disk"});
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  // What filled the disk is all that is there.
  CHECK(std::distance(fs::directory_iterator(disk.folder()), fs::directory_iterator()) == 1);
  CHECK(temporaries(bad.folder) == 0);
  CHECK(load(bad.folder / "old.npy") == bad.old);
}

TEST_CASE("a trace that cannot be written is the machine's fault, found before solving") {
  const BadInputs bad;
  const Words solve{"poisson", "--grid", "99x99", "-o", bad / "old.npy", "--trace"};
  bad.refused(one_process(solve + Words{"/proc"}), 3, {"asterism: trace folder /proc: cannot be written: "});
}

TEST_CASE("a full disk for the trace is found before solving" * disks_can_be_mounted()) {
  const BadInputs bad;
  const Words solve{"poisson", "--grid", "99x99", "-o", bad / "old.npy", "--trace"};
  const SmallDisk disk("size=4M");
  disk.fill();
  bad.refused(one_process(solve + Words{disk.folder()}), 3,
              {"trace folder " + disk.folder(), "No space left"});
}

TEST_CASE("a disk that the trace fills is told in the status, and the result is written all the same" *
          disks_can_be_mounted()) {
  const SmallDisk disk("size=160K");
  const fs::path folder = fresh_folder("traced");
  const Result result = run(one_process({"poisson", "--grid", "999x999", "--quiet", "-o",
                                         (folder / "u.npy").string(), "--trace", disk.folder()}));
  CHECK(result.status == 3);
  has(result.err, {"asterism: trace: trace folder " + disk.folder() + ": cannot be written: No space left"});
  CHECK(fs::exists(folder / "u.npy"));
}

TEST_CASE("a spill folder that is not there is an error, and is not made") {
  const BadInputs bad;
  bad.refused(one_process({"poisson", "--grid", "9x9", "--spill", bad / "typo", "-o", bad / "old.npy"}), 2,
              {"spill folder ", "typo: there is no such folder; make it, or name one that is there"});
  CHECK(!fs::exists(bad / "typo"));
}

TEST_CASE("the output may be the input, which is told") {
  const fs::path folder = fresh_folder("over");
  const std::string f = (folder / "f.npy").string(), u = (folder / "u.npy").string();
  const fs::path link = folder / "link.npy";
  fs::create_symlink("f.npy", link);
  for (const Words& solve :
       {Words{"poisson", "--mode", "streaming", "--slab", "7"}, Words{"relax", "--tolerance", "1e-3"},
        Words{"relax", "--sweeps", "20", "--initial", f}}) {
    save(f, random_array({60, 50}));
    const Result apart = run(one_process(solve + Words{f, "-o", u, "--cpus", "1"}));
    CHECK(apart.status == 0);
    CHECK(apart.err.empty());
    const Result over = run(one_process(solve + Words{f, "-o", link.string(), "--cpus", "1"}));
    CHECK(over.status == 0);
    has(over.err, {"asterism: " + f + " is read and, when u is complete, replaced by it\n"});
    CHECK(load(f) == load(u));
    CHECK(fs::is_symlink(link));
    save(f, random_array({60, 50}));
    CHECK(run(one_process(solve + Words{f, "-o", f, "--cpus", "1", "--quiet"})).err.empty());
    CHECK(load(f) == load(u));
  }
}

TEST_CASE("info shows the machine") {
  const json j = report_of(on_all_cores({"info", "--json"}));
  CHECK(keys(j) == sorted({"host", "features", "workers", "memories", "links", "scheduler", "schedulers"}));
  CHECK(!j["workers"].empty());
  CHECK(j["workers"][0]["kind"] == "cpu");
  CHECK(j["memories"][0]["bytes"] > 0);
  CHECK(std::count(j["schedulers"].begin(), j["schedulers"].end(), j["scheduler"]) == 1);
  const Result text = run(one_process({"info", "--cpus", "1"}));
  CHECK(text.status == 0);
  has(text.out, {"StarPU 1.", "workers\n  CPU 0", "memories\n", "schedulers", "dmdas"});
}

TEST_CASE("bench measures beside the machine's ceilings") {
  const json solver =
      report_of(one_process({"bench", "poisson", "--grid", "255x255", "--repeats", "1", "--json"}));
  for (const char* figure :
       {"host_copy", "allocate_seconds", "solve_seconds", "gcells_per_second", "bytes_per_cell"})
    CHECK(solver[figure] > 0);
  CHECK(solver["scaled_residual_eps"] < 2);
  CHECK(solver["grid"] == json{255, 255});
  CHECK(solver["model"] == "random");
  CHECK(solver["seed"] == 1);
  const json solid =
      report_of(one_process({"bench", "poisson", "--grid", "31x32x33", "--bc-x", "n", "--bc-y", "p",
                             "--centering", "cell", "--batch", "2", "--repeats", "1", "--json"}));
  CHECK(solid["grid"] == json{31, 32, 33});
  CHECK(solid["batch"] == 2);
  CHECK(solid["scaled_residual_eps"] < 4);
  const json dense = report_of(one_process(
      {"bench", "poisson", "--grid", "63x66", "--method", "gemm", "--resident", "--repeats", "1", "--json"}));
  CHECK(dense["method"] == "gemm");
  CHECK(solver["method"] == "fft");
  CHECK(dense["solve_seconds"] > 0);
  CHECK(dense["scaled_residual_eps"] < 4);
  const json stream = report_of(one_process({"bench", "stream", "--chunk", "1M", "--chunks", "4", "--json"}));
  for (const char* figure : {"host_copy", "tasks_to_device", "tasks_both_ways"}) CHECK(stream[figure] > 0);
  const Result text = run(one_process({"bench", "stream", "--chunk", "1M", "--chunks", "4"}));
  CHECK(text.status == 0);
  has(text.out, {"GB/s", "4 chunks of 1.0 MiB"});
}

TEST_CASE("bench compares the methods on lines with good FFTs and poor ones") {
  const Words command{"bench", "methods", "--columns", "15,36", "--rows", "9", "--repeats", "1"};
  const json j = report_of(one_process(command + Words{"--precision", "f32", "--json"}));
  CHECK(keys(j) == sorted({"precision", "workers", "lengths", "gemm_faster_up_to", "verdict"}));
  CHECK(j["precision"] == "f32");
  REQUIRE(j["lengths"].size() == 2);
  for (const json& length : j["lengths"]) {
    CHECK(keys(length) == sorted({"columns", "rows", "intervals", "good_fft", "fft_seconds", "gemm_seconds",
                                  "ratio", "fft_residual_eps", "gemm_residual_eps"}));
    const auto number = [&](const char* key) { return length[key].get<double>(); };
    CHECK(number("fft_seconds") > 0);
    CHECK(number("ratio") == doctest::Approx(number("fft_seconds") / number("gemm_seconds")));
    CHECK(number("fft_residual_eps") < 4);
    CHECK(number("gemm_residual_eps") < 4);
    CHECK(length["rows"] == 9);
    // Only one length of each kind: gemm was faster up to it, or never.
    const bool good = length["good_fft"];
    const json faster = j["gemm_faster_up_to"][good ? "good_fft" : "poor_fft"];
    CHECK((number("ratio") > 1 ? faster == length["columns"] : faster.is_null()));
  }
  CHECK(j["lengths"][0]["columns"] == 15);
  CHECK(j["lengths"][0]["intervals"] == "2^4");
  CHECK(j["lengths"][0]["good_fft"] == true);
  CHECK(j["lengths"][1]["columns"] == 36);
  CHECK(j["lengths"][1]["intervals"] == "37");
  CHECK(j["lengths"][1]["good_fft"] == false);
  const json smooth = report_of(
      one_process({"bench", "methods", "--columns", "15,16,59", "--rows", "9", "--repeats", "1", "--json"}));
  CHECK(smooth["precision"] == "f64");
  CHECK(smooth["lengths"][1]["intervals"] == "17");
  CHECK(smooth["lengths"][2]["intervals"] == "2^2 * 3 * 5");
  CHECK(smooth["gemm_faster_up_to"]["poor_fft"].is_null());
  has(smooth["verdict"], {"gemm was ", "not measured where it is poor."});
  const Result text = run(one_process(command));
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  has(text.out, {"9 x n unknowns in f64", "fft / gemm", "15  2^4 ", "36  37 ", "gemm was "});
}

TEST_CASE("help explains every option of every subcommand") {
  for (const Words& subcommand : {Words{},
                                  {"poisson"},
                                  {"info"},
                                  {"bench"},
                                  {"bench", "stream"},
                                  {"bench", "poisson"},
                                  {"bench", "methods"},
                                  {"relax"},
                                  {"bench", "jacobi"},
                                  {"bench", "relax"}}) {
    const Result result = run(one_process(subcommand + Words{"--help"}));
    CHECK(result.status == 0);
    CHECK(result.err.empty());
    std::istringstream lines(result.out);
    int options = 0;
    for (std::string line, next; std::getline(lines, line);) {
      CHECK(line.size() <= 110);
      if (!line.starts_with("  -")) continue;
      CAPTURE(line);
      ++options;
      // Explained in the right column, of the same line or of the next one.
      if (line.size() <= 30) std::getline(lines, line);
      CHECK(line.find_last_of(' ', 30) < line.size() - 1);
      CHECK(line.size() > 30);
    }
    CHECK(options >= 1);
  }
  const Result version = run(one_process({"--version"}));
  CHECK(version.status == 0);
  CHECK(version.out.starts_with("asterism 0."));
  CHECK(version.out.ends_with("\n"));
}
