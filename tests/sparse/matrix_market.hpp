/// \file
/// Matrices of ASTERISM_DATA, read in the slow and obvious way.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

#include "../../algorithms/sparse/csr.hpp"

namespace asterism::test {

/// Where the matrices are; empty where ASTERISM_DATA is not set.
inline std::filesystem::path matrices() {
  const char* const data = std::getenv("ASTERISM_DATA");
  return data == nullptr ? std::filesystem::path{} : std::filesystem::path(data) / "matrices";
}

/// A matrix from its rows.
inline sparse::Csr<double> matrix_of(const std::vector<std::map<Index, double>>& rows) {
  sparse::Csr<double> matrix;
  matrix.total_rows = matrix.cols = static_cast<Index>(rows.size());
  for (const std::map<Index, double>& row : rows) {
    for (const auto& [column, value] : row) {
      matrix.columns.push_back(column);
      matrix.values.push_back(value);
    }
    matrix.row_begin.push_back(static_cast<Index>(matrix.columns.size()));
  }
  return matrix;
}

/// A real square matrix in coordinates, general or symmetric.
inline sparse::Csr<double> read_matrix(const std::string& name) {
  std::ifstream file(matrices() / (name + ".mtx"));
  std::string line;
  std::getline(file, line);
  const bool symmetric = line.find("symmetric") != std::string::npos;
  while (std::getline(file, line) && line.starts_with('%')) continue;
  Index rows = 0, cols = 0, entries = 0, i = 0, j = 0;
  std::istringstream(line) >> rows >> cols >> entries;
  std::vector<std::map<Index, double>> matrix(static_cast<std::size_t>(rows));
  for (double value = 0; entries > 0 && file >> i >> j >> value; --entries) {
    matrix[static_cast<std::size_t>(i - 1)][j - 1] = value;
    if (symmetric) matrix[static_cast<std::size_t>(j - 1)][i - 1] = value;
  }
  if (rows == 0 || entries != 0) throw std::runtime_error("cannot read the matrix " + name);
  return matrix_of(matrix);
}

}  // namespace asterism::test
