// Conjugate gradients. The ends of a spectrum, from the coefficients of an iteration.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "algorithms/sparse/krylov/spectrum.hpp"
#include "cases.hpp"

namespace asterism::test {
namespace {

/// Whose Lanczos' matrix has 2 on its diagonal and 1 beside it.
CgState state_of_chain(int steps) {
  CgState state{};
  state.iterations = steps;
  double pivot = 2;
  for (int k = 0; k < steps; ++k) {
    state.alpha[k] = 1 / pivot;
    state.beta[k] = 1 / (pivot * pivot);
    pivot = 2 - 1 / pivot;
  }
  return state;
}

}  // namespace

TEST_CASE("the spectrum is what theory says" * doctest::skip(is_brief())) {
  Runtime runtime;
  const Csr<double> a = model("poisson2d:30x30");
  const auto report = solve<double>(runtime, a, std::vector<double>(900, 1), with("none")).report;
  REQUIRE(report.spectrum.has_value());
  const double c = std::cos(std::acos(-1.0) / 31);
  CHECK(report.spectrum->least == doctest::Approx(4 - 4 * c).epsilon(1e-3));
  CHECK(report.spectrum->most == doctest::Approx(4 + 4 * c).epsilon(1e-2));
}

TEST_CASE("the ends of a spectrum, of coefficients that are known") {
  for (const int steps : {2, 3, 64, CgState::kept}) {
    CAPTURE(steps);
    const auto found = sparse::spectrum_of(state_of_chain(steps));
    REQUIRE(found);
    const double c = std::cos(std::acos(-1.0) / (steps + 1));
    CHECK(found->least == doctest::Approx(2 - 2 * c).epsilon(1e-8));
    CHECK(found->most == doctest::Approx(2 + 2 * c).epsilon(1e-8));
  }
  CHECK_FALSE(sparse::spectrum_of(state_of_chain(1)));
  CgState indefinite = state_of_chain(5), broken = state_of_chain(5), large = state_of_chain(5);
  indefinite.alpha[2] = -1;
  broken.alpha[3] = 0;
  CHECK_FALSE(sparse::spectrum_of(indefinite));
  CHECK_FALSE(sparse::spectrum_of(broken));
  for (double& alpha : large.alpha) alpha *= 1e-200;
  const auto found = sparse::spectrum_of(large);
  REQUIRE(found);
  CHECK(found->most == doctest::Approx(1e200 * (2 + std::sqrt(3.0))).epsilon(1e-8));
}

}  // namespace asterism::test
