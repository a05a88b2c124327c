#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "../../runtime/runtime.hpp"

namespace asterism::tools {

CLI::App* add_subcommand(CLI::App& app, const std::string& name, const std::string& description) {
  return app.add_subcommand(name, description);
}

CLI::App* add_subcommands(CLI::App& app, const std::string& name, const std::string& description) {
  CLI::App* const added = add_subcommand(app, name, description);
  added->require_subcommand(1);
  return added;
}

void add_footer(CLI::App& app, const std::string& text) { app.footer(text); }

bool is_given(const CLI::App& app) { return app.parsed(); }

void add_file(CLI::App& app, const std::string& name, std::string& file, const std::string& help) {
  app.add_option(name, file, help)->type_name("");
}
void add_file(CLI::App& app, const std::string& name, std::filesystem::path& file, const std::string& help) {
  app.add_option(name, file, help)->type_name("");
}
void add_file(CLI::App& app, const std::string& name, std::vector<std::filesystem::path>& files,
              const std::string& help) {
  app.add_option(name, files, help)->type_name("");
}

void OptionGroup::add_read(const std::string& option, std::function<void(const std::string&)> read,
                           const std::string& type, const std::string& help) {
  const auto read_named = [read = std::move(read), option](const std::string& text) {
    try {
      read(text);
    } catch (const Error& error) {
      throw Error(option + ": " + error.what());
    }
  };
  app_->add_option_function<std::string>(option, read_named, help)->type_name(type)->group(name_);
}

void OptionGroup::flag(const std::string& option, bool& target, const std::string& help) {
  app_->add_flag(option, target, help)->group(name_);
}

void OptionGroup::flag(const std::string& option, const std::function<void()>& given,
                       const std::string& help) {
  app_->add_flag_callback(option, given, help)->group(name_);
}

void add_machine_options(CLI::App& app, CommonOptions& options) {
  Options& runtime = options.runtime;
  OptionGroup machine(app, "Machine");
  const auto count = [](const std::string& text) { return parse_whole<int>(text); };
  machine.add("--cpus", runtime.cpus, count, "N",
              "cores that compute; 0: GPUs only; default: all but one a GPU, and one more beside GPUs (but for qap)");
  machine.add("--gpus", runtime.gpus, count, "N", "GPUs that compute; 0: cores only; default: all");
  machine.add("--memory", runtime.cpu_memory, parse_size, "SIZE",
              "main memory that the problem may take, like 8G (K, M, G, T: powers of 1024); what is beyond "
              "goes to the folder of --spill; default: no limit");
  machine.add("--gpu-memory", runtime.gpu_memory, parse_size, "SIZE",
              "memory of each GPU that may be used, like 4G: larger problems are streamed through it; "
              "default: nearly all");
  machine.name("--spill", runtime.spill, "DIR",
               "folder on a fast disk for what does not fit in --memory: a problem may be larger than main "
               "memory");
  machine.name(
      "--scheduler", runtime.scheduler, "NAME",
      "StarPU's scheduling policy; `asterism info` lists those that there are; default: $STARPU_SCHED "
      "if set, else dmdas with GPUs (but for qap, and small grids of poisson), prio on cores alone");
  OptionGroup(app, "Output")
      .flag("--json", options.json,
            "report for programs: one JSON object on standard output, nothing else there");
}

void add_trace_option(CLI::App& app, CommonOptions& options) {
  OptionGroup(app, "Output")
      .name(
          "--trace", options.runtime.trace, "DIR",
          "folder for a trace of the run: summary.txt (who was busy, with what), trace.svg (a picture, where "
          "ViTE is installed), paje.trace (for ViTE), dag.dot (the task graph, for Graphviz)");
}

void add_precision_option(CLI::App& app, CommonOptions& options, const std::string& help) {
  const Words<Precision> precisions{{"f32", Precision::f32}, {"f64", Precision::f64}};
  OptionGroup(app, "Problem").choice("--precision", options.precision, precisions, help);
}

void add_seed_option(CLI::App& app, CommonOptions& options) {
  OptionGroup(app, "Problem")
      .add(
          "--seed", options.seed, [](const std::string& text) { return parse_whole<std::uint64_t>(text); },
          "N", fmt::format("of random numbers: equal seeds, equal problems; default: {}", options.seed));
}

void add_problem_options(CLI::App& app, CommonOptions& options) {
  add_precision_option(app, options,
                       "of the arithmetic and the output; default: that of the input file, f64 without one");
  add_seed_option(app, options);
}

void add_output_options(CLI::App& app, CommonOptions& options) {
  OptionGroup output(app, "Output");
  output.name("-o,--output", options.output, "FILE",
              "file for the solution; an old one is replaced when the new one is complete");
  output.flag(
      "--quiet", [&options] { options.verbosity = Verbosity::quiet; }, "no text report, no progress line");
}

void add_common_options(CLI::App& app, CommonOptions& options) {
  add_problem_options(app, options);
  add_machine_options(app, options);
  add_output_options(app, options);
  add_trace_option(app, options);
}

void warn(const std::string& message) {
  if (launched_rank() == 0) fmt::print(stderr, "asterism: warning: {}\n", message);
}

void warn_without_effect(const CLI::App& app, const std::string& option, const std::string& why) {
  if (app.get_option(option)->count() > 0) warn(fmt::format("{} has no effect: {}", option, why));
}

}  // namespace asterism::tools
