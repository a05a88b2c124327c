// The command-line program as its users meet it: results, reports, exit statuses, and what it leaves behind.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "matrix.hpp"
#include "process.hpp"
#include "tools/npy.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr double eps = 0x1p-53, eps32 = 0x1p-24;

template <class T>
void save(const fs::path& path, const Matrix<T>& a) {
  NpyWriter writer(path, precision_of<T>, {a.rows(), a.cols()});
  writer.write_rows(0, a.rows(), &a(0, 0), a.cols());
  writer.commit();
}

template <class T>
Matrix<T> read(const fs::path& path) {
  const NpyReader reader(path);
  CHECK(reader.header().precision == precision_of<T>);
  Matrix<T> a(reader.header().rows(), reader.header().cols(), 0);
  reader.read_rows(0, a.rows(), &a(0, 0), a.cols());
  return a;
}

template <class T>
Matrix<T> random_matrix(Index rows, Index cols) {
  return Matrix<T>(rows, cols, 0).fill_random(7);
}

/// A .npy file by hand, with whatever header.
void save_raw(const fs::path& path, const std::string& header, std::size_t bytes) {
  std::string text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  text.append(bytes, '\0');
  std::ofstream(path, std::ios::binary) << text;
}

/// ||f - A u||_2 / (||A||_inf ||u||_2 + ||f||_2), A u = u_xx + u_yy by five points on ly x lx.
template <class T>
double scaled_residual(const Matrix<T>& f, const Matrix<T>& u, double ly, double lx) {
  const auto square = [](double x) { return x * x; };
  const Index m = u.rows(), n = u.cols();
  const double y = square(static_cast<double>(m + 1) / ly), x = square(static_cast<double>(n + 1) / lx);
  const auto at = [&](Index i, Index j) {
    return i < 0 || j < 0 || i == m || j == n ? 0.0 : static_cast<double>(u(i, j));
  };
  double r2 = 0, u2 = 0, f2 = 0;
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      const double known = static_cast<double>(f(i, j));
      r2 += square(known - x * (at(i, j - 1) + at(i, j + 1) - 2 * at(i, j)) -
                   y * (at(i - 1, j) + at(i + 1, j) - 2 * at(i, j)));
      u2 += square(at(i, j));
      f2 += square(known);
    }
  return std::sqrt(r2) / (4 * (x + y) * std::sqrt(u2) + std::sqrt(f2));
}

double difference(const fs::path& a, const fs::path& b) {
  const auto left = read<double>(a), right = read<double>(b);
  REQUIRE(left.rows() == right.rows());
  double difference2 = 0, norm2 = 0;
  for (Index i = 0; i < left.rows(); ++i)
    for (Index j = 0; j < left.cols(); ++j) {
      difference2 += (left(i, j) - right(i, j)) * (left(i, j) - right(i, j));
      norm2 += left(i, j) * left(i, j);
    }
  return std::sqrt(difference2 / norm2);
}

void has(const std::string& text, const Words& words) {
  CAPTURE(text);
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(text.find(word) != std::string::npos);
  }
}

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

/// The report of a run that succeeds and prints nothing but one JSON object.
json report_of(const Words& command) {
  const Result result = run(command);
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  CHECK(result.err.empty());
  return json::parse(result.out);
}

json poisson(const Words& arguments) {
  return report_of(one_process(Words{"poisson", "--json"} + arguments));
}

long temporaries(const fs::path& folder) {
  return std::count_if(fs::directory_iterator(folder), fs::directory_iterator(),
                       [](const fs::directory_entry& entry) { return entry.path().extension() == ".part"; });
}

}  // namespace

TEST_CASE("both models, both precisions: the documented report and nothing else") {
  for (const std::string model : {"sine", "random"})
    for (const std::string precision : {"f32", "f64"}) {
      CAPTURE(model);
      CAPTURE(precision);
      const json j = poisson({"--model", model, "--precision", precision, "--grid", "61x83"});
      CHECK(keys(j) == sorted({"solver", "mode", "grid", "precision", "unknowns", "seconds",
                               "scaled_residual", "error", "workers", "bytes", "slabs", "reason"}));
      CHECK(j["mode"] == "incore");
      CHECK(j["grid"] == json{61, 83});
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
      CHECK(j["bytes"] == json{{"to_device", 0}, {"from_device", 0}});
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
  has(text.out, {"model sine: 61 x 83 unknowns", "in f64", "incore: 1 slab of 61 rows", "seconds    setup ",
                 "residual ", "error ", "result     solved\n"});
  const Result quiet = run(one_process({"poisson", "--grid", "61x83", "--quiet"}));
  CHECK(quiet.status == 0);
  CHECK((quiet.out + quiet.err).empty());
}

TEST_CASE_TEMPLATE("f from a file, u to a file", T, float, double) {
  const fs::path folder = fresh_folder("file");
  const Matrix<T> f = random_matrix<T>(157, 202);
  save(folder / "f.npy", f);
  const double limit = 2 * (sizeof(T) == 4 ? eps32 : eps);
  const Words files{(folder / "f.npy").string(), "-o", (folder / "u.npy").string()};
  for (const Words& method : {Words{}, {"--slab", "10"}, {"--slab", "10", "--mode", "streaming"}}) {
    const json j = poisson(files + method);
    CHECK(j["precision"] == (sizeof(T) == 4 ? "f32" : "f64"));
    CHECK(!j.contains("error"));
    CHECK(j["scaled_residual"].get<double>() <= limit);
    CHECK(j["seconds"]["write"] >= 0);
    CHECK(scaled_residual(f, read<T>(folder / "u.npy"), 1, 1) <= 1.5 * limit);  // ours is rounded too
  }
  poisson(files + Words{"--lengths", "2x0.5", "--no-check"});
  CHECK(scaled_residual(f, read<T>(folder / "u.npy"), 2, 0.5) <= 1.5 * limit);
  // The other precision, over the file that is read.
  fs::copy_file(folder / "f.npy", folder / "same.npy");
  poisson({(folder / "same.npy").string(), "-o", (folder / "same.npy").string(), "--precision",
           sizeof(T) == 4 ? "f64" : "f32"});
  CHECK(NpyReader(folder / "same.npy").header().precision ==
        (sizeof(T) == 4 ? Precision::f64 : Precision::f32));
  CHECK(temporaries(folder) == 0);
}

TEST_CASE("every way of running gives the same solution") {
  const fs::path folder = fresh_folder("same");
  const std::string extent = "3000", disk = fresh_folder("spill").string();
  const Words problem{"poisson", "--json", "--model", "random", "--grid", extent + "x" + extent, "-o"};
  const auto solve = [&](const std::string& name, const std::function<Words(const Words&)>& how) {
    CAPTURE(name);
    const json j = report_of(how(problem + Words{(folder / name).string()}));
    CHECK(j["scaled_residual"].get<double>() <= 2 * eps);
    // Rounding leaves a residual of eps ||A|| ||u||, white noise, and A^-1 makes of it a difference in u of
    // that times
    // ||A^-1||_F / n. For n x n points on the unit square the norms are 8 n^2 and 0.066: eps n / 2 in all.
    if (name != "incore") CHECK(difference(folder / "incore", folder / name) < eps * 3000 / 2);
    return j;
  };
  const auto with = [](const Words& more) {
    return [=](const Words& words) { return one_process(words + more); };
  };
  CHECK(solve("incore", with({}))["mode"] == "incore");
  CHECK(solve("streaming", with({"--mode", "streaming"}))["mode"] == "streaming");
  CHECK(solve("one slab", with({"--slab", extent}))["slabs"] == 1);
  CHECK(solve("spill", with({"--spill", disk, "--memory", "32M"}))["mode"] == "streaming");
  CHECK(fs::is_empty(disk));
  for (const int ranks : {2, 4}) {
    const json j =
        solve(std::to_string(ranks) + " ranks", [=](const Words& words) { return on_ranks(ranks, words); });
    CHECK(j["workers"] == json{{"cpu", ranks}, {"cuda", 0}, {"ranks", ranks}});
  }
  CHECK(temporaries(folder) == 0);
  fs::remove_all(folder);
}

TEST_CASE("the error of the sine model falls with the square of the spacing") {
  double last = 0;
  for (const char* grid : {"31x31", "63x63", "127x127", "255x255"}) {
    const double error = poisson({"--grid", grid})["error"];
    if (last > 0) CHECK(last / error == doctest::Approx(4).epsilon(0.02));
    last = error;
  }
}

namespace {

/// Bad files in a folder, and an output that is there already.
struct BadInputs {
  fs::path folder = fresh_folder("bad");
  std::string old = "what was there before\n";

  BadInputs() {
    std::ofstream(folder / "old.npy") << old;
    Matrix<double> f = random_matrix<double>(40, 30);
    save(folder / "good.npy", f);
    f(33, 7) = std::nan("");
    save(folder / "nan.npy", f);
    save(folder / "huge.npy", f.fill([](Index, Index) { return 1e308; }));
    fs::copy_file(folder / "good.npy", folder / "truncated.npy");
    fs::resize_file(folder / "truncated.npy", fs::file_size(folder / "good.npy") - 5);
    save_raw(folder / "complex.npy", "{'descr': '<c16', 'fortran_order': False, 'shape': (2, 3), }\n", 96);
    save_raw(folder / "fortran.npy", "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }\n", 48);
    save_raw(folder / "cube.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4), }\n", 192);
    std::ofstream(folder / "text.npy") << "1 2 3\n";
  }

  [[nodiscard]] std::string operator/(const char* name) const { return (folder / name).string(); }

  /// Runs, expects the status and the words, and looks at what it left.
  void refused(const Words& command, int status, const Words& words) const {
    std::string line;
    for (const std::string& word : command) line += word + " ";
    CAPTURE(line);
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
      {{}, 2, {"subcommand", "poisson, info, bench", "--help"}},
      {{"poison"}, 2, {"'poison'", "poisson, info, bench"}},
      {{"bench"}, 2, {"subcommand", "stream, poisson"}},
      {{"bench", "stream", "--chunks", "0"}, 2, {"--chunks: '0'", "from 1 on"}},
      {{"bench", "stream", "--chunk", "5"}, 2, {"--chunk: 5 bytes", "1K"}},
      {{"info", "-o", "x"}, 2, {"-o"}},
      {poisson({"--gird", "5x5"}), 2, {"--gird", "asterism poisson --help"}},
      {poisson({"--grid", "0x5"}), 2, {"--grid", "0 x 5", "at least 1"}},
      {poisson({"--grid", "5"}), 2, {"--grid", "'5'", "like 4095x1023"}},
      {poisson({"--grid", "axb"}), 2, {"--grid", "'a'", "whole number"}},
      {poisson({"--grid", "5000000000x5000000000"}), 2, {"more points than can be counted"}},
      {poisson({"--lengths", "0x1", "--model", "random"}), 2, {"--lengths", "'0'", "positive"}},
      {poisson({"--lengths", "1x1"}), 2, {"--lengths", "sine"}},
      {poisson({"--model", "cosine"}), 2, {"--model", "'cosine'", "sine|random"}},
      {poisson({"--mode", "fast"}), 2, {"--mode", "'fast'", "auto|incore|streaming"}},
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
      {poisson({bad / "cube.npy"}), 2, {"cube.npy", "(2, 3, 4)", "2 dimensions are wanted"}},
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
       {"slab of 3000 rows (68.7 MiB each)", "20.0 MiB", "--slab"}},
      {poisson({"--grid", "3000x3000", "--memory", "20M"}), 3, {"68.7 MiB", "20.0 MiB", "--spill"}},
      {poisson({"--grid", "3000000x1000000"}), 3, {"21.8 TiB", "main memory", "more ranks"}},
  };
  for (const Case& c : cases) bad.refused(one_process(c.arguments), c.status, c.words);
  CHECK(fs::is_empty(disk));
  bad.refused(one_process(poisson({bad / "nan.npy", "--json"})), 2, {"[33, 7]"});
  bad.refused(one_process(poisson({"--grid", "0x5", "--json", "--quiet"})), 2, {"0 x 5"});
  if (!fs::exists("/dev/nvidia0"))
    bad.refused(one_process(poisson({"--gpus", "1"})), 3, {"1 GPU asked for, none found"});
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
  };
  for (const Case& c : cases) {
    const bool output = c.arguments.front() == "-o";
    const Words target = output ? Words{} : Words{"-o", bad / "old.npy"};
    bad.refused(on_ranks(2, Words{"poisson"} + target + c.arguments), c.status, c.words);
  }
}

TEST_CASE("a breakdown is a result: reported, and no output touched") {
  const BadInputs bad;
  const Result result = run(one_process({"poisson", bad / "huge.npy", "-o", bad / "old.npy", "--json"}));
  CHECK(result.status == 1);
  const json j = json::parse(result.out);
  CHECK(j["reason"] == "not finite");
  CHECK(j["scaled_residual"].is_null());
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

TEST_CASE("a solve from a file takes the grid's memory and little more") {
  const fs::path folder = fresh_folder("large");
  constexpr Index extent = 6000;
  save(folder / "f.npy", random_matrix<double>(extent, extent));
  // The CUDA libraries take a quarter of a gigabyte merely by being there: what they and the program take is
  // told apart.
  const double libraries = run(one_process({"--version"})).peak_bytes;
  const Result result =
      run(one_process({"poisson", (folder / "f.npy").string(), "-o", (folder / "u.npy").string()}));
  CHECK(result.status == 0);
  MESSAGE("peak " << result.peak_bytes / 1e6 << " MB, of which libraries " << libraries / 1e6 << " MB");
  CHECK(result.peak_bytes - libraries <= 1.1 * 8 * extent * extent + 64e6);
  fs::remove_all(folder);
}

TEST_CASE("info shows the machine") {
  const json j = report_of(one_process({"info", "--json"}));
  CHECK(keys(j) ==
        sorted({"version", "host", "features", "workers", "memories", "links", "scheduler", "schedulers"}));
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
  const json stream = report_of(one_process({"bench", "stream", "--chunk", "1M", "--chunks", "4", "--json"}));
  for (const char* figure : {"host_copy", "tasks_to_device", "tasks_both_ways"}) CHECK(stream[figure] > 0);
  const Result text = run(one_process({"bench", "stream", "--chunk", "1M", "--chunks", "4"}));
  CHECK(text.status == 0);
  has(text.out, {"GB/s", "4 chunks of 1.0 MiB"});
}

TEST_CASE("help explains every option of every subcommand") {
  for (const Words& subcommand :
       {Words{}, {"poisson"}, {"info"}, {"bench"}, {"bench", "stream"}, {"bench", "poisson"}}) {
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
