#include "solve.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <vector>

#include "../../algorithms/sparse/conjugate_gradients.hpp"
#include "../../algorithms/sparse/unsymmetric/bicgstab.hpp"
#include "../../algorithms/sparse/unsymmetric/gmres.hpp"
#include "../../runtime/collectives.hpp"
#include "../../runtime/pause.hpp"
#include "../cli/progress.hpp"
#include "decomposition.hpp"
#include "solution_file.hpp"

namespace asterism::tools {
namespace {

template <class T>
Array<T> in_precision_of(Array<double> numbers) {
  if constexpr (sizeof(T) == sizeof(double))
    return numbers;
  else
    return {numbers.begin(), numbers.end()};
}

template <class T>
sparse::Csr<T> in_precision_of(sparse::Csr<double> matrix) {
  return {matrix.first_row,
          matrix.total_rows,
          matrix.cols,
          std::move(matrix.row_begin),
          std::move(matrix.columns),
          in_precision_of<T>(std::move(matrix.values))};
}

/// ||x - (1, ..., 1)|| / ||(1, ..., 1)|| of all ranks. Collective.
template <class T>
double error_against_ones(const Runtime& runtime, const Array<T>& x, Index n) {
  std::vector<double> square(1);
  for (const T value : x) square[0] += std::pow(static_cast<double>(value) - 1, 2);
  sum_over_ranks(runtime, square);
  return std::sqrt(square[0] / static_cast<double>(n));
}

/// One solve, from what was read to what is written.
class LinearSolve {
 public:
  LinearSolve(Runtime& runtime, const LinearOptions& options, const StatedLinear& stated)
      : runtime_(runtime),
        options_(options),
        stated_(stated),
        progress_(runtime.rank() == 0 ? options.common.verbosity : Verbosity::quiet) {
    outcome_.run.precision = stated.precision;
  }

  LinearOutcome run() && {
    read();
    switch (outcome_.chosen.method) {
      case LinearMethod::cg:
        solve_in_precisions<sparse::ConjugateGradients>();
        break;
      case LinearMethod::bicgstab:
        solve_in_precisions<sparse::BiCgStab>();
        break;
      case LinearMethod::gmres:
        solve_in_precisions<sparse::Gmres>();
        break;
      case LinearMethod::dcg:
      case LinearMethod::dbds:
        solve_on_subdomains();
        break;
    }
    outcome_.run.sum_up(runtime_, row_count_);
    return std::move(outcome_);
  }

 private:
  Stopwatch& stopwatch() { return outcome_.run.stopwatch; }

  void read() {
    const RankSpeeds speeds = speeds_of_ranks(runtime_, options_);
    if (runtime_.ranks() > 1) stopwatch().lap("measure");
    const Pause pause;
    progress_.update("reading " + stated_.matrix);
    matrix_ = read_matrix_to_solve(runtime_, options_, stated_, speeds);
    stopwatch().lap("read");
    outcome_.chosen = require_solvable(runtime_, options_, stated_, speeds, matrix_);
    stopwatch().lap("analyse");
    b_ = right_hand_sides(runtime_, options_, stated_, matrix_);
    stopwatch().lap("fill");
    outcome_.rows = matrix_.matrix.total_rows;
    shares_ = sparse::shares_of_ranks(outcome_.rows, speeds);
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

  void solve_on_subdomains() {
    if (stated_.precision == Precision::f32)
      solve_on_subdomains_in<float>();
    else
      solve_on_subdomains_in<double>();
  }

  template <class T>
  void solve_on_subdomains_in() {
    if (options_.method == LinearMethod::dcg)
      return solve_with<T>([&](const sparse::Csr<T>& mine, const sparse::LinearSettings& settings) {
        const decomposition::SubdomainSettings subdomains = subdomains_of(runtime_, options_, shares_);
        auto solver = std::make_unique<decomposition::Dcg<T>>(runtime_, mine, settings, subdomains);
        outcome_.decomposition = {subdomains.count, {}, solver->bytes_between_ranks()};
        return solver;
      });
    if (!options_.decomposition.accelerate) return solve_by_schwarz<decomposition::Dbds<T>, T>();
    switch (*options_.decomposition.accelerate) {
      case LinearMethod::bicgstab:
        return solve_by_schwarz<sparse::BiCgStab<T>, T>();
      case LinearMethod::gmres:
        return solve_by_schwarz<sparse::Gmres<T>, T>();
      default:
        return solve_by_schwarz<sparse::ConjugateGradients<T>, T>();
    }
  }

  template <class Solver, class T>
  void solve_by_schwarz() {
    std::function<decomposition::SchwarzFacts()> facts;  // all of them when there is a solution
    const auto tell = [&] {
      const decomposition::SchwarzFacts its = facts();
      const auto slowest = [&](double mine) { return std::ranges::max(gather(runtime_, mine)); };
      stopwatch().add("partition", slowest(its.seconds_partition + its.factors.seconds_order));
      stopwatch().add("factorise", slowest(its.factors.seconds_factorise));
      outcome_.decomposition = {static_cast<Index>(its.rows.size()), its, its.bytes_between_ranks};
    };
    solve_with<T>(
        [&](const sparse::Csr<T>& mine, const sparse::LinearSettings& settings) {
          const auto schwarz =
              make_schwarz(runtime_, mine, options_, shares_, outcome_.chosen.matrix_class, facts);
          return std::make_unique<Solver>(runtime_, mine, settings, schwarz);
        },
        tell);
  }

  template <class Solver, class T>
  void solve_by() {
    solve_with<T>([&](const sparse::Csr<T>& mine, const sparse::LinearSettings& settings) {
      return std::make_unique<Solver>(runtime_, mine, settings);
    });
  }

  /// @param make(mine, settings) a new solver @param tell what there is to tell when it has solved
  template <class T, class Make>
  void solve_with(const Make& make, const std::function<void()>& tell = {}) {
    SolutionFile file(runtime_, options_.common.output, shape(), precision_of<T>);
    const sparse::Csr<T> mine = in_precision_of<T>(std::move(matrix_.matrix));
    sparse::LinearSettings settings = settings_of(options_, stated_);
    settings.observer = told_to(progress_, "iteration");
    const Array<T> b = in_precision_of<T>(std::move(b_.values));
    Array<T> x(b.size(), 0);
    {
      const WhileWorking shown(progress_, fmt::format("solving for {} unknowns", outcome_.rows));
      const auto solver = make(mine, settings);
      outcome_.columns = solver->solve(b.data(), x.data(), b_.columns);
      outcome_.facts = solver->facts();
      if (tell) tell();
      add_parts_of_setup();
    }
    progress_.note("");
    outcome_.run.report = summary_of(outcome_.columns);
    stopwatch().lap("solve");
    finish(x, file);
  }

  void add_parts_of_setup() {
    std::vector<const char*> parts{"divide",   "gather", "colour",  "permute",
                                   "symbolic", "split",  "arrange", "try"};
    if (!outcome_.decomposition) parts.insert(parts.begin() + 5, "factorise");
    for (const char* part : parts)
      if (const auto at = outcome_.facts.seconds.find(part); at != outcome_.facts.seconds.end())
        stopwatch().add(part, at->second);
  }

  template <class T>
  void finish(const Array<T>& x, SolutionFile& file) {
    const Pause pause;
    const bool known = options_.right_hand_side.empty() && stated_.rhs == RightHandSide::ones_solution;
    if (known && outcome_.run.has_result()) {
      outcome_.error = error_against_ones(runtime_, x, outcome_.rows);
      stopwatch().lap("check");
    }
    if (!file.is_wanted() || !outcome_.run.has_result()) return;
    progress_.update("writing x");
    file.write(first_row_, x);
    stopwatch().lap("write");
  }

  Runtime& runtime_;
  const LinearOptions& options_;
  const StatedLinear& stated_;
  Progress progress_;
  LinearOutcome outcome_;
  StatedMatrix matrix_;
  std::vector<double> shares_;           // of the ranks
  Index first_row_ = 0, row_count_ = 0;  // of this rank
  RightHandSides b_;
};

}  // namespace

LinearOutcome solve_linear(Runtime& runtime, const LinearOptions& options, const StatedLinear& stated) {
  return LinearSolve(runtime, options, stated).run();
}

}  // namespace asterism::tools
