#include "sweep_times.hpp"

#include <algorithm>

#include "arguments.hpp"

namespace asterism::relaxation {
namespace {

bool has_gpu(const std::vector<Part>& stripes) {
  return std::any_of(stripes.begin(), stripes.end(), [](const Part& s) { return s.where == Where::cuda; });
}

/// From the end of a task to the start of the next one that depends on it, in seconds: StarPU's reaction (40
/// to 60 us with a GPU), and where stripes exchange rows through a link or a network what a message takes to
/// get going.
double task_seconds(const std::vector<Part>& stripes) {
  const bool any_gpu = has_gpu(stripes);
  const bool crosses_ranks = stripes.front().rank != stripes.back().rank;
  const bool crosses_link = any_gpu && !same_worker(stripes.front(), stripes.back());
  return crosses_ranks || crosses_link ? 100e-6 : any_gpu ? 50e-6 : 20e-6;
}

/// How long numbers take to come from memory into caches, over the arithmetic of a sweep. Cores fetch many of them ahead.
double bringing_of(Where where) { return where == Where::cuda ? 1.0 : 1.0 / 3; }

/// So many sweeps, and their multiples, are whole passes of a GPU's kernels, an even number of them, as leaves the result
/// where it was; with a source, and without. Every other number has one pass or two that are less deep and take as long.
Index sweeps_of_whole_passes(const Settings& settings) {
  if (settings.method == Method::jacobi) return 2 * deepest_jacobi_pass(false);
  return settings.arrangement == Arrangement::separated ? 2 * deepest_colour_pass(false) : 2;
}

}  // namespace

double predicted_seconds(const std::vector<Part>& stripes, const std::vector<double>& speeds, Index sweeps,
                         const Problem& problem, const Settings& settings) {
  // At a border half of the G rows of the neighbour are ghosts on average; and the border's own, 2 G on average, are relaxed
  // twice where exchange is overlapped.
  const double ghosts = settings.exchange == Exchange::overlapped ? 2.5 : 0.5;
  const double border = ghosts * static_cast<double>(ghost_rows(settings.method, sweeps));
  // The sweeps of a task share the bringing of numbers from memory into caches, and what a task costs.
  const double part = 1 / static_cast<double>(sweeps), task = part * task_seconds(stripes);
  double longest = 0, busy = 0;
  for (std::size_t s = 0; s < stripes.size(); ++s) {
    const double row = static_cast<double>(problem.shape[1]) / speeds[s];
    if (s > 0 && !same_worker(stripes[s - 1], stripes[s])) busy = 0;
    const int borders = (s > 0 ? 1 : 0) + (s + 1 < stripes.size() ? 1 : 0);
    busy += (static_cast<double>(stripes[s].size) + borders * border) * row *
                (1 + part * bringing_of(stripes[s].where)) +
            task;
    longest = std::max(longest, busy);
  }
  return longest;
}

Index choose_sweeps(const std::vector<Part>& stripes, const std::vector<double>& speeds, Index lowest,
                    const Problem& problem, const Settings& settings) {
  // Of all sweeps between two residuals. What is left of them makes a shorter task; with a tolerance the solver rounds them up.
  const auto seconds = [&](Index sweeps) {
    const auto all = [&](Index count, Index of_task) {
      return static_cast<double>(count) * predicted_seconds(stripes, speeds, of_task, problem, settings);
    };
    const Index left = settings.tolerance == 0 ? settings.check_every % sweeps : 0;
    return all(settings.check_every - left, sweeps) + (left > 0 ? all(left, left) : 0);
  };
  constexpr Index most = 256;
  const Index whole = has_gpu(stripes) ? sweeps_of_whole_passes(settings) : 2;
  std::vector<Index> possible{1};  // or an even number, which leaves the result where it was
  for (Index k = 2; k <= std::min(most, settings.check_every); k += 2)
    if ((k < whole || k % whole == 0) && (stripes.size() == 1 || least_rows(settings, k) <= lowest))
      possible.push_back(k);
  double best = seconds(1);
  for (const Index k : possible) best = std::min(best, seconds(k));
  // As few as take hardly longer on GPUs: their ghost rows go through links, which the prediction leaves out.
  const double limit = has_gpu(stripes) ? 1.02 * best : best;
  return *std::find_if(possible.begin(), possible.end(), [&](Index k) { return seconds(k) <= limit; });
}

}  // namespace asterism::relaxation
