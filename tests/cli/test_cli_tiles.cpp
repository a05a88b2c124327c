// The tiles of `asterism relax --method wavefront`: given, refused, tuned by `asterism tune wavefront`, kept
// from one run to the next, and what is done where nothing can be kept.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "../support/command_line.hpp"
#include "../support/own_cache.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

namespace {

const Words cpus{"--gpus", "0"};

Words relax(const Words& arguments) {
  return one_process(Words{"relax", "--method", "wavefront"} + arguments);
}
Words tune(const Words& arguments) { return one_process(Words{"tune", "wavefront"} + arguments); }

/// What a run tells about its tiles.
json tiles(const Words& arguments) { return report_of(relax(Words{"--json"} + arguments))["tiles"]; }

void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

/// Ways to have no folder in which anything could be kept: words for env(1).
std::vector<Words> nowhere() {
  write("no folder", "but a file");
  return {{"env", "-u", "HOME", "-u", "XDG_CACHE_HOME"},
          {"env", "XDG_CACHE_HOME=/proc/none"},
          {"env", "XDG_CACHE_HOME=" + (fs::current_path() / "no folder").string()}};
}

}  // namespace

TEST_CASE("on CPUs: what tune finds is what relax takes, for grids of about that size, and tells") {
  const OwnCache own;
  const Words grid{"--grid", "63x40"};
  const json before = tiles(cpus + grid);
  CHECK(keys(before) == sorted({"sweeps", "height", "origin", "file"}));
  CHECK(before["origin"] == "untuned");
  CHECK(before["file"] == "");

  const json tuned = report_of(tune(Words{"--json", "--sweeps", "24"} + cpus + grid));
  const json after = tiles(cpus + grid + Words{"--sweeps", "24"});
  CHECK(after["origin"] == "kept");
  CHECK(after["sweeps"] == tuned["layout"]["sweeps"]);
  CHECK(after["height"] == tuned["layout"]["height"]);
  const fs::path file = after["file"].get<std::string>();
  CHECK(file.parent_path() == own.folder() / "asterism");
  CHECK(fs::exists(file));
  CHECK(temporaries(file.parent_path()) == 0);

  const auto origin = [&](const Words& arguments) { return tiles(cpus + arguments)["origin"]; };
  CHECK(origin({"--grid", "70x36"}) == "kept");
  CHECK(origin({"--grid", "63x40", "--sweeps", "1"}) == "kept");
  CHECK(origin({"--grid", "63x80"}) == "untuned");
  CHECK(origin({"--grid", "40x63"}) == "untuned");
  CHECK(origin({"--grid", "63"}) == "untuned");
  CHECK(origin({"--grid", "63x40x2"}) == "untuned");
  CHECK(origin({"--grid", "63x40", "--precision", "f32"}) == "untuned");
  CHECK(origin({"--grid", "63x40", "--model", "laplace"}) == "kept");  // its sides' values become a source
  CHECK(origin({"--grid", "63x40", "--untuned"}) == "untuned");
  if (report_of(relax(Words{"--json"} + cpus + grid))["workers"]["cpu"] > 1)
    CHECK(origin({"--grid", "63x40", "--cpus", "1"}) == "untuned");

  // Without a source it is another problem.
  fs::remove(file);
  report_of(tune(Words{"--json", "--laplace"} + cpus + grid));
  CHECK(origin({"--grid", "63x40"}) == "untuned");
}

TEST_CASE("on CPUs: of what is kept, what is nearest") {
  const OwnCache own;
  const Words grid{"--grid", "32x32", "--sweeps", "16"};
  report_of(tune(Words{"--json"} + cpus + grid));
  const fs::path file = tiles(cpus + grid)["file"].get<std::string>();
  json kept = json::parse(load(file));
  REQUIRE(kept["layouts"].size() == 1);
  const json entry = kept["layouts"][0];
  const auto of = [&](Index n, Index sweeps, Index height) {
    json other = entry;
    other["grid"] = {n, n};
    other["sweeps"] = sweeps;
    other["tile"] = {{"sweeps", 2}, {"points", {1, height, 1}}};
    return other;
  };
  kept["layouts"] = {of(32, 16, 3), of(32, 1000, 4), of(40, 16, 5), of(64, 16, 6)};
  write(file, kept.dump());
  const auto height = [&](const char* n, const char* sweeps) {
    return tiles(cpus + Words{"--grid", n, "--sweeps", sweeps})["height"];
  };
  CHECK(height("32x32", "16") == 3);
  CHECK(height("32x32", "500") == 4);
  CHECK(height("38x38", "16") == 5);
  CHECK(height("70x60", "16") == 6);
  // The same problem again replaces what there was.
  report_of(tune(Words{"--json"} + cpus + grid));
  CHECK(json::parse(load(file))["layouts"].size() == 4);
}

TEST_CASE("on CPUs: no folder, or none that can be written: tune and relax work all the same") {
  for (const Words& where : nowhere()) {
    CAPTURE(line_of(where));
    const Words grid{"--grid", "30x20", "--sweeps", "8"};
    const Result tuned = run(where + tune(cpus + grid));
    CHECK(tuned.status == 0);
    CHECK(tuned.err.empty());
    has(tuned.out, {"kept         no"});
    const json j = report_of(where + relax(Words{"--json"} + cpus + grid));
    CHECK(j["tiles"]["origin"] == "untuned");
    CHECK(j["sweeps"] == 8);
  }
}

TEST_CASE("on CPUs: a damaged file is no file, and the next tuning mends it") {
  const OwnCache own;
  const Words grid{"--grid", "30x20", "--sweeps", "8"};
  const Words command = Words{"--json"} + cpus + grid;
  report_of(tune(command));
  const json kept = tiles(cpus + grid);
  const fs::path file = kept["file"].get<std::string>();
  const std::string text = load(file);
  const auto changed = [&](auto change) {
    json j = json::parse(text);
    change(j);
    return j.dump();
  };
  const auto in_entry = [&](auto change) { return changed([&](json& j) { change(j["layouts"][0]); }); };
  for (const std::string& bad :
       {std::string(), text.substr(0, text.size() / 2), std::string("[1, 2]"), std::string("\0\1", 2),
        changed([](json& j) { j["version"] = 0; }), changed([](json& j) { j["layouts"] = "none"; }),
        in_entry([](json& entry) { entry["grid"] = {30}; }), in_entry([](json& entry) {
          entry["grid"] = {0, 20};
        }),
        in_entry([](json& entry) { entry["sweeps"] = -8; }),
        in_entry([](json& entry) { entry.erase("tile"); }),
        in_entry([](json& entry) { entry["tile"]["sweeps"] = 0; }), in_entry([](json& entry) {
          entry["tile"]["points"] = {1, 1, 1}, entry["tile"]["sweeps"] = 5;
        }),
        in_entry([](json& entry) { entry["tile"]["points"] = {1}; })}) {
    CAPTURE(bad);
    write(file, bad);
    CHECK(tiles(cpus + grid)["origin"] == "untuned");
  }
  fs::remove(file);
  fs::create_directory(file);
  CHECK(tiles(cpus + grid)["origin"] == "untuned");
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);  // would be waited for
  CHECK(tiles(cpus + grid)["origin"] == "untuned");
  report_of(tune(command));
  CHECK(tiles(cpus + grid)["origin"] == "kept");
  write(file, "{");
  report_of(tune(command));
  CHECK(tiles(cpus + grid)["origin"] == "kept");
}

TEST_CASE("tiles that are given, and tiles that cannot be") {
  const OwnCache own;
  const Words grid{"--grid", "30x20", "--sweeps", "8"};
  report_of(tune(Words{"--json"} + cpus + grid));
  const auto result_with = [&](const Words& tile, const std::string& file) {
    report_of(relax(Words{"--json", "-o", file} + cpus + grid + tile));
    return read_array(file).values;
  };
  const json given = tiles(cpus + grid + Words{"--tile", "3x7"});
  CHECK(given == json{{"sweeps", 3}, {"height", 7}, {"origin", "given"}, {"file", ""}});
  CHECK(tiles(cpus + grid + Words{"--tile", "64x1000"})["height"] == 32);
  CHECK(result_with({"--tile", "3x7"}, "given.npy") == result_with({"--untuned"}, "untuned.npy"));
  CHECK(result_with({}, "kept.npy") == result_with({"--untuned"}, "untuned.npy"));

  const auto refused = [&](const Words& arguments, const Words& words) {
    CAPTURE(line_of(arguments));
    const Result result = run(one_process(Words{"relax", "--grid", "30x20"} + cpus + arguments));
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    has(result.err, words);
  };
  const auto refused_by_method = [&](const Words& arguments, const Words& words) {
    refused(Words{"--method", "wavefront"} + arguments, words);
  };
  refused({"--tile", "3x7"}, {"--tile", "--method sor", "wavefront"});
  refused({"--untuned"}, {"--untuned", "--method sor", "wavefront"});
  refused({"--threads", "64"}, {"--threads", "--method sor", "wavefront"});
  refused_by_method({"--tile", "3"}, {"--tile: '3' has 1 extent:", "16x128"});
  refused_by_method({"--tile", "3x7x7x7x7"}, {"--tile", "5 extents"});
  refused_by_method({"--tile", "0x7"}, {"--tile: '0' is not a whole number from 1 on"});
  refused_by_method({"--tile", "3x"}, {"--tile: '' is not"});
  refused_by_method({"--tile", "3x7x7"}, {"--tile 3x7x7", "3 extents; 2 are wanted", "on CPUs"});
  refused_by_method({"--tile", "8x7"}, {"tiles of 8 sweeps x 7 slices", "--tile", "no more sweeps than slices"});
  refused_by_method({"--tile", "3x7", "--untuned"}, {"--untuned and --tile"});
  refused_by_method({"--threads", "64"}, {"--threads", "--tile"});
  refused_by_method({"--tile", "3x7", "--threads", "64"}, {"--threads", "no GPU"});
  refused_by_method({"--tile", "3x7", "--threads", "100"}, {"--threads: '100'", "32"});
}

TEST_CASE("grids of very few nodes, tuned and not") {
  const OwnCache own;
  for (const char* grid : {"1", "1x1", "1x1x1", "2", "1x7", "7x1", "2x1x3"}) {
    CAPTURE(grid);
    const Words problem = cpus + Words{"--model", "random", "--grid", grid};
    CHECK(report_of(relax(Words{"--json"} + problem))["error"] < 1e-12);
    report_of(tune(Words{"--json", "--grid", grid} + cpus));
    const json j = report_of(relax(Words{"--json"} + problem));
    CHECK(j["tiles"]["origin"] == "kept");
    CHECK(j["error"] < 1e-12);
  }
}

TEST_CASE("grids beyond the kernels' limits are refused") {
  for (const Words& command : {relax({"--grid", "536870913"}), tune({"--grid", "536870913"}),
                               tune({"--grid", "536870913x2"}), tune({"--grid", "2x2x536870913"})}) {
    const Result result = run(command + cpus);
    CHECK(result.status != 0);
    CHECK(result.out.empty());
    has(result.err, {"536870913"});
  }
}

TEST_CASE("the report for people says where tiles come from") {
  const OwnCache own;
  const Words grid{"--grid", "30x20", "--sweeps", "8"};
  const auto text = [&](const Words& arguments) {
    const Result result = run(relax(cpus + grid + arguments));
    CHECK(result.status == 0);
    CHECK(result.err.empty());
    return result.out;
  };
  has(text({}), {"tiles      ", "untuned: `asterism tune wavefront --grid 30x20`"});
  has(text({"--untuned"}), {"; untuned\n"});
  has(text({"--tile", "3x7"}), {"tiles      3 sweeps x 7 slices; as given\n"});
  has(run(tune(cpus + grid)).out,
      {"kept         in " + own.folder().string(), "asterism relax --method wavefront"});
  has(text({}), {"; tuned before, kept in " + own.folder().string()});
  has(run(relax({"--help"})).out, {"--tile", "--threads", "--untuned"});
}

// --- On a GPU ---------------------------------------------------------------------------------------------

#ifdef ASTERISM_WITH_CUDA

TEST_CASE("gpu: measured once, kept, told") {
  const OwnCache own;
  const Words problem{"--grid", "3000x2900", "--sweeps", "500"};  // large enough to be worth it
  const Words other{"--grid", "310x200", "--sweeps", "40"}, third{"--grid", "200x300", "--sweeps", "40"};
  CHECK(tiles(other)["origin"] == "untuned");
  const json first = tiles(problem);
  CHECK(keys(first) == sorted({"sweeps", "points", "threads", "blocks", "origin", "file"}));
  CHECK(first["origin"] == "measured");
  CHECK(first["points"].size() == 2);
  CHECK(first["threads"] > 0);
  CHECK(first["blocks"] > 0);
  const fs::path file = first["file"].get<std::string>();
  CHECK(file.parent_path() == own.folder() / "asterism");

  json again = tiles(problem);
  CHECK(again["origin"] == "kept");
  again["origin"] = first["origin"];
  CHECK(again == first);
  CHECK(tiles(other)["origin"] == "searched");  // its costs are known
  CHECK(tiles(other)["origin"] == "kept");

  // What tune finds with these costs is the same, and is kept, too.
  const json tuned = report_of(tune(Words{"--json"} + problem));
  CHECK(tuned["costs_seconds"] == 0);
  CHECK(tuned["layout"]["points"] == first["points"]);
  CHECK(tuned["layout"]["threads"] == first["threads"]);
  report_of(tune(Words{"--json"} + third));
  CHECK(tiles(third)["origin"] == "kept");

  // Costs that are measured anew make other layouts, in the place of all that were kept.
  report_of(tune(Words{"--json", "--anew"} + third));
  CHECK(json::parse(load(file))["layouts"].size() == 1);

  CHECK(tiles(problem + Words{"--untuned"})["origin"] == "untuned");
  has(run(relax(problem)).out, {"points, ", "blocks of ", "kept in " + own.folder().string()});
}

TEST_CASE("gpu: a damaged file is no file") {
  const OwnCache own;
  const Words problem{"--grid", "300x200", "--sweeps", "40"};
  report_of(tune(Words{"--json"} + problem));
  const json first = tiles(problem);
  const fs::path file = first["file"].get<std::string>();
  const std::string text = load(file);
  const auto in_entry = [&](auto change) {
    json j = json::parse(text);
    change(j["layouts"][0]);
    return j.dump();
  };
  for (const std::string& bad :
       {std::string(), text.substr(0, text.size() / 2), std::string("[1, 2]"),
        in_entry([](json& entry) { entry["blocks"] = 1'000'000; }),
        in_entry([](json& entry) { entry["blocks"] = 0; }),
        in_entry([](json& entry) { entry["threads"] = 33; }),
        in_entry([](json& entry) { entry["tile"]["sweeps"] = 0; }), in_entry([](json& entry) {
          entry["tile"]["points"] = {1, 5000, 5000};
        })}) {
    CAPTURE(bad);
    write(file, bad);
    const json j = tiles(problem);
    CHECK(j["origin"] == "searched");
    CHECK(j["points"] == first["points"]);
    CHECK(load(file) == text);
  }
}

TEST_CASE("gpu: no folder, or none that can be written") {
  for (const Words& where : nowhere()) {
    CAPTURE(line_of(where));
    const json tuned = report_of(where + tune({"--json", "--grid", "100x80", "--sweeps", "8"}));
    CHECK(tuned["costs_seconds"] > 0);
    const json j = report_of(where + relax({"--json", "--grid", "100x80", "--sweeps", "8"}))["tiles"];
    CHECK(j["origin"] == "untuned");
    CHECK(j["file"] == "");
  }
  const json large =
      report_of(nowhere().front() + relax({"--json", "--grid", "3000x2900", "--sweeps", "500"}))["tiles"];
  CHECK(large["origin"] == "measured");
  CHECK(large["file"] == "");
}

TEST_CASE("gpu: given tiles, and the same result with any") {
  const OwnCache own;
  const Words grid{"--grid", "130x70", "--sweeps", "20"};
  const auto values = [&](const Words& tile) {
    report_of(relax(Words{"--json", "-o", "u.npy"} + grid + tile));
    return read_array("u.npy").values;
  };
  const json given = tiles(grid + Words{"--tile", "5x8x32", "--threads", "64"});
  CHECK(given["origin"] == "given");
  CHECK(given["sweeps"] == 5);
  CHECK(given["points"] == json{8, 32});
  CHECK(given["threads"] == 64);
  CHECK(given["blocks"] > 0);
  const auto expected = values({"--untuned"});
  CHECK(values({"--tile", "5x8x32", "--threads", "64"}) == expected);
  CHECK(values({"--tile", "1x1x1"}) == expected);
  report_of(tune(Words{"--json"} + grid));
  CHECK(values({}) == expected);
  const auto refused = [&](const Words& arguments, const Words& words) {
    const Result result = run(relax(grid + arguments));
    CHECK(result.status == 2);
    has(result.err, words);
  };
  refused({"--tile", "5x8"}, {"--tile 5x8", "2 extents; 3 are wanted", "on a GPU"});
  refused({"--tile", "5x1000x1000"}, {"do not fit", "choose smaller ones"});
  refused({"--tile", "5x100x160"}, {"do not fit", "beside a right-hand side"});
  refused({"--tile", "1024x8x8"}, {"from 1 to 1023"});
}

TEST_CASE("gpu: grids of very few nodes") {
  const OwnCache own;
  for (const char* grid : {"1", "1x1", "1x1x1", "7x1", "2x1x3"}) {
    CAPTURE(grid);
    const Words problem{"--json", "--model", "random", "--grid", grid};
    CHECK(report_of(relax(problem))["error"] < 1e-12);
    CHECK(report_of(relax(problem + Words{"--untuned"}))["error"] < 1e-12);
  }
}

#endif
