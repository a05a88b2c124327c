/// \file
/// Bytes that an iteration of conjugate gradients moves.
#pragma once

#include <optional>

#include "../../../algorithms/sparse/linear_solver.hpp"

namespace asterism::tools {

struct CgBytes {
  double model = 0;    ///< [Czapinski 2014] (6.10) to (6.13)
  double kernels = 0;  ///< what (N1) to (N3) read and write
};

/// By [Czapinski 2014] (6.10) to (6.13): rows compressed with indices of 32 bits, every step by itself, the same with
/// a diagonal. @param value bytes of a number
inline double model_bytes(Index rows, Index entries, std::size_t value) {
  const auto n = static_cast<double>(rows), nnz = static_cast<double>(entries),
             s_val = static_cast<double>(value);
  constexpr double s_idx = 4;
  const double spmv = s_val * (nnz + 2 * n) + s_idx * (nnz + n + 1), axpy = s_val * (2 * n + 1), dot = axpy;
  return spmv + 3 * axpy + 2 * dot;
}

/// The matrix as it is stored, and vectors: (N1) reads p and writes q; (N2) reads q, r and writes r; (N3) reads
/// r, p, x and writes x, p. A diagonal preconditioner is read by (N2) and (N3). Whatever a core or a GPU keeps in its
/// caches and registers from one step to the next counts all the same. A reduced system has its own rows, and a diagonal.
inline double kernel_bytes(const sparse::LinearFacts& facts, Index rows, std::size_t value,
                           std::size_t diagonal_value) {
  constexpr double vectors = 2 + 3 + 5, diagonals = 2;
  const bool diagonal = facts.preconditioner.reduced_rows > 0 ||
                        facts.preconditioner.choice.method == sparse::PreconditionerMethod::diagonal;
  return static_cast<double>(rows) * (facts.bytes_per_row + vectors * static_cast<double>(value) +
                                      (diagonal ? diagonals * static_cast<double>(diagonal_value) : 0));
}

/// Of both; nothing where there is a preconditioner with steps of its own.
inline std::optional<CgBytes> bytes_of_iteration(const sparse::LinearFacts& facts, Index rows,
                                                 std::size_t value, std::size_t diagonal_value) {
  using enum sparse::PreconditionerMethod;
  const sparse::PreconditionerMethod method = facts.preconditioner.choice.method;
  const Index reduced = facts.preconditioner.reduced_rows;
  if (reduced > 0) rows = reduced;
  if (reduced == 0 && method != none && method != diagonal) return {};
  return CgBytes{model_bytes(rows, facts.entries, value), kernel_bytes(facts, rows, value, diagonal_value)};
}

}  // namespace asterism::tools
