/// \file
/// MPI, as far as the runtime needs it. Private to runtime/. With one rank nothing here calls MPI, but to ask whether
/// the program has started it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "../error.hpp"
#include "../ports.hpp"

struct starpu_conf;
struct _starpu_data_state;
struct starpu_task;

namespace asterism {

class Environment;

/// The first thing that went wrong on a rank, or that somebody has cancelled its tasks.
struct Failure {
  std::string task, reason;
  Blame blame;
  int rank =
      -1;  ///< the other rank whose failure it is; -1: this one's, or, where ranks have agreed, that of all
  bool cancelled = false;
};

namespace ranks {

/// "Open MPI v4.1.4": the MPI that this program is linked to.
std::string mpi_library();

/// Whether other ranks may have been started with this one: where the environment (launch.hpp), or an MPI that the
/// program has started itself, says so. Otherwise MPI is never started. Not where the user wants independent runs.
bool may_have_others();

/// Starts MPI, once per process, unless the program has; what is started here ends with the process. Collective, of the
/// ranks that work together: all that were launched, or those of the communicator that was chosen.
/// @param chosen MPI_Comm_c2f() of it
/// @return why this rank cannot begin, so that all can be told: MPI allows fewer threads than are needed, or does not
/// know of the processes that the launcher has started
/// @throw Error, on all ranks: the program has ended MPI; on this one: the communicator is none
[[nodiscard]] std::optional<Failure> connect(const std::optional<int>& chosen, int& rank, int& ranks);
/// When StarPU has ended; also without connect(). Collective.
void disconnect();
/// The number that others know this rank by, also after disconnect().
int known_rank();
/// Of several processes that say the same, rank 0 speaks. This is for the others, before they end: where MPI does not
/// let them end together, a launcher that sees one of them end first may end rank 0 before it has spoken.
void let_first_rank_speak();

/// The GPUs first, first + 1, ..., first + count - 1 of a node; beyond its last one they go on with its number 0.
struct GpuShare {
  int first, count;
};
/// What rank l of the L on a node with G GPUs takes: where G >= L, from l G / L up to but not (l + 1) G / L (rounded
/// down), so that each GPU is in the share of one rank; where G < L, number l G / L, shared with other ranks.
/// @param wanted how many the user wants for each rank, or -1: as many as are in its share
GpuShare share_of_gpus(int l, int L, int G, int wanted);
/// This rank's share of its node's GPUs; none where it is for StarPU to find them: this rank is alone on the node, there
/// are none, or the user has named them. @param wanted as above
std::optional<GpuShare> our_gpus(int wanted);

/// Starts StarPU on this rank's share of the cores and GPUs of its node, with several ranks with its MPI layer. @return
/// StarPU's status.
int start(starpu_conf& conf, Environment& environment);
/// Lets GPUs of ranks on one node send to each other without MPI, where they can (mailboxes.hpp). Collective, once StarPU has
/// started on all ranks.
void connect_gpus();
/// Ends StarPU, and its MPI layer.
void stop();
/// Whether StarPU can trace: where ranks work together it waits for all that were launched.
bool can_trace();
void barrier();
/// Waits for tasks and messages of this rank, then for all ranks.
void wait_for_all();

/// The failure of the lowest rank that has one, on every rank. Collective.
std::optional<Failure> agree_on_failure(const std::optional<Failure>& mine);

/// Rank 0's text on every rank.
void broadcast(std::string& text);
void broadcast(void* value, std::size_t bytes);
/// The elements of all ranks in their order. @param resize resize(n): memory for n elements
void gather(const void* mine, Index count, std::size_t element_bytes,
            const std::function<void*(Index)>& resize);

/// Brings a tile's content as of now to all ranks, once it is there. Collective, but waits for nobody.
void send_to_all(_starpu_data_state* handle);

void register_tile(_starpu_data_state* handle, std::int64_t tag, int owner);
/// Before it is taken back.
void forget_tile(_starpu_data_state* handle);

/// Whether another rank has this rank's tile as it was when the last task wrote it.
bool was_sent(_starpu_data_state* handle, int to);
/// Forgets who has got it: it travels again. On every rank.
void send_again(_starpu_data_state* handle);

/// Submits `task`, which has no tile twice, where this is the rank that runs it, with the messages before and after it:
/// what it reads comes from its owners, and what it writes goes to them. On every rank.
/// @param received grows by the bytes that this rank receives for it
/// @return StarPU's status
int submit(starpu_task* task, int executor, std::int64_t& received);

}  // namespace ranks
}  // namespace asterism
