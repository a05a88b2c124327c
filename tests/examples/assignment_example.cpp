// Twelve facilities on a 3 x 4 grid: those with much flow between them should lie near each other.
#include <asterism/algorithms/qap/search.hpp>
#include <cstdio>
#include <cstdlib>

int main() {
  asterism::Runtime runtime;  // all cores and GPUs that are there
  asterism::qap::Problem problem{.n = 12, .d = {}, .f = {}};
  for (int i = 0; i < 12; ++i)
    for (int j = 0; j < 12; ++j) {
      problem.d.push_back(std::abs(i / 4 - j / 4) + std::abs(i % 4 - j % 4));  // blocks to walk
      problem.f.push_back(i == j ? 0 : (i * j + i + j) % 7);                   // people who walk them
    }
  asterism::qap::SearchSettings settings{.seconds = 5};
  settings.on_improvement = [](const asterism::qap::Improvement& better) {
    std::printf("%ld after %.3f s\n", static_cast<long>(better.cost), better.seconds);
    return better.generation < 20 ? asterism::qap::Proceed::go_on : asterism::qap::Proceed::stop;
  };
  settings.generations = 20;
  const asterism::qap::SearchReport found = search(runtime, problem, settings);
  for (const int facility : found.permutation) std::printf(" %d", facility);
  std::printf(": cost %ld\n", static_cast<long>(found.cost));
  return found.cost == cost_of(problem, found.permutation) ? 0 : 1;
}
