/// \file
/// What the subcommands that run a solver share: its time, its workers, its output, and how they are told.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../runtime/report.hpp"
#include "../../runtime/runtime.hpp"
#include "../files/npy.hpp"
#include "options.hpp"

namespace asterism::tools {

/// The wall time of the parts of a run, in the order they happen.
class Stopwatch {
 public:
  /// Ends the part that runs now and gives it its name.
  void lap(const std::string& part) {
    const auto now = Clock::now();
    laps_.emplace_back(part, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& laps() const { return laps_; }
  [[nodiscard]] double total() const { return std::chrono::duration<double>(last_ - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<std::pair<std::string, double>> laps_;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

/// Workers of all ranks.
struct Workers {
  int cpus = 0, gpus = 0, ranks = 1;
};

// Sums over all ranks. Collective.
Workers workers_of_all_ranks(const Runtime& runtime);
Traffic traffic_of_all_ranks(const Runtime& runtime, const Traffic& mine);

/// Tells, on standard error, when the output is one of the inputs: that is allowed, as they stay open until
/// the end.
void tell_replaced(const CommonOptions& options, const std::vector<std::filesystem::path>& inputs);

/// The output file, which all ranks write into and rank 0 makes and commits; none without a name. Collective.
/// @throw Error: see NpyWriter
std::optional<NpyWriter> open_output(const Runtime& runtime, const std::filesystem::path& output,
                                     const std::vector<Index>& shape, Precision precision);

/// When all ranks have written their rows. Collective. @throw Error: see NpyWriter::commit
void commit_output(const Runtime& runtime, std::optional<NpyWriter>& writer);

// What a report says of them, for programs and for people.
nlohmann::ordered_json as_json(const Stopwatch& stopwatch);
nlohmann::ordered_json as_json(const Workers& workers);
nlohmann::ordered_json as_json(const Traffic& traffic);
/// Prints a report for programs on standard output, the version and the command line before what `body` says.
/// NaN and infinity, which JSON has not, become null.
void print_report(const nlohmann::ordered_json& body);
void print_workers_and_seconds(const Workers& workers, const Stopwatch& stopwatch);
/// Nothing where nothing was moved.
void print_moved(const Traffic& traffic);

/// A number as it is printed: NaN has no sign.
double shown(double number);

/// "s" or nothing.
const char* plural(Index count);

}  // namespace asterism::tools
