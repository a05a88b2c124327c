#include "options.hpp"

#include <fmt/format.h>

#include <charconv>

namespace asterism::tools {
namespace {

using qap::Method;

const Words<Method> methods{{"auto", Method::automatic},
                            {"pmts", Method::multistart},
                            {"rots", Method::robust},
                            {"tempering", Method::tempering}};

qap::TenureRange parse_tenure(const std::string& text) {
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon), value = colon < text.size() ? text.substr(colon + 1) : "";
  if (kind == "fixed") {
    const auto length = parse_whole<Index>(value);
    return {length, length};
  }
  const auto dash = value.find('-');
  if (kind != "random" || dash == std::string::npos)
    throw Error(fmt::format("'{}' is no tenure: fixed:L, or random:LO-HI", text));
  const qap::TenureRange range{parse_whole<Index>(value.substr(0, dash)),
                               parse_whole<Index>(value.substr(dash + 1))};
  if (range.least > range.most)
    throw Error(fmt::format("'{}': {} is more than {}", text, range.least, range.most));
  return range;
}

}  // namespace

const char* name(Method method) { return word_of(methods, method); }

qap::Cost parse_cost(const std::string& text) {
  qap::Cost cost = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), cost);
  if (status != std::errc{} || end != text.data() + text.size())
    throw Error(fmt::format("'{}' is no whole number of 64 bits", text));
  return cost;
}

double parse_seconds(const std::string& text) {
  const double seconds = parse_real(text);
  if (seconds < 0) throw Error(fmt::format("'{}': no time is negative", text));
  return seconds;
}

void add_search_options(CLI::App& app, qap::SearchSettings& s) {
  OptionGroup method(app, "Method");
  method.choice(
      "--search", s.method, methods,
      "pmts: parallel multistart tabu search; rots: robust tabu search, walks that stand still started anew; "
      "tempering: parallel tempering; auto: pmts and rots, on islands in turn; default: auto");
  method.add(
      "--islands", s.islands, parse_count<>, "N",
      "populations that search by themselves and tell each other their best; ranks share them; default: 4");
  method.add("--offset", s.max_offset, parse_count<>, "K",
             "of pmts: every initial solution is diversified with offsets from 1 to K; default: 5");
  method.add("--initials", s.initials, parse_count<>, "N",
             "of pmts: initial solutions of a generation; default: 5");
  method.add(
      "--tenures", s.tenures, parse_counts, "A,B,...",
      "of pmts: lengths of tabu lists, each of which every start is walked with; default: 18,21,24,29,32, shorter "
      "for fewer than 36 locations");
  method.add(
      "--tenure", s.tenure, parse_tenure, "fixed:L|random:LO-HI",
      "for how many iterations a move stays tabu, in rots, and in pmts instead of --tenures; default of rots: "
      "random, 0.9 to 1.1 times the number of locations");
  method.add("--walks", s.walks, parse_count<>, "N",
             "of rots and tempering: walks of an island; default: 16, 24");
  method.add("--iterations", s.first_iterations, parse_count<>, "N",
             "of pmts: of a walk in the first generation; default: the number of locations");
  method.add("--max-iterations", s.most_iterations, parse_count<>, "N",
             "of pmts: to which these grow where nothing gets better; default: its square");
}

void fit_machine_to_search(Options& machine, qap::SearchSettings& settings) {
  machine.preferences = qap::preferences();
  if (machine.cpus != 0 || machine.gpus == 0) return;
  machine.cpus = 1;
  settings.walkers = qap::Walkers::gpus;
}

void add_qap_options(CLI::App& app, QapOptions& o) {
  add_file(
      app, "INSTANCE.dat", o.instance,
      "the instance, as in QAPLIB: its size n, an n x n matrix of distances, one of flows, whole numbers");
  OptionGroup problem(app, "Problem");
  problem.name("--start", o.start, "S.sln",
               "a solution to begin with, as in QAPLIB: n, its cost, a permutation or its inverse");
  add_seed_option(app, o.common);
  OptionGroup end(app, "End");
  end.add("--time", o.settings.seconds, parse_seconds, "SECONDS",
          "end after so long; default: 10, where neither --generations nor --target is given");
  end.add("--target", o.settings.target, parse_cost, "COST", "end at this cost, or less");
  end.add(
      "--generations", o.settings.generations, parse_count<>, "G",
      "end after so many generations: runs of equal seeds and options then have equal answers, on any machine");
  add_search_options(app, o.settings);
  add_machine_options(app, o.common);
  add_output_options(app, o.common);
  add_trace_option(app, o.common);
}

}  // namespace asterism::tools
