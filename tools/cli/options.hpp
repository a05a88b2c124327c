/// \file
/// The options that all subcommands share, and how their values are written.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../runtime/error.hpp"
#include "../../runtime/machine.hpp"
#include "../../runtime/ports.hpp"
#include "../files/npy.hpp"
#include "progress.hpp"

namespace asterism::tools {

/// "4G", "512M", "1.5GiB", "123" in bytes; K, M, G, T are powers of 1024. @throw Error
std::size_t parse_size(const std::string& text);

/// "4095x1023" or "255x511x127": the extents of a grid, slowest axis first: rows x columns, planes x rows x
/// columns.
/// @param least axes; 1: "4095" is one, too
/// @throw Error
std::vector<Index> parse_grid(const std::string& text, std::size_t least = 2);

/// "1x2.5" or "1x1x2.5": the lengths of a rectangle or box along the same axes. @throw Error
std::vector<double> parse_lengths(const std::string& text, std::size_t least = 2);

/// A number that is finite. @throw Error
double parse_real(const std::string& text);

/// A whole number that is at least `least`: an int, an Index or an unsigned 64-bit number. @throw Error
template <class T>
T parse_whole(const std::string& text, T least = 0);

/// The options of a solver. Other subcommands take some of the groups below.
struct CommonOptions {
  Options runtime;  ///< --cpus, --gpus, --memory, --gpu-memory, --scheduler, --spill, --trace
  std::optional<Precision> precision;  ///< none: that of the input, or the solver's default
  std::filesystem::path output;        ///< empty: none
  bool json = false;
  Verbosity verbosity = Verbosity::normal;
  std::uint64_t seed = 1;
};

// Each adds some of the common options to a subcommand; `options` has to outlive the parsing.
void add_machine_options(CLI::App& app,
                         CommonOptions& options);              ///< those of Options but --trace, and --json
void add_trace_option(CLI::App& app, CommonOptions& options);  ///< --trace
void add_problem_options(CLI::App& app, CommonOptions& options);  ///< --precision, --seed
void add_output_options(CLI::App& app, CommonOptions& options);   ///< -o, --quiet
void add_common_options(CLI::App& app, CommonOptions& options);   ///< all of them

/// Says on standard error what is odd about a run that goes on all the same. Of several ranks the first one speaks.
void warn(const std::string& message);

/// Warns that an option has no effect, and why, where it was given to the subcommand.
void warn_without_effect(const CLI::App& app, const std::string& option, const std::string& why);

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

/// Adds an option whose value is one of a few words.
template <class Target, class Value>
CLI::Option* add_choice_option(CLI::App& app, const std::string& name, Target& target,
                               std::vector<std::pair<std::string, Value>> choices, const std::string& help) {
  std::string words;
  for (const auto& [word, value] : choices) words += (words.empty() ? "" : "|") + word;
  const auto parse = [choices, words](const std::string& text) {
    for (const auto& [word, value] : choices)
      if (word == text) return value;
    throw Error("'" + text + "' is unknown; choose one of " + words);
  };
  return add_parsed_option(app, name, target, parse, help)->type_name(words);
}

/// The program's help: explanations are broken into lines that fit a terminal.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override;
};

/// What the command line asks for, the same for all ranks that solve one problem: a line "name: values" for each
/// subcommand, argument and option but those of the machine, which may differ between ranks, and of the report.
std::string options_for_all_ranks(const CLI::App& app);

enum class Parsed { run, finished };

/// Parses the command line. @return finished when it asked for help or the version, which is then printed.
/// @throw Error for everything that is wrong with it.
Parsed parse_command_line(CLI::App& app, int argc, const char* const* argv);

}  // namespace asterism::tools
