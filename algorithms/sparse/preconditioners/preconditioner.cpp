#include "preconditioner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "../../../runtime/collectives.hpp"
#include "../../../runtime/error.hpp"
#include "../../common/stopwatch.hpp"
#include "../../common/team.hpp"
#include "triangular_factors.hpp"

namespace asterism::sparse {
namespace {

/// Why a preconditioner cannot be had with this diagonal entry; empty: it can.
std::string complaint(MatrixClass matrix_class, std::optional<double> value) {
  if (matrix_class == MatrixClass::general)
    return value.value_or(0) != 0 ? "" : "divides by it; use --preconditioner none";
  return value.value_or(0) > 0
             ? ""
             : "divides by it, and a positive definite matrix has positive numbers there; use --preconditioner none, "
               "with a solver for matrices that are not definite";
}

}  // namespace

template <class T>
Array<double> usable_diagonal(const Runtime& runtime, const Csr<T>& mine, const PreconditionerChoice& choice,
                              MatrixClass matrix_class) {
  Array<double> diagonal(static_cast<std::size_t>(mine.rows()));
  const auto look = [&](Index first, Index end_of_part) {
    for (Index i = first; i < end_of_part; ++i) {
      const auto begin = mine.columns.begin() + mine.row_begin[i],
                 end = mine.columns.begin() + mine.row_begin[i + 1];
      const Index row = mine.first_row + i;
      const auto at = std::lower_bound(begin, end, row);
      std::optional<double> value;
      if (at != end && *at == row) value = static_cast<double>(mine.values[at - mine.columns.begin()]);
      if (const std::string why = complaint(matrix_class, value); !why.empty())
        throw Error(
            fmt::format("row {} of the matrix (the first is 0) has {} on its diagonal: preconditioner {} {}",
                        row, value ? fmt::format("{}", *value) : "no entry", to_string(choice), why));
      diagonal[i] = *value;
    }
  };
  agree(runtime, [&] { in_parts(mine.rows(), 0, look, least_rows_seen); });
  return diagonal;
}

namespace {

void require_class(const PreconditionerChoice& choice, MatrixClass matrix_class) {
  using enum PreconditionerMethod;
  if (matrix_class == MatrixClass::general && (choice.method == ic0 || choice.method == chebyshev))
    throw Error(fmt::format(
        "preconditioner {} is for symmetric positive definite matrices, and conjugate gradients: the "
        "solvers for other matrices have {}",
        to_string(choice), choice.method == ic0 ? "ilu0" : "polynomial-diagonal:K"));
}

Array<double> inverted(Array<double> values) {
  const auto invert = [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) values[i] = 1 / values[i];
  };
  in_parts(static_cast<Index>(values.size()), 0, invert, least_copied);
  return values;
}

double largest(const Runtime& runtime, double mine) { return std::ranges::max(gather(runtime, mine)); }

/// Of all ranks' numbers the one of the largest magnitude.
double farthest_from_zero(const Runtime& runtime, const Array<double>& mine) {
  double farthest = 0;
  for (const double value : mine)
    if (std::abs(value) > std::abs(farthest)) farthest = value;
  return std::ranges::max(gather(runtime, farthest), {}, [](double value) { return std::abs(value); });
}

/// The largest eigenvalue that D^-1 A may have (Gershgorin).
template <class T>
double bound_of_spectrum(const Csr<T>& mine, const Array<double>& diagonal) {
  double bound = 0;
  std::mutex mutex;
  const auto look = [&](Index first, Index end) {
    double here = 0;
    for (Index i = first; i < end; ++i) {
      double sum = 0;
      for (Index k = mine.row_begin[i]; k < mine.row_begin[i + 1]; ++k)
        sum += std::abs(static_cast<double>(mine.values[k]));
      here = std::max(here, sum / diagonal[i]);
    }
    const std::lock_guard lock(mutex);
    bound = std::max(bound, here);
  };
  in_parts(mine.rows(), 0, look, least_rows_seen);
  return bound;
}

/// Chebyshev's iteration for eigenvalues from `least` to `most`, [Barrett et al. 1994] 2.3.5.
std::vector<PolynomialStep> chebyshev_steps(int degree, double least, double most) {
  const double middle = (most + least) / 2, half = (most - least) / 2, sigma = middle / half;
  std::vector<PolynomialStep> steps{{0, 1 / middle}};
  double rho = 1 / sigma;
  for (int k = 1; k <= degree; ++k) {
    const double next = 1 / (2 * sigma - rho);
    steps.push_back({next * rho, 2 * next / half});
    rho = next;
  }
  return steps;
}

/// Of what the polynomial of a degree makes equal: below, eigenvalues are told apart by conjugate gradients.
constexpr double part_of_spectrum(int degree) {
  const double steps = degree + 1;
  return 4 * steps * steps;
}

template <class T>
void prepare_polynomial(const Runtime& runtime, const Csr<T>& mine, MatrixClass matrix_class,
                        PreparedPreconditioner<T>& prepared) {
  const PreconditionerChoice& choice = prepared.facts.choice;
  const Array<double> diagonal = usable_diagonal(runtime, mine, choice, matrix_class);
  prepared.kind = PreconditionerKind::polynomial;
  const std::vector<PolynomialStep> neumann(static_cast<std::size_t>(choice.degree) + 1);
  if (choice.method == PreconditionerMethod::polynomial) {
    const double most = farthest_from_zero(runtime, diagonal);
    prepared.steps = neumann;
    for (PolynomialStep& step : prepared.steps) step.delta = 1 / most;
    return;
  }
  prepared.inverse_diagonal = inverted(diagonal);
  if (choice.method == PreconditionerMethod::polynomial_diagonal) {
    prepared.steps = neumann;
  } else {
    const double most = largest(runtime, bound_of_spectrum(mine, diagonal));
    prepared.steps = chebyshev_steps(choice.degree, most / part_of_spectrum(choice.degree), most);
  }
}

std::vector<Index> rows_of_colours(const StageOrder& order) {
  std::vector<Index> rows(static_cast<std::size_t>(order.stages.count));
  for (const Numbering::Segment& segment : order.numbering.segments)
    rows[static_cast<std::size_t>(segment.colour)] += segment.end - segment.first;
  return rows;
}

template <class T>
void prepare_triangular(const Runtime& runtime, const Partition& blocks, const Csr<T>& mine,
                        DiagonalShift shift, MatrixClass matrix_class, PreparedPreconditioner<T>& prepared) {
  PreconditionerFacts& facts = prepared.facts;
  const PreconditionerMethod method = facts.choice.method;
  usable_diagonal(runtime, mine, facts.choice, matrix_class);
  if (prepared.plan == nullptr)
    prepared.plan =
        std::make_shared<TriangularPlan>(runtime, blocks, mine, facts.choice, 0, prepared.seconds);
  const StageOrder& order = prepared.plan->order();
  prepared.kind = PreconditionerKind::triangular;
  facts.stages = order.stages.count;
  if (method == PreconditionerMethod::mc_ilu || method == PreconditionerMethod::mc_ssor)
    facts.rows_of_colours = rows_of_colours(order);
  Stopwatch watch;
  prepared.sequential = order.sequential;
  facts.grains_in_order = order.grains_in_order;
  if (!order.sequential)
    prepared.matrix = std::make_shared<const Csr<T>>(permuted_rows(mine, order.numbering));
  prepared.seconds["permute"] += watch.lap();
  const bool in_order = method == PreconditionerMethod::mc_ssor;
  TriangularFactors<T> factors =
      prepared.plan->factors(runtime, in_order ? *prepared.matrix : mine, shift, prepared.seconds);
  facts.shift = factors.shift;
  facts.breakdown = factors.breakdown;
  if (facts.breakdown) return;
  for (const Index entries : gather(runtime, factors.lower.entries() + factors.upper.entries() + mine.rows()))
    facts.entries += entries;
  prepared.lower = std::move(factors.lower);
  prepared.upper = std::move(factors.upper);
  prepared.inverse_diagonal = inverted(std::move(factors.diagonal));
  prepared.new_of_old = order.numbering.new_of_old;
  prepared.old_of_new = order.numbering.old_of_new;
  prepared.stage_of_row = order.stage_of_row;
}

bool all_equal(const Runtime& runtime, const Array<double>& mine) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double least = mine.empty() ? infinity : std::ranges::min(mine);
  const double most = mine.empty() ? -infinity : std::ranges::max(mine);
  return -largest(runtime, -least) == largest(runtime, most);
}

/// `automatic` is this, by what was measured: a diagonal costs next to nothing, and where all of its entries are equal,
/// when it would do nothing, it is left out.
template <class T>
void prepare_diagonal(const Runtime& runtime, const Csr<T>& mine, MatrixClass matrix_class,
                      PreparedPreconditioner<T>& prepared) {
  using enum PreconditionerMethod;
  PreconditionerMethod& method = prepared.facts.choice.method;
  const bool may_be_left_out = method == automatic;
  method = diagonal;
  Array<double> values = usable_diagonal(runtime, mine, prepared.facts.choice, matrix_class);
  if (may_be_left_out && all_equal(runtime, values)) {
    method = none;
    return;
  }
  prepared.kind = PreconditionerKind::diagonal;
  prepared.inverse_diagonal = inverted(std::move(values));
}

}  // namespace

/// By Gershgorin the condition of D^-1 A is at most bound / (2 - bound), 39 here.
template <class T>
bool gains_by_reduction(const Runtime& runtime, const Csr<T>& mine, MatrixClass matrix_class, bool on_gpus) {
  constexpr double least_bound = 1.95;
  // H200, ecology-like: of 250,000 rows iterations and set-up take 1.15 times as long, of 490,000 0.8 times.
  constexpr Index least_on_gpus = 400'000;
  if (on_gpus && mine.total_rows < least_on_gpus) return false;
  const Array<double> diagonal =
      usable_diagonal(runtime, mine, {.method = PreconditionerMethod::diagonal}, matrix_class);
  return !all_equal(runtime, diagonal) && largest(runtime, bound_of_spectrum(mine, diagonal)) >= least_bound;
}

template <class T>
PreparedPreconditioner<T> prepare(const Runtime& runtime, const Partition& blocks, const Csr<T>& mine,
                                  const PreconditionerChoice& choice, DiagonalShift shift,
                                  MatrixClass matrix_class, std::shared_ptr<TriangularPlan> plan) {
  using enum PreconditionerMethod;
  Stopwatch watch;
  PreparedPreconditioner<T> prepared;
  prepared.plan = std::move(plan);
  prepared.facts.choice = choice;
  prepared.matrix = std::shared_ptr<const Csr<T>>(std::shared_ptr<void>{}, &mine);  // owns nothing
  require_class(prepared.facts.choice, matrix_class);
  switch (prepared.facts.choice.method) {
    case none:
      break;
    case automatic:
    case diagonal:
      prepare_diagonal(runtime, mine, matrix_class, prepared);
      break;
    case polynomial:
    case polynomial_diagonal:
    case chebyshev:
      prepare_polynomial(runtime, mine, matrix_class, prepared);
      break;
    default:
      prepare_triangular(runtime, blocks, mine, shift, matrix_class, prepared);
      return prepared;
  }
  prepared.seconds["factorise"] = watch.lap();
  return prepared;
}

template Array<double> usable_diagonal(const Runtime&, const Csr<float>&, const PreconditionerChoice&,
                                       MatrixClass);
template Array<double> usable_diagonal(const Runtime&, const Csr<double>&, const PreconditionerChoice&,
                                       MatrixClass);
template bool gains_by_reduction(const Runtime&, const Csr<float>&, MatrixClass, bool);
template bool gains_by_reduction(const Runtime&, const Csr<double>&, MatrixClass, bool);
template PreparedPreconditioner<float> prepare(const Runtime&, const Partition&, const Csr<float>&,
                                               const PreconditionerChoice&, DiagonalShift, MatrixClass,
                                               std::shared_ptr<TriangularPlan>);
template PreparedPreconditioner<double> prepare(const Runtime&, const Partition&, const Csr<double>&,
                                                const PreconditionerChoice&, DiagonalShift, MatrixClass,
                                                std::shared_ptr<TriangularPlan>);

}  // namespace asterism::sparse
