#include "bare_tasks.hpp"

#include <starpu.h>

#include <chrono>
#include <cstring>
#include <vector>

namespace asterism {
namespace {

void nothing(void* /*buffers*/[], void* /*argument*/) {}

/// StarPU keeps it beyond the Runtime.
starpu_codelet& bare_codelet() {
  static starpu_perfmodel model = [] {
    starpu_perfmodel m{};
    m.type = STARPU_HISTORY_BASED;
    m.symbol = "asterism_bare_task";
    return m;
  }();
  static starpu_codelet codelet = [] {
    starpu_codelet c;
    starpu_codelet_init(&c);
    c.cpu_funcs[0] = nothing;
    c.nbuffers = 1;
    c.modes[0] = STARPU_RW;
    c.model = &model;
    c.name = "bare_task";
    return c;
  }();
  return codelet;
}

}  // namespace

TaskTimesOfRound run_bare_tasks(Runtime& /*runtime*/, Index tasks, Index tiles) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  std::vector<double> values(static_cast<std::size_t>(tiles));
  std::vector<starpu_data_handle_t> handles(values.size());
  for (std::size_t k = 0; k < values.size(); ++k)
    starpu_matrix_data_register(&handles[k], STARPU_MAIN_RAM, reinterpret_cast<std::uintptr_t>(&values[k]), 1,
                                1, 1, sizeof(double));
  TaskTimesOfRound times{};
  const Clock::time_point begin = Clock::now();
  for (Index i = 0; i < tasks; ++i) {
    starpu_task* const task = starpu_task_create();
    task->cl = &bare_codelet();
    task->handles[0] = handles[static_cast<std::size_t>(i % tiles)];
    if (const int status = starpu_task_submit(task); status != 0)
      throw Error(std::string("StarPU refuses a task: ") + std::strerror(-status), Blame::machine);
  }
  times.submitted = since(begin);
  starpu_task_wait_for_all();
  times.completed = since(begin);
  for (starpu_data_handle_t handle : handles) starpu_data_unregister(handle);
  return times;
}

}  // namespace asterism
