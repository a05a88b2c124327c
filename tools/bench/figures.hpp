/// \file
/// What a benchmark measured.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "../../runtime/hardware/bandwidth.hpp"
#include "../cli/options.hpp"

namespace asterism::tools {

/// Wall time that the body takes.
double seconds_of(const std::function<void()>& body);

/// Figures for people (line by line) or for programs (one object at the end); from rank 0 only.
class Figures {
 public:
  Figures(const Runtime& runtime, const CommonOptions& options)
      : json_(options.json), silent_(runtime.rank() > 0) {}
  void add(const std::string& key, const std::string& what, double value, const std::string& unit);
  /// Lines of tables, for people only; what is known is shown at once.
  template <class... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) const {
    if (json_ || silent_) return;
    fmt::print(format, std::forward<Values>(values)...);
    std::fflush(stdout);
  }
  void note(const std::string& key, const nlohmann::ordered_json& value) { figures_[key] = value; }
  /// The keys of an object.
  void note(const nlohmann::ordered_json& values) { figures_.update(values); }
  void finish() const;

 private:
  bool json_, silent_;
  nlohmann::ordered_json figures_;
};

/// --repeats, and the options of every benchmark on tasks: those of the machine, --json, --trace.
/// @param what how the repeats count, the default included
void add_bench_options(CLI::App& app, CommonOptions& common, int& repeats, const std::string& what);

/// @throw Error where there are several
void require_one_rank(const Runtime& runtime);

/// What the machine itself can do, measured by one rank after the other: ranks of one node share its links.
Bandwidth measure_ceilings(Runtime& runtime);

void add_ceilings(Figures& figures, const Bandwidth& raw);

}  // namespace asterism::tools
