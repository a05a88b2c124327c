#include "options.hpp"

#include <fmt/format.h>

namespace asterism::tools {
namespace {

const Words<std::optional<LinearMethod>> linear_methods{{"auto", {}},
                                                        {"cg", LinearMethod::cg},
                                                        {"bicgstab", LinearMethod::bicgstab},
                                                        {"gmres", LinearMethod::gmres},
                                                        {"dcg", LinearMethod::dcg},
                                                        {"dbds", LinearMethod::dbds}};
const Words<sparse::Reductions> reductions{{"one", sparse::Reductions::one},
                                           {"two", sparse::Reductions::two},
                                           {"pipelined", sparse::Reductions::pipelined},
                                           {"fastest", sparse::Reductions::fastest}};
const Words<RightHandSide> kinds_of_right_hand_side{{"ones", RightHandSide::ones},
                                                    {"random", RightHandSide::random},
                                                    {"ones-solution", RightHandSide::ones_solution}};
const Words<std::optional<sparse::Format>> formats{{"auto", {}},
                                                   {"csr", sparse::Format::csr},
                                                   {"sliced-ell", sparse::Format::sliced_ell},
                                                   {"diagonals", sparse::Format::diagonals},
                                                   {"stencil", sparse::Format::stencil}};
const Words<sparse::DiagonalShift> shifts{{"auto", sparse::DiagonalShift::automatic},
                                          {"none", sparse::DiagonalShift::none}};

void add_system(CLI::App& app, LinearOptions& o) {
  add_file(app, "A.mtx", o.matrix,
           "the matrix: Matrix Market, coordinates or array, or what scipy.sparse.save_npz writes of one in "
           "CSR; without a file: --model");
  add_file(app, "B.npy", o.right_hand_side,
           "right-hand sides, NumPy or Matrix Market array: a vector, or a column for each; they are solved "
           "with one set-up, up to 8 together where that is faster; without a file: --rhs");
  OptionGroup problem(app, "Problem");
  const auto parse_model = [&o](const std::string& text) {
    o.model_text = text;
    return sparse::parse_matrix_model(text);
  };
  problem.add(
      "--model", o.model, parse_model, "NAME:SIZES",
      "instead of a file: a generated matrix, of which every rank makes its rows; the names are below");
  problem.choice("--rhs", o.rhs, kinds_of_right_hand_side,
                 "the right-hand side without a file: all ones; random, uniform in (-1, 1) from --seed; "
                 "ones-solution, A times ones, so that the error is known; default: ones-solution");
  problem.choice(
      "--pattern-values", o.pattern_values, Words<PatternValues>{{"laplacian", PatternValues::laplacian}},
      "values for a file that has none: -1 off the diagonal, on it the row's number of other entries, plus 1");
  problem.flag(
      "--assume-symmetric", [&o] { o.symmetry = SymmetryTrust::assumed; },
      "take A to be symmetric, unchecked; of several ranks each then keeps only its rows while it reads");
  add_precision_option(app, o.common, "of the arithmetic and the output; default: f64");
  add_seed_option(app, o.common);
}

void add_iteration(CLI::App& app, LinearOptions& o) {
  OptionGroup method(app, "Method");
  method.choice(
      "--solver", o.method, linear_methods,
      "cg: conjugate gradients, for symmetric positive definite matrices; bicgstab and gmres: for all others, "
      "gmres with a residual that never grows and the memory of --restart vectors; dcg and dbds: on subdomains, see "
      "below; default: auto, cg for a "
      "symmetric matrix with a positive diagonal, else bicgstab");
  const auto parse_restart = [](const std::string& text) {
    const Index restart = parse_count<>(text);
    if (restart > sparse::most_restart)
      throw Error(fmt::format("'{}' vectors are too many; give at most {}", text, sparse::most_restart));
    return restart;
  };
  method.add("--restart", o.restart, parse_restart, "M",
             fmt::format("vectors after which gmres begins a new basis; default: {}",
                         sparse::LinearSettings{}.restart));
  method.choice(
      "--reductions", o.reductions, reductions,
      "sums over all rows that an iteration of cg waits for; one takes fewer tasks and messages, pipelined needs "
      "its one only after the next product: they pay where ranks have little to do, and round in ways of their "
      "own; fastest: measured, so that other runs may take another one; default: two");
  method.add(
      "--tolerance", o.tolerance, parse_tolerance, "T",
      fmt::format("end at ||b - A x|| <= T ||b||; default: {:g} in f64, {:g} in f32",
                  default_tolerance_of_linear(Precision::f64), default_tolerance_of_linear(Precision::f32)));
  method.add("--max-iterations", o.max_iterations, parse_count<>, "N",
             "at most so many; default: as many as it takes, while the residual falls");
  method.add("--check-every", o.check_every, parse_count<>, "N",
             "iterations between two looks at the residual; default: chosen");
}

void add_decomposition(CLI::App& app, LinearOptions& o) {
  OptionGroup domains(app, "Subdomains");
  DecompositionOptions& d = o.decomposition;
  const auto parse_overlap = [](const std::string& text) { return parse_whole<Index>(text); };
  domains.add("--subdomains", d.subdomains, parse_count<>, "P",
              "of --solver dcg and dbds; default: as many as there are cores");
  domains.choice(
      "--cut", d.cut,
      Words<decomposition::Cut>{{"rows", decomposition::Cut::rows}, {"graph", decomposition::Cut::graph}},
      "rows: consecutive ones; graph: by METIS, with few entries between subdomains; default: rows");
  domains.add(
      "--overlap", d.overlap, parse_overlap, "ROWS",
      "of each neighbour so many rows; with --cut graph the rows that so many steps lead to; default: 0");
  domains.flag(
      "--mixed", [&d] { d.factors = FactorPrecision::f32; },
      "of dbds: factors in f32, of half the memory, while residuals and x are in f64");
  domains.choice(
      "--accelerate", d.accelerate,
      Words<LinearMethod>{
          {"cg", LinearMethod::cg}, {"bicgstab", LinearMethod::bicgstab}, {"gmres", LinearMethod::gmres}},
      "of dbds: this method, with the subdomains as its preconditioner; default: none, block relaxation");
  domains.add(
      "--coarse", d.patches, parse_count<>, "N",
      "of dbds: a coarse system of so many patches in each subdomain, with which iterations hardly grow with "
      "the number of subdomains; default: none");
}

void add_preconditioner(CLI::App& app, LinearOptions& o) {
  OptionGroup method(app, "Method");
  const auto parse = [](const std::string& text) { return sparse::parse_preconditioner(text); };
  method.add("--preconditioner", o.preconditioner, parse, "NAME", "the names are below; default: auto");
  method.choice("--preconditioner-precision", o.preconditioner_precision,
                Words<Precision>{{"f32", Precision::f32}, {"f64", Precision::f64}},
                "of its numbers; f32 in an f64 iteration moves fewer bytes; default: that of the arithmetic");
  method.choice(
      "--shift", o.shift, shifts,
      "auto: a factorisation that breaks down is tried again with a larger diagonal; default: auto");
}

void add_arrangement(CLI::App& app, LinearOptions& o) {
  OptionGroup method(app, "Method");
  method.choice(
      "--format", o.format, formats,
      "how A is stored: compressed rows, slices of 32 rows, whole diagonals, or the few numbers of a grid's "
      "stencil; default: what takes the fewest bytes, for each block");
  method.choice("--workers", o.workers,
                Words<sparse::Workers>{{"fastest", sparse::Workers::fastest}, {"all", sparse::Workers::all}},
                "which get rows: where there are GPUs these alone, or the cores, too; default: fastest");
  method.choice(
      "--balance", o.balance, Words<Balance>{{"measured", Balance::measured}, {"equal", Balance::equal}},
      "of ranks. measured: by the speed of their workers, and so many ranks as make an iteration quickest; "
      "equal: all have as many rows, as always with --solver dcg and dbds; default: measured");
}

}  // namespace

double default_tolerance_of_linear(Precision precision) { return precision == Precision::f32 ? 1e-5 : 1e-8; }

const char* name(LinearMethod method) { return word_of(linear_methods, std::optional(method)); }
const char* name(RightHandSide rhs) { return word_of(kinds_of_right_hand_side, rhs); }
const char* name(sparse::Format format) {
  if (format == sparse::Format::schur) return "schur";  // nobody can ask for it
  return word_of(formats, std::optional(format));
}
const char* name(sparse::DiagonalShift shift) { return word_of(shifts, shift); }
const char* name(sparse::Reductions form) { return word_of(reductions, form); }

void add_linear_options(CLI::App& app, LinearOptions& options) {
  add_system(app, options);
  add_iteration(app, options);
  add_decomposition(app, options);
  add_preconditioner(app, options);
  add_arrangement(app, options);
  OptionGroup(app, "Task")
      .flag(
          "--analyse", [&options] { options.task = LinearTask::analyse; },
          "do not solve: tell what the matrix is like, its colours, an estimate of its condition, and which "
          "preconditioner suits it");
  add_machine_options(app, options.common);
  add_output_options(app, options.common);
  add_trace_option(app, options.common);
}

}  // namespace asterism::tools
