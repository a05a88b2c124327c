#include "options.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <iostream>
#include <limits>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace asterism::tools {
namespace {

/// "AxB" in its two halves; the sign between them may be x, X or the multiplication sign.
std::optional<std::pair<std::string_view, std::string_view>> halves(std::string_view text) {
  for (const std::string_view sign : {"x", "X", "\xc3\x97"})
    if (const auto at = text.find(sign); at != std::string_view::npos)
      return std::pair(text.substr(0, at), text.substr(at + sign.size()));
  return std::nullopt;
}

/// Reads all of `text` as one number.
template <class T>
std::errc parse_number(std::string_view text, T& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc{} && end != text.data() + text.size() ? std::errc::invalid_argument : status;
}

/// A whole number from 0 on.
template <class T>
T parse_count(const std::string& text) {
  std::make_unsigned_t<T> value = 0;
  const std::errc status = parse_number(text, value);
  if (status == std::errc::result_out_of_range || (status == std::errc{} && !std::in_range<T>(value)))
    throw Error(fmt::format("'{}' is too large", text));
  if (status != std::errc{}) throw Error(fmt::format("'{}' is not a whole number from 0 on", text));
  return static_cast<T>(value);
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

GridShape parse_grid(const std::string& text) {
  const auto sides = halves(text);
  const auto fail = [&](std::string_view token, std::string_view what) {
    return Error(fmt::format("grid '{}': '{}' {}: write rows x columns, like 4095x1023", text, token, what));
  };
  if (!sides) throw fail(text, "has no 'x'");
  std::array<Index, 2> extents{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string_view token = i == 0 ? sides->first : sides->second;
    const std::errc status = parse_number(token, extents[i]);
    if (status == std::errc::result_out_of_range) throw fail(token, "is too large");
    if (status != std::errc{}) throw fail(token, "is not a whole number");
  }
  const auto [rows, cols] = extents;
  if (rows < 1 || cols < 1)
    throw Error(fmt::format("grid is {} x {}: every extent must be at least 1", rows, cols));
  // The bytes of a float64 grid have to be countable, with room for its padding.
  if (rows > std::numeric_limits<Index>::max() / 16 / cols)
    throw Error(fmt::format("grid is {} x {}: more points than can be counted", rows, cols));
  return {rows, cols};
}

Lengths parse_lengths(const std::string& text) {
  const auto sides = halves(text);
  const auto fail = [&](std::string_view token, std::string_view what) {
    return Error(
        fmt::format("lengths '{}': '{}' {}: write the lengths along y and x, like 1x2.5", text, token, what));
  };
  if (!sides) throw fail(text, "has no 'x'");
  std::array<double, 2> lengths{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string_view token = i == 0 ? sides->first : sides->second;
    if (parse_number(token, lengths[i]) != std::errc{}) throw fail(token, "is not a number");
    if (!(lengths[i] > 0) || !std::isfinite(lengths[i])) throw fail(token, "is not positive and finite");
  }
  return {lengths[0], lengths[1]};
}

Precision parse_precision(const std::string& text) {
  if (text == "f32") return Precision::f32;
  if (text == "f64") return Precision::f64;
  throw Error(fmt::format("precision '{}' is unknown: f32 and f64 are known", text));
}

void add_common_options(CLI::App& app, CommonOptions& options) {
  Options& runtime = options.runtime;
  add_parsed_option(app, "--cpus", runtime.cpus, parse_count<int>,
                    "cores that compute; 0: GPUs only; default: all that GPU workers leave over")
      ->type_name("N")
      ->group("Machine");
  add_parsed_option(app, "--gpus", runtime.gpus, parse_count<int>,
                    "GPUs that compute; 0: cores only; default: all")
      ->type_name("N")
      ->group("Machine");
  add_parsed_option(
      app, "--memory", runtime.cpu_memory, parse_size,
      "main memory that data of the solver may take, like 8G (K, M, G, T: powers of 1024); what is "
      "beyond goes to the folder of --spill; default: no limit")
      ->type_name("SIZE")
      ->group("Machine");
  add_parsed_option(
      app, "--gpu-memory", runtime.gpu_memory, parse_size,
      "memory of each GPU that may be used, like 4G: larger problems are streamed through it; default: "
      "nearly all")
      ->type_name("SIZE")
      ->group("Machine");
  app.add_option("--scheduler", runtime.scheduler,
                 "StarPU's scheduling policy; `asterism info` lists those that there are; default: "
                 "$STARPU_SCHED if set, else dmdas")
      ->type_name("NAME")
      ->group("Machine");
  app.add_option("--spill", runtime.spill, "folder on a fast disk that takes what does not fit in --memory")
      ->type_name("DIR")
      ->group("Machine");
  app.add_option("--trace", runtime.trace,
                 "folder that takes a trace of the run: Paje, task graph, picture, summary")
      ->type_name("DIR")
      ->group("Output");

  add_parsed_option(
      app, "--precision", options.precision, parse_precision,
      "of the arithmetic and the output, f32 or f64; default: that of the input file, f64 without one")
      ->type_name("f32|f64")
      ->group("Problem");
  add_parsed_option(app, "--seed", options.seed, parse_count<std::uint64_t>,
                    fmt::format("of random numbers: equal seeds, equal problems; default: {}", options.seed))
      ->type_name("N")
      ->group("Problem");

  app.add_option("-o,--output", options.output,
                 "file that takes the solution; an old one is replaced only when the run has succeeded")
      ->type_name("FILE")
      ->group("Output");
  app.add_flag("--json", options.json,
               "report for programs: one JSON object on standard output, nothing else there")
      ->group("Output");
  app.add_flag_callback(
         "--quiet", [&options] { options.verbosity = Verbosity::quiet; }, "no progress line, no warnings")
      ->group("Output");
}

Parsed parse_command_line(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success, std::cout, std::cerr);
    return Parsed::finished;
  } catch (const CLI::ParseError& error) {
    throw Error(fmt::format("{}; --help lists what there is", error.what()));
  }
  return Parsed::run;
}

}  // namespace asterism::tools
