#include "solve.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "../../algorithms/sparse/conjugate_gradients.hpp"
#include "../../runtime/collectives.hpp"
#include "../../runtime/pause.hpp"
#include "../cli/progress.hpp"
#include "../files/npy.hpp"

namespace asterism::tools {
namespace {

template <class T>
sparse::Csr<T> in_precision_of(sparse::Csr<double> matrix) {
  if constexpr (sizeof(T) == sizeof(double))
    return matrix;
  else
    return {matrix.first_row,
            matrix.total_rows,
            matrix.cols,
            std::move(matrix.row_begin),
            std::move(matrix.columns),
            {matrix.values.begin(), matrix.values.end()}};
}

/// ||x - (1, ..., 1)|| / ||(1, ..., 1)|| of all ranks. Collective.
template <class T>
double error_against_ones(const Runtime& runtime, const std::vector<T>& x, Index n) {
  std::vector<double> square(1);
  for (const T value : x) square[0] += std::pow(static_cast<double>(value) - 1, 2);
  sum_over_ranks(runtime, square);
  return std::sqrt(square[0] / static_cast<double>(n));
}

/// Solves for all columns. @param x as many numbers as b, row-major
template <class T, class Solver>
std::vector<sparse::LinearReport> solve_columns(Solver& solver, const RightHandSides& b, std::vector<T>& x) {
  const auto rows = static_cast<std::size_t>(solver.row_count()),
             columns = static_cast<std::size_t>(b.columns);
  std::vector<sparse::LinearReport> reports;
  std::vector<T> its_b(rows), its_x(rows);
  for (std::size_t k = 0; k < columns; ++k) {
    for (std::size_t i = 0; i < rows; ++i) its_b[i] = static_cast<T>(b.values[i * columns + k]);
    its_x.assign(rows, T{});
    reports.push_back(solver.solve(its_b.data(), its_x.data()));
    for (std::size_t i = 0; i < rows; ++i) x[i * columns + k] = its_x[i];
  }
  return reports;
}

/// One solve, from what was read to what is written.
class LinearRun {
 public:
  LinearRun(Runtime& runtime, const LinearOptions& options, const StatedLinear& stated)
      : runtime_(runtime),
        options_(options),
        stated_(stated),
        progress_(runtime.rank() == 0 ? options.common.verbosity : Verbosity::quiet) {
    outcome_.run.precision = stated.precision;
  }

  LinearOutcome run() && {
    read();
    switch (options_.method) {
      case LinearMethod::cg:
        solve_in_precisions<sparse::ConjugateGradients>();
        break;
    }
    outcome_.run.sum_up(runtime_, row_count_);
    return std::move(outcome_);
  }

 private:
  Stopwatch& stopwatch() { return outcome_.run.stopwatch; }

  void read() {
    const Pause pause;
    progress_.update("reading " + stated_.matrix);
    matrix_ = read_matrix_to_solve(runtime_, options_, stated_);
    stopwatch().lap("read");
    require_solvable(runtime_, options_, stated_, matrix_);
    stopwatch().lap("analyse");
    b_ = right_hand_sides(runtime_, options_, stated_, matrix_);
    stopwatch().lap("fill");
    outcome_.rows = matrix_.matrix.total_rows;
    for (const Index entries : gather(runtime_, matrix_.matrix.entries())) outcome_.entries += entries;
    outcome_.number = matrix_.number;
    outcome_.duplicates = matrix_.duplicates;
    first_row_ = matrix_.matrix.first_row;
    row_count_ = matrix_.matrix.rows();
  }

  /// {n} of a single column, or {n, columns}.
  [[nodiscard]] std::vector<Index> shape() const {
    std::vector<Index> shape{outcome_.rows};
    if (b_.columns != 1) shape.push_back(b_.columns);
    return shape;
  }

  /// @tparam Solver of the numbers' type and that of the preconditioner's
  template <template <class, class> class Solver>
  void solve_in_precisions() {
    if (stated_.precision == Precision::f32)
      solve_by<Solver<float, float>, float>();
    else if (stated_.preconditioner_precision == Precision::f32)
      solve_by<Solver<double, float>, double>();
    else
      solve_by<Solver<double, double>, double>();
  }

  template <class Solver, class T>
  void solve_by() {
    std::optional<NpyWriter> writer = open_output(runtime_, options_.common.output, shape(), precision_of<T>);
    const sparse::Csr<T> mine = in_precision_of<T>(std::move(matrix_.matrix));
    sparse::LinearSettings settings = settings_of(options_, stated_);
    settings.observer = told_to(progress_, "iteration");
    std::vector<T> x(b_.values.size());
    {
      const WhileWorking shown(progress_, fmt::format("solving for {} unknowns", outcome_.rows));
      Solver solver(runtime_, mine, settings);
      outcome_.facts = solver.facts();
      for (const char* part :
           {"divide", "gather", "colour", "permute", "symbolic", "factorise", "split", "arrange"})
        if (const auto at = outcome_.facts.seconds.find(part); at != outcome_.facts.seconds.end())
          stopwatch().add(part, at->second);
      outcome_.columns = solve_columns<T>(solver, b_, x);
    }
    progress_.note("");
    outcome_.run.report = summary_of(outcome_.columns);
    stopwatch().lap("solve");
    finish(x, writer);
  }

  template <class T>
  void finish(const std::vector<T>& x, std::optional<NpyWriter>& writer) {
    const Pause pause;
    const bool known = options_.right_hand_side.empty() && stated_.rhs == RightHandSide::ones_solution;
    if (known && outcome_.run.has_result()) {
      outcome_.error = error_against_ones(runtime_, x, outcome_.rows);
      stopwatch().lap("check");
    }
    if (!writer || !outcome_.run.has_result()) return;
    progress_.update("writing x");
    writer->write_rows(first_row_, row_count_, x.data(), b_.columns);
    commit_output(runtime_, writer);
    stopwatch().lap("write");
  }

  Runtime& runtime_;
  const LinearOptions& options_;
  const StatedLinear& stated_;
  Progress progress_;
  LinearOutcome outcome_;
  StatedMatrix matrix_;
  Index first_row_ = 0, row_count_ = 0;  // of this rank
  RightHandSides b_;
};

}  // namespace

LinearOutcome solve_linear(Runtime& runtime, const LinearOptions& options, const StatedLinear& stated) {
  return LinearRun(runtime, options, stated).run();
}

}  // namespace asterism::tools
