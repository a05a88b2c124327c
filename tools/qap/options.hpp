/// \file
/// What `asterism qap` is told.
#pragma once

#include <filesystem>

#include "../../algorithms/qap/search.hpp"
#include "../cli/options.hpp"

namespace asterism::tools {

struct QapOptions {
  CommonOptions common;
  std::filesystem::path instance, start;
  qap::SearchSettings settings;  ///< but for seed, start and what is called
};

void add_qap_options(CLI::App& app, QapOptions& options);

/// The options of a search that `bench qap` has, too: --search, --islands, --tenure and so on.
void add_search_options(CLI::App& app, qap::SearchSettings& settings);

/// What a search wants of a machine: its scheduler, and for the selections between generations a core. Without one (--cpus 0)
/// one is taken for them, and GPUs alone walk.
void fit_machine_to_search(Options& machine, qap::SearchSettings& settings);

/// "pmts", "rots", ...
const char* name(qap::Method method);

/// A cost, which may be negative. @throw Error
qap::Cost parse_cost(const std::string& text);
/// Seconds, 0 at least. @throw Error
double parse_seconds(const std::string& text);

}  // namespace asterism::tools
