/// \file
/// What a solver's run is reported as: lines of text for people, or one JSON object for programs. What both are told
/// is said in one place, by its key and its words.
///
/// A solver fills in a SolverReport: what all solvers have in its members, its own things in sections, of which each
/// has its place in both orders.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options.hpp"
#include "solver_run.hpp"

namespace asterism::tools {

/// Of the labels of a solver's report.
constexpr std::size_t label_width = 10;

/// Things that a report says, in order: each has a key and a value for programs, and, where people are told, too,
/// words on a line.
class Section {
 public:
  /// Begins a line, on which the words of what is added from now on stand.
  /// @param label at most label_width characters, where text() is not told another width
  void line(std::string label, std::string words = "");

  /// @param words what the line goes on with, its comma included; none: for programs only
  void add(const std::string& key, const nlohmann::ordered_json& value, const std::string& words = "");

  /// The value in words as `format` has it.
  template <class Value>
  void say(const std::string& key, const Value& value, fmt::format_string<const Value&> format) {
    add(key, value, fmt::format(format, value));
  }

  /// For people only: what the line goes on with.
  void remark(const std::string& words);

  [[nodiscard]] const nlohmann::ordered_json& json() const { return json_; }
  /// Words that were added before the first line.
  [[nodiscard]] const std::string& opening() const { return opening_; }
  /// "label      words\n" for each line. @param width of the labels
  [[nodiscard]] std::string text(std::size_t width = label_width) const;

 private:
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
  std::string opening_;
  std::vector<std::pair<std::string, std::string>> lines_;
};

/// A run and all that is to be said of it.
struct SolverReport {
  std::string solver;  ///< "fast Poisson, two passes"
  std::string method;  ///< as --method has it
  SolverRun run = {};
  Section problem = {};   ///< what was solved; of a grid: problem_section() in tools/grid/report.hpp
  Section choices = {};   ///< what the method was told or chose; its opening stands behind the solver's name
  Section speed = {};     ///< behind the seconds
  Section accuracy = {};  ///< residual, error
  std::filesystem::path output = {};  ///< what was asked for; empty: nothing
  std::string solution = "u";         ///< what is solved for
  std::string unfinished = {};        ///< said of the output where the run did not reach its end
  std::string verdict = {};           ///< said behind the reason
};

// What solvers have in common, said alike.

/// The iterations, and the seconds of each. @param unit "sweep": the key is "sweeps"
void say_iterations(Section& speed, const std::string& unit, Index count, double seconds_of_each);

/// The scaled residual that was reached. @param words what people are told beside it; none: it was never computed
void say_residual(Section& accuracy, double scaled, const std::optional<std::string>& words);

/// Residuals by the iterations before which they were taken.
void say_residual_history(Section& accuracy, const std::vector<std::pair<Index, double>>& history);

/// What a known solution solves exactly.
enum class Exact { differential_equation, difference_equation, linear_system };

/// The relative error. @param words that people are told behind it
void say_error(Section& accuracy, double error, Exact exact, const std::string& words = "");

std::string as_text(const SolverReport& report);
nlohmann::ordered_json as_json(const SolverReport& report);

/// Prints the report of rank 0, as the options want it. @return the exit status: 0 where the run solved, or else 1
int tell(const Runtime& runtime, const CommonOptions& options, const SolverReport& report);

/// Prints a report for programs on standard output, the version and the command line before what `body` says.
/// NaN and infinity, which JSON has not, become null.
void print_report(const nlohmann::ordered_json& body);

nlohmann::ordered_json as_json(const Workers& workers);

/// A number as it is printed: NaN has no sign.
double shown(double number);

/// "1 stripe", "2 stripes".
std::string counted(Index count, std::string_view noun);

}  // namespace asterism::tools
