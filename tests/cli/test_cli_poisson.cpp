// `asterism poisson` as its users meet it: what it solves, from files to files, in every way of running.

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>

#include "../support/command_line.hpp"
#include "tools/files/npy/npy.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
namespace fs = std::filesystem;

namespace {

/// (P1) on a rectangle or box, zero on its border.
Equation dirichlet(const std::vector<double>& lengths) {
  Equation equation;
  for (const double length : lengths) equation.axes.push_back({.length = length});
  return equation;
}

}  // namespace

TEST_CASE("a residual beyond rounding is not called solved, and u is written all the same") {
  const fs::path folder = fresh_folder("inaccurate");
  Array f = random_array({20, 30});
  for (double& value : f.values) value *= 1e-42;  // few bits are left of it in float32, and none of u
  save<float>(folder / "f.npy", f);
  const Words files{"poisson", (folder / "f.npy").string(), "-o", (folder / "u.npy").string()};
  Result result = run(one_process(files));
  CHECK(result.status == 1);
  has(result.out, {"written    ", "result     inaccurate: the residual is above 64 eps\n"});
  CHECK(read_array(folder / "u.npy").shape == f.shape);
  result = run(one_process(files + Words{"--json"}));
  CHECK(result.status == 1);
  CHECK(json::parse(result.out)["reason"] == "inaccurate");
  CHECK(json::parse(result.out)["scaled_residual"].get<double>() > 64 * eps32);
  CHECK(poisson({files[1], "--no-check"})["reason"] == "solved");
  CHECK(poisson({files[1], "--precision", "f64"})["reason"] == "solved");
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
  poisson({(folder / "same.npy").string(), "--quiet", "-o", (folder / "same.npy").string(), "--precision",
           sizeof(T) == 4 ? "f64" : "f32"});
  CHECK(NpyReader(folder / "same.npy").header().precision ==
        (sizeof(T) == 4 ? Precision::f64 : Precision::f32));
  CHECK(temporaries(folder) == 0);
}

TEST_CASE("every way of running gives the same solution") {
  const fs::path folder = fresh_folder("same");
  const std::string extent = "2000", disk = fresh_folder("spill").string();
  const Words problem{"poisson", "--json", "--model", "random", "--grid", extent + "x" + extent, "-o"};
  const auto solve = [&](const std::string& name, const std::function<Words(const Words&)>& how) {
    CAPTURE(name);
    const json j = report_of(how(problem + Words{(folder / name).string()}));
    CHECK(j["scaled_residual"].get<double>() <= 2 * eps);
    // Rounding leaves a residual of eps ||A|| ||u||, white noise, and A^-1 makes of it a difference in u of
    // that times ||A^-1||_F / n. For n x n points on the unit square the norms are 8 n^2 and 0.066: eps n / 2 in all.
    if (name != "incore") CHECK(difference(folder / "incore", folder / name) < eps * std::stod(extent) / 2);
    return j;
  };
  const auto with = [](const Words& more) {
    return [=](const Words& words) { return one_process(words + more); };
  };
  CHECK(solve("incore", with({}))["mode"] == "incore");
  CHECK(solve("streaming", with({"--mode", "streaming"}))["mode"] == "streaming");
  CHECK(solve("one slab", with({"--slab", extent}))["slabs"] == 1);
  CHECK(solve("spill", with({"--spill", disk, "--memory", "14M"}))["mode"] == "streaming");
  CHECK(fs::is_empty(disk));
  for (const int ranks : {2, 4}) {
    const json j =
        solve(std::to_string(ranks) + "-ranks", [=](const Words& words) { return on_ranks(ranks, words); });
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

TEST_CASE("coordinates that begin far off: the residual that is told is that of u") {
  const fs::path folder = fresh_folder("offset");
  const Array f = random_array({64, 12});
  save(folder / "f.npy", f);
  for (const double origin : {1.5, -1e4})
    for (const std::string ends : {"dd", "nd", "pp"}) {
      Array z({65});
      std::mt19937_64 engine(3);
      std::uniform_real_distribution<double> step(0.5, 1.5);
      double position = origin;
      for (double& value : z.values) value = position, position += step(engine) / 64;
      save(folder / "z.npy", z);
      const json j = poisson({(folder / "f.npy").string(), "-o", (folder / "u.npy").string(), "--centering",
                              "cell", "--coordinates", (folder / "z.npy").string(), "--bc-y",
                              ends.substr(0, 1) + "," + ends[1]});
      const Equation equation{{{ends, 1, {}, {}, z.values}, {"dd"}}, true};
      CAPTURE(origin);
      CAPTURE(ends);
      CHECK(j["scaled_residual"].get<double>() <= 2 * eps);
      CHECK(residual_of(equation, f, read_array(folder / "u.npy")).scaled <= 2 * eps);
    }
}

TEST_CASE("few planes of lines whose FFT lengths have large primes: to rounding, as other grids") {
  for (const std::string grid : {"8x838x838", "838x8x838", "838x838x8"}) {  // 839 - 1 = 2 x 419
    CAPTURE(grid);
    CHECK(poisson({"--model", "random", "--grid", grid})["scaled_residual"].get<double>() <= 2 * eps);
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

TEST_CASE("a mean that vanishes as well as float32 can is none, and a random u is known but for its mean") {
  const fs::path folder = fresh_folder("rounded");
  Array f = random_array({61, 83});
  double mean = 0;
  for (const double value : f.values) mean += value / static_cast<double>(f.values.size());
  for (double& value : f.values) value = static_cast<float>(value - mean);
  save<float>(folder / "f32.npy", f);
  save<double>(folder / "f64.npy", f);
  const Words options{"--bc", "n", "--centering", "cell"};
  const Words run_in_f64{"--precision", "f64"};
  CHECK(poisson(Words{(folder / "f32.npy").string()} + options + run_in_f64)["scaled_residual"] <= 2 * eps);
  const Result refused = run(one_process(Words{"poisson", (folder / "f64.npy").string()} + options));
  CHECK(refused.status == 2);
  has(refused.err, {"the mean of f is ", "--project-mean"});
  for (const Words& ends :
       {Words{"--bc", "n"}, {"--bc", "p"}, {"--bc", "n", "--centering", "cell", "--slab", "7"}}) {
    const Words random = Words{"--model", "random", "--grid", "61x83"} + ends;
    CHECK(poisson(random)["error"] < 1e-12);
    CHECK(poisson(random + Words{"--precision", "f32"})["error"] < 1e-3);
    CHECK(poisson(random + Words{"--method", "gemm"})["error"] < 1e-12);
  }
  const Result text = run(one_process(Words{"poisson", "--model", "random", "--grid", "61x83"} + options));
  has(text.out, {"relative to the exact solution of the difference equation without its mean\n"});
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

TEST_CASE("the transforms as matrix products: the same solution, and what the report says of them") {
  const fs::path folder = fresh_folder("methods");
  save(folder / "f.npy", random_array({3, 41, 66}));
  save(folder / "flat.npy", random_array({157, 202}));
  const auto file = [&](const char* name) { return (folder / name).string(); };
  const std::vector<Words> problems{
      {file("flat.npy")},
      {file("flat.npy"), "--slab", "7", "--bc-y", "p", "--bc-x", "n,d", "--value-x", "2", "--lambda", "-3"},
      {file("f.npy"), "--batch", "3", "--bc", "n", "--centering", "cell", "--project-mean"},
  };
  for (const Words& problem : problems) {
    CAPTURE(line_of(problem));
    const json fft = poisson(problem + Words{"--method", "fft", "-o", file("fft.npy")});
    const json gemm = poisson(problem + Words{"--method", "gemm", "-o", file("gemm.npy")});
    CHECK(difference(folder / "fft.npy", folder / "gemm.npy") < 1e-10);
    CHECK(gemm["scaled_residual"].get<double>() <= 10 * eps);
    CHECK(fft["method"] == "fft");
    CHECK(fft["solver"] == "fast Poisson, two passes");
    CHECK(!fft.contains("blocks"));
    CHECK(gemm["method"] == "gemm");
    CHECK(gemm["solver"] == "fast Poisson, dense transforms (DFPS)");
    CHECK(gemm["mode"] == "incore");
    CHECK(gemm["blocks"] == gemm["workers"]["cpu"]);
    auto described = keys(fft);
    described.push_back("blocks");
    CHECK(keys(gemm) == sorted(described));
  }
  const json alone = poisson({file("flat.npy"), "-o", file("u1.npy"), "--method", "gemm", "--cpus", "1"});
  CHECK(alone["blocks"] == 1);
  const json ranks = report_of(
      on_ranks(2, {"poisson", "--json", file("flat.npy"), "-o", file("u2.npy"), "--method", "gemm"}));
  CHECK(ranks["blocks"] == 2);
  CHECK(ranks["workers"]["ranks"] == 2);
  CHECK(ranks["bytes"]["between_ranks"] > 0);
  CHECK(difference(folder / "u1.npy", folder / "u2.npy") < 1e-10);
  CHECK(temporaries(folder) == 0);

  const Result text =
      run(one_process({"poisson", "--grid", "61x83", "--slab", "61", "--cpus", "1", "--method", "gemm"}));
  CHECK(text.status == 0);
  has(text.out,
      {"method     fast Poisson, dense transforms (DFPS), incore: 1 slab of 61 rows, 1 block of modes\n"});
}

TEST_CASE("a solve from a file takes the grid's memory and little more") {
  const fs::path folder = fresh_folder("large");
  constexpr Index extent = 6000;
  save(folder / "f.npy", random_array({extent, extent}));
  // Libraries take memory merely by being there: what they and the program take is told apart.
  const double libraries = run(one_process({"--version"})).peak_bytes;
  const Result result =
      run(one_process({"poisson", (folder / "f.npy").string(), "-o", (folder / "u.npy").string()}));
  CHECK(result.status == 0);
  MESSAGE("peak " << result.peak_bytes / 1e6 << " MB, of which libraries " << libraries / 1e6 << " MB");
  CHECK(result.peak_bytes - libraries <= 1.1 * 8 * extent * extent + 64e6);
  fs::remove_all(folder);
}
