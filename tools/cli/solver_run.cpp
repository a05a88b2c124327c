#include "solver_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <fstream>
#include <string>

#include "../../runtime/collectives.hpp"

namespace asterism::tools {
namespace {

/// A word as a shell takes it.
std::string shell_word(const std::string& word) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// That of this process, to be typed again.
std::string command_line() {
  std::ifstream words("/proc/self/cmdline", std::ios::binary);
  std::string line;
  for (std::string word; std::getline(words, word, '\0');) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace

Workers workers_of_all_ranks(const Runtime& runtime) {
  const Machine machine = runtime.machine();
  int counts[] = {machine.count(WorkerKind::cpu), machine.count(WorkerKind::cuda)};
  sum_over_ranks(runtime, counts, std::size(counts));
  return {counts[0], counts[1], runtime.ranks()};
}

Traffic traffic_of_all_ranks(const Runtime& runtime, const Traffic& mine) {
  std::int64_t bytes[] = {mine.to_device, mine.from_device, mine.to_disk, mine.from_disk, mine.between_ranks};
  sum_over_ranks(runtime, bytes, std::size(bytes));
  return {bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]};
}

void tell_replaced(const CommonOptions& options, const std::vector<std::filesystem::path>& inputs) {
  if (launched_rank() > 0 || options.verbosity == Verbosity::quiet) return;
  for (const std::filesystem::path& input : inputs) {
    std::error_code different;
    if (std::filesystem::equivalent(options.output, input, different))
      fmt::print(stderr, "asterism: {} is read and, when u is complete, replaced by it\n", input.string());
  }
}

std::optional<NpyWriter> open_output(const Runtime& runtime, const std::filesystem::path& output,
                                     const std::vector<Index>& shape, Precision precision) {
  if (output.empty()) return std::nullopt;
  std::optional<NpyWriter> writer;
  if (runtime.rank() == 0) writer.emplace(output, precision, shape);
  const std::string temporary = broadcast(runtime, writer ? writer->temporary().string() : "");
  if (!writer) writer.emplace(NpyWriter::attach(temporary));
  return writer;
}

void commit_output(const Runtime& runtime, std::optional<NpyWriter>& writer) {
  if (runtime.rank() > 0) writer.reset();
  runtime.barrier();
  if (writer) writer->commit();
}

nlohmann::ordered_json as_json(const Stopwatch& stopwatch) {
  nlohmann::ordered_json seconds;
  for (const auto& [part, time] : stopwatch.laps()) seconds[part] = time;
  seconds["total"] = stopwatch.total();
  return seconds;
}

nlohmann::ordered_json as_json(const Workers& workers) {
  return {{"cpu", workers.cpus}, {"cuda", workers.gpus}, {"ranks", workers.ranks}};
}

nlohmann::ordered_json as_json(const Traffic& traffic) {
  return {{"to_device", traffic.to_device},
          {"from_device", traffic.from_device},
          {"to_disk", traffic.to_disk},
          {"from_disk", traffic.from_disk},
          {"between_ranks", traffic.between_ranks}};
}

void print_report(const nlohmann::ordered_json& body) {
  nlohmann::ordered_json report{{"version", ASTERISM_VERSION}, {"command", command_line()}};
  report.update(body);
  using OfBytes =
      nlohmann::ordered_json::error_handler_t;  // what is no UTF-8: names of files may be anything
  fmt::print("{}\n", report.dump(2, ' ', false, OfBytes::replace));
}

void print_workers_and_seconds(const Workers& workers, const Stopwatch& stopwatch) {
  fmt::print("workers    {} CPU, {} CUDA, {} rank{}\n", workers.cpus, workers.gpus, workers.ranks,
             plural(workers.ranks));
  fmt::print("seconds    ");
  for (const auto& [part, seconds] : stopwatch.laps()) fmt::print("{} {:.3f}, ", part, seconds);
  fmt::print("total {:.3f}\n", stopwatch.total());
}

void print_moved(const Traffic& traffic) {
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t bytes, const char* way) {
    if (bytes > 0) parts.push_back(human_bytes(static_cast<double>(bytes)) + way);
  };
  add(traffic.to_device, " to GPUs");
  add(traffic.from_device, " from GPUs");
  add(traffic.to_disk, " to disk");
  add(traffic.from_disk, " from disk");
  add(traffic.between_ranks, " between ranks");
  if (!parts.empty()) fmt::print("moved      {}\n", fmt::join(parts, ", "));
}

double shown(double number) { return std::isnan(number) ? std::abs(number) : number; }

const char* plural(Index count) { return count == 1 ? "" : "s"; }

}  // namespace asterism::tools
