/// \file
/// What the subcommands that run a solver share: its time, its workers, its output.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../runtime/report.hpp"
#include "../../runtime/runtime.hpp"
#include "../files/npy/npy.hpp"
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
  /// A part whose seconds somebody else has taken since the last one ended; that which runs now began behind it.
  void add(const std::string& part, double seconds) {
    laps_.emplace_back(part, seconds);
    last_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
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

/// Bytes that crossed links, on all ranks together. Collective.
Traffic traffic_of_all_ranks(const Runtime& runtime, const Traffic& mine);

/// What a run of any solver leaves behind. Its time begins when it is made.
struct SolverRun {
  Precision precision = Precision::f64;
  Stopwatch stopwatch = {};
  Report report = {};
  Workers workers = {};
  std::vector<Index> slices = {};  ///< along the slowest axis, that each rank had

  /// Whether there is a solution that is worth keeping, if only to look at it.
  [[nodiscard]] bool has_result() const {
    return report.reason != Reason::not_finite && report.reason != Reason::zero_pivot;
  }

  /// Takes traffic, workers and slices of all ranks together. Collective.
  /// @param mine slices of this rank
  void sum_up(const Runtime& runtime, Index mine);
};

/// Tells, on standard error, when the output is one of the inputs: that is allowed, as they stay open until
/// the end. @param solution what is written
void tell_replaced(const CommonOptions& options, const std::vector<std::filesystem::path>& inputs,
                   const std::string& solution = "u");

/// The output file, which all ranks write into and rank 0 makes and commits; none without a name. Collective.
/// @throw Error: see NpyWriter
std::optional<NpyWriter> open_output(const Runtime& runtime, const std::filesystem::path& output,
                                     const std::vector<Index>& shape, Precision precision);

/// When all ranks have written their rows. Collective. @throw Error: see NpyWriter::commit
void commit_output(const Runtime& runtime, std::optional<NpyWriter>& writer);

}  // namespace asterism::tools
