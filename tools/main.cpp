#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "../runtime/run/ending.hpp"
#include "cli/binding.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "files/output_file.hpp"

namespace asterism::tools {

namespace {

/// What this process was asked for, and all ranks must be asked for alike.
std::string asked_for;

}  // namespace

int with_runtime(const Options& options, const std::function<int(Runtime&)>& body) {
  return in_runtime(options, [&](Runtime& runtime) {
    runtime.require_alike(asked_for);
    if (options.gpu_memory > 0 && runtime.machine().count(WorkerKind::cuda) == 0)
      warn("--gpu-memory has no effect: there is no GPU worker");
    return body(runtime);
  });
}

namespace {

int run(int argc, char** argv) {
  CLI::App program{
      "Asterism solves large PDE and linear problems as task graphs on all cores, GPUs and nodes that are there.",
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
  const Command commands[] = {add_poisson(program), add_relax(program), add_linear(program),
                              add_qap(program),     add_info(program),  add_bench(program), add_tune(program)};
  if (parse_command_line(program, argc, argv) == Parsed::finished) return 0;
  asked_for = "version: " ASTERISM_VERSION "\n" + options_for_all_ranks(program);
  for (const Command& command : commands)
    if (command.app->parsed()) return command.run();
  return 0;
}

}  // namespace
}  // namespace asterism::tools

int main(int argc, char** argv) {
  using namespace asterism;
  try {
    try {
      tools::leave_default_binding();
      tools::remove_temporaries_when_interrupted();
      return tools::run(argc, argv);
    } catch (...) {
      throw_as_error();
    }
  } catch (const Error& error) {
    return tell(agreed(error));
  }
}
