#include "given_values.hpp"

#include <fmt/format.h>

#include "../../algorithms/poisson/problem/problem.hpp"
#include "../cli/options.hpp"

namespace asterism::tools {
namespace {

GivenValue parse_value(const std::string& text) {
  if (text.ends_with(".npy")) return {0, text};
  try {
    return {parse_real(text)};
  } catch (const Error& error) {
    throw Error(fmt::format("{}, nor the name of a .npy file", error.what()));
  }
}

}  // namespace

std::pair<std::string, std::string> lower_and_upper(const std::string& text) {
  const auto comma = text.find(',');
  if (comma == std::string::npos) return {text, text};
  return {text.substr(0, comma), text.substr(comma + 1)};
}

GivenValues parse_values(const std::string& text) {
  const auto [lower, upper] = lower_and_upper(text);
  return {parse_value(lower), parse_value(upper)};
}

std::vector<double> read_array(const NpyReader& reader) {
  const Index rows = reader.header().rows(), cols = reader.header().cols();
  std::vector<double> values(static_cast<std::size_t>(rows * cols));
  reader.read_rows(0, rows, values.data(), cols, Values::finite);
  return values;
}

std::vector<double> read_side(const GivenValue& given, const std::vector<Index>& shape, std::size_t a) {
  if (given.file.empty()) return {};
  const NpyReader reader(given.file, any_dimensions);
  std::vector<Index> side = shape;
  side.erase(side.begin() + static_cast<std::ptrdiff_t>(a));
  if (reader.header().shape != side)
    throw Error(fmt::format(
        "{}: its shape is {}; values at an end of the {} axis of a grid of {} nodes have the shape {}",
        given.file.string(), shape_text(reader.header().shape), axis_name(shape.size(), a),
        poisson::to_string(shape), shape_text(side)));
  return read_array(reader);
}

const char* axis_name(std::size_t dimensions, std::size_t a) {
  constexpr const char* names[] = {"z", "y", "x"};
  return names[a + 3 - dimensions];
}

}  // namespace asterism::tools
