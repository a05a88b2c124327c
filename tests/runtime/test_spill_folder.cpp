// Spill folders that killed processes left.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "../support/child.hpp"
#include "runtime/codelet.hpp"
#include "working_runtime.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

namespace {

Options with_spill() {
  return with([](Options& o) {
    o.gpus = 0;
    o.cpu_memory = std::size_t{20} << 20;
    o.spill = fs::absolute("abandoned");
    o.spill_bytes = std::size_t{64} << 20;
  });
}

/// Writes more than fits in main memory, so that files lie in the spill folder.
std::vector<Tile<double>> overflow(Runtime& runtime) {
  static const Codelet<double, Out<double>> fill{"test_overflow", [](const double& value, Out<double> x) {
                                                   for (Index i = 0; i < x.rows; ++i)
                                                     std::fill_n(x.row(i), x.cols, value);
                                                 }};
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < 20; ++k) fill(k, tiles.emplace_back(runtime, 512, 512));  // 2 MiB
  runtime.wait();
  return tiles;
}

std::set<std::string> names(const fs::path& folder) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.insert(entry.path().filename());
  return found;
}

}  // namespace

TEST_CASE("runtime: a child is killed while it spills" * doctest::skip()) {
  Runtime runtime(with_spill());
  const std::vector<Tile<double>> tiles = overflow(runtime);
  CHECK(runtime.traffic().to_disk > 0);
  ::kill(getpid(), SIGKILL);
}

TEST_CASE("runtime: what a killed process spilled is removed by the next one, and nothing else") {
  const fs::path folder = fresh_folder("abandoned");
  const Child child = run_in_child("runtime: a child is killed while it spills");
  CHECK_MESSAGE(child.status == 128 + SIGKILL, child.text);
  REQUIRE(names(folder).size() == 1);
  const std::string left = *names(folder).begin();
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const std::string prefix = std::string("asterism-") + host + "-", dead = "2147483647";
  CHECK_MESSAGE(left.starts_with(prefix), left);
  CHECK(names(folder / left).size() > 1);  // the lock, and files of StarPU

  const std::string abandoned = prefix + dead + "-abcdef", locked = prefix + dead + "-locked";
  const std::set<std::string> others{prefix + std::to_string(getpid()) + "-abcdef",  // of a living process
                                     locked,  // of one that we cannot see
                                     "asterism-another-host-" + dead + "-abcdef",
                                     "asterism-x" + prefix + dead + "-abcdef",
                                     prefix + dead + "-abc",
                                     prefix + dead + "-abcdefg",
                                     prefix + dead + "-abc.ef",
                                     prefix + "-abcdef",
                                     prefix + "0-abcdef",
                                     prefix + dead,
                                     "results"};
  for (const std::string& name : others) fs::create_directories(folder / name / "below");
  fs::create_directories(folder / abandoned / "below");
  fs::create_directory_symlink(folder / "results", folder / (prefix + dead + "-linked"));
  std::ofstream(folder / (prefix + dead + "-afiles")) << "a file";
  const int lock = ::open((folder / locked / "lock").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(::flock(lock, LOCK_EX) == 0);

  std::set<std::string> expected = others;
  expected.insert({prefix + dead + "-linked", prefix + dead + "-afiles"});
  {
    Runtime runtime(with_spill());
    const std::vector<Tile<double>> tiles = overflow(runtime);
    std::set<std::string> now = names(folder);
    CHECK(now.size() == expected.size() + 1);
    for (const std::string& name : expected) CHECK_MESSAGE(now.erase(name) == 1, name);
    REQUIRE(now.size() == 1);
    CHECK_MESSAGE(now.begin()->starts_with(prefix + std::to_string(getpid()) + "-"), *now.begin());
    for (int k = 0; k < 20; ++k)
      CHECK(HostView<double>(tiles[static_cast<std::size_t>(k)], HostView<double>::Access::read)(511, 511) ==
            k);
  }
  CHECK(names(folder) == expected);
  for (const std::string& name : others) CHECK(fs::exists(folder / name / "below"));

  ::close(lock);
  expected.erase(locked);
  { const Runtime runtime(with_spill()); }
  CHECK(names(folder) == expected);
}
