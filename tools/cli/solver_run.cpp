#include "solver_run.hpp"

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "../../runtime/collectives.hpp"

namespace asterism::tools {

Traffic traffic_of_all_ranks(const Runtime& runtime, const Traffic& mine) {
  std::int64_t bytes[] = {mine.to_device, mine.from_device, mine.to_disk, mine.from_disk, mine.between_ranks};
  sum_over_ranks(runtime, bytes, std::size(bytes));
  return {bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]};
}

void SolverRun::sum_up(const Runtime& runtime, Index mine) {
  report.traffic = traffic_of_all_ranks(runtime, report.traffic);
  const Machine machine = runtime.machine();
  int counts[] = {machine.count(WorkerKind::cpu), machine.count(WorkerKind::cuda)};
  sum_over_ranks(runtime, counts, std::size(counts));
  workers = {counts[0], counts[1], runtime.ranks()};
  slices = gather(runtime, mine);
}

void tell_replaced(const CommonOptions& options, const std::vector<std::filesystem::path>& inputs,
                   const std::string& solution) {
  if (launched_rank() > 0 || options.verbosity == Verbosity::quiet) return;
  for (const std::filesystem::path& input : inputs) {
    std::error_code different;
    if (std::filesystem::equivalent(options.output, input, different))
      fmt::print(stderr, "asterism: {} is read and, when {} is complete, replaced by it\n", input.string(), solution);
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

}  // namespace asterism::tools
