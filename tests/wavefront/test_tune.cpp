// `asterism tune wavefront`, and the files that keep what it measured.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "../support/command_line.hpp"
#include "../support/own_cache.hpp"
#include "algorithms/wavefront/tiles/costs.hpp"
#include "plausible_costs.hpp"
#include "runtime/kept/kept_files.hpp"

using namespace asterism;
using namespace asterism::test;
using doctest::Approx;
using wavefront::tile_model::Costs;

namespace {

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

Words tune(const Words& arguments) { return one_process(Words{"tune", "wavefront"} + arguments); }

}  // namespace

TEST_CASE("where costs are kept") {
  const OwnCache own;
  CHECK(cache_folder() == std::filesystem::current_path() / "cache" / "asterism");
  CHECK(wavefront::costs_file<double>("NVIDIA H200", 2, true).filename() ==
        "wavefront-NVIDIA_H200-2d-f64-source.json");
  CHECK(wavefront::costs_file<float>("a/../b", 1, false).filename() == "wavefront-a____b-1d-f32.json");
}

TEST_CASE("costs that are kept come back; what is no costs does not") {
  const OwnCache own;
  Costs costs = plausible_costs();
  costs.turn = 3.5e-9;
  costs.column = 1.25e-7;
  costs.strands = 3e-7;
  costs.tiles[2].error = 0.0123;
  const std::filesystem::path file = wavefront::costs_file<double>("toy", 2, false);
  CHECK_FALSE(wavefront::load_costs(file));
  REQUIRE(wavefront::save_costs(file, costs));
  CHECK(temporaries(file.parent_path()) == 0);
  const auto back = wavefront::load_costs(file);
  REQUIRE(back);
  CHECK(back->kernel == costs.kernel);
  CHECK(back->thread == costs.thread);
  CHECK(back->block == costs.block);
  CHECK(back->border == costs.border);
  CHECK(back->turn == costs.turn);
  CHECK(back->column == costs.column);
  CHECK(back->strands == costs.strands);
  REQUIRE(back->tiles.size() == costs.tiles.size());
  for (std::size_t k = 0; k < costs.tiles.size(); ++k) {
    CHECK(back->tiles[k].threads == costs.tiles[k].threads);
    CHECK(back->tiles[k].tiles_beside == costs.tiles[k].tiles_beside);
    CHECK(back->tiles[k].coefficients == costs.tiles[k].coefficients);
    CHECK(back->tiles[k].error == costs.tiles[k].error);
  }

  const std::string text = load(file);
  json other_version = json::parse(text), no_tiles = other_version, negative = other_version,
       threads = other_version, order = other_version;
  std::swap(order["tiles"][0], order["tiles"][1]);
  other_version["version"] = 0;
  no_tiles["tiles"] = json::array();
  negative["tiles"][0]["coefficients"]["warps"] = -1;
  threads["tiles"][0]["threads"] = 33;
  for (const std::string& bad :
       {std::string(), text.substr(0, text.size() / 2), std::string("[1, 2]"), std::string("\0\1", 2),
        other_version.dump(), no_tiles.dump(), negative.dump(), threads.dump(), order.dump()}) {
    CAPTURE(bad);
    write(file, bad);
    CHECK_FALSE(wavefront::load_costs(file));
  }
  write(file, text);
  CHECK(wavefront::load_costs(file));
  CHECK_FALSE(wavefront::save_costs({}, costs));
  CHECK_FALSE(wavefront::save_costs(file / "below a file" / "x.json", costs));
}

TEST_CASE("on CPUs the fastest of the tiles that were timed is chosen") {
  for (const char* grid : {"5000", "63x40", "9x10x11"})
    for (const char* precision : {"f32", "f64"}) {
      CAPTURE(grid);
      const json report = report_of(
          tune({"--json", "--gpus", "0", "--grid", grid, "--sweeps", "8", "--precision", precision}));
      CHECK(keys(report) == sorted({"grid", "sweeps", "precision", "source", "where", "workers", "layout",
                                    "predicted_seconds", "measured_grid", "measured_sweeps",
                                    "measured_seconds", "search_seconds", "tiles"}));
      CHECK(report["where"] == "cpu");
      CHECK(report["precision"] == precision);
      CHECK(report["sweeps"] == 8);
      CHECK(report["measured_grid"] == report["grid"]);
      double least = std::numeric_limits<double>::infinity();
      json best;
      for (const json& tile : report["tiles"]) {
        CHECK(tile["height"] >= tile["sweeps"]);
        CHECK(tile["seconds"] > 0);
        if (tile["seconds"].get<double>() < least) {
          least = tile["seconds"];
          best = tile;
        }
      }
      CHECK(report["tiles"].size() >= 3);
      CHECK(report["layout"] == json{{"sweeps", best["sweeps"]}, {"height", best["height"]}});
      CHECK(report["measured_seconds"] == least);
      CHECK(report["predicted_seconds"].get<double>() == Approx(least));  // all of the problem was timed
    }
}

TEST_CASE("on CPUs a part of a large problem is timed, and says so") {
  const json report =
      report_of(tune({"--json", "--gpus", "0", "--grid", "20000x1000", "--sweeps", "400", "--laplace"}));
  CHECK(report["source"] == false);
  CHECK(report["measured_grid"][0] < 20000);
  CHECK(report["measured_grid"][1] == 1000);
  const double part = report["measured_grid"][0].get<double>() * report["measured_sweeps"].get<double>();
  CHECK(report["predicted_seconds"].get<double>() ==
        Approx(report["measured_seconds"].get<double>() * 20000 * 400 / part));

  const Result text = run(tune({"--gpus", "0", "--grid", "200x100", "--sweeps", "20"}));
  CHECK(text.status == 0);
  has(text.out, {"200 x 100 unknowns, 20 sweeps, f64", "CPU workers", "layout       tiles of", "predicted",
                 "measured", "Gpoint/s"});
}

TEST_CASE("tune explains itself, and what is wrong") {
  has(run(one_process({"tune", "wavefront", "--help"})).out,
      {"--grid", "--sweeps", "--laplace", "--anew", "micro-benchmarks", "XDG_CACHE_HOME",
       "asterism tune wavefront --grid"});
  has(run(one_process({"bench", "tile-model", "--help"})).out, {"--layouts", "--samples", "--repeats"});
  const auto refused = [](const Words& arguments, int status, const Words& words) {
    const Result result = run(arguments);
    CHECK(result.status == status);
    CHECK(result.out.empty());
    has(result.err, words);
  };
  refused(one_process({"tune"}), 2, {"a subcommand is missing", "wavefront"});
  refused(tune({"--grid", "0"}), 2, {"--grid: grid is 0: every extent must be at least 1"});
  refused(tune({"--grid", "5x0"}), 2, {"--grid", "every extent must be at least 1"});
  refused(tune({"--grid", "99999999999"}), 2, {"grid is 99999999999: no extent may be above 536870912"});
  refused(tune({"--sweeps", "0"}), 2, {"--sweeps: '0' is not a whole number from 1 on"});
  refused(one_process({"bench", "tile-model", "--gpus", "0"}), 3, {"the tile-size model is of GPUs"});
}

#ifdef ASTERISM_WITH_CUDA

TEST_CASE("gpu: costs are measured once, and again where the file is of no use") {
  const OwnCache own;
  const Words command = tune({"--json", "--grid", "500x400", "--sweeps", "50", "--laplace"});
  const json first = report_of(command), second = report_of(command);
  CHECK(first["where"] == "cuda");
  CHECK(first["costs_seconds"] > 0);
  CHECK(second["costs_seconds"] == 0);
  CHECK(second["costs"] == first["costs"]);
  CHECK(second["layout"] == first["layout"]);
  CHECK(second["measured_seconds"] > 0);
  CHECK(second["search_seconds"] < 10);
  write(first["costs_file"].get<std::string>(), "{");
  CHECK(report_of(command)["costs_seconds"] > 0);
  CHECK(report_of(command)["costs_seconds"] == 0);
  has(run(tune({"--grid", "500x400", "--sweeps", "50", "--laplace"})).out,
      {"layout       tiles of", "predicted", "measured", "search", "costs        from",
       "barrier of 32 threads"});
}

#endif
