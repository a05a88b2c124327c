#include "launch.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <string_view>

#include "../run/environment.hpp"

namespace asterism::ranks {
namespace {

struct Variables {
  const char *launcher, *size, *rank;
};
constexpr Variables known[] = {
    {open_mpi, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"mpirun of MVAPICH2", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
    {"mpirun of MVAPICH", "MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_RANK"},
    {"mpiexec of MPICH or Intel MPI", "PMI_SIZE", "PMI_RANK"},  // or whatever else speaks PMI
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};

constexpr const Variables& slurm = known[std::size(known) - 1];

/// Slurm's script of a job and its shell of salloc are steps with numbers from here on; srun's are below.
constexpr unsigned long first_special_step = 0xfffffff0;

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

bool is_step_of_srun() {
  const char* const step = std::getenv("SLURM_STEP_ID");
  return step == nullptr || std::strtoul(step, nullptr, 10) < first_special_step;
}

/// Open MPI leaves PMIX_RANK in the environment of a program that it started without any launcher, too.
bool has_pmix_server() {
  constexpr std::string_view address = "PMIX_SERVER_URI";  // and a number: of the protocol
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::string_view(*variable).starts_with(address)) return true;
  return false;
}

std::optional<Launch> look_for_launch() {
  if (independent()) return std::nullopt;
  for (const Variables& by : known)
    if (is_set(by.size) && (&by != &slurm || is_step_of_srun()))
      return Launch{by.launcher, by.size, first_number({by.size}, 1), first_number({by.rank}, 0)};
  if (is_set("PMIX_RANK") && has_pmix_server())
    return Launch{"a launcher with PMIx", "PMIX_RANK", std::nullopt, first_number({"PMIX_RANK"}, 0)};
  return std::nullopt;
}

}  // namespace

bool independent() { return first_number({"ASTERISM_INDEPENDENT"}, 0) != 0; }

const std::optional<Launch>& launch() {
  static const std::optional<Launch> found = look_for_launch();
  return found;
}

}  // namespace asterism::ranks
