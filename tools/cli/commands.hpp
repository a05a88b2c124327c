/// \file
/// The subcommands of the program.
#pragma once

#include <functional>

#include "../../runtime/runtime.hpp"
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
Command add_linear(CLI::App& program);
Command add_qap(CLI::App& program);
Command add_info(CLI::App& program);
Command add_bench(CLI::App& program);
Command add_tune(CLI::App& program);
Command add_bench_dbds(CLI::App& bench);        ///< `bench dbds`
Command add_bench_methods(CLI::App& bench);     ///< `bench methods`
Command add_bench_mlssor(CLI::App& bench);      ///< `bench mlssor`
Command add_bench_poisson(CLI::App& bench);     ///< `bench poisson`
Command add_bench_jacobi(CLI::App& bench);      ///< `bench jacobi`
Command add_bench_relax(CLI::App& bench);       ///< `bench relax`
Command add_bench_linear(CLI::App& bench);      ///< `bench linear`
Command add_bench_qap(CLI::App& bench);         ///< `bench qap`
Command add_bench_tasks(CLI::App& bench);       ///< `bench tasks`
Command add_bench_tile_model(CLI::App& bench);  ///< `bench tile-model`
Command add_bench_defaults(CLI::App& bench);    ///< `bench defaults`

/// Runs `body` with a Runtime, on ranks that were all asked for the same. After a Stall on a single rank the program
/// ends here: unwinding would wait for ever. @throw Error; of several ranks, only what they all throw.
int with_runtime(const Options& options, const std::function<int(Runtime&)>& body);

/// body.operator()<T>(runtime) with a Runtime, T as --precision asks for, or double.
template <class Body>
int with_runtime_in_precision(const CommonOptions& options, const Body& body) {
  return with_runtime(options.runtime, [&](Runtime& runtime) {
    return in_precision(options.precision.value_or(Precision::f64),
                        [&]<class T>() { return body.template operator()<T>(runtime); });
  });
}

}  // namespace asterism::tools
