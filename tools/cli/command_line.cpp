#include "command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <fstream>
#include <iostream>
#include <sstream>

#include "../../runtime/error.hpp"

namespace asterism::tools {
namespace {

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

/// A word as a shell takes it.
std::string shell_word(const std::string& word) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string command_line() {
  std::ifstream words("/proc/self/cmdline", std::ios::binary);
  std::string line;
  for (std::string word; std::getline(words, word, '\0');)
    line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string options_for_all_ranks(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool may_differ =
        option->get_group() == "Machine" || name == "--json" || name == "--quiet" || name == "--trace";
    if (option->count() > 0 && !may_differ)
      text += fmt::format("{}: {}\n", name, fmt::join(option->results(), " "));
  }
  for (const CLI::App* subcommand : app.get_subcommands())
    text += fmt::format("subcommand: {}\n", subcommand->get_name()) + options_for_all_ranks(*subcommand);
  return text;
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
