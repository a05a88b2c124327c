#include "measured_workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace asterism::tools {
namespace {

/// A GPU has stripes where tasks make one sweep over at least so many nodes: the kernel of a stripe then
/// takes about as long as StarPU from the end of a task to the start of the next one (40 to 60 us), or
/// longer.
constexpr Index nodes_worth_stripes = Index{1} << 26;
/// The first stripe's next sweep waits for the first two stripes and is ready while the kernel of the third
/// runs, the third's for the last two; so that the GPU never waits for StarPU. Of two stripes each would wait
/// for both.
constexpr Index stripes_of_gpu = 3;

}  // namespace

Measured measure_ceiling(Runtime& runtime, Figures& figures) {
  require_one_rank(runtime);
  const Bandwidth raw = measure_ceilings(runtime);
  add_ceilings(figures, raw);
  const Machine machine = runtime.machine();
  if (machine.count(WorkerKind::cuda) > 0) return {Where::cuda, 1, raw.device_copy, "copy"};
  return {Where::cpu, machine.count(WorkerKind::cpu), raw.host_triad, "triad"};
}

Index stripes_for(const Measured& workers, Index n, Index sweeps) {
  if (workers.where == Where::cpu) return workers.count;
  return sweeps == 1 && n * n >= nodes_worth_stripes ? stripes_of_gpu : 1;
}

std::string note_on_stripes(const Measured& workers) {
  if (workers.where == Where::cpu) return "";
  return fmt::format(
      "  (tasks of one sweep on grids of {0} x {0} and more: {1} stripes on the GPU, so that StarPU's "
      "work between tasks is done while one of them is relaxed)\n",
      std::sqrt(nodes_worth_stripes), stripes_of_gpu);
}

Index sweeps_one_by_one(const Measured& workers, Index n) {
  if (workers.where == Where::cpu) return 1;                    // there a task's own cost is small enough
  constexpr Index nodes_of_task = Index{1} << 32, most = 4096;  // some milliseconds
  return std::clamp<Index>(nodes_of_task / (n * n), 1, most);
}

}  // namespace asterism::tools
