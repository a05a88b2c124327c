/// \file
/// Who started this process, and how many others with it, as the environment tells. Private to runtime/. Calls no MPI.
#pragma once

#include <optional>
#include <string>

namespace asterism::ranks {

inline constexpr const char* open_mpi = "mpirun of Open MPI";

/// A launcher's processes, and which of them this one is.
struct Launch {
  std::string launcher;          ///< "srun"
  std::string variable;          ///< that tells it: "SLURM_STEP_NUM_TASKS"
  std::optional<int> processes;  ///< nothing: only MPI knows
  int process = 0;

  [[nodiscard]] bool may_have_others() const { return processes.value_or(2) > 1; }
};

/// That of MPI's own launcher where several have left variables: it uses the batch system's to start its daemons. None
/// where the user wants independent runs, and in the scripts and shells of batch systems, which have variables of the
/// job but are one process. Looked for once: MPI changes the environment when it starts.
const std::optional<Launch>& launch();

/// Whether $ASTERISM_INDEPENDENT is 1: processes that were started together are to know nothing of each other.
bool independent();

}  // namespace asterism::ranks
