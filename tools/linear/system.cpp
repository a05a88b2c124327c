#include "system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "../../algorithms/common/team.hpp"
#include "../../algorithms/sparse/blocks/block_matrix.hpp"
#include "../../algorithms/sparse/graph/structure.hpp"
#include "../../codelets/grid/laplacian.hpp"
#include "../../runtime/collectives.hpp"
#include "../files/file_bytes.hpp"
#include "../files/matrices/matrix_file.hpp"
#include "../files/matrices/vector_file.hpp"
#include "decomposition.hpp"

namespace asterism::tools {
namespace {

StatedMatrix read_file(const LinearOptions& o, const StatedLinear& stated, const RowShare& share) {
  const bool pattern_wanted = o.pattern_values == PatternValues::laplacian;
  MatrixFile file = read_matrix(stated.matrix, pattern_wanted ? RowShare(whole_matrix) : share);
  if (file.field == Field::pattern && !pattern_wanted && o.task == LinearTask::solve)
    throw Error(fmt::format(
        "{}: a pattern, which says where entries are but not which; --pattern-values laplacian gives "
        "it values",
        stated.matrix));
  if (file.field != Field::pattern && pattern_wanted)
    throw Error(
        fmt::format("--pattern-values: {} has values of its own; leave the option away", stated.matrix));
  const bool scipy = begins_with(stated.matrix, "PK", "a matrix");
  StatedMatrix read{stated.matrix,
                    {scipy ? 0 : 1},
                    std::move(file.matrix),
                    file.duplicates,
                    file.field == Field::pattern && !pattern_wanted};
  if (read.matrix.total_rows != read.matrix.cols && pattern_wanted)
    throw Error(fmt::format("{}: the matrix is {} x {}: only a square one has a Laplacian", read.name,
                            read.matrix.total_rows, read.matrix.cols));
  if (pattern_wanted) read.matrix = laplacian_of_pattern(read.matrix);
  return read;
}

void require_square(const StatedMatrix& m) {
  if (m.matrix.total_rows != m.matrix.cols)
    throw Error(fmt::format("{}: the matrix is {} x {}: only square ones are solved with", m.name,
                            m.matrix.total_rows, m.matrix.cols));
}

/// Whether the preconditioner divides by the diagonal, or by roots of what it becomes.
bool needs_diagonal(const LinearOptions& o) {
  return o.preconditioner.method != sparse::PreconditionerMethod::none && !has_subdomains(o.method);
}

/// The diagonal entry of row i of those that are here.
std::optional<double> diagonal_of(const sparse::Csr<double>& a, Index i) {
  const auto begin = a.columns.begin() + a.row_begin[i], end = a.columns.begin() + a.row_begin[i + 1];
  const auto at = std::lower_bound(begin, end, a.first_row + i);
  if (at == end || *at != a.first_row + i) return {};
  return a.values[at - a.columns.begin()];
}

/// Calls body(i) for all rows that are here, by several threads. @throw what the lowest row threw that did
template <class Body>
void for_all_rows(const sparse::Csr<double>& a, const Body& body) {
  in_parts(
      a.rows(), 0,
      [&](Index first, Index end) {
        for (Index i = first; i < end; ++i) body(i);
      },
      least_rows_seen);
}

bool has_positive_diagonal(const sparse::Csr<double>& a) {
  std::atomic<bool> all_positive = true;
  for_all_rows(a, [&](Index i) {
    if (!(diagonal_of(a, i).value_or(0) > 0)) all_positive = false;
  });
  return all_positive;
}

/// Of all rows that are here.
void require_diagonal(const StatedMatrix& m, LinearMethod method) {
  const bool definite = method == LinearMethod::cg;
  for_all_rows(m.matrix, [&](Index i) {
    const std::optional<double> value = diagonal_of(m.matrix, i);
    if (definite ? value.value_or(0) > 0 : value.value_or(0) != 0) return;
    throw Error(fmt::format(
        "{}: row {} has {} on its diagonal{}: {}; {}", m.name, m.number(m.matrix.first_row + i),
        value ? fmt::format("{:g}", *value) : "no entry", m.number.words(),
        definite
            ? "a positive definite matrix has positive numbers there, and the preconditioner divides by them"
            : "the preconditioner divides by it",
        definite
            ? "--preconditioner none looks how far conjugate gradients get without, --solver bicgstab and gmres "
              "are for other matrices"
            : "--preconditioner none needs no diagonal"));
  });
}

/// @param i of the rows that are here
void require_numbers(const StatedLinear& stated, const StatedMatrix& m, Index i) {
  const sparse::Csr<double>& a = m.matrix;
  const double largest = stated.precision == Precision::f32
                             ? static_cast<double>(std::numeric_limits<float>::max())
                             : std::numeric_limits<double>::max();
  for (Index k = a.row_begin[i]; k < a.row_begin[i + 1]; ++k)
    if (!(std::abs(a.values[k]) <= largest))
      throw Error(fmt::format("{}: the entry ({}, {}) is {:g}{}: {}", m.name, m.number(a.first_row + i),
                              m.number(a.columns[k]), a.values[k], m.number.words(),
                              std::isfinite(a.values[k]) ? "too large for f32; use --precision f64"
                                                         : "every number must be finite"));
}

/// Looks at the rows that are here.
void require_good_rows(const StatedLinear& stated, const StatedMatrix& m) {
  const sparse::Csr<double>& a = m.matrix;
  for_all_rows(a, [&](Index i) {
    if (a.row_begin[i] == a.row_begin[i + 1])
      throw Error(fmt::format("{}: row {} is empty{}: the matrix is singular", m.name,
                              m.number(a.first_row + i), m.number.words()));
    require_numbers(stated, m, i);
  });
}

/// Whether conjugate gradients may have it, as far as symmetry goes; of a file that is not to be trusted all rows are
/// here.
bool is_symmetric(const LinearOptions& o, const StatedMatrix& m) {
  if (o.model) return o.model->is_symmetric();
  return o.symmetry == SymmetryTrust::assumed ||
         sparse::check_symmetry(m.matrix, symmetry_tolerance).numerical();
}

[[noreturn]] void refuse_unsymmetric(const LinearOptions& o, const StatedMatrix& m) {
  const std::string others = "--solver bicgstab and --solver gmres are for such matrices";
  if (o.model)
    throw Error(fmt::format("{}: not symmetric, as conjugate gradients need it; {}", m.name, others));
  const auto pair = *sparse::check_symmetry(m.matrix, symmetry_tolerance).first_unequal;
  throw Error(fmt::format(
      "{}: not symmetric, as conjugate gradients need it: the entry ({}, {}) is {:g}, ({}, {}) is {:g}{}; {}, "
      "--assume-symmetric skips this check",
      m.name, m.number(pair.row), m.number(pair.col), pair.upper, m.number(pair.col), m.number(pair.row),
      pair.lower, m.number.words(), others));
}

ChosenMethod method_for(const LinearOptions& o, bool symmetric, bool positive_diagonal) {
  if (o.method) return {*o.method};
  if (!symmetric) return {LinearMethod::bicgstab, "A is not symmetric"};
  if (!positive_diagonal) return {LinearMethod::bicgstab, "A is not positive definite"};
  return {LinearMethod::cg};
}

RightHandSides generated(const LinearOptions& o, const StatedLinear& stated, const sparse::Csr<double>& a) {
  RightHandSides b;
  b.values.resize(static_cast<std::size_t>(a.rows()));
  for_all_rows(a, [&](Index i) {
    const auto begin = a.values.begin() + a.row_begin[i], end = a.values.begin() + a.row_begin[i + 1];
    b.values[i] = stated.rhs == RightHandSide::ones     ? 1.0
                  : stated.rhs == RightHandSide::random ? random_number(o.common.seed, a.first_row + i)
                                                        : std::accumulate(begin, end, 0.0);
  });
  return b;
}

RightHandSides read_right_hand_sides(const std::string& path, const StatedMatrix& m) {
  const Vectors vectors = read_vectors(path);
  if (vectors.rows != m.matrix.total_rows)
    throw Error(fmt::format("{}: right-hand sides of {} rows; {} has {}", path, vectors.rows, m.name,
                            m.matrix.total_rows));
  const auto at = [&](Index row) { return vectors.values.begin() + row * vectors.cols; };
  const Index first = m.matrix.first_row;
  return {vectors.cols, {at(first), at(first + m.matrix.rows())}};
}

}  // namespace

std::string Numbering::words() const { return fmt::format(" (numbered from {}, as in the file)", first); }

double random_number(std::uint64_t seed, Index row) {
  constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;
  const std::uint64_t bits = grid::mix(grid::mix(seed + step) + static_cast<std::uint64_t>(row) * step) >> 41;
  return (2.0 * static_cast<double>(bits) + 1.0) * 0x1p-23 - 1.0;
}

RankSpeeds speeds_of_ranks(Runtime& runtime, const LinearOptions& o) {
  if (o.balance == Balance::equal) return RankSpeeds(static_cast<std::size_t>(runtime.ranks()));
  RankSpeeds speeds = sparse::measure_rank_speeds(runtime, o.workers);
  // What is done for a row with subdomains is many times a product's work, for each time that ranks wait for each other.
  constexpr double products_of_subdomains = 16;
  if (has_subdomains(o.method))
    for (sparse::RankSpeed& speed : speeds) speed.rows /= products_of_subdomains;
  return speeds;
}

sparse::Csr<double> rows_of_this_rank(const Runtime& runtime, const sparse::Csr<double>& whole,
                                      const RankSpeeds& speeds) {
  const auto [first, end] = sparse::rows_of_rank(whole.total_rows, runtime.rank(),
                                                 sparse::shares_of_ranks(whole.total_rows, speeds));
  return sparse::rows_of(whole, Part{.first = first, .size = end - first});
}

StatedMatrix read_whole_matrix(const Runtime& runtime, const LinearOptions& o, const StatedLinear& stated) {
  StatedMatrix m;
  agree(runtime, [&] {
    m = o.model ? StatedMatrix{.name = stated.matrix, .matrix = sparse::model_matrix(*o.model)}
                : read_file(o, stated, whole_matrix);
    for_all_rows(m.matrix, [&](Index i) { require_numbers(stated, m, i); });
  });
  return m;
}

StatedMatrix read_matrix_to_solve(const Runtime& runtime, const LinearOptions& o, const StatedLinear& stated,
                                  const RankSpeeds& speeds) {
  const auto range_of = [&](Index n) {
    return sparse::rows_of_rank(n, runtime.rank(), sparse::shares_of_ranks(n, speeds));
  };
  StatedMatrix m;
  agree(runtime, [&] {
    if (o.model) {
      const auto [first, end] = range_of(o.model->rows());
      m = {.name = stated.matrix, .matrix = sparse::model_rows(*o.model, first, end)};
      return;
    }
    const RowShare mine = [&](std::span<const Index> row_begin) {
      const auto [first, end] = range_of(static_cast<Index>(row_begin.size()) - 1);
      return RowRange{first, end};
    };
    const bool assumed = o.symmetry == SymmetryTrust::assumed;
    m = read_file(o, stated, assumed ? mine : RowShare(whole_matrix));
  });
  return m;
}

ChosenMethod require_solvable(const Runtime& runtime, const LinearOptions& o, const StatedLinear& stated,
                              const RankSpeeds& speeds, StatedMatrix& m) {
  bool symmetric = true, positive = true;
  agree(runtime, [&] {
    require_square(m);
    require_good_rows(stated, m);
    if (needs_symmetry(o) || o.method == LinearMethod::dbds) symmetric = is_symmetric(o, m);
    if (o.method && needs_symmetry(o) && !symmetric) refuse_unsymmetric(o, m);
    positive = has_positive_diagonal(m.matrix);
  });
  ChosenMethod chosen = method_for(o, symmetric, !any(runtime, !positive));
  chosen.matrix_class = (symmetric && !any(runtime, !positive)) || needs_symmetry(o)
                            ? sparse::MatrixClass::positive_definite
                            : sparse::MatrixClass::general;
  agree(runtime, [&] {
    if (needs_diagonal(o)) require_diagonal(m, chosen.method);
    const bool whole = m.matrix.rows() == m.matrix.total_rows;
    if (whole && runtime.ranks() > 1 && !o.model) m.matrix = rows_of_this_rank(runtime, m.matrix, speeds);
  });
  return chosen;
}

RightHandSides right_hand_sides(const Runtime& runtime, const LinearOptions& o, const StatedLinear& stated,
                                const StatedMatrix& m) {
  RightHandSides b;
  agree(runtime, [&] {
    b = o.right_hand_side.empty() ? generated(o, stated, m.matrix)
                                  : read_right_hand_sides(o.right_hand_side, m);
  });
  return b;
}

}  // namespace asterism::tools
