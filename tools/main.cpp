#include <fmt/format.h>

#include <new>

#include "commands.hpp"
#include "output_file.hpp"

namespace asterism::tools {

int report(const std::exception& error) {
  const std::string rank = launched_rank() > 0 ? fmt::format(" (rank {})", launched_rank()) : "";
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    fmt::print(stderr, "asterism{}: main memory is full; use a smaller problem, more ranks, or --spill\n",
               rank);
    return static_cast<int>(Blame::machine);
  }
  fmt::print(stderr, "asterism{}: {}\n", rank, error.what());
  const auto* known = dynamic_cast<const Error*>(&error);
  return static_cast<int>(known != nullptr ? known->blame() : Blame::task);
}

int with_runtime(const Options& options, const std::function<int(Runtime&)>& body) {
  Runtime runtime(options);
  if (options.gpu_memory > 0 && runtime.machine().count(WorkerKind::cuda) == 0)
    warn("--gpu-memory has no effect: there is no GPU worker");
  try {
    return body(runtime);
  } catch (const Stall& stall) {
    end_all_ranks(report(stall));
  } catch (const std::exception& error) {
    if (runtime.ranks() > 1) end_all_ranks(report(error));
    throw;
  }
}

namespace {

int run(int argc, char** argv) {
  CLI::App program{
      "Asterism solves large PDE problems as task graphs on all cores, GPUs and nodes that are there.",
      "asterism"};
  program.set_version_flag("--version", "asterism " ASTERISM_VERSION);
  program.formatter(std::make_shared<HelpFormatter>());
  program.get_help_ptr()->description("explain the options and end");
  program.get_version_ptr()->description("tell the version and end");
  program.require_subcommand(1);
  program.footer(
      "`asterism SUBCOMMAND --help` explains each subcommand.\n"
      "Exit status: 0 solved; 1 not converged or broken down; 2 bad usage or input;\n"
      "3 the machine cannot (no such worker, not enough memory); 4 a task failed.");
  const Command commands[] = {add_poisson(program), add_relax(program), add_info(program), add_bench(program),
                              add_tune(program)};
  try {
    if (parse_command_line(program, argc, argv) == Parsed::finished) return 0;
  } catch (const Error& error) {  // every rank sees the same mistake: one message is enough
    return launched_rank() == 0 ? report(error) : static_cast<int>(error.blame());
  }
  for (const Command& command : commands)
    if (command.app->parsed()) return command.run();
  return 0;
}

}  // namespace
}  // namespace asterism::tools

int main(int argc, char** argv) {
  try {
    asterism::tools::remove_temporaries_when_interrupted();
    return asterism::tools::run(argc, argv);
  } catch (const std::exception& error) {
    return asterism::tools::report(error);
  }
}
