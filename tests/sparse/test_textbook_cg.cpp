// The iteration on cuSPARSE and cuBLAS does what ours does.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "algorithms/sparse/models/models.hpp"
#include "codelets/sparse/krylov/textbook_cg.hpp"
#include "linear_solves.hpp"
#include "tools/bench/relaxation/narrow_rows.hpp"

namespace asterism::test {

#ifdef ASTERISM_WITH_CUDA
TEST_CASE("gpu: the textbook iteration has our residual after as many iterations") {
  Runtime runtime;
  for (const char* name : {"poisson2d:40x50", "circuit-like:3000"}) {
    const sparse::Csr<double> a = sparse::model_matrix(sparse::parse_matrix_model(name));
    const tools::NarrowRows<double> narrow(a);
    const std::vector<double> ones(static_cast<std::size_t>(a.rows()), 1),
        diagonal = inverse_diagonal(narrow);
    for (const char* preconditioner : {"none", "diagonal"}) {
      CAPTURE(name);
      CAPTURE(preconditioner);
      sparse::TextbookTimes times;
      runtime.on_worker(WorkerKind::cuda, 0, [&] {
        times = sparse::cuda::textbook_cg<double>(
            {.rows = narrow.rows(),
             .entries = narrow.entries(),
             .begins = narrow.begins.data(),
             .columns = narrow.columns.data(),
             .values = narrow.values.data(),
             .b = ones.data(),
             .inverse_diagonal = std::string(preconditioner) == "none" ? nullptr : diagonal.data()},
            13, 2);
      });
      CHECK(times.iterations == 20);
      CHECK(times.seconds_per_iteration > 0);
      sparse::LinearSettings settings{.preconditioner = sparse::parse_preconditioner(preconditioner)};
      settings.tolerance = 0;
      settings.max_iterations = 20;
      const auto ours = solve<double>(runtime, a, ones, settings);
      CHECK(times.residual == doctest::Approx(ours.report.true_residual).epsilon(1e-8));
    }
  }
}
#endif

}  // namespace asterism::test
