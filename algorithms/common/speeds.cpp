#include "speeds.hpp"

#include <algorithm>

#include "../../runtime/collectives.hpp"
#include "../../runtime/pause.hpp"

namespace asterism {

using Clock = std::chrono::steady_clock;

void measure_speeds(Runtime& runtime, std::vector<Candidate>& workers, const std::vector<Trial>& trials) {
  std::vector<double> our_work;
  std::vector<std::vector<const detail::TileBase*>> last_tiles;
  for (std::size_t i = 0; i < workers.size(); ++i)
    if (workers[i].rank == runtime.rank()) {
      our_work.push_back(trials[i].work);
      last_tiles.push_back({trials[i].last});
    }
  std::vector<double> our_speeds(our_work.size());
  for (int repetition = 0; repetition < 3; ++repetition) {  // the first one warms up
    for (const Trial& trial : trials)
      if (trial.prepare) trial.prepare();
    runtime.wait();
    Clock::time_point start;
    {
      const Pause pause;  // who began before all are submitted would seem the faster
      for (const Trial& trial : trials) trial.submit();
      start = Clock::now();  // before they begin: this thread may have to wait for a core then
    }
    const std::vector<double> seconds = seconds_until_done(last_tiles, start);
    constexpr double shortest = 1e-6;  // that can be told
    for (std::size_t k = 0; k < our_work.size(); ++k)
      our_speeds[k] = std::max(our_speeds[k], our_work[k] / std::max(seconds[k], shortest));
  }
  runtime.wait();
  const std::vector<double> speeds =
      gather_lists(runtime, our_speeds);  // the workers, too, are in the order of ranks
  for (std::size_t i = 0; i < workers.size(); ++i) workers[i].speed = speeds[i];
  even_out(workers);
}

void even_out(std::vector<Candidate>& workers) {
  for (const Where kind : {Where::cuda, Where::cpu}) {
    double least = 0, most = 0;
    for (const Candidate& w : workers)
      if (w.where == kind) {
        least = least == 0 ? w.speed : std::min(least, w.speed);
        most = std::max(most, w.speed);
      }
    if (most > 1.1 * least) continue;
    for (Candidate& w : workers)
      if (w.where == kind) w.speed = least;
  }
}

std::vector<double> seconds_until_done(const std::vector<std::vector<const detail::TileBase*>>& tiles,
                                       Clock::time_point start) {
  std::vector<const detail::TileBase*> all;
  for (const auto& group : tiles) all.insert(all.end(), group.begin(), group.end());
  const auto ends = detail::ends_of(all);
  std::vector<double> seconds;
  auto end = ends.begin();
  for (const auto& group : tiles) {
    double longest = 0;
    for (std::size_t i = 0; i < group.size(); ++i, ++end)
      longest = std::max(longest, std::chrono::duration<double>(*end - start).count());
    seconds.push_back(longest);
  }
  return seconds;
}

}  // namespace asterism
