/// \file
/// What the tests of the command-line program share: running `asterism`, and what its reports and files say.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "array.hpp"
#include "process.hpp"

namespace asterism::test {

using nlohmann::json;

constexpr double eps = 0x1p-53, eps32 = 0x1p-24;

inline Array random_array(std::vector<Index> shape) { return Array(std::move(shape)).fill_random(7); }

inline std::string line_of(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

inline void has(const std::string& text, const Words& words) {
  CAPTURE(text);
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(text.find(word) != std::string::npos);
  }
}

inline std::vector<std::string> keys(const json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  std::sort(names.begin(), names.end());
  return names;
}

inline std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

/// The report of a run that succeeds and prints nothing but one JSON object, without what every report begins
/// with.
inline json report_of(const Words& command) {
  const Result result = run(command);
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  CHECK(result.err.empty());
  json report = json::parse(result.out);
  CHECK(report["version"] == ASTERISM_VERSION);
  CHECK(report["command"].get<std::string>().ends_with(line_of({command.end() - 2, command.end()})));
  report.erase("version");
  report.erase("command");
  return report;
}

inline json poisson(const Words& arguments) {
  return report_of(one_process(Words{"poisson", "--json"} + arguments));
}

/// ||a - b|| / ||a|| of the arrays in two files.
inline double difference(const std::filesystem::path& a, const std::filesystem::path& b) {
  const Array left = read_array(a), right = read_array(b);
  REQUIRE(left.shape == right.shape);
  double difference2 = 0, norm2 = 0;
  for (std::size_t i = 0; i < left.values.size(); ++i) {
    difference2 += std::pow(left.values[i] - right.values[i], 2);
    norm2 += std::pow(left.values[i], 2);
  }
  return std::sqrt(difference2 / norm2);
}

inline long temporaries(const std::filesystem::path& folder) {
  return std::count_if(
      std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator(),
      [](const std::filesystem::directory_entry& entry) { return entry.path().extension() == ".part"; });
}

}  // namespace asterism::test
