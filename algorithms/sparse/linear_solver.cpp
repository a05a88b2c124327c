#include "linear_solver.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "../../runtime/collectives.hpp"
#include "../../runtime/error.hpp"
#include "../common/statement.hpp"
#include "../common/team.hpp"

namespace asterism::sparse {

namespace {

/// @throw Error: on this rank
void require_sound(const LinearSettings& settings) {
  if (!(settings.tolerance >= 0 && settings.tolerance < 1))
    throw Error(fmt::format("the tolerance is {}: it must be at least 0 and below 1", settings.tolerance));
  if (settings.max_iterations < 0 || settings.check_every < 0)
    throw Error(fmt::format("{} iterations at most, a look each {}: these may not be negative",
                            settings.max_iterations, settings.check_every));
  if (settings.restart < 1 || settings.restart > most_restart)
    throw Error(fmt::format("a basis of {} vectors: it must have at least 1 and at most {}", settings.restart,
                            most_restart));
  if (settings.tolerance == 0 && settings.max_iterations == 0)
    throw Error("neither a tolerance nor a number of iterations is given: there would be no end; give one");
}

void require_alike(const Runtime& runtime, Index rows, const LinearSettings& settings) {
  runtime.require_alike(Statement()
                            .add("rows", rows)
                            .add("preconditioner", to_string(settings.preconditioner))
                            .add("tolerance", settings.tolerance)
                            .add("iterations", settings.max_iterations)
                            .add("restart", settings.restart)
                            .add("reductions", static_cast<Index>(settings.reductions))
                            .text());
}

}  // namespace

template <class T>
void require_sound(const Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings) {
  agree(runtime, [&] {
    if (mine.total_rows < 1 || mine.total_rows != mine.cols)
      throw Error(fmt::format("the matrix is {} x {}: it must be square, and have a row", mine.total_rows,
                              mine.cols));
    in_parts(
        static_cast<Index>(mine.columns.size()), 0,
        [&](Index first, Index end) {
          for (Index k = first; k < end; ++k)
            if (const Index column = mine.columns[k]; column < 0 || column >= mine.cols)
              throw Error(fmt::format("the matrix has an entry in column {} (the first is 0): there are {}",
                                      column, mine.cols));
        },
        least_copied);
    require_sound(settings);
  });
  require_alike(runtime, mine.total_rows, settings);
}

template <class T>
void require_sound(const Runtime& runtime, const LinearOperator<T>& a, const LinearSettings& settings) {
  agree(runtime, [&] {
    if (a.rows < 1 || a.line < 1 || a.rows % a.line != 0)
      throw Error(
          fmt::format("the operator has {} rows in lines of {}: both must be at least 1, and all lines whole",
                      a.rows, a.line));
    if (!a.multiply) throw Error("the operator has nothing to multiply with: set LinearOperator::multiply");
    if (settings.preconditioner.method != PreconditionerMethod::automatic || settings.format)
      throw Error(fmt::format(
          "preconditioner {}{}: an operator has no entries to make it of, or to store; leave both to choose, and set "
          "LinearOperator::precondition",
          to_string(settings.preconditioner), settings.format ? " and a format" : ""));
    require_sound(settings);
  });
  require_alike(runtime, a.rows, settings);
}

void append(const Report& part, Index iterations, Index before, LinearReport& report) {
  report.reason = part.reason;
  for (std::size_t k = 0; k < part.residual_history.size(); ++k) {
    const Index at = before + std::min(part.residual_iterations[k], iterations);
    const bool again = !report.residual_iterations.empty() && report.residual_iterations.back() == at;
    if (again) {
      report.residual_history.back() = part.residual_history[k];
    } else {
      report.residual_history.push_back(part.residual_history[k]);
      report.residual_iterations.push_back(at);
    }
  }
  for (const auto& [name, seconds] : part.seconds) report.seconds[name] += seconds;
  report.traffic = part.traffic;
}

template void require_sound(const Runtime&, const LinearOperator<float>&, const LinearSettings&);
template void require_sound(const Runtime&, const LinearOperator<double>&, const LinearSettings&);
template void require_sound(const Runtime&, const Csr<float>&, const LinearSettings&);
template void require_sound(const Runtime&, const Csr<double>&, const LinearSettings&);

}  // namespace asterism::sparse
