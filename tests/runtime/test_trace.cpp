// What --trace leaves in its folder.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "../support/process.hpp"
#include "../support/skip.hpp"

using namespace asterism::test;
namespace fs = std::filesystem;

namespace {

void has(const std::string& text, const Words& words) {
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(text.find(word) != std::string::npos);
  }
}

/// Whether every element of an XML text ends, in the right order.
bool well_formed(std::string_view text) {
  std::vector<std::string_view> open;
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const std::size_t end = text.find('>', at);
    if (end == std::string_view::npos) return false;
    std::string_view tag = text.substr(at + 1, end - at - 1);
    if (tag.starts_with('?') || tag.starts_with('!') || tag.ends_with('/')) continue;
    const bool closes = tag.starts_with('/');
    if (closes) tag.remove_prefix(1);
    const std::string_view name = tag.substr(0, tag.find_first_of(" \t\r\n"));
    if (!closes) {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    }
  }
  return open.empty() && text.find('<') != std::string_view::npos;
}

/// A Paje trace: definitions of events first, then events by number; our codelets are states in it.
void check_pictures(const fs::path& folder, const Words& codelets) {
  const std::string paje = load(folder / "paje.trace");
  CHECK(paje.starts_with("%EventDef"));
  CHECK(std::count(paje.begin(), paje.end(), '\n') > 100);
  has(paje, codelets);
  const std::string dag = load(folder / "dag.dot");
  CHECK(dag.starts_with("digraph"));
  CHECK(std::count(dag.begin(), dag.end(), '{') == std::count(dag.begin(), dag.end(), '}'));
  has(dag, codelets + Words{"->"});
}

/// What ViTE has drawn.
void check_drawing(const fs::path& folder) {
  const std::string svg = load(folder / "trace.svg");
  CHECK(svg.find("<svg") != std::string::npos);
  CHECK(svg.find("CPU0") != std::string::npos);
  CHECK(well_formed(svg));
}

void check_summary(const std::string& text, const Words& codelets) {
  CAPTURE(text);
  has(text, codelets + Words{"worker", "busy", "CPU 0", "%", "codelet", "ms each", "link", "bytes"});
}

const Words poisson_codelets{"model_rhs_f64",  "transform_slab_f64", "eliminate_f64",
                             "meet_f64", "solve_slab_f64",     "residual_f64"};

}  // namespace

TEST_CASE("a trace of a solve: summary, Paje, task graph") {
  const fs::path folder = fresh_folder("trace");
  for (const char* grid : {"1023x1023", "511x511"}) {  // the second over the first
    const Result result = run(one_process({"poisson", "--grid", grid, "--json", "--trace", folder.string()}));
    CAPTURE(result.err);
    CHECK(result.status == 0);
    CHECK(result.err.empty());
    CHECK(result.out.starts_with("{"));
    CHECK(result.out.ends_with("}\n"));
    check_pictures(folder, poisson_codelets);
    check_summary(load(folder / "summary.txt"), poisson_codelets);
  }
}

TEST_CASE("ViTE draws the trace, of one rank and of two" *
          SkipUnless(std::system("command -v vite >/dev/null") == 0, "ViTE is not installed")) {
  const fs::path folder = fresh_folder("drawn");
  const Words solve{"poisson", "--grid", "511x511", "--quiet", "--trace", folder.string()};
  for (const Words& command : {one_process(solve), on_ranks(2, solve)}) {
    fs::remove_all(folder);
    REQUIRE(run(command).status == 0);
    check_drawing(folder);
  }
}

TEST_CASE("the summary tells the bytes of every link") {
  const fs::path folder = fresh_folder("trace"), disk = fresh_folder("spill");
  const Result result =
      run(one_process({"poisson", "--grid", "3000x3000", "--quiet", "--no-check", "--memory", "32M",
                       "--spill", disk.string(), "--trace", folder.string()}));
  CHECK(result.status == 0);
  const std::string text = load(folder / "summary.txt");
  CAPTURE(text);
  for (const char* link : {"NUMA 0 -> Disk 0", "Disk 0 -> NUMA 0"}) {
    const std::size_t at = text.find(link);
    REQUIRE(at != std::string::npos);
    CHECK(std::stod(text.substr(at + std::string_view(link).size())) > 3000 * 3000 * 8 / 2);
  }
}

TEST_CASE("a trace of two ranks: one for both, a summary for each") {
  const fs::path folder = fresh_folder("trace");
  const Result result = run(on_ranks(
      2, {"poisson", "--grid", "1023x1023", "--slab", "256", "--quiet", "--trace", folder.string()}));
  CAPTURE(result.err);
  CHECK(result.status == 0);
  check_pictures(folder, poisson_codelets);
  for (const char* rank : {"0", "1"}) {
    const std::string text = load(folder / (std::string("summary-rank-") + rank + ".txt"));
    check_summary(
        text, poisson_codelets + Words{"rank " + std::string(rank) + " of 2", "other ranks -> this rank"});
  }
}
