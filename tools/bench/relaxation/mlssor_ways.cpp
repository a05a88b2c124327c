#include <memory>
#include <random>

#include "../../../algorithms/relaxation/mlssor.hpp"
#include "../../../algorithms/relaxation/solver.hpp"
#include "mlssor.hpp"

namespace asterism::tools {

std::vector<Way> ways_in_subdomains() {
  return {{"MLSSOR 2 x 4 x 4", 4, 2},
          {"MLSSOR 4 x 8 x 8", 8, 4},
          {"MLSSOR 8 x 16 x 16", 16, 8},
          {"MLSSOR 16 x 32 x 32", 32, 16}};
}

template <class T>
Relax<T> relaxation_of(Runtime& runtime, const Way& way, const System<T>& system, const Task& task) {
  const auto by = [&](auto solver) -> Relax<T> {
    return [solver, f = system.f.data()](std::vector<T>& u) { return solver->solve(f, u.data()); };
  };
  if (way.subdomain == 0) {
    relaxation::Settings settings;
    settings.omega = task.omega;
    settings.sweeps = task.sweeps;
    settings.tolerance = task.tolerance;
    settings.check_every = task.check_every;
    if (task.check_every > 0) settings.sweeps_per_task = task.check_every;
    return by(std::make_shared<relaxation::Solver<T>>(runtime, system.problem, settings));
  }
  relaxation::mlssor::Settings settings;
  settings.subdomain = way.subdomain;
  settings.layers = way.layers;
  settings.alternate = way.alternate;
  settings.omega = task.omega;
  settings.sweeps = task.sweeps;
  settings.tolerance = task.tolerance;
  settings.check_every = task.check_every;
  return by(std::make_shared<relaxation::mlssor::Solver<T>>(runtime, system.problem, settings));
}

std::vector<double> random_numbers(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = uniform(engine);
  return numbers;
}

template Relax<float> relaxation_of(Runtime&, const Way&, const System<float>&, const Task&);
template Relax<double> relaxation_of(Runtime&, const Way&, const System<double>&, const Task&);

}  // namespace asterism::tools
