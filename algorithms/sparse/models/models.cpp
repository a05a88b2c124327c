#include "models.hpp"

#include <array>
#include <charconv>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"

namespace asterism::sparse {
namespace {

struct ModelName {
  std::string_view name, sizes;
  ModelFamily family;
  std::array<Index, 3> usual;  ///< sizes where none are given; zeros: they have to be
  std::string_view meaning;

  [[nodiscard]] std::size_t axes() const { return sizes.size() == 1 ? 1 : sizes.size() / 3 + 1; }
};

constexpr std::array<ModelName, 6> model_names{{
    {"poisson2d", "NXxNY", ModelFamily::poisson2d, {}, "five-point differences, 4 and -1"},
    {"poisson3d", "NXxNYxNZ", ModelFamily::poisson3d, {}, "seven-point differences, 6 and -1"},
    {"convection2d", "NXxNY", ModelFamily::convection2d, {}, "diffusion and a flow, upwind; not symmetric"},
    {"triangulation-like",
     "NXxNY",
     ModelFamily::triangulation_like,
     {1025, 513},
     "a step of a diffusion on triangles, like parabolic_fem"},
    {"ecology-like",
     "NXxNY",
     ModelFamily::ecology_like,
     {1000, 1000},
     "conductances of a random landscape, like ecology2"},
    {"circuit-like", "N", ModelFamily::circuit_like, {1'585'478}, "an irregular circuit, like G3_circuit"},
}};

constexpr Index most_rows = Index{1} << 56;  // so that the bytes of all entries are still counted in 64 bits

Error bad_model(std::string_view text, const std::string& what) {
  return Error(fmt::format("matrix \"{}\": {}; the models are\n{}", text, what, list_of_matrix_models()));
}

std::vector<Index> parse_sizes(std::string_view text, std::string_view sizes) {
  std::vector<Index> result;
  for (std::size_t begin = 0; begin <= sizes.size();) {
    const std::size_t end = std::min(sizes.find('x', begin), sizes.size());
    const std::string_view part = sizes.substr(begin, end - begin);
    Index size = 0;
    const auto [rest, status] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (status == std::errc::result_out_of_range)
      throw bad_model(text, fmt::format("size \"{}\" is beyond 64 bits", part));
    if (status != std::errc{} || rest != part.data() + part.size() || size < 1)
      throw bad_model(text, fmt::format("size \"{}\" is no whole number of at least 1", part));
    result.push_back(size);
    begin = end + 1;
  }
  return result;
}

}  // namespace

std::string list_of_matrix_models() {
  std::string list;
  for (const ModelName& model : model_names) {
    const bool optional = model.usual[0] > 0;
    const std::string usage =
        fmt::format("{}{}:{}{}", model.name, optional ? "[" : "", model.sizes, optional ? "]" : "");
    list += fmt::format("  {:<27} {}\n", usage, model.meaning);
  }
  list.pop_back();
  return list;
}

MatrixModel parse_matrix_model(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  for (const ModelName& model : model_names) {
    if (text.substr(0, colon) != model.name) continue;
    std::vector<Index> sizes(model.usual.begin(),
                             model.usual.begin() + static_cast<std::ptrdiff_t>(model.axes()));
    if (colon < text.size())
      sizes = parse_sizes(text, text.substr(colon + 1));
    else if (sizes[0] == 0)
      throw bad_model(text, fmt::format("sizes are missing, say {}:{}", model.name, model.sizes));
    if (sizes.size() != model.axes())
      throw bad_model(text, fmt::format("{} sizes are given, {}:{} has {}", sizes.size(), model.name,
                                        model.sizes, model.axes()));
    Index rows = 1;
    for (const Index size : sizes)
      if (__builtin_mul_overflow(rows, size, &rows) || rows > most_rows)
        throw bad_model(text, "it would have more than 2^56 rows; give smaller sizes");
    sizes.resize(3, 1);
    return {model.family, sizes[0], sizes[1], sizes[2]};
  }
  throw bad_model(text, fmt::format("no model is named \"{}\"", text.substr(0, colon)));
}

}  // namespace asterism::sparse
