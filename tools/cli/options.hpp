/// \file
/// The options that all subcommands share, and how a subcommand gets options.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../runtime/error.hpp"
#include "../../runtime/hardware/machine.hpp"
#include "../files/precision.hpp"
#include "progress.hpp"
#include "values.hpp"

namespace CLI {
class App;  // whoever calls it includes <CLI/CLI.hpp>, which takes seconds to compile
}

namespace asterism::tools {

/// A subcommand that has no options yet.
CLI::App* add_subcommand(CLI::App& app, const std::string& name, const std::string& description);
/// One that has only subcommands, of which one must be given.
CLI::App* add_subcommands(CLI::App& app, const std::string& name, const std::string& description);
/// What the help ends with.
void add_footer(CLI::App& app, const std::string& text);
/// Whether the command line has this subcommand.
bool is_given(const CLI::App& app);

// An argument without an option's name: a file that may be given, or several.
void add_file(CLI::App& app, const std::string& name, std::string& file, const std::string& help);
void add_file(CLI::App& app, const std::string& name, std::filesystem::path& file, const std::string& help);
void add_file(CLI::App& app, const std::string& name, std::vector<std::filesystem::path>& files,
              const std::string& help);

/// The words that an option may have, and what they stand for.
template <class Value>
using Words = std::vector<std::pair<std::string, Value>>;

template <class Value>
const char* word_of(const Words<Value>& words, Value value) {
  for (const auto& [word, meaning] : words)
    if (meaning == value) return word.c_str();
  return "";
}

/// Options of a subcommand that stand together in its help.
class OptionGroup {
 public:
  OptionGroup(CLI::App& app, std::string name) : app_(&app), name_(std::move(name)) {}

  /// An option whose value `parser` reads: what it throws is preceded by the option's name.
  /// @param type  how the help writes a value
  template <class Target, class Parser>
  void add(const std::string& option, Target& target, Parser parser, const std::string& type,
           const std::string& help) {
    add_read(
        option, [&target, parser](const std::string& text) { target = parser(text); }, type, help);
  }

  /// An option whose value is one of a few words.
  template <class Target, class Value>
  void choice(const std::string& option, Target& target, const Words<Value>& words, const std::string& help) {
    std::string all;
    for (const auto& [word, value] : words) all += (all.empty() ? "" : "|") + word;
    const auto parse = [words, all](const std::string& text) {
      for (const auto& [word, value] : words)
        if (word == text) return value;
      throw Error("'" + text + "' is unknown; choose one of " + all);
    };
    add(option, target, parse, all, help);
  }

  /// An option whose value is the name of a file or of anything else, as it is given.
  template <class Target>
  void name(const std::string& option, Target& target, const std::string& type, const std::string& help) {
    add_read(
        option, [&target](const std::string& text) { target = text; }, type, help);
  }

  void flag(const std::string& option, bool& target, const std::string& help);
  void flag(const std::string& option, const std::function<void()>& given, const std::string& help);

 private:
  void add_read(const std::string& option, std::function<void(const std::string&)> read,
                const std::string& type, const std::string& help);

  CLI::App* app_;
  std::string name_;
};

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
void add_precision_option(CLI::App& app, CommonOptions& options, const std::string& help);  ///< --precision
void add_seed_option(CLI::App& app, CommonOptions& options);                                ///< --seed
void add_problem_options(CLI::App& app, CommonOptions& options);  ///< --precision, --seed
void add_output_options(CLI::App& app, CommonOptions& options);   ///< -o, --quiet
void add_common_options(CLI::App& app, CommonOptions& options);   ///< all of them

/// Says on standard error what is odd about a run that goes on all the same. Of several ranks the first one speaks.
void warn(const std::string& message);

/// Warns that an option has no effect, and why, where it was given to the subcommand.
void warn_without_effect(const CLI::App& app, const std::string& option, const std::string& why);

}  // namespace asterism::tools
