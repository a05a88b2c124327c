#include "report.hpp"

#include <fmt/ranges.h>

#include <cmath>

#include "command_line.hpp"

namespace asterism::tools {
namespace {

std::string line_of(const std::string& label, const std::string& words, std::size_t width = label_width) {
  return fmt::format("{:<{}} {}\n", label, width, words);
}

nlohmann::ordered_json as_json(const Stopwatch& stopwatch) {
  nlohmann::ordered_json seconds;
  for (const auto& [part, time] : stopwatch.laps()) seconds[part] = time;
  seconds["total"] = stopwatch.total();
  return seconds;
}

nlohmann::ordered_json as_json(const Traffic& traffic) {
  return {{"to_device", traffic.to_device},
          {"from_device", traffic.from_device},
          {"to_disk", traffic.to_disk},
          {"from_disk", traffic.from_disk},
          {"between_ranks", traffic.between_ranks}};
}

std::string as_text(const Workers& workers, const std::vector<Index>& slices) {
  return fmt::format("{} CPU, {} CUDA, {}{}", workers.cpus, workers.gpus, counted(workers.ranks, "rank"),
                     workers.ranks > 1 ? fmt::format(" with {} slices", fmt::join(slices, " + ")) : "");
}

std::string as_text(const Stopwatch& stopwatch) {
  std::string text;
  for (const auto& [part, seconds] : stopwatch.laps()) text += fmt::format("{} {:.3f}, ", part, seconds);
  return text + fmt::format("total {:.3f}", stopwatch.total());
}

/// Empty where nothing was moved.
std::string as_text(const Traffic& traffic) {
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t bytes, const char* way) {
    if (bytes > 0) parts.push_back(human_bytes(static_cast<double>(bytes)) + way);
  };
  add(traffic.to_device, " to GPUs");
  add(traffic.from_device, " from GPUs");
  add(traffic.to_disk, " to disk");
  add(traffic.from_disk, " from disk");
  add(traffic.between_ranks, " between ranks");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string written(const SolverReport& report) {
  if (!report.run.has_result())
    return report.run.report.reason == Reason::not_finite ? fmt::format("nothing, as {} is not finite", report.solution)
                                                          : "nothing, as nothing was solved";
  return report.output.string() + (report.run.report.reason == Reason::solved ? "" : report.unfinished);
}

const char* equation_text(Exact exact) {
  switch (exact) {
    case Exact::differential_equation:
      return "differential equation";
    case Exact::difference_equation:
      return "difference equation";
    case Exact::linear_system:
      return "linear system";
  }
  return "";
}

}  // namespace

void Section::line(std::string label, std::string words) {
  lines_.emplace_back(std::move(label), std::move(words));
}

void Section::add(const std::string& key, const nlohmann::ordered_json& value, const std::string& words) {
  json_[key] = value;
  remark(words);
}

void Section::remark(const std::string& words) {
  (lines_.empty() ? opening_ : lines_.back().second) += words;
}

std::string Section::text(std::size_t width) const {
  std::string text;
  for (const auto& [label, words] : lines_) text += line_of(label, words, width);
  return text;
}

void say_iterations(Section& speed, const std::string& unit, Index count, double seconds_of_each) {
  speed.line(unit + "s");
  speed.say(unit + "s", count, "{}");
  speed.say("seconds_per_" + unit, seconds_of_each, ", {:.3g} s each");
}

void say_residual(Section& accuracy, double scaled, const std::optional<std::string>& words) {
  if (words) accuracy.line("residual", fmt::format("{:.2e} scaled, {}", shown(scaled), *words));
  accuracy.add("scaled_residual", scaled);
}

void say_residual_history(Section& accuracy, const std::vector<std::pair<Index, double>>& history) {
  accuracy.add("residual_history", history);
}

void say_error(Section& accuracy, double error, Exact exact, const std::string& words) {
  accuracy.line("error");
  accuracy.add("error", error,
               fmt::format("{:.2e} relative to the exact solution of the {}{}", shown(error),
                           equation_text(exact), words));
}

std::string as_text(const SolverReport& report) {
  const SolverRun& run = report.run;
  const std::string moved = as_text(run.report.traffic);
  return report.problem.text() + line_of("method", report.solver + report.choices.opening()) +
         report.choices.text() + line_of("workers", as_text(run.workers, run.slices)) +
         line_of("seconds", as_text(run.stopwatch)) + report.speed.text() +
         (moved.empty() ? "" : line_of("moved", moved)) + report.accuracy.text() +
         (report.output.empty() ? "" : line_of("written", written(report))) +
         line_of("result", to_string(run.report.reason) + report.verdict);
}

nlohmann::ordered_json as_json(const SolverReport& report) {
  const SolverRun& run = report.run;
  nlohmann::ordered_json j{{"solver", report.solver}, {"method", report.method}};
  j.update(report.problem.json());
  j.update(report.choices.json());
  j["seconds"] = as_json(run.stopwatch);
  j["solver_seconds"] = run.report.seconds;
  j.update(report.speed.json());
  j.update(report.accuracy.json());
  j["workers"] = as_json(run.workers);
  if (run.workers.ranks > 1) j["slices_of_ranks"] = run.slices;
  j["bytes"] = as_json(run.report.traffic);
  if (!report.output.empty() && run.has_result()) j["output"] = report.output.string();
  j["reason"] = to_string(run.report.reason);
  return j;
}

int tell(const Runtime& runtime, const CommonOptions& options, const SolverReport& report) {
  if (runtime.rank() == 0 && options.json)
    print_report(as_json(report));
  else if (runtime.rank() == 0 && options.verbosity == Verbosity::normal)
    fmt::print("{}", as_text(report));
  return report.run.report.reason == Reason::solved ? 0 : 1;
}

void print_report(const nlohmann::ordered_json& body) {
  nlohmann::ordered_json report{{"version", ASTERISM_VERSION}, {"command", command_line()}};
  report.update(body);
  using OfBytes =
      nlohmann::ordered_json::error_handler_t;  // what is no UTF-8: names of files may be anything
  fmt::print("{}\n", report.dump(2, ' ', false, OfBytes::replace));
}

nlohmann::ordered_json as_json(const Workers& workers) {
  return {{"cpu", workers.cpus}, {"cuda", workers.gpus}, {"ranks", workers.ranks}};
}

double shown(double number) { return std::isnan(number) ? std::abs(number) : number; }

std::string counted(Index count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace asterism::tools
