#include "report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "../../algorithms/poisson/problem/problem.hpp"

namespace asterism::tools {
namespace {

nlohmann::ordered_json as_json(const GivenValue& value) {
  if (value.file.empty()) return value.number;
  return value.file.string();
}

/// For each axis by its name what is at both of its ends.
template <class Ends, class OfEnds>
nlohmann::ordered_json by_axis(const std::vector<Ends>& axes, const OfEnds& of_ends) {
  nlohmann::ordered_json j;
  for (std::size_t a = 0; a < axes.size(); ++a) j[axis_name(axes.size(), a)] = of_ends(axes[a]);
  return j;
}

std::string problem_text(const GridStatement& s) {
  return fmt::format("{}, {}: {}{} unknowns ({:.4g} million) in {}", s.equation,
                     s.input.empty() ? "model " + s.model : s.input,
                     s.batch > 1 ? fmt::format("{} problems of ", s.batch) : "", poisson::to_string(s.shape),
                     static_cast<double>(s.unknowns()) / 1e6, to_string(s.precision));
}

}  // namespace

Index GridStatement::unknowns() const {
  Index count = batch;
  for (const Index extent : shape) count *= extent;
  return count;
}

std::string equation_text(std::size_t dimensions, double lambda) {
  std::string text = dimensions == 1 ? "u_xx" : dimensions == 2 ? "u_xx + u_yy" : "u_xx + u_yy + u_zz";
  if (lambda != 0) text += fmt::format(" {} {:g} u", lambda < 0 ? '-' : '+', std::abs(lambda));
  return text + " = f";
}

std::vector<GivenValues> values_along(const GridOptions& options, std::size_t axes) {
  std::vector<GivenValues> values(axes);
  each_given_axis(options, axes, [&](std::size_t a, const GivenValues& given) { values[a] = given; });
  return values;
}

Section problem_section(const GridStatement& s) {
  Section section;
  section.line("problem", problem_text(s));
  section.add("dimensions", s.shape.size());
  section.add("grid", s.shape);
  if (s.batch > 1) section.add("batch", s.batch);
  section.add("lengths", s.lengths);
  section.add("conditions", by_axis(s.conditions, [](const auto& ends) { return ends; }));
  if (s.input.empty()) section.add("model", s.model);
  if (s.seed) section.add("seed", *s.seed);
  section.add("precision", to_string(s.precision));
  section.add("unknowns", s.unknowns());
  if (s.values)
    section.add("values", by_axis(*s.values, [](const GivenValues& ends) {
                  return nlohmann::ordered_json{as_json(ends.lower), as_json(ends.upper)};
                }));
  return section;
}

}  // namespace asterism::tools
