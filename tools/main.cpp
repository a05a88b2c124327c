#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <new>

#include "../runtime/detail/ending.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "files/output_file.hpp"

namespace asterism::tools {

namespace {

/// What this process was asked for, and all ranks must be asked for alike.
std::string asked_for;

/// Says on standard error what went wrong, once where all ranks throw it. @return the exit status that belongs to it.
int report(const Error& error) {
  const bool on_all_ranks = error.thrown_by() == ThrownBy::all_ranks;
  if (!on_all_ranks || launched_rank() == 0)
    fmt::print(stderr, "asterism{}: {}\n",
               !on_all_ranks && launched_rank() > 0 ? fmt::format(" (rank {})", launched_rank()) : "",
               error.what());
  return static_cast<int>(error.blame());
}

/// What was thrown while it is handled, as an Error. @throw Error
[[noreturn]] void throw_as_error() {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error("main memory is full; use a smaller problem, more ranks, or --spill", Blame::machine);
  } catch (const std::exception& error) {
    throw Error(error.what(), Blame::task);
  }
}

}  // namespace

int with_runtime(const Options& options, const std::function<int(Runtime&)>& body) {
  const int status = [&] {
    Runtime runtime(options);
    try {
      runtime.require_alike(asked_for);
      if (options.gpu_memory > 0 && runtime.machine().count(WorkerKind::cuda) == 0)
        warn("--gpu-memory has no effect: there is no GPU worker");
      return body(runtime);
    } catch (const Stall& stall) {
      if (runtime.ranks() == 1) end_all_ranks(report(stall));
      throw;
    } catch (...) {
      throw_as_error();
    }
  }();
  return trace_failed() ? static_cast<int>(Blame::machine) : status;
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
      tools::remove_temporaries_when_interrupted();
      return tools::run(argc, argv);
    } catch (...) {
      tools::throw_as_error();
    }
  } catch (const Error& error) {
    return tools::report(agreed(error));
  }
}
