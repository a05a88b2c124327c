// The command-line program as its users meet it: results, reports, exit statuses, and what it leaves behind.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "array.hpp"
#include "process.hpp"
#include "tools/npy.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr double eps = 0x1p-53, eps32 = 0x1p-24;

Array random_array(std::vector<Index> shape) { return Array(std::move(shape)).fill_random(7); }

/// A .npy file by hand, with whatever header.
void save_raw(const fs::path& path, const std::string& header, std::size_t bytes) {
  std::string text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  text.append(bytes, '\0');
  std::ofstream(path, std::ios::binary) << text;
}

/// (P1) on a rectangle or box, zero on its border.
Equation dirichlet(const std::vector<double>& lengths) {
  Equation equation;
  for (const double length : lengths) equation.axes.push_back({.length = length});
  return equation;
}

double difference(const fs::path& a, const fs::path& b) {
  const Array left = read_array(a), right = read_array(b);
  REQUIRE(left.shape == right.shape);
  double difference2 = 0, norm2 = 0;
  for (std::size_t i = 0; i < left.values.size(); ++i) {
    difference2 += (left.values[i] - right.values[i]) * (left.values[i] - right.values[i]);
    norm2 += left.values[i] * left.values[i];
  }
  return std::sqrt(difference2 / norm2);
}

std::string line_of(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
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
      CHECK(keys(j) == sorted({"solver", "mode", "dimensions", "grid", "conditions", "centering", "lambda",
                               "precision", "unknowns", "seconds", "scaled_residual", "error", "workers",
                               "bytes", "slabs", "reason"}));
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

TEST_CASE_TEMPLATE("f from a file, u to a file", T, float, double) {
  const fs::path folder = fresh_folder("file");
  const Array f = random_array({157, 202});
  save<T>(folder / "f.npy", f);
  const double limit = 2 * (sizeof(T) == 4 ? eps32 : eps);
  const Words files{(folder / "f.npy").string(), "-o", (folder / "u.npy").string()};
  for (const Words& method : {Words{}, {"--slab", "10"}, {"--slab", "10", "--mode", "streaming"}}) {
    const json j = poisson(files + method);
    CHECK(j["precision"] == (sizeof(T) == 4 ? "f32" : "f64"));
    CHECK(!j.contains("error"));
    CHECK(j["scaled_residual"].get<double>() <= limit);
    CHECK(j["seconds"]["write"] >= 0);
    CHECK(residual_of(dirichlet({1, 1}), f, read_array(folder / "u.npy")).scaled <=
          1.5 * limit);  // u is rounded
  }
  poisson(files + Words{"--lengths", "2x0.5", "--no-check"});
  CHECK(residual_of(dirichlet({2, 0.5}), f, read_array(folder / "u.npy")).scaled <= 1.5 * limit);
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

namespace {

/// A problem on f.npy, as the options and as the definition state it.
struct Stated {
  std::vector<Index> shape;
  Words options;
  Equation equation;
};

}  // namespace

TEST_CASE_TEMPLATE(
    "conditions, given values, centerings, lambda, coordinates: u satisfies what the options say", T, float,
    double) {
  const fs::path folder = fresh_folder("stated");
  const double limit = 3 * (sizeof(T) == 4 ? eps32 : eps);
  // Files of the sides of the grids below, and coordinates.
  const auto side = [&](const std::string& name, const std::vector<Index>& shape) {
    const Array values = random_array(shape);
    save(folder / name, values);
    return values.values;
  };
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  const std::vector<double> y_side = side("y.npy", {23}), z_side = side("z.npy", {8, 9}),
                            y_of_3d = side("y3.npy", {7, 9}), x_of_3d = side("x3.npy", {7, 8});
  const auto all = [](std::size_t nodes, double value) { return std::vector<double>(nodes, value); };
  const auto stretched = [&](const std::string& name, std::size_t count) {
    Array line({static_cast<Index>(count)});
    double position = -3;
    for (std::size_t i = 0; i < count; ++i)
      line.values[i] = position, position += 0.0625 * static_cast<double>(1 + i % 3);
    save(folder / name, line);
    return line.values;
  };
  const std::vector<double> nodes = stretched("nodes.npy", 19), faces = stretched("faces.npy", 8),
                            around = stretched("around.npy", 19);
  const std::vector<Stated> problems{
      {{18, 23}, {"--bc-y", "n", "--bc-x", "p", "--lambda", "-1"}, {{{"nn"}, {"pp"}}, false, -1}},
      {{18, 23},
       {"--bc", "d,n", "--value-x", "1.5,-0.5", "--value-y", "-2," + file("y.npy")},
       {{{"dn", 1, all(23, -2), y_side}, {"dn", 1, all(18, 1.5), all(18, -0.5)}}}},
      {{18, 23},
       {"--bc-x", "neumann,dirichlet", "--value-y", file("y.npy"), "--centering", "cell", "--lengths",
        "2x0.5"},
       {{{"dd", 2, y_side, y_side}, {"nd", 0.5}}, true}},
      {{7, 8, 9}, {"--lengths", "1x2x0.5"}, {{{"dd", 1}, {"dd", 2}, {"dd", 0.5}}}},
      {{7, 8, 9},
       {"--value-z", file("z.npy") + ",2", "--bc-y", "n", "--value-y", file("y3.npy") + ",-1", "--bc-x",
        "n,d", "--value-x", "0.5," + file("x3.npy")},
       {{{"dd", 1, z_side, all(72, 2)}, {"nn", 1, y_of_3d, all(63, -1)}, {"nd", 1, all(56, 0.5), x_of_3d}}}},
      {{7, 8, 9},
       {"--bc-z", "p", "--bc-y", "d,n", "--bc-x", "n", "--centering", "cell", "--lambda", "7", "--lengths",
        "3x1x1", "--value-y", file("y3.npy")},
       {{{"pp", 3}, {"dn", 1, y_of_3d, y_of_3d}, {"nn"}}, true, 7}},
      {{17, 5}, {"--coordinates", file("nodes.npy")}, {{{"dd", 1, {}, {}, nodes}, {"dd"}}}},
      {{18, 5, 4},
       {"--coordinates", file("nodes.npy"), "--bc-z", "d,n", "--value-z", "3", "--bc-x", "p"},
       {{{"dn", 1, all(20, 3), all(20, 3), nodes}, {"dd"}, {"pp"}}}},
      {{7, 8, 9},
       {"--coordinates", file("faces.npy"), "--bc-z", "n,d", "--value-z", "1," + file("z.npy"), "--centering",
        "cell"},
       {{{"nd", 1, all(72, 1), z_side, faces}, {"dd"}, {"dd"}}, true}},
      {{18, 5}, {"--coordinates", file("around.npy"), "--bc-y", "p"}, {{{"pp", 1, {}, {}, around}, {"dd"}}}},
  };
  for (const Stated& stated : problems) {
    CAPTURE(line_of(stated.options));
    const Array f = random_array(stated.shape);
    save<T>(folder / "f.npy", f);
    for (const Words& method : {Words{"--slab", "5"}, {"--slab", "3", "--mode", "streaming"}}) {
      const json j = poisson(Words{file("f.npy"), "-o", file("u.npy")} + stated.options + method);
      CHECK(j["scaled_residual"].get<double>() <= limit);
      const Array u = read_array(folder / "u.npy");
      REQUIRE(u.shape == f.shape);
      CHECK(residual_of(stated.equation, f, u).scaled <= limit);
      CHECK(j["lambda"] == stated.equation.lambda);
      CHECK(j["centering"] == (stated.equation.cells ? "cell" : "node"));
      CHECK(j["dimensions"] == stated.shape.size());
    }
  }
}

TEST_CASE("batches: every problem is solved by itself, in its place") {
  const fs::path folder = fresh_folder("batch");
  const Words files{(folder / "f.npy").string(), "-o", (folder / "u.npy").string(), "--bc-x", "p"};
  for (const std::vector<Index>& shape : {std::vector<Index>{3, 18, 23}, {2, 7, 8, 9}, {1, 18, 23}}) {
    const Array f = random_array(shape);
    save(folder / "f.npy", f);
    const json j = poisson(files + Words{"--batch", std::to_string(shape[0]), "--slab", "5"});
    CHECK(j["slabs"] == shape[0] * ((shape[1] + 4) / 5));
    CHECK(j["unknowns"] == f.values.size());
    CHECK(j["grid"] == std::vector<Index>(shape.begin() + 1, shape.end()));
    CHECK((shape[0] > 1 ? j["batch"] == shape[0] : !j.contains("batch")));
    const Array u = read_array(folder / "u.npy");
    REQUIRE(u.shape == shape);
    Equation equation = dirichlet(std::vector<double>(shape.size() - 1, 1.0));
    equation.axes.back().ends = "pp";
    for (Index problem = 0; problem < shape[0]; ++problem)
      CHECK(residual_of(equation, f.part(problem), u.part(problem)).scaled <= 3 * eps);
  }
  // A model's problems differ.
  poisson({"--model", "random", "--grid", "18x23", "--batch", "2", "-o", (folder / "u.npy").string()});
  const Array u = read_array(folder / "u.npy");
  REQUIRE(u.shape == std::vector<Index>{2, 18, 23});
  CHECK(u.part(0).values != u.part(1).values);
}

TEST_CASE(
    "where constants solve the homogeneous problem the mean of f is taken away on demand, that of u always") {
  const fs::path folder = fresh_folder("mean");
  const Words files{(folder / "f.npy").string(), "-o", (folder / "u.npy").string()};
  struct Floating {
    std::vector<Index> shape;
    Words options;
    Equation equation;
  };
  const std::vector<Floating> problems{
      {{18, 23}, {"--bc", "n"}, {{{"nn"}, {"nn"}}}},
      {{18, 23}, {"--bc", "p", "--bc-x", "n", "--centering", "cell"}, {{{"pp"}, {"nn"}}, true}},
      {{7, 8, 9}, {"--bc", "n", "--bc-z", "p"}, {{{"pp"}, {"nn"}, {"nn"}}}},
  };
  for (const Floating& problem : problems) {
    CAPTURE(line_of(problem.options));
    Array f = random_array(problem.shape);
    save(folder / "f.npy", f);
    const double mean = residual_of(problem.equation, f, f).mean_f;
    CHECK(std::abs(mean) > 1e-4);
    const json with_mean = poisson(files + problem.options + Words{"--project-mean", "--slab", "5"});
    CHECK(with_mean["scaled_residual"].get<double>() <= 4 * eps);  // that of f without its mean
    const Array projected = read_array(folder / "u.npy");
    const Residual residual = residual_of(problem.equation, f, projected, mean);
    CHECK(residual.scaled <= 4 * eps);
    CHECK(std::abs(residual.mean_u) <= 1e-14);
    // The same f without its mean needs no projection, and gives the same u.
    for (double& value : f.values) value -= mean;
    save(folder / "f.npy", f);
    const json j = poisson(files + problem.options + Words{"--slab", "4"});
    CHECK(j["scaled_residual"].get<double>() <= 4 * eps);
    CHECK(residual_of(problem.equation, f, read_array(folder / "u.npy")).scaled <= 4 * eps);
  }
}

TEST_CASE("ranks: the same solution in 3D; what they tell each other is small") {
  const fs::path folder = fresh_folder("ranks");
  const Index planes = 480, extent = 16, unknowns = planes * extent * extent;
  save(folder / "f.npy", random_array({planes, extent, extent}));
  for (const Words& options : {Words{"--bc-y", "d,n", "--bc-x", "p"}, {"--bc-z", "p", "--value-y", "2"}}) {
    const auto problem = [&](const std::string& output) {
      return Words{"poisson", "--json", (folder / "f.npy").string(), "-o", (folder / output).string(),
                   "--slab",  "8"} +
             options;
    };
    CHECK(report_of(one_process(problem("u1.npy")))["bytes"]["between_ranks"] == 0);
    for (const int ranks : {2, 4}) {
      const json j = report_of(on_ranks(ranks, problem("u.npy")));
      CHECK(j["scaled_residual"].get<double>() <= 3 * eps);
      CHECK(difference(folder / "u1.npy", folder / "u.npy") < 1e-13);
      CHECK(j["bytes"]["between_ranks"] > 0);
      MESSAGE(ranks << " ranks: " << j["bytes"]["between_ranks"] << " of " << 8 * unknowns << " bytes");
      CHECK(j["bytes"]["between_ranks"] < 8 * unknowns / 10);
    }
  }
  CHECK(temporaries(folder) == 0);
}

TEST_CASE("a 3D grid four times as large as the memory allowed streams from a disk") {
  const fs::path folder = fresh_folder("spill3"), disk = fresh_folder("spill");
  const json j = poisson({"--model", "random", "--grid", "3000x54x54", "--bc-x", "n", "--spill",
                          disk.string(), "--memory", "16M"});
  CHECK(8 * j["unknowns"].get<double>() > 4.0 * (16 << 20));
  CHECK(j["mode"] == "streaming");
  CHECK(j["bytes"]["to_disk"].get<double>() > 8 * j["unknowns"].get<double>() / 2);
  CHECK(j["bytes"]["from_disk"].get<double>() > 8 * j["unknowns"].get<double>() / 2);
  CHECK(j["scaled_residual"].get<double>() <= 3 * eps);
  CHECK(fs::is_empty(disk));
}

TEST_CASE("the error of the sine model falls with the square of the spacing") {
  double last = 0;
  for (const char* grid : {"31x31", "63x63", "127x127", "255x255"}) {
    const double error = poisson({"--grid", grid})["error"];
    if (last > 0) CHECK(last / error == doctest::Approx(4).epsilon(0.02));
    last = error;
  }
  const auto error = [](const std::string& grid, const Words& options) {
    return poisson(Words{"--grid", grid} + options)["error"].get<double>();
  };
  for (const Words& options :
       {Words{}, {"--bc-z", "n,d", "--bc-y", "p", "--bc-x", "n", "--centering", "cell"}}) {
    const double coarse = error("16x16x16", options), fine = error("32x32x32", options);
    CHECK(coarse / fine == doctest::Approx(4).epsilon(0.1));
  }
  // Lengths and coordinates scale the model; with values given at an end its solution is not that of the
  // problem.
  CHECK(error("63x63", {"--lengths", "3x0.5"}) == doctest::Approx(error("63x63", {})));
  const fs::path folder = fresh_folder("sine");
  Array line({65});
  for (std::size_t i = 0; i < 65; ++i) {
    const double t = static_cast<double>(i) / 64;
    line.values[i] = 7 + 2 * (t + 0.05 * std::sin(6.283185307179586 * t));
  }
  save(folder / "z.npy", line);
  const double unequal = error("63x63", {"--coordinates", (folder / "z.npy").string()});
  CHECK(unequal > error("63x63", {}) / 4);
  CHECK(unequal < error("63x63", {}) * 4);
  const json lifted = poisson({"--grid", "63x63", "--value-x", "1"});
  CHECK(!lifted.contains("error"));
  CHECK(lifted["scaled_residual"].get<double>() <= 2 * eps);
}

namespace {

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
      {poisson({"--grid", "2x3x4x5"}), 2, {"--grid", "'2x3x4x5'", "4 extents"}},
      {poisson({"--lengths", "1x1x1"}), 2, {"--lengths", "3 lengths", "2 axes"}},
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
      {poisson({good, "--coordinates", bad / "five.npy"}), 2, {"coordinates: 5 are given", "42"}},
      {poisson({good, "--coordinates", bad / "standing.npy"}),
       2,
       {"coordinates must increase: number 18 is 16 after 16"}},
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
      {{bad / "good.npy", "--bc", "neumann"}, 2, {"the mean of f is "}},
      {{"--grid", "9x9", "--bc-x", "d,p"}, 2, {"x axis", "periodic"}},
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
  save(folder / "f.npy", random_array({extent, extent}));
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
  const json solid =
      report_of(one_process({"bench", "poisson", "--grid", "31x32x33", "--bc-x", "n", "--bc-y", "p",
                             "--centering", "cell", "--batch", "2", "--repeats", "1", "--json"}));
  CHECK(solid["grid"] == json{31, 32, 33});
  CHECK(solid["batch"] == 2);
  CHECK(solid["scaled_residual_eps"] < 4);
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
