#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <iostream>
#include <limits>
#include <sstream>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "../../runtime/runtime.hpp"

namespace asterism::tools {
namespace {

/// "AxBxC" in its parts; the sign between them may be x, X or the multiplication sign.
std::vector<std::string_view> factors(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    std::size_t at = text.size(), length = 0;
    for (const std::string_view sign : {"x", "X", "\xc3\x97"})
      if (const auto found = text.find(sign); found < at) at = found, length = sign.size();
    parts.push_back(text.substr(0, at));
    if (length == 0) return parts;
    text.remove_prefix(at + length);
  }
}

/// Reads all of `text` as one number.
template <class T>
std::errc parse_number(std::string_view text, T& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc{} && end != text.data() + text.size() ? std::errc::invalid_argument : status;
}

/// Words of `text` in lines of at most `width` characters.
std::string wrapped(const std::string& text, std::size_t width) {
  std::istringstream words(text);
  std::string result, word;
  std::size_t column = 0;
  while (words >> word) {
    const bool breaks = column + 1 + word.size() > width;
    if (column > 0) result += breaks ? '\n' : ' ';
    column = breaks || column == 0 ? word.size() : column + 1 + word.size();
    result += word;
  }
  return result;
}

/// The subcommand that the command line got to.
const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.front());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::string missing_subcommand(const CLI::App& app) {
  std::string names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names += (names.empty() ? "" : ", ") + sub->get_name();
  const auto surplus = app.remaining(true);
  return surplus.empty() || surplus.front().starts_with('-')
             ? fmt::format("a subcommand is missing: one of {}", names)
             : fmt::format("the subcommand '{}' is unknown: there are {}", surplus.front(), names);
}

/// What is said of an option that was given without its value, or more than once.
std::string misused_option(const CLI::App& app, const std::string& what) {
  const std::string name = what.substr(0, what.find(':'));
  const CLI::Option* const option = app.get_option_no_throw(name);
  if (option == nullptr) return what;
  return option->count() > 1 ? fmt::format("{} is given {} times; give it once", name, option->count())
                             : fmt::format("{}: its value is missing; it follows the option: {} {}", name,
                                           name, option->get_type_name());
}

}  // namespace

std::size_t parse_size(const std::string& text) {
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  const auto fail = [&](const char* what) {
    return Error(fmt::format(
        "size '{}' {}: write a number and K, M, G or T (powers of 1024), like 512M or 1.5G", text, what));
  };
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number(text.data(), digits);
  std::string unit = text.substr(digits);
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });

  int shift = 0;
  constexpr std::string_view prefixes = "KMGT";
  if (const auto prefix = prefixes.find(unit.empty() ? '?' : unit[0]); prefix != std::string_view::npos) {
    shift = 10 * (static_cast<int>(prefix) + 1);
    unit.erase(0, 1);
    if (unit == "IB" || unit == "I") unit.clear();
  }
  if (!unit.empty() && unit != "B") throw fail("has an unknown unit");

  // Whole numbers exactly, however many digits they have.
  if (number.find('.') == std::string_view::npos) {
    std::size_t value = 0;
    const std::errc status = parse_number(number, value);
    if (status == std::errc::result_out_of_range || (status == std::errc{} && value > most >> shift))
      throw fail("is beyond 64 bits");
    if (status != std::errc{}) throw fail("is not a number");
    return value << shift;
  }
  double value = 0;
  if (parse_number(number, value) != std::errc{}) throw fail("is not a number");
  if (shift == 0) throw fail("is a fraction of a byte");
  value = std::ldexp(value, shift);
  if (value >= 0x1p64) throw fail("is beyond 64 bits");
  return static_cast<std::size_t>(value);
}

std::vector<Index> parse_grid(const std::string& text, std::size_t least) {
  const auto fail = [&](std::string_view token, std::string_view what) {
    return Error(
        fmt::format("grid '{}': '{}' {}: write rows x columns, like 4095x1023, or planes x rows x "
                    "columns, like 255x511x127",
                    text, token, what));
  };
  const std::vector<std::string_view> parts = factors(text);
  if (parts.size() < least) throw fail(text, "has no 'x'");
  if (parts.size() > 3) throw fail(text, fmt::format("has {} extents", parts.size()));
  std::vector<Index> extents;
  for (const std::string_view token : parts) {
    Index extent = 0;
    const std::errc status = parse_number(token, extent);
    if (status == std::errc::result_out_of_range) throw fail(token, "is too large");
    if (status != std::errc{}) throw fail(token, "is not a whole number");
    extents.push_back(extent);
  }
  const auto refuse = [&](const char* what) {
    return Error(fmt::format("grid is {}: {}", fmt::join(extents, " x "), what));
  };
  for (const Index extent : extents)
    if (extent < 1) throw refuse("every extent must be at least 1");
  // The bytes of a float64 grid have to be countable, with room for its padding.
  Index room = std::numeric_limits<Index>::max() / 16;
  for (const Index extent : extents) room /= extent;
  if (room < 1) throw refuse("more points than can be counted");
  return extents;
}

std::vector<double> parse_lengths(const std::string& text, std::size_t least) {
  const auto fail = [&](std::string_view token, std::string_view what) {
    return Error(
        fmt::format("lengths '{}': '{}' {}: write the lengths along y and x, like 1x2.5, or along z, y "
                    "and x, like 1x1x2.5",
                    text, token, what));
  };
  const std::vector<std::string_view> parts = factors(text);
  if (parts.size() < least) throw fail(text, "has no 'x'");
  if (parts.size() > 3) throw fail(text, fmt::format("has {} lengths", parts.size()));
  std::vector<double> lengths;
  for (const std::string_view token : parts) {
    double length = 0;
    if (parse_number(token, length) != std::errc{}) throw fail(token, "is not a number");
    if (!(length > 0) || !std::isfinite(length)) throw fail(token, "is not positive and finite");
    lengths.push_back(length);
  }
  return lengths;
}

double parse_real(const std::string& text) {
  double value = 0;
  if (parse_number(text, value) != std::errc{}) throw Error(fmt::format("'{}' is not a number", text));
  if (!std::isfinite(value)) throw Error(fmt::format("'{}' is not finite", text));
  return value;
}

template <class T>
T parse_whole(const std::string& text, T least) {
  std::make_unsigned_t<T> value = 0;
  const std::errc status = parse_number(text, value);
  if (status == std::errc::result_out_of_range || (status == std::errc{} && !std::in_range<T>(value)))
    throw Error(fmt::format("'{}' is too large", text));
  if (status != std::errc{} || static_cast<T>(value) < least)
    throw Error(fmt::format("'{}' is not a whole number from {} on", text, least));
  return static_cast<T>(value);
}

template int parse_whole(const std::string&, int);
template Index parse_whole(const std::string&, Index);
template std::uint64_t parse_whole(const std::string&, std::uint64_t);

void add_machine_options(CLI::App& app, CommonOptions& options) {
  Options& runtime = options.runtime;
  const auto count = [](const std::string& text) { return parse_whole<int>(text); };
  const auto group = [](CLI::Option* option, const char* type) { option->type_name(type)->group("Machine"); };
  group(add_parsed_option(app, "--cpus", runtime.cpus, count,
                          "cores that compute; 0: GPUs only; default: all that GPU workers leave over"),
        "N");
  group(
      add_parsed_option(app, "--gpus", runtime.gpus, count, "GPUs that compute; 0: cores only; default: all"),
      "N");
  group(add_parsed_option(
            app, "--memory", runtime.cpu_memory, parse_size,
            "main memory that the problem may take, like 8G (K, M, G, T: powers of 1024); what is beyond "
            "goes to the folder of --spill; default: no limit"),
        "SIZE");
  group(add_parsed_option(
            app, "--gpu-memory", runtime.gpu_memory, parse_size,
            "memory of each GPU that may be used, like 4G: larger problems are streamed through it; "
            "default: nearly all"),
        "SIZE");
  group(app.add_option(
            "--spill", runtime.spill,
            "folder on a fast disk for what does not fit in --memory: a problem may be larger than main "
            "memory"),
        "DIR");
  group(app.add_option(
            "--scheduler", runtime.scheduler,
            "StarPU's scheduling policy; `asterism info` lists those that there are; default: $STARPU_SCHED "
            "if set, else dmdas"),
        "NAME");
  app.add_flag("--json", options.json,
               "report for programs: one JSON object on standard output, nothing else there")
      ->group("Output");
}

void add_trace_option(CLI::App& app, CommonOptions& options) {
  app.add_option(
         "--trace", options.runtime.trace,
         "folder for a trace of the run: summary.txt (who was busy, with what), trace.svg (a picture, where "
         "ViTE is installed), paje.trace (for ViTE), dag.dot (the task graph, for Graphviz)")
      ->type_name("DIR")
      ->group("Output");
}

void add_problem_options(CLI::App& app, CommonOptions& options) {
  add_choice_option<std::optional<Precision>, Precision>(
      app, "--precision", options.precision, {{"f32", Precision::f32}, {"f64", Precision::f64}},
      "of the arithmetic and the output; default: that of the input file, f64 without one")
      ->group("Problem");
  add_parsed_option(
      app, "--seed", options.seed, [](const std::string& text) { return parse_whole<std::uint64_t>(text); },
      fmt::format("of random numbers: equal seeds, equal problems; default: {}", options.seed))
      ->type_name("N")
      ->group("Problem");
}

void add_output_options(CLI::App& app, CommonOptions& options) {
  app.add_option("-o,--output", options.output,
                 "file for the solution; an old one is replaced when the new one is complete")
      ->type_name("FILE")
      ->group("Output");
  app.add_flag_callback(
         "--quiet", [&options] { options.verbosity = Verbosity::quiet; }, "no text report, no progress line")
      ->group("Output");
}

void add_common_options(CLI::App& app, CommonOptions& options) {
  add_problem_options(app, options);
  add_machine_options(app, options);
  add_output_options(app, options);
  add_trace_option(app, options);
}

std::string options_for_all_ranks(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool may_differ =
        option->get_group() == "Machine" || name == "--json" || name == "--quiet" || name == "--trace";
    if (option->count() > 0 && !may_differ) text += fmt::format("{}: {}\n", name, fmt::join(option->results(), " "));
  }
  for (const CLI::App* subcommand : app.get_subcommands())
    text += fmt::format("subcommand: {}\n", subcommand->get_name()) + options_for_all_ranks(*subcommand);
  return text;
}

void warn(const std::string& message) {
  if (launched_rank() == 0) fmt::print(stderr, "asterism: warning: {}\n", message);
}

void warn_without_effect(const CLI::App& app, const std::string& option, const std::string& why) {
  if (app.get_option(option)->count() > 0) warn(fmt::format("{} has no effect: {}", option, why));
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  constexpr std::size_t terminal = 100;
  return wrapped(CLI::Formatter::make_option_desc(option), terminal - get_column_width());
}

Parsed parse_command_line(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return Parsed::finished;
  } catch (const CLI::Success& success) {  // --help
    app.exit(success, std::cout, std::cerr);
    return Parsed::finished;
  } catch (const CLI::ParseError& error) {
    const CLI::App& reached = innermost(app);
    std::string what = error.what();
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) what = missing_subcommand(reached);
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) what = misused_option(reached, what);
    throw Error(fmt::format("{}; see `{} --help`", what, full_name(reached)));
  }
  return Parsed::run;
}

}  // namespace asterism::tools
