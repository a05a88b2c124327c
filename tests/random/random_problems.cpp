// Random problems from a seed, solved by the library and by slow oracles of their own, for as long as is
// wanted. tools/test-random builds and runs it.

#include "random_problems.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

#include "runtime/collectives.hpp"

namespace asterism::test {

void Findings::expect(const std::string& name, double value, double bound) {
  figures[name] = value;
  if (!(value <= bound))
    faults.push_back(fmt::format("{} is {:.3g}, at most {:.3g} is right", name, value, bound));
}

namespace {

struct Family {
  std::string name;
  Trial (*draw)(Draw&);
  Index every = 1;  ///< of the numbers: its cases take so much longer than others
  Index cases = 0, failed = 0;
  std::map<std::string, double> worst = {};  ///< of the cases that passed

  void note(const Findings& findings) {
    ++cases;
    failed += findings.faults.empty() ? 0 : 1;
    if (!findings.faults.empty()) return;
    for (const auto& [name_of_figure, value] : findings.figures)
      worst[name_of_figure] = std::max(worst[name_of_figure], value);
  }
};

/// Told when a case ends the program.
std::string current_case;

void tell_case(int signal) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, current_case.data(), current_case.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Settings {
  double seconds = 60;
  Index cases = 0;  ///< of each family that has all of them; 0: as many as time is for
  std::uint64_t seed = 1;
  std::string family;  ///< empty: all in turn
  Index only = -1;     ///< the one case to run
};

Findings run(Runtime& runtime, const Trial& drawn) {
  try {
    return drawn.check(runtime);
  } catch (const Stall&) {
    throw;
  } catch (const std::exception& error) {
    return {{error.what()}, {}};
  }
}

/// @return whether all cases passed
bool run_cases(Runtime& runtime, const Settings& settings) {
  std::vector<Family> families{
      {"poisson", draw_poisson}, {"helmholtz", draw_helmholtz},    {"relax", draw_relax},
      {"linear", draw_linear, 8}, {"qap", draw_assignment, 8}};
  if (!settings.family.empty())
    std::erase_if(families, [&](const Family& f) { return f.name != settings.family; });
  const bool tells = runtime.rank() == 0;
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto goes_on = [&](Index number) {
    if (settings.only >= 0) return number == settings.only;
    if (settings.cases > 0) return number < settings.cases;
    double time = tells ? seconds() : 0;
    sum_over_ranks(runtime, &time, 1);  // by the clock of rank 0
    return time < settings.seconds;
  };

  Index told = 0;
  for (Index number = std::max(settings.only, Index{0}); goes_on(number); ++number)
    for (Family& family : families) {
      if (families.size() > 1 && number % family.every != 0) continue;
      const std::string command =
          fmt::format("tools/test-random --seed {} --family {} --case {}{}", settings.seed, family.name,
                      number, runtime.ranks() > 1 ? fmt::format(" --ranks {}", runtime.ranks()) : "");
      current_case = fmt::format("this happened in\n  {}\n", command);
      Draw draw(settings.seed, static_cast<std::uint64_t>(number));
      const Trial drawn = family.draw(draw);
      if (tells && settings.only >= 0) fmt::print("{}\n", drawn.words);
      const Findings findings = run(runtime, drawn);
      family.note(findings);
      if (!tells) continue;
      if (settings.only >= 0)
        for (const auto& [name, value] : findings.figures) fmt::print("  {}: {:.3g}\n", name, value);
      if (findings.faults.empty() || ++told > 20) continue;
      fmt::print("FAILED: {}\n  {}: {}\n  {}\n", fmt::join(findings.faults, "; "), family.name, drawn.words,
                 command);
      std::fflush(stdout);
    }

  Index cases = 0, failed = 0;
  for (const Family& family : families) {
    cases += family.cases;
    failed += family.failed;
    if (!tells) continue;
    fmt::print("{}: {} cases, {} failed\n", family.name, family.cases, family.failed);
    for (const auto& [name, value] : family.worst)
      fmt::print("  {}: at most {:.3g} where it passed\n", name, value);
  }
  if (tells)
    fmt::print("{} passed, {} failed, {:.1f} cases a second\n", cases - failed, failed,
               static_cast<double>(cases) / seconds());
  return failed == 0;
}

}  // namespace
}  // namespace asterism::test

int main(int argc, char** argv) {
  using namespace asterism;
  test::Settings settings;
  CLI::App program{"Solves random problems and compares with slow oracles.", "random_problems"};
  program.add_option("--seconds", settings.seconds, "how long")->capture_default_str();
  program.add_option("--cases", settings.cases, "how many of each family, instead; of linear and qap an eighth of them")
      ->check(CLI::PositiveNumber);
  program.add_option("--seed", settings.seed, "what the problems are drawn from")->capture_default_str();
  program.add_option("--family", settings.family, "only these problems")
      ->check(CLI::IsMember({"poisson", "helmholtz", "relax", "linear", "qap"}));
  program.add_option("--case", settings.only, "only the problem of this number")
      ->check(CLI::NonNegativeNumber);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : static_cast<int>(Blame::input);
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, test::tell_case);
  try {
    Runtime runtime;
    try {
      return test::run_cases(runtime, settings) ? 0 : 1;
    } catch (const Stall& stall) {
      fmt::print(stderr, "{}\n{}", stall.what(), test::current_case);
      end_all_ranks(static_cast<int>(stall.blame()));
    }
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.blame());
  }
}
