/// \file
/// Messages between ranks of one node that have GPUs. Private to runtime/ranks.
#pragma once

#include <mpi.h>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

struct _starpu_data_state;
struct starpu_task;

namespace asterism::ranks {

/// MPI copies what it sends from the memory of one rank to that of another on cores, and StarPU gives it one thread for all
/// messages: for a plane of a grid that takes several times as long as the GPUs' copies to main memory and from there.
/// A mailbox is main memory that both ranks have mapped. The sender's GPU writes into it, the receiver's GPU reads what
/// is there, each in a task of its own (or a core, where that has written the tile or wants it), and MPI carries two words:
/// that it is full, and where, and that it is empty again.
class Mailboxes {
 public:
  /// Between those ranks of a node that have GPUs and can map each other's memory. Collective; StarPU runs.
  /// @param node the ranks of `comm` that are on this rank's node
  Mailboxes(MPI_Comm comm, MPI_Comm node);
  Mailboxes(const Mailboxes&) = delete;
  Mailboxes& operator=(const Mailboxes&) = delete;
  /// When no message is on its way any more; StarPU still runs.
  ~Mailboxes();

  /// Whether a tile travels to that rank, and from it, like this: where there is a mailbox, and the tile is neither so small
  /// that MPI is as fast, nor larger than the mailbox. Both ranks say the same.
  [[nodiscard]] bool carry(_starpu_data_state* tile, int other) const;

  /// Submits what takes a tile to another rank, which calls receive(). @return StarPU's status
  int send(_starpu_data_state* tile, int to, int priority);
  /// Submits what brings it. @param reader what is about to read it, or nullptr @return StarPU's status
  int receive(_starpu_data_state* tile, int from, int priority, const starpu_task* reader);

  /// A task of this rank, which is not submitted yet, writes the tile: it will be sent from where that leaves it.
  void note_writer(_starpu_data_state* tile, const starpu_task& writer) const;
  /// The tile is about to end.
  void forget(_starpu_data_state* tile);

 private:
  struct Pair;
  struct Words;
  enum class Direction { in, out };

  Words& words_of(_starpu_data_state* tile, int other, Direction direction);

  MPI_Comm comm_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Pair>>
      pairs_;  // by the other rank; nullptr: there is no mailbox; empty: there is none at all
  std::map<std::tuple<_starpu_data_state*, int, Direction>, std::unique_ptr<Words>>
      words_;  // by tile, and other rank
};

}  // namespace asterism::ranks
