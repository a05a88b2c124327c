/// \file
/// The subcommands of the program.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "../runtime/runtime.hpp"
#include "options.hpp"

namespace asterism::tools {

/// A subcommand that was added to the program: `run` returns the exit status, once the command line was
/// parsed.
struct Command {
  CLI::App* app;
  std::function<int()> run;
};

Command add_poisson(CLI::App& program);
Command add_relax(CLI::App& program);
Command add_info(CLI::App& program);
Command add_bench(CLI::App& program);
Command add_tune(CLI::App& program);
Command add_bench_methods(CLI::App& bench);     ///< `bench methods`
Command add_bench_mlssor(CLI::App& bench);      ///< `bench mlssor`
Command add_bench_poisson(CLI::App& bench);     ///< `bench poisson`
Command add_bench_jacobi(CLI::App& bench);      ///< `bench jacobi`
Command add_bench_relax(CLI::App& bench);       ///< `bench relax`
Command add_bench_tile_model(CLI::App& bench);  ///< `bench tile-model`

/// Says on standard error what went wrong. @return the exit status that belongs to it.
int report(const std::exception& error);

/// Runs `body` with a Runtime. Where it cannot go on while others depend on it (a stall, one rank of
/// several), all of the program ends here: unwinding would wait for ever.
int with_runtime(const Options& options, const std::function<int(Runtime&)>& body);

}  // namespace asterism::tools
