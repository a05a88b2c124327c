/// \file
/// Runs of `asterism linear`, and matrices for them.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../../support/command_line.hpp"
#include "../../support/skip.hpp"

namespace asterism::test {

inline json linear(const Words& arguments) {
  return report_of(one_process(Words{"linear", "--json"} + arguments));
}

/// A run that ends with status 1, which is a result: its report.
inline json unsolved_linear(const Words& arguments) {
  const Result result = run(one_process(Words{"linear", "--json"} + arguments));
  CAPTURE(result.err);
  CHECK(result.status == 1);
  return json::parse(result.out);
}

/// A Matrix Market file of general real coordinates, whose lines are given.
inline std::string matrix_file(const std::filesystem::path& path, const std::string& sizes,
                               const std::string& lines, const std::string& kind = "real general") {
  std::ofstream(path) << "%%MatrixMarket matrix coordinate " << kind << "\n" << sizes << "\n" << lines;
  return path.string();
}

/// 2 and -1 on a line of n nodes.
inline std::string line_matrix(const std::filesystem::path& path, int n) {
  std::string lines;
  for (int i = 1; i <= n; ++i) {
    lines += std::to_string(i) + " " + std::to_string(i) + " 2\n";
    if (i < n) lines += std::to_string(i + 1) + " " + std::to_string(i) + " -1\n";
  }
  const std::string rows = std::to_string(n);
  return matrix_file(path, rows + " " + rows + " " + std::to_string(2 * n - 1), lines, "real symmetric");
}

/// A file of the project's collection.
inline std::string kept_matrix(const std::string& name) {
  const char* data = std::getenv("ASTERISM_DATA");
  return data == nullptr ? "" : (std::filesystem::path(data) / "matrices" / name).string();
}

inline SkipUnless matrices_are_there() {
  return {std::filesystem::exists(kept_matrix("1138_bus.mtx")),
          "ASTERISM_DATA names no folder with matrices/"};
}

}  // namespace asterism::test
