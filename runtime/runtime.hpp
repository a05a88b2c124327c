/// \file
/// The runtime: one object that starts and ends StarPU.
#pragma once

#include <functional>
#include <memory>

#include "error.hpp"
#include "hardware/machine.hpp"
#include "ports.hpp"
#include "report.hpp"

namespace asterism {

/// StarPU, started and ended. One per process at a time; tiles that outlive it are of no more use. Under `mpirun` every
/// rank makes one, and every rank submits the same tasks in the same order; with one rank MPI is never started. A program
/// may start MPI itself, before its first Runtime and with MPI_THREAD_MULTIPLE; then it ends it, too. With
/// ASTERISM_INDEPENDENT=1 in its environment every process is a run of its own, whoever has started it with others.
class Runtime {
 public:
  /// @throw Error: a launcher's processes of which MPI knows nothing; an MPI that allows too few threads, or has been
  /// ended; another Runtime lives; no worker left; fewer GPUs than asked for; unknown scheduler; a spill or
  /// trace folder that cannot be written; a communicator that is none.
  explicit Runtime(const Options& options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  /// Waits for all tasks, ends the tiles and views that still live (borrowed memory gets its content), writes the
  /// trace, ends StarPU. Reports what goes wrong on standard error; never throws. With several ranks, when an exception
  /// that not all of them have ends it, or after a Stall: tells the message once, with the rank, and ends all ranks, with
  /// the status of the Error's blame.
  ~Runtime();

  /// Waits for all tasks submitted so far. With several ranks: collective.
  /// @throw TaskFailure: the first failure since the last wait (on any rank); tasks after it did nothing. What they and
  /// the failed task should have written stays lost (see HostView) until it is written anew. With several ranks that
  /// is every tile that a task since the last wait was to write: nobody knows which of them read what was lost.
  /// @throw Stall: no progress for Options::stall_seconds.
  void wait();

  /// Whether a task has failed since the last wait(), which will throw, as far as this rank knows; for those who would
  /// otherwise go on submitting tasks that do nothing. Waits for nothing.
  [[nodiscard]] bool task_has_failed() const;

  /// Lets no further task begin, on any rank, until the next wait(), which throws nothing for it: tasks that run go on, all
  /// others do nothing. What they were to change stays as it is; what they were to write (Out) is lost until it is written
  /// anew, and to read it throws a TaskFailure. With several ranks it takes effect on all of them some tenths of a second
  /// later, and all still have to submit the same tasks, which cost little then. Waits for nothing; may be called in a
  /// callback (Snapshot::then) and in kernels.
  void cancel();

  /// Whether cancel() has taken effect on this rank, on whichever it was called, since the last wait().
  [[nodiscard]] bool cancelled() const;

  /// Waits until fewer than `tasks` tasks of a stream (Hints::streams) are in flight on this rank: for their submitters,
  /// as they would otherwise all reserve memory at once. @throw Stall
  void wait_for_room(std::size_t tasks);

  /// The machine with the present fill of its memories.
  [[nodiscard]] Machine machine() const;
  [[nodiscard]] const Options& options() const;
  [[nodiscard]] int rank() const;
  [[nodiscard]] int ranks() const;

  /// Bytes that crossed links since the start, on this rank.
  [[nodiscard]] Traffic traffic() const;

  /// Waits until every rank is here.
  void barrier() const;

  /// Compares what all ranks must have been given alike. Collective.
  /// @param statement lines "name: value"
  /// @throw Error on all ranks: says what differs, and on which rank
  void require_alike(const std::string& statement) const;

  /// Whether kernels of each of this rank's GPUs can read and write the memory of all others (CUDA's peer access): tasks on
  /// which several of them work together (Hints::together) need that. True with one GPU, false without.
  [[nodiscard]] bool gpus_see_each_other() const;

  /// Runs `body` once in the thread of every worker of a kind on this rank, and waits for them: for plans and handles
  /// that the tasks to come would otherwise make while they are timed. @throw TaskFailure when it throws; on this rank.
  void on_each_worker(WorkerKind kind, const std::function<void()>& body);
  /// The same in the thread of one worker, its number among those of the kind. @throw Error: there is none
  void on_worker(WorkerKind kind, int number, const std::function<void()>& body);

  struct State;  ///< private to runtime/
  [[nodiscard]] State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// The rank of this process as the launcher (`mpirun`, `srun`) told it, without any MPI call, or, of a launcher that is
/// not known, as an MPI that the program has started knows it; 0 where there is none.
int launched_rank();

/// For a rank that cannot even make its Runtime, before it has made any: lets the others, which make theirs of all ranks,
/// throw the same. @return what all ranks throw; with one rank, or after a Runtime: `error`
Error agreed(const Error& error);

/// Ends this process, and every other rank, at once and without clean-up: after a Stall, or when one rank of several
/// cannot go on and the others would wait for it for ever.
[[noreturn]] void end_all_ranks(int status);

}  // namespace asterism
