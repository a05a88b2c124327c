// Subdomains, their factors, DBDS.
#include <doctest/doctest.h>
#include "algorithms/decomposition/dbds.hpp"
#include "algorithms/sparse/models/models.hpp"
#include "../sparse/linear_solves.hpp"
#include <fmt/format.h>
namespace asterism::test {
using namespace decomposition;
TEST_CASE("trial") {
  Runtime runtime;
  const auto a = sparse::model_matrix({sparse::ModelFamily::poisson2d, 64, 64});
  std::vector<double> b(4096);
  for (std::size_t i=0;i<b.size();++i) b[i] = std::sin(1.0 + static_cast<double>(i * i) * 0.7);
  for (Index patches : {0, 8}) for (Cut cut : {Cut::rows, Cut::graph}) for (int which = 0; which < 4; ++which) {
    SchwarzSettings s{.subdomains={.count=8,.cut=cut,.overlap=cut==Cut::rows?128:2},.combination= which==1?Combination::symmetric:Combination::restricted,.patches=patches,
      .factors={.matrix_class= which==2?sparse::MatrixClass::general:sparse::MatrixClass::positive_definite}};
    auto schwarz = std::make_shared<Schwarz<double>>(runtime, a, s);
    std::vector<double> x(b.size());
    sparse::LinearReport r;
    if (which==1) { sparse::ConjugateGradients<double> cg(runtime, a, {}, schwarz); r = cg.solve(b.data(), x.data()); }
    else { Dbds<double> d(runtime, a, {}, schwarz); r = d.solve(b.data(), x.data()); if(patches==0) fmt::print("rho {}\n", d.spectral_radius(b.data(), 1e-3, 4000)); }
    fmt::print("patches {} cut {} which {}: {} {} {:.2e} fill {}\n", patches, (int)cut, which, to_string(r.reason), r.iterations, r.true_residual, schwarz->facts().factors.fill);
  }
}
}
