// What StarPU keeps from one run to the next: damaged files, full disks, strange homes.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <stdexcept>

#include "../support/child.hpp"
#include "../support/small_disk.hpp"
#include "runtime/codelet.hpp"
#include "runtime/kept/model_check.hpp"

using namespace asterism;
using namespace asterism::test;
namespace fs = std::filesystem;

namespace {

const Codelet<NoArgs, InOut<int>> count_up{"test_kept", [](const NoArgs&, InOut<int> x) { ++*x.data; }};

/// What makes env(1) let StarPU keep its files below `home`.
Words at_home(const fs::path& home) {
  return {"-u",          "STARPU_PERF_MODEL_DIR", "-u",
          "STARPU_HOME", "STARPU_SCHED=dmda",     "XDG_CACHE_HOME=" + home.string()};
}

Child run_at_home(const fs::path& home) { return run_in_child("models: a child's run", at_home(home)); }

std::map<fs::path, std::string> files_below(const fs::path& folder) {
  std::map<fs::path, std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[entry.path()] = load(entry.path());
  return files;
}

bool is_text(const fs::path& file) { return file.extension() != ".xml"; }

/// What is wrong with a file of this name; empty where it is sound.
std::string fault(const fs::path& file, const std::string& text, const model_check::Counts& counts) {
  try {
    if (file.extension() == ".config")
      model_check::config(text);
    else if (file.extension() == ".affinity")
      model_check::affinity(text, counts);
    else if (file.extension() == ".latency")
      model_check::latency(text, counts);
    else if (file.extension() == ".bandwidth")
      model_check::bandwidth(text, counts);
    else
      model_check::codelet(text, file.parent_path().filename().string());
  } catch (const std::invalid_argument& wrong) {
    return wrong.what();
  }
  return {};
}

std::size_t count(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("models: a child's run" * doctest::skip()) {
  int value = 41;
  {
    Runtime runtime;
    const Tile<int> tile(runtime, &value, 1, 1, 1);
    count_up({}, tile);
  }
  CHECK(value == 42);
}

TEST_CASE("models: damaged files are set aside, told, and written again") {
  const fs::path home = fresh_folder("home");
  const Child first = run_at_home(home);
  REQUIRE_MESSAGE(first.status == 0, first.text);
  const auto sound = files_below(home);
  REQUIRE(sound.size() == 7);  // six of the machine, one of the codelet

  using Damage = void (*)(const fs::path& file, const std::string& text);
  const Damage damages[] = {
      [](const fs::path& file, const std::string&) { std::ofstream stream(file); },
      [](const fs::path& file, const std::string& text) {
        std::ofstream(file) << text.substr(0, text.size() / 2);
      },
      [](const fs::path& file, const std::string&) { std::ofstream(file) << "\1\2garbage\n#\n"; },
      [](const fs::path& file, const std::string&) { fs::remove(file), ::mkfifo(file.c_str(), 0600); },
      [](const fs::path& file, const std::string&) { fs::remove(file), fs::create_directory(file); }};
  for (const Damage damage : damages) {
    for (const auto& [file, text] : sound)
      if (is_text(file)) damage(file, text);
    const Child child = run_at_home(home);
    CHECK_MESSAGE(child.status == 0, child.text);
    CHECK_MESSAGE(count(child.text, " is damaged (") == 5, child.text);
    for (const auto& [file, text] : sound) {
      REQUIRE(fs::is_regular_file(file));
      if (is_text(file)) CHECK(fault(file, load(file), {}).empty());
      fs::remove_all(file.string() + ".damaged");
    }
    const Child next = run_at_home(home);
    CHECK_MESSAGE(next.text.find("damaged") == std::string::npos, next.text);
  }
}

TEST_CASE("models: programs have their own, of codelets with the same name too") {
  const fs::path home = fresh_folder("home"), other = fs::absolute(home / "other");
  fs::create_hard_link(fs::read_symlink("/proc/self/exe"), other);
  REQUIRE(run_at_home(home).status == 0);
  const Result result = Process(Words{"env"} + at_home(home) +
                                Words{other.string(), "--no-skip", "--test-case=models: a child's run"})
                            .wait(60);
  REQUIRE_MESSAGE(result.status == 0, result.err);
  fs::remove(other);
  int of_this = 0, of_other = 0;
  for (const auto& [file, text] : files_below(home)) {
    const std::string name = file.filename().string();
    if (name.find("test_kept") == std::string::npos) continue;
    ++(name.starts_with("other-") ? of_other : of_this);
  }
  CHECK(of_this == 1);
  CHECK(of_other == 1);
}

TEST_CASE("models: whatever is cut off or put in is seen") {
  const fs::path home = fresh_folder("home");
  REQUIRE(run_at_home(home).status == 0);
  for (const auto& [file, text] : files_below(home)) {
    if (!is_text(file)) continue;
    CAPTURE(file);
    const model_check::Counts counts;
    CHECK(fault(file, text, counts).empty());
    for (std::size_t size = 0; size + 2 < text.size(); ++size) {
      CAPTURE(size);
      const bool whole_lines = size > 0 && text[size - 1] == '\n';
      if (!whole_lines) CHECK(!fault(file, text.substr(0, size), counts).empty());
    }
    const std::size_t number = text.find("\n0") + 1;
    const bool has_whole_numbers = file.extension() == ".config" || file.parent_path().filename() != "bus";
    for (const char* word : {"-1", "x", "\v", "999999999999999999999"})
      if (has_whole_numbers)
        CHECK(!fault(file, text.substr(0, number) + word + text.substr(number), counts).empty());
    CHECK(!fault(file, text + std::string("\0\n", 2), counts).empty());
  }
  const model_check::Counts two{.numa_nodes = 1, .nodes = 2};
  CHECK(fault("x.latency", "# to\n0\t2.5\n0\t0\n", two).empty());
  CHECK(fault("x.bandwidth", "# to\n0\t2.5\nnan\t0\n", two) == "line 3: a number cannot have been measured");
  CHECK(!fault("x.bandwidth", "# to\n0\t0\n1\t0\n", two).empty());
  CHECK(!fault("x.latency", "# to\n0\t-1\n1\t0\n", two).empty());
  CHECK(!fault("x.latency", "# to\n0\tinf\n1\t0\n", two).empty());
  CHECK(!fault("x.latency", "# to\n0\t1\n", two).empty());
  CHECK(fault("x.affinity", "# GPU\tNUMA0\t\n0\t0\t\n", two).empty());
  CHECK(!fault("x.affinity", "# GPU\tNUMA0\t\n1\t0\t\n", two).empty());
  CHECK(!fault("x.affinity", "# GPU\tNUMA0\t\n0\t1\t\n", two).empty());
  CHECK(!fault("x.affinity", "0\t0\t\n", two).empty());
}

TEST_CASE("models: where they cannot be kept, runs do without" * disks_can_be_mounted()) {
  for (const char* limit : {"size=64k", "size=1m,nr_inodes=8"}) {
    CAPTURE(limit);
    const SmallDisk disk(limit);
    const fs::path home = disk.folder();
    fs::create_directories(home / ".starpu/sampling/bus");
    for (const char* name : {"full", "full too"}) std::ofstream(home / name) << std::string(1 << 17, 'x');
    const Child full = run_at_home(home);
    CHECK_MESSAGE(full.status == 0, full.text);
    CHECK_MESSAGE(count(full.text, "cannot be written: what StarPU has measured is lost") == 1, full.text);
    for (const char* name : {"full", "full too"}) fs::remove(home / name);
    disk.change("size=1m,nr_inodes=100");
    const Child roomy = run_at_home(home);
    CHECK_MESSAGE(roomy.status == 0, roomy.text);
    CHECK_MESSAGE(roomy.text.find("asterism:") == std::string::npos, roomy.text);
    CHECK(files_below(home).size() == 7);
  }
}

TEST_CASE("models: a home with a long name is one") {
  const fs::path home = fresh_folder(std::string(200, 'h')) / std::string(200, 'h');
  const Child child = run_at_home(home);
  CHECK_MESSAGE(child.status == 0, child.text);
  CHECK(files_below(home).size() == 7);
}
