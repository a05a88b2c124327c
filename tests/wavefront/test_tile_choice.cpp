// The tile layout that a program of the library gets for its solver: none is known at first, then the one that was kept.

#include <doctest/doctest.h>

#include <filesystem>
#include <type_traits>
#include <vector>

#include "../support/own_cache.hpp"
#include "../support/skip.hpp"
#include "algorithms/wavefront/tiles/choice.hpp"

using namespace asterism;
using namespace asterism::test;
using wavefront::LayoutOrigin;
using wavefront::Source;
using wavefront::TileChoice;

namespace {

template <class T>
void check_choice() {
  const OwnCache own;
  Runtime runtime;
  const wavefront::Problem problem{.shape = {63, 40}};
  wavefront::Settings settings;
  settings.sweeps = 24;
  const TileChoice unknown = wavefront::choose_tiles<T>(runtime, problem, settings, Source::given);
  CHECK_FALSE(unknown.layout);
  CHECK(unknown.origin == LayoutOrigin::untuned);
  CHECK(unknown.why.find("--grid 63x40") != std::string::npos);
  CHECK(unknown.file.empty());

  wavefront::WavefrontArgs args = wavefront::sweeps_at_once(problem, settings);
  args.has_source = true;
  args.layout.tile = {3, {1, 7, 1}};
  const std::filesystem::path file = wavefront::keep_cpu_tiles<T>(runtime.machine(), args);
  CHECK(file.parent_path() == own.folder() / "asterism");
  CHECK(std::filesystem::exists(file));
  const TileChoice known = wavefront::choose_tiles<T>(runtime, problem, settings, Source::given);
  REQUIRE(known.layout);
  CHECK(known.layout->tile.sweeps == 3);
  CHECK(known.layout->tile.points[1] == 7);
  CHECK(known.origin == LayoutOrigin::kept);
  CHECK(known.file == file);

  // Without a source, in the other precision and on a much larger grid it is another problem.
  using Other = std::conditional_t<std::is_same_v<T, float>, double, float>;
  CHECK_FALSE(wavefront::choose_tiles<T>(runtime, problem, settings, Source::none).layout);
  CHECK_FALSE(wavefront::choose_tiles<Other>(runtime, problem, settings, Source::given).layout);
  CHECK_FALSE(wavefront::choose_tiles<T>(runtime, {.shape = {126, 40}}, settings, Source::given).layout);

  const std::vector<T> f(63 * 40, T{1});
  const auto solve = [&] {
    std::vector<T> u(f.size());
    wavefront::Solver<T> solver(runtime, problem, settings);
    if (settings.layout) CHECK(solver.settings().layout->tile.points[1] == 7);
    solver.solve(f.data(), u.data());
    return u;
  };
  const std::vector<T> untuned = solve();
  settings.layout = known.layout;
  CHECK(solve() == untuned);
}

}  // namespace

TEST_CASE("on CPUs: a layout that was kept is the one that a solver gets, for problems like it" *
          doctest::skip(shape_is("gpu"))) {
  check_choice<float>();
  check_choice<double>();
}

TEST_CASE("tiles are not chosen for what a solver refuses") {
  Runtime runtime;
  wavefront::Settings settings;
  settings.sweeps = 1;
  CHECK_THROWS_AS(wavefront::choose_tiles<double>(runtime, {.shape = {5, 0}}, settings, Source::none), Error);
  settings.sweeps = 0;
  CHECK_THROWS_AS(wavefront::choose_tiles<double>(runtime, {.shape = {5, 5}}, settings, Source::none), Error);
}
