#include "options.hpp"

#include <fmt/format.h>

#include <cctype>

#include "../figures.hpp"

namespace asterism::tools {
namespace {

using sparse::Format;

const Words<std::optional<Format>> formats{{"auto", {}},
                                           {"csr", Format::csr},
                                           {"sliced-ell", Format::sliced_ell},
                                           {"diagonals", Format::diagonals},
                                           {"stencil", Format::stencil}};

constexpr const char* default_models =
    "poisson2d:512x512,poisson2d:1024x1024,poisson2d:2048x2048,triangulation-like,ecology-like";
constexpr const char* default_preconditioners =
    "none,diagonal,polynomial-diagonal:1,chebyshev:4,ic0,mc-sgs,mc-ilu0,mc-ilu:1,2";

/// What stands between commas. No name begins with a digit: what does is a number of the name before it (mc-ilu:1,2).
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    const bool is_number = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0;
    if (is_number && !names.empty())
      names.back() += "," + name;
    else
      names.push_back(name);
    begin = end + 1;
  }
  return names;
}

std::vector<NamedModel> parse_models(const std::string& text) {
  std::vector<NamedModel> models;
  for (const std::string& name : names_in(text)) models.push_back({name, sparse::parse_matrix_model(name)});
  return models;
}

std::vector<sparse::PreconditionerChoice> parse_preconditioners(const std::string& text) {
  std::vector<sparse::PreconditionerChoice> choices;
  for (const std::string& name : names_in(text)) choices.push_back(sparse::parse_preconditioner(name));
  return choices;
}

std::vector<std::optional<Format>> parse_formats(const std::string& text) {
  std::vector<std::optional<Format>> found;
  for (const std::string& name : names_in(text)) {
    const auto at = std::ranges::find(formats, name, &std::pair<std::string, std::optional<Format>>::first);
    if (at == formats.end())
      throw Error(
          fmt::format("'{}' is unknown; there are auto, csr, sliced-ell, diagonals and stencil", name));
    found.push_back(at->second);
  }
  return found;
}

}  // namespace

const char* format_name(std::optional<Format> format) {
  if (format == Format::schur) return "schur";  // nobody can ask for it
  return word_of(formats, format);
}

void add_linear_bench(CLI::App& app, LinearBenchOptions& o) {
  o.models = parse_models(default_models);
  o.preconditioners = parse_preconditioners(default_preconditioners);
  OptionGroup problem(app, "Problem");
  problem.add(
      "--models", o.models, parse_models, "NAME,...",
      "model matrices, as `linear --model` has them; default: poisson2d:512x512, 1024x1024 and 2048x2048, "
      "triangulation-like, ecology-like");
  add_precision_option(app, o.common, "of the iteration; default: f64");
  OptionGroup method(app, "Method");
  method.add("--preconditioners", o.preconditioners, parse_preconditioners, "NAME,...",
             fmt::format("as `linear --preconditioner` has them; default: {}", default_preconditioners));
  method.choice("--preconditioner-precision", o.preconditioner_precision,
                Words<Precision>{{"f32", Precision::f32}, {"f64", Precision::f64}},
                "of their numbers; default: that of the iteration");
  method.add("--formats", o.formats, parse_formats, "NAME,...",
             "how matrices are stored: auto, csr, sliced-ell, diagonals, stencil; default: auto");
  method.choice("--workers", o.workers,
                Words<sparse::Workers>{{"fastest", sparse::Workers::fastest}, {"all", sparse::Workers::all}},
                "which get rows: where there are GPUs these alone, or the cores, too; default: fastest");
  method.add("--tolerance", o.tolerance, parse_tolerance, "T",
             "of ||b - A x|| / ||b||, for the time to a solution; default: 1e-6");
  method.add("--max-iterations", o.max_iterations, parse_count<>, "N",
             "to a solution, at most; default: 20000");
  method.add(
      "--iterations", o.iterations, parse_count<>, "N",
      "whose time is taken; default: about 0.3 seconds of them, and no more than twice those to a solution");
  add_bench_options(app, o.common, o.repeats, "runs, of which the fastest counts; default: 3");
}

}  // namespace asterism::tools
