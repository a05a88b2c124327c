// What runs leave behind that break down, are interrupted or fill a disk, and those that write over their input.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>

#include "../support/command_line.hpp"
#include "../support/small_disk.hpp"
#include "bad_inputs.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

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
