/// \file
/// The command line as a whole: how it is parsed, explained, compared between ranks, and told again.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace asterism::tools {

enum class Parsed { run, finished };

/// Parses the command line. @return finished when it asked for help or the version, which is then printed.
/// @throw Error for everything that is wrong with it.
Parsed parse_command_line(CLI::App& app, int argc, const char* const* argv);

/// The program's help: explanations are broken into lines that fit a terminal.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override;
};

/// What the command line asks for, the same for all ranks that solve one problem: a line "name: values" for each
/// subcommand, argument and option but those of the machine, which may differ between ranks, and of the report.
std::string options_for_all_ranks(const CLI::App& app);

/// That of this process, to be typed again.
std::string command_line();

}  // namespace asterism::tools
