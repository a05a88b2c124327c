#include <doctest/doctest.h>
#include "algorithms/decomposition/dbds.hpp"
#include "algorithms/sparse/models/models.hpp"
#include "../sparse/linear_solves.hpp"
#include <fmt/format.h>
namespace asterism::test {
using namespace decomposition;
TEST_CASE("trial") {
  Runtime runtime;
  for (const char* name : {"poisson2d:128x128", "poisson3d:25x25x25", "triangulation-like:128x128", "ecology-like:128x128"}) {
  const auto a = sparse::model_matrix(sparse::parse_matrix_model(name));
  std::vector<double> b(static_cast<std::size_t>(a.total_rows));
  for (std::size_t i=0;i<b.size();++i) b[i] = std::sin(1.0+static_cast<double>(i*i)*0.7);
  for (Index patches : {0, 4, 16}) for (Index overlap : {1, 2, 3}) {
    fmt::print("{} patches {} overlap {}:", name, patches, overlap);
    for (Index count : {4, 16, 64, 256}) {
    SchwarzSettings s{.subdomains={.count=count,.cut=Cut::graph,.overlap=overlap},.combination= Combination::symmetric,.patches=patches};
    auto schwarz = std::make_shared<Schwarz<double>>(runtime, a, s);
    std::vector<double> x(b.size());
    sparse::LinearReport r;
    sparse::ConjugateGradients<double> cg(runtime, a, {}, schwarz); r = cg.solve(b.data(), x.data());
    fmt::print("  {}", r.iterations);
    }
    fmt::print("\n");
  }}
}
}
