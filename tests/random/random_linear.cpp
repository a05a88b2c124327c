// Random sparse systems for all Krylov methods, their preconditioners, and those on subdomains: residuals in long double,
// and the same bits in every division, alone and together, set up anew and refreshed.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "../sparse/linear_solves.hpp"
#include "../sparse/matrix_market.hpp"
#include "algorithms/decomposition/dbds.hpp"
#include "algorithms/sparse/unsymmetric/bicgstab.hpp"
#include "algorithms/sparse/unsymmetric/gmres.hpp"
#include "random_problems.hpp"
#include "separable_oracle.hpp"

namespace asterism::test {
namespace {

using decomposition::Schwarz;
using decomposition::SchwarzSettings;
using sparse::Csr;
using sparse::LinearSettings;

enum class Krylov { conjugate_gradients, bicgstab, gmres, dbds };
constexpr const char* method_names[] = {"cg", "bicgstab", "gmres", "dbds"};
enum class Precision { f64, f32, mixed };
constexpr const char* precision_names[] = {"f64", "f32", "f64 with M in f32"};

/// Systems with one matrix, and how they are to be solved.
struct LinearSystems {
  Csr<double> a;  ///< the whole matrix, of numbers that the precision holds
  std::string matrix;
  bool symmetric = false;  ///< and positive definite
  bool dominant = false;   ///< by a factor of 2, rows and columns: every method has to converge
  Krylov method = Krylov::conjugate_gradients;
  Precision precision = Precision::f64;
  LinearSettings settings;
  std::optional<SchwarzSettings> schwarz;
  Rows rows = Rows::shared;
  Index columns = 1;             ///< right-hand sides
  std::vector<double> b, guess;  ///< row-major

  [[nodiscard]] Index n() const { return a.total_rows; }
  [[nodiscard]] double eps() const { return precision == Precision::f32 ? 0x1p-24 : 0x1p-53; }
  [[nodiscard]] double rounded(double value) const {
    return precision == Precision::f32 ? static_cast<float>(value) : value;
  }
};

// --- Drawing
// -------------------------------------------------------------------------------------------------------------

using Rowwise = std::vector<std::map<Index, double>>;

/// Entries beside the diagonal; rows may have none.
struct Pattern {
  std::string words;
  Rowwise rows;
};

Pattern draw_scattered(Draw& draw, Index n, bool symmetric) {
  const double per_row = draw.logarithmic(0.3, 8);
  Pattern p{fmt::format("about {:.1f} entries a row", per_row), Rowwise(static_cast<std::size_t>(n))};
  const auto entries = static_cast<Index>(per_row * static_cast<double>(n));
  for (Index k = 0; k < entries; ++k) {
    const Index i = draw.integer(0, n - 1), j = draw.integer(0, n - 1);
    if (i == j) continue;
    const double value = draw.uniform(-1, 1);
    p.rows[static_cast<std::size_t>(i)][j] = value;
    if (symmetric) p.rows[static_cast<std::size_t>(j)][i] = value;
  }
  return p;
}

/// A row and a column of many entries.
Pattern draw_arrow(Draw& draw, Index n, bool symmetric) {
  const Index head = draw.integer(0, n - 1);
  Pattern p{fmt::format("an arrow to row {}", head), Rowwise(static_cast<std::size_t>(n))};
  for (Index j = 0; j < n; ++j) {
    if (j == head || draw.chance(0.2)) continue;
    const double value = draw.uniform(-1, 1);
    p.rows[static_cast<std::size_t>(head)][j] = value;
    if (symmetric || draw.chance(0.5)) p.rows[static_cast<std::size_t>(j)][head] = value;
  }
  return p;
}

/// Whole diagonals, of numbers that are all equal or all unlike.
Pattern draw_diagonals(Draw& draw, Index n, bool symmetric) {
  Pattern p{"diagonals", Rowwise(static_cast<std::size_t>(n))};
  const bool constant = draw.chance(0.5);
  const Index count = draw.integer(0, 4);
  for (Index d = 0; d < count && n > 1; ++d) {
    const Index offset = draw.integer(1, n - 1);
    p.words += fmt::format(" {}", offset);
    double upper = draw.uniform(-1, 1), lower = symmetric ? upper : draw.uniform(-1, 1);
    for (Index i = 0; i + offset < n; ++i) {
      if (!constant) {
        upper = draw.uniform(-1, 1);
        lower = symmetric ? upper : draw.uniform(-1, 1);
      }
      p.rows[static_cast<std::size_t>(i)][i + offset] = upper;
      p.rows[static_cast<std::size_t>(i + offset)][i] = lower;
    }
  }
  if (constant) p.words += ", constant";
  return p;
}

/// The neighbours on a grid, constant coefficients.
Pattern draw_grid(Draw& draw, Index n, bool symmetric) {
  std::vector<Index> extents;
  Index nodes = 1;
  for (Index axes = draw.integer(2, 3); axes > 0; --axes) {
    extents.push_back(draw.integer(1, axes == 1 ? std::max<Index>(1, n / nodes) : 12));
    nodes *= extents.back();
  }
  Pattern p{"a grid of", Rowwise(static_cast<std::size_t>(nodes))};
  for (Index stride = 1; const Index extent : extents) {
    p.words += fmt::format(" {}", extent);
    const double upper = draw.uniform(-1, 0), lower = symmetric ? upper : draw.uniform(-1, 0);
    for (Index i = 0; i < nodes; ++i) {
      const Index place = i / stride % extent;
      if (place + 1 < extent) p.rows[static_cast<std::size_t>(i)][i + stride] = upper;
      if (place > 0) p.rows[static_cast<std::size_t>(i)][i - stride] = lower;
    }
    stride *= extent;
  }
  return p;
}

/// The largest of all sums of magnitudes beside the diagonal, in rows and columns.
std::vector<double> sums_beside(const Rowwise& rows) {
  std::vector<double> of_rows(rows.size()), of_columns(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (const auto& [j, value] : rows[i]) {
      of_rows[i] += std::abs(value);
      of_columns[static_cast<std::size_t>(j)] += std::abs(value);
    }
  for (std::size_t i = 0; i < rows.size(); ++i) of_rows[i] = std::max(of_rows[i], of_columns[i]);
  return of_rows;
}

void draw_matrix(Draw& draw, LinearSystems& s) {
  const Index n = draw.chance(0.3) ? draw.integer(100, 700) : draw.chance(0.5) ? draw.integer(1, 8) : draw.integer(9, 99);
  const Index kind = draw.integer(0, 4);
  Pattern p = kind == 0   ? draw_arrow(draw, n, s.symmetric)
              : kind == 1 ? draw_diagonals(draw, n, s.symmetric)
              : kind == 2 ? draw_grid(draw, n, s.symmetric)
                          : draw_scattered(draw, n, s.symmetric);
  s.dominant = draw.chance(0.5);
  const double excess = s.dominant ? 1 : draw.logarithmic(1e-6, 1);
  const bool even = kind == 2 || draw.chance(0.3);  // a constant diagonal
  std::vector<double> sums = sums_beside(p.rows);
  if (even) std::fill(sums.begin(), sums.end(), *std::max_element(sums.begin(), sums.end()));
  const double alone = draw.uniform(0.5, 2);
  for (std::size_t i = 0; i < sums.size(); ++i)
    p.rows[i][static_cast<Index>(i)] = sums[i] == 0 ? alone : (1 + excess) * sums[i];
  const auto all = static_cast<int>(draw.chance(0.7) ? 0 : draw.integer(-30, 30));
  const double sign = s.symmetric || draw.chance(0.9) ? 1 : -1;
  const bool uneven = !s.dominant && draw.chance(0.4);
  std::vector<double> scale(sums.size(), 1);
  if (uneven)
    for (double& its : scale) its = std::ldexp(1, static_cast<int>(draw.integer(-6, 6)));
  for (std::size_t i = 0; i < sums.size(); ++i)
    for (auto& [j, value] : p.rows[i])
      value = s.rounded(sign * scale[i] * scale[static_cast<std::size_t>(j)] * std::ldexp(value, all));
  s.a = matrix_of(p.rows);
  s.matrix = fmt::format("{} rows, {}{}, diagonal {:.3g} more than the rest{}{}, times {}2^{}", s.n(), p.words,
                         s.symmetric ? ", symmetric" : "", excess, even ? ", constant" : "",
                         uneven ? ", rows and columns scaled" : "", sign < 0 ? "-" : "", all);
}

sparse::PreconditionerChoice draw_preconditioner(Draw& draw, Krylov method) {
  std::vector<std::string> known{"auto", "none", "diagonal", "ilu0", "mc-sgs", "mc-ilu0"};
  known.push_back(fmt::format("polynomial:{}", draw.integer(0, 4)));
  known.push_back(fmt::format("polynomial-diagonal:{}", draw.integer(0, 4)));
  known.push_back(fmt::format("mc-ssor:{:.2f}", draw.uniform(0.5, 1.5)));
  known.push_back(fmt::format("mc-ilu:{},{}", draw.integer(0, 2), draw.integer(1, 3)));
  if (method == Krylov::conjugate_gradients) {
    known.push_back(fmt::format("chebyshev:{}", draw.integer(0, 4)));
    known.emplace_back("ic0");
  }
  return sparse::parse_preconditioner(draw.pick(known));
}

/// Within what the matrix has rows for.
std::optional<SchwarzSettings> draw_schwarz(Draw& draw, const LinearSystems& s) {
  SchwarzSettings its;
  its.subdomains.count = draw.integer(1, std::min<Index>(s.n(), 9));
  its.subdomains.cut = draw.pick<decomposition::Cut>({decomposition::Cut::rows, decomposition::Cut::graph});
  its.subdomains.overlap = draw.integer(0, 3);
  its.patches = draw.chance(0.6) ? 0 : draw.integer(1, 4);
  if (s.method == Krylov::conjugate_gradients) its.combination = decomposition::Combination::symmetric;
  its.factors.matrix_class =
      s.symmetric ? sparse::MatrixClass::positive_definite : sparse::MatrixClass::general;
  for (; its.subdomains.overlap >= 0; --its.subdomains.overlap) try {
      cut_into_subdomains(s.a, its.subdomains);
      return its;
    } catch (const Error&) {  // so large an overlap that a subdomain has all rows, or more than a neighbour
    }
  return {};
}

void draw_settings(Draw& draw, LinearSystems& s) {
  LinearSettings& its = s.settings;
  const bool on_subdomains = s.method == Krylov::dbds || draw.chance(0.15);
  if (on_subdomains) s.schwarz = draw_schwarz(draw, s);
  if (s.method == Krylov::dbds && !s.schwarz) s.method = Krylov::gmres;
  if (!s.schwarz) its.preconditioner = draw_preconditioner(draw, s.method);
  its.tolerance = draw.logarithmic(s.precision == Precision::f32 ? 1e-5 : 1e-12, 0.1);
  its.max_iterations = draw.chance(0.3) ? draw.integer(1, 30) : s.dominant ? 0 : 300;
  its.check_every = draw.chance(0.6) ? 0 : draw.integer(1, 7);
  its.reductions = draw.pick<sparse::Reductions>(
      {sparse::Reductions::two, sparse::Reductions::two, sparse::Reductions::one, sparse::Reductions::pipelined});
  its.restart = draw.integer(1, 40);
  if (draw.chance(0.3))
    its.format = draw.pick<sparse::Format>({sparse::Format::csr, sparse::Format::sliced_ell});
  its.blocks = draw.integer(0, 5);
  if (!s.schwarz && its.preconditioner.method != sparse::PreconditionerMethod::automatic && draw.chance(0.3))
    its.values = sparse::Values::refreshed;
  s.rows = draw.pick<Rows>({Rows::shared, Rows::unequal, Rows::on_rank_0});
  s.columns = draw.chance(0.6) ? 1 : draw.integer(2, 5);
}

/// Noise, one row, A times noise, or nothing; of about the size of all others, or of very different ones.
void draw_right_hand_sides(Draw& draw, LinearSystems& s) {
  const auto size = static_cast<std::size_t>(s.n() * s.columns);
  s.b.resize(size);
  s.guess.resize(size);
  const bool guessed = draw.chance(0.3);
  for (Index c = 0; c < s.columns; ++c) {
    const double scale = draw.chance(0.7) ? 1 : std::ldexp(1, static_cast<int>(draw.integer(-30, 30)));
    const Index kind = draw.integer(0, 19);
    const auto b = [&](Index i) -> double& { return s.b[static_cast<std::size_t>(i * s.columns + c)]; };
    if (kind < 4) b(draw.integer(0, s.n() - 1)) = s.rounded(scale);
    for (Index i = 0; i < s.n() && kind > 4; ++i) b(i) = s.rounded(scale * draw.uniform(-1, 1));
    for (Index i = 0; i < s.n() && guessed; ++i)
      s.guess[static_cast<std::size_t>(i * s.columns + c)] = s.rounded(draw.uniform(-1, 1));
  }
}

std::shared_ptr<const LinearSystems> draw_systems(Draw& draw) {
  auto s = std::make_shared<LinearSystems>();
  s->precision = draw.pick<Precision>({Precision::f64, Precision::f64, Precision::f32, Precision::mixed});
  s->method = draw.pick<Krylov>(
      {Krylov::conjugate_gradients, Krylov::conjugate_gradients, Krylov::bicgstab, Krylov::gmres, Krylov::dbds});
  s->symmetric = s->method == Krylov::conjugate_gradients || draw.chance(0.3);
  draw_matrix(draw, *s);
  draw_settings(draw, *s);
  draw_right_hand_sides(draw, *s);
  return s;
}

// --- In words
// ------------------------------------------------------------------------------------------------------------

std::string words(const LinearSystems& s) {
  const LinearSettings& its = s.settings;
  const char* const rows[] = {"shared", "unequal", "on rank 0"};
  std::string m = s.schwarz ? fmt::format("{} subdomains by {}, overlap {}, {} patches", s.schwarz->subdomains.count,
                                          s.schwarz->subdomains.cut == decomposition::Cut::rows ? "rows" : "graph",
                                          s.schwarz->subdomains.overlap, s.schwarz->patches)
                            : "preconditioner " + sparse::to_string(its.preconditioner);
  return fmt::format(
      "{}; {} in {}, {}, tolerance {:.3g}, at most {} iterations, a look each {}, reductions {}, restart {}, format {}, "
      "{} blocks, values {}, rows {}, {} right-hand sides{}",
      s.matrix, method_names[static_cast<int>(s.method)], precision_names[static_cast<int>(s.precision)], m,
      its.tolerance, its.max_iterations, its.check_every, static_cast<int>(its.reductions), its.restart,
      its.format ? std::to_string(static_cast<int>(*its.format)) : "any", its.blocks,
      its.values == sparse::Values::fixed ? "fixed" : "refreshed", rows[static_cast<int>(s.rows)], s.columns,
      std::ranges::any_of(s.guess, [](double x) { return x != 0; }) ? ", guessed" : "");
}

// --- Solving and judging
// -------------------------------------------------------------------------------------------------

/// Of all right-hand sides.
struct Solutions {
  std::vector<double> x;  ///< row-major, of all ranks
  std::vector<sparse::LinearReport> reports;

  bool operator==(const Solutions& other) const {
    const auto alike = [](const sparse::LinearReport& r, const sparse::LinearReport& q) {
      return r.reason == q.reason && r.iterations == q.iterations && r.true_residual == q.true_residual;
    };
    return x == other.x && std::ranges::equal(reports, other.reports, alike);
  }
};

/// Column c of what is row-major.
std::vector<double> column(const std::vector<double>& all, Index columns, Index c) {
  std::vector<double> one;
  for (auto i = static_cast<std::size_t>(c); i < all.size(); i += static_cast<std::size_t>(columns))
    one.push_back(all[i]);
  return one;
}

/// @param b, guess of so many columns, all rows
template <class T, class Solver>
Solutions solutions_of(Runtime& runtime, Solver& solver, const std::vector<double>& b, const std::vector<double>& guess,
                   Index columns) {
  const auto mine = [&](const std::vector<double>& all) {
    const auto first = all.begin() + solver.first_row() * columns;
    return std::vector<T>(first, first + solver.row_count() * columns);
  };
  const std::vector<T> my_b = mine(b);
  std::vector<T> x = mine(guess);
  Solutions its{{}, solver.solve(my_b.data(), x.data(), columns)};
  const std::vector<T> all = gather_lists(runtime, x);
  its.x.assign(all.begin(), all.end());
  return its;
}

/// A matrix with the same pattern; as dominant as the first.
Csr<double> with_other_values(Csr<double> a) {
  for (Index i = 0; i < a.rows(); ++i)
    for (Index k = a.row_begin[i]; k < a.row_begin[i + 1]; ++k)
      if (a.columns[k] != i) a.values[k] *= 0.5;
  return a;
}

/// Whether solutions have the same bits: a second time, right-hand side by right-hand side, as one block, and refreshed as
/// if set up anew. True where that was not tried.
struct Sameness {
  bool again = true, alone = true, divided = true, refreshed = true;
};

template <class T, class V, class Solver>
Solutions solve_all(Runtime& runtime, const LinearSystems& s, Sameness& same) {
  const auto make = [&](const Csr<double>& a, Rows rows, const LinearSettings& settings) {
    const Csr<T> mine = rows_of_this_rank<T>(runtime, a, rows);
    std::shared_ptr<sparse::OuterPreconditioner<T>> outer;
    if (s.schwarz) outer = std::make_shared<Schwarz<T, V>>(runtime, mine, *s.schwarz);
    return std::make_unique<Solver>(runtime, mine, settings, outer);
  };
  const auto solver = make(s.a, s.rows, s.settings);
  Solutions its = solutions_of<T>(runtime, *solver, s.b, s.guess, s.columns);
  same.again = solutions_of<T>(runtime, *solver, s.b, s.guess, s.columns) == its;
  for (Index c = 0; c < s.columns && s.columns > 1; ++c) {
    const Solutions one =
        solutions_of<T>(runtime, *solver, column(s.b, s.columns, c), column(s.guess, s.columns, c), 1);
    const Solutions of_all{column(its.x, s.columns, c), {its.reports[static_cast<std::size_t>(c)]}};
    same.alone = same.alone && one == of_all;
  }
  const bool on_gpus = any(runtime, runtime.machine().count(WorkerKind::cuda) > 0);
  if (!s.schwarz && !on_gpus && s.settings.reductions == sparse::Reductions::two) {
    LinearSettings one_block = s.settings;
    one_block.blocks = 1;
    const auto other = make(s.a, Rows::on_rank_0, one_block);
    same.divided = solutions_of<T>(runtime, *other, s.b, s.guess, s.columns) == its;
  }
  if (s.settings.values == sparse::Values::refreshed && !solver->facts().preconditioner.breakdown) {
    const Csr<double> a = with_other_values(s.a);
    solver->refresh(rows_of_this_rank<T>(runtime, a, s.rows));
    const auto anew = make(a, s.rows, s.settings);
    same.refreshed = solutions_of<T>(runtime, *solver, s.b, s.guess, s.columns) ==
                     solutions_of<T>(runtime, *anew, s.b, s.guess, s.columns);
  }
  return its;
}

/// @tparam V of the preconditioner's numbers
template <class T, class V>
Solutions solve_in(Runtime& runtime, const LinearSystems& s, Sameness& same) {
  switch (s.method) {
    case Krylov::conjugate_gradients:
      return solve_all<T, V, sparse::ConjugateGradients<T, V>>(runtime, s, same);
    case Krylov::bicgstab:
      return solve_all<T, V, sparse::BiCgStab<T, V>>(runtime, s, same);
    case Krylov::gmres:
      return solve_all<T, V, sparse::Gmres<T, V>>(runtime, s, same);
    case Krylov::dbds:
      break;
  }
  return solve_all<T, V, decomposition::Dbds<T>>(runtime, s, same);
}

/// What a solution is worth, relative to b.
struct Worth {
  double residual;
  double rounding;  ///< what each element's sum may be wrong by, in one precision
};

Worth worth_of(const LinearSystems& s, const std::vector<double>& b, const std::vector<double>& x) {
  Reals r(b.begin(), b.end()), terms;
  const Real given = norm2(r);
  for (Index i = 0; i < s.n(); ++i) {
    Real sum = std::abs(r[static_cast<std::size_t>(i)]);
    const Index begin = s.a.row_begin[i], end = s.a.row_begin[i + 1];
    for (Index k = begin; k < end; ++k) {
      const Real term = Real{s.a.values[k]} * x[static_cast<std::size_t>(s.a.columns[k])];
      r[static_cast<std::size_t>(i)] -= term;
      sum += std::abs(term);
    }
    terms.push_back(sum * static_cast<Real>(end - begin + 2));
  }
  return {static_cast<double>(norm2(r) / given), static_cast<double>(norm2(terms) / given) * s.eps()};
}

void judge(const LinearSystems& s, const sparse::LinearReport& report, const std::vector<double>& b,
           const std::vector<double>& x, Findings& findings) {
  const auto fault = [&](const std::string& what) {
    findings.faults.push_back(fmt::format("{}: {} after {} iterations", what, to_string(report.reason), report.iterations));
  };
  const bool is_zero = std::ranges::all_of(b, [](double v) { return v == 0; });
  if (is_zero) {
    if (report.reason != Reason::solved || std::ranges::any_of(x, [](double v) { return v != 0; })) fault("b = 0");
    return;
  }
  const LinearSettings& its = s.settings;
  if (its.max_iterations > 0 && report.iterations > its.max_iterations) fault("too many iterations");
  if (report.reason == Reason::zero_pivot) {
    if (s.dominant) fault("a dominant matrix");
    return;
  }
  const Worth worth = worth_of(s, b, x);
  if (!std::isfinite(worth.residual)) return fault("x is not finite");
  findings.expect("told residual's error / rounding", std::abs(report.true_residual - worth.residual) / worth.rounding, 2);
  if (report.reason == Reason::solved)
    findings.expect("residual / tolerance", (worth.residual - 2 * worth.rounding) / its.tolerance, 1.1);
  else if (s.dominant && its.max_iterations == 0 && its.tolerance > 8 * worth.rounding)
    fault("not solved");
}

Findings check(Runtime& runtime, const LinearSystems& s) {
  Sameness same;
  const Solutions its = s.precision == Precision::f64   ? solve_in<double, double>(runtime, s, same)
                        : s.precision == Precision::f32 ? solve_in<float, float>(runtime, s, same)
                                                        : solve_in<double, float>(runtime, s, same);
  Findings findings;
  for (Index c = 0; c < s.columns; ++c)
    judge(s, its.reports[static_cast<std::size_t>(c)], column(s.b, s.columns, c), column(its.x, s.columns, c), findings);
  if (!same.again) findings.faults.emplace_back("solved a second time it has other bits");
  if (!same.alone) findings.faults.emplace_back("alone a right-hand side has other bits than together with others");
  if (!same.divided) findings.faults.emplace_back("as one block it has other bits");
  if (!same.refreshed) findings.faults.emplace_back("refreshed it has other bits than set up anew");
  return findings;
}

}  // namespace

Trial draw_linear(Draw& draw) {
  const std::shared_ptr<const LinearSystems> s = draw_systems(draw);
  return {words(*s), [s](Runtime& runtime) { return check(runtime, *s); }};
}

}  // namespace asterism::test
