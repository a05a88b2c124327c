#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "../../../algorithms/qap/search.hpp"
#include "../../../algorithms/sparse/conjugate_gradients.hpp"
#include "../../../algorithms/sparse/models/models.hpp"
#include "../../linear/options.hpp"
#include "contest.hpp"

namespace asterism::tools {
namespace {

using SharedMatrix = std::shared_ptr<const sparse::Csr<double>>;

Solve linear_solve(Runtime& runtime, const SharedMatrix& matrix, const sparse::LinearSettings& settings) {
  const auto solver = std::make_shared<sparse::ConjugateGradients<double>>(runtime, *matrix, settings);
  const auto b = std::make_shared<const std::vector<double>>(static_cast<std::size_t>(matrix->rows()), 1);
  const auto x = std::make_shared<std::vector<double>>(b->size());
  return [=] {
    std::fill(x->begin(), x->end(), 0);
    solver->solve(b->data(), x->data());
  };
}

/// A symmetric problem of random numbers from 0 to 99.
qap::Problem random_assignment(Index n) {
  std::mt19937 numbers(1);
  const auto matrix = [&] {
    std::vector<qap::Cost> entries(static_cast<std::size_t>(n * n));
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < i; ++j)
        entries[static_cast<std::size_t>(i * n + j)] = entries[static_cast<std::size_t>(j * n + i)] =
            numbers() % 100;
    return entries;
  };
  return {.n = n, .d = matrix(), .f = matrix()};
}

}  // namespace

std::vector<Contest> linear_contests(const Cores& cores) {
  std::vector<Contest> contests;
  for (const char* model :
       {"poisson2d:31x31", "poisson2d:127x127", "poisson3d:63x63x63", "poisson2d:1023x1023"}) {
    const sparse::MatrixModel parsed = sparse::parse_matrix_model(model);
    const auto matrix = std::make_shared<const sparse::Csr<double>>(sparse::model_matrix(parsed));
    const sparse::LinearSettings plain{.max_iterations = 60};
    ContestMaker maker(cores, "linear", model,
                       [=](Runtime& runtime) { return linear_solve(runtime, matrix, plain); });
    for (const Index blocks : {1, 2, 4, 8, 16}) {
      sparse::LinearSettings cut = plain;
      cut.blocks = blocks;
      maker.option(fmt::format("LinearSettings::blocks {}", blocks),
                   [=](Runtime& runtime) { return linear_solve(runtime, matrix, cut); });
    }
    for (const sparse::Format format : {sparse::Format::csr, sparse::Format::sliced_ell,
                                        sparse::Format::diagonals, sparse::Format::stencil}) {
      sparse::LinearSettings stored = plain;
      stored.format = format;
      maker.option(fmt::format("--format {}", name(format)),
                   [=](Runtime& runtime) { return linear_solve(runtime, matrix, stored); });
    }
    for (const sparse::Reductions form : {sparse::Reductions::one, sparse::Reductions::pipelined}) {
      sparse::LinearSettings fewer = plain;
      fewer.reductions = form;
      maker.option(fmt::format("--reductions {}", name(form)),
                   [=](Runtime& runtime) { return linear_solve(runtime, matrix, fewer); });
    }
    contests.push_back(maker.contest());
  }
  return contests;
}

/// The same search with other cores: its options decide what is found, not how fast.
std::vector<Contest> qap_contests(const Cores& cores) {
  std::vector<Contest> contests;
  for (const Index n : {12, 50}) {
    const auto problem = std::make_shared<const qap::Problem>(random_assignment(n));
    contests.push_back(ContestMaker(
                           cores, "qap", fmt::format("random, n = {}, 20 generations", n),
                           [=](Runtime& runtime) {
                             return Solve(
                                 [problem, &runtime] { search(runtime, *problem, {.generations = 20}); });
                           },
                           qap::preferences())
                           .contest());
  }
  return contests;
}

}  // namespace asterism::tools
