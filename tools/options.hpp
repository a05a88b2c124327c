/// \file
/// The options that all subcommands share, and how their values are written.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "../runtime/error.hpp"
#include "../runtime/machine.hpp"
#include "../runtime/ports.hpp"
#include "npy.hpp"
#include "progress.hpp"

namespace asterism::tools {

/// "4G", "512M", "1.5GiB", "123" in bytes; K, M, G, T are powers of 1024. @throw Error
std::size_t parse_size(const std::string& text);

struct GridShape {
  Index rows, cols;
};

/// "4095x1023": rows x columns. @throw Error
GridShape parse_grid(const std::string& text);

struct Lengths {
  double y, x;
};

/// "1x2.5": the lengths of a rectangle along y and x. @throw Error
Lengths parse_lengths(const std::string& text);

/// "f32" or "f64". @throw Error
Precision parse_precision(const std::string& text);

struct CommonOptions {
  Options runtime;  ///< --cpus, --gpus, --memory, --gpu-memory, --scheduler, --spill, --trace
  std::optional<Precision> precision;  ///< none: that of the input, or the solver's default
  std::filesystem::path output;        ///< empty: none
  bool json = false;
  Verbosity verbosity = Verbosity::normal;
  std::uint64_t seed = 1;
};

/// Adds the common options to a subcommand; `options` has to outlive the parsing.
void add_common_options(CLI::App& app, CommonOptions& options);

/// Adds an option whose value is read by one of the parsers above: their errors are preceded by the option's
/// name.
template <class Target, class Parser>
CLI::Option* add_parsed_option(CLI::App& app, const std::string& name, Target& target, Parser parser,
                               const std::string& help) {
  const auto read = [&target, parser, name](const std::string& text) {
    try {
      target = parser(text);
    } catch (const Error& error) {
      throw Error(name + ": " + error.what());
    }
  };
  return app.add_option_function<std::string>(name, read, help);
}

enum class Parsed { run, finished };

/// Parses the command line. @return finished when it asked for help or the version, which is then printed.
/// @throw Error for everything that is wrong with it.
Parsed parse_command_line(CLI::App& app, int argc, const char* const* argv);

}  // namespace asterism::tools
