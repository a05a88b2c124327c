#include "tables.hpp"

#include <fmt/format.h>

#include "../../cli/report.hpp"

namespace asterism::tools {
namespace {

struct Speed {
  double gbytes_per_second, share;
};

Speed speed(double bytes, double seconds, const LinearCeiling& ceiling) {
  const double bytes_per_second = bytes / seconds;
  return {bytes_per_second / 1e9, bytes_per_second / ceiling.bytes_per_second};
}

std::string in_columns(const Speed& s) {
  return fmt::format("{:>8.1f} {:>6.2f}", s.gbytes_per_second, s.share);
}

nlohmann::ordered_json as_json(double bytes, double seconds, const LinearCeiling& ceiling) {
  const Speed s = speed(bytes, seconds, ceiling);
  return {{"bytes", bytes}, {"gbytes_per_second", s.gbytes_per_second}, {"share", s.share}};
}

constexpr int speed_width = 15;

}  // namespace

void print_linear_head(const Figures& figures, const LinearCeiling& ceiling) {
  figures.print("{:<21} {:<10} {:>8} {:>10} {:>{w}} {:>{w}} {:>10} {:>9} {:>9}\n", "", "", "", "",
                "model:   over", "kernels:   over", "", "", "with", fmt::arg("w", speed_width));
  figures.print("{:<21} {:<10} {:>8} {:>10} {:>8} {:>6} {:>8} {:>6} {:>10} {:>9} {:>9}\n", "preconditioner",
                "format", "set-up s", "us/iter.", "GB/s", ceiling.name, "GB/s", ceiling.name, "iterations",
                "solve s", "set-up s");
}

void print(const Figures& figures, const LinearRun& run, const LinearCeiling& ceiling) {
  const std::string name = to_string(run.preconditioner);
  if (!run.refusal.empty()) {
    figures.print("{:<21} {:<10} {}\n", name, run.format, run.refusal);
    return;
  }
  std::string model, kernels, seconds;
  if (run.timed_iterations > 0) seconds = fmt::format("{:.2f}", run.seconds_per_iteration * 1e6);
  if (run.bytes) {
    model = in_columns(speed(run.bytes->model, run.seconds_per_iteration, ceiling));
    kernels = in_columns(speed(run.bytes->kernels, run.seconds_per_iteration, ceiling));
  }
  figures.print("{:<21} {:<10} {:>8.3g} {:>10} {:>{w}} {:>{w}} {:>10} {:>9.3g} {:>9.3g}{}\n", name,
                run.format, run.setup_seconds(), seconds, model, kernels, run.iterations, run.solve_seconds,
                run.setup_seconds() + run.solve_seconds,
                run.reason == Reason::solved ? "" : "  " + to_string(run.reason), fmt::arg("w", speed_width));
}

void print(const Figures& figures, const BaselineRun& run, const LinearCeiling& ceiling) {
  figures.print("{:<21} {:<19} {:>10.2f} {:>{w}}   {:.2f} times as long\n", run.preconditioner, run.name,
                run.seconds_per_iteration * 1e6,
                in_columns(speed(run.model_bytes, run.seconds_per_iteration, ceiling)), run.of_ours,
                fmt::arg("w", speed_width));
}

nlohmann::ordered_json as_json(const LinearRun& run, const LinearCeiling& ceiling) {
  nlohmann::ordered_json j{{"preconditioner", to_string(run.preconditioner)}, {"format", run.format}};
  if (!run.refusal.empty()) {
    j["refusal"] = run.refusal;
    return j;
  }
  const nlohmann::ordered_json nothing(nullptr);
  const bool timed = run.timed_iterations > 0;
  j.update({{"blocks", run.blocks},
            {"setup_seconds", run.setup_seconds()},
            {"setup", run.setup},
            {"timed_iterations", run.timed_iterations},
            {"microseconds_per_iteration",
             timed ? nlohmann::ordered_json(run.seconds_per_iteration * 1e6) : nothing},
            {"timed_residual", timed ? nlohmann::ordered_json(run.timed_residual) : nothing}});
  j["model"] = run.bytes ? as_json(run.bytes->model, run.seconds_per_iteration, ceiling) : nothing;
  j["kernels"] = run.bytes ? as_json(run.bytes->kernels, run.seconds_per_iteration, ceiling) : nothing;
  j.update({{"reason", to_string(run.reason)},
            {"iterations", run.iterations},
            {"residual", run.residual},
            {"solve_seconds", run.solve_seconds},
            {"seconds_with_setup", run.setup_seconds() + run.solve_seconds}});
  return j;
}

nlohmann::ordered_json as_json(const BaselineRun& run, const LinearCeiling& ceiling) {
  return {{"name", run.name},
          {"preconditioner", run.preconditioner},
          {"detail", run.detail},
          {"timed_iterations", run.iterations},
          {"microseconds_per_iteration", run.seconds_per_iteration * 1e6},
          {"timed_residual", run.residual},
          {"model", as_json(run.model_bytes, run.seconds_per_iteration, ceiling)},
          {"of_ours", run.of_ours}};
}

}  // namespace asterism::tools
