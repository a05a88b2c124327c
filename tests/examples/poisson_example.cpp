// u_xx + u_yy = -2 pi^2 sin(pi x) sin(pi y) on the unit square, u = 0 on its border: u = sin(pi x) sin(pi y).
#include <asterism/algorithms/poisson/solver.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  asterism::Runtime runtime;  // all cores and GPUs that are there
  const asterism::poisson::Problem problem{.shape = {511, 1023}};
  std::vector<double> u, exact;
  for (int i = 1; i <= 511; ++i)
    for (int j = 1; j <= 1023; ++j) exact.push_back(std::sin(M_PI * i / 512) * std::sin(M_PI * j / 1024));
  for (const double e : exact) u.push_back(-2 * M_PI * M_PI * e);  // f, which the solver replaces by u
  const asterism::Report report = asterism::poisson::solve(runtime, problem, u.data());
  double error = 0;
  for (std::size_t k = 0; k < u.size(); ++k)
    if (const double here = std::abs(u[k] - exact[k]); here > error || std::isnan(here)) error = here;
  std::printf("largest error %.1e, solved in %.3f s\n", error, report.seconds.at("solve"));
  return error < 1e-5 ? 0 : 1;
}
