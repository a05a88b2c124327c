#include "room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "../../../runtime/error.hpp"

namespace asterism::relaxation {
namespace {

/// Numbers that a task on a worker has in its memory, where that is limited.
struct TaskNumbers {
  Index each_row, beside;

  /// @param stripe all but its rows
  TaskNumbers(const Candidate& worker, const Stripe& stripe) {
    // u, its second tile and g with ghost rows; the frame. On GPUs f and the first guess, which cores find
    // where the caller has them; on cores what neighbours exchange, and the border's working memory.
    const bool on_gpu = worker.where == Where::cuda;
    const Index nodes = stripe.nodes, columns = stripe.tile_cols(), frame_rows = 2 * (nodes + 2),
                exchanged = on_gpu ? 0 : 4 * stripe.halo * columns + border_scratch(stripe);
    each_row = (on_gpu ? 2 * nodes : 0) + 3 * columns + 2;
    beside = 2 * stripe.halo * (3 * columns + 2) + exchanged + frame_rows;
  }
};

constexpr double share_of_task = 0.9;  // of the memory: the rest is for what tasks bring along that are next

}  // namespace

Index most_rows(const Candidate& worker, const Stripe& stripe, std::size_t element_bytes) {
  constexpr Index most_elements = (Index{1} << 32) - 1;  // of a tile
  Index rows = most_elements / stripe.tile_cols() - 2 * stripe.halo;
  if (worker.memory > 0) {
    const TaskNumbers task(worker, stripe);
    const auto numbers =
        static_cast<Index>(share_of_task * worker.memory / static_cast<double>(element_bytes));
    rows = std::min(rows, (numbers - task.beside) / task.each_row);
  }
  return std::max<Index>(0, rows);
}

bool split_too_high(Division& division, const std::vector<Part>& stripes, const Stripe& stripe,
                    std::size_t element_bytes, Index possible) {
  if (static_cast<Index>(stripes.size()) >= possible) return false;
  bool any = false;
  for (std::size_t w = 0, s = 0; w < division.workers.size(); ++w) {
    Index rows = 0, highest = 0;
    for (Index k = 0; k < division.stripes[w]; ++k, ++s) {
      rows += stripes[s].size;
      highest = std::max(highest, stripes[s].size);
    }
    const Index most = most_rows(division.workers[w], stripe, element_bytes);
    if (highest <= most) continue;
    // Not at once as many as these would have to be: lower stripes make fewer sweeps a task, with fewer
    // ghosts.
    division.stripes[w] =
        std::clamp(rows / std::max<Index>(1, most), division.stripes[w] + 1, 2 * division.stripes[w]);
    any = true;
  }
  if (division.count() > possible) division = divide(division.workers, possible);
  return any;
}

void require_room(const Division& division, const std::vector<Part>& stripes, const Stripe& stripe,
                  std::size_t element_bytes, Index possible) {
  const Index columns = stripe.tile_cols();
  std::map<int, double> taken;  // by the cores' stripes of each rank
  for (std::size_t w = 0, s = 0; w < division.workers.size(); ++w) {
    const Candidate& worker = division.workers[w];
    const Index most = most_rows(worker, stripe, element_bytes);
    const TaskNumbers task(worker, stripe);
    for (Index k = 0; k < division.stripes[w]; ++k, ++s) {
      if (worker.memory > 0 && stripes[s].size > most) {
        const bool could_be_more = static_cast<Index>(stripes.size()) < possible;
        throw Error(
            fmt::format("{} stripe{}: a task needs {} for the {} row{} of one and what is beside them, and a "
                        "worker's share of memory has {} for it; {} more memory ({})",
                        stripes.size(), stripes.size() == 1 ? "" : "s",
                        human_bytes(static_cast<double>(stripes[s].size * task.each_row + task.beside) *
                                    static_cast<double>(element_bytes)),
                        stripes[s].size, stripes[s].size == 1 ? "" : "s",
                        human_bytes(share_of_task * worker.memory),
                        could_be_more ? "ask for more stripes (--stripes), or allow"
                                      : "there can be no more stripes (--stripes): allow",
                        worker.where == Where::cuda ? "--gpu-memory" : "--memory"),
            Blame::machine);
      }
      if (worker.where != Where::cpu) continue;
      const Index elements =
          (stripes[s].size + 2 * stripe.halo) * (3 * columns + 2) + 4 * stripe.halo * columns;
      double& bytes = taken[worker.rank];
      bytes += static_cast<double>(elements) * static_cast<double>(element_bytes);
      if (worker.rank_memory > 0 && bytes > worker.rank_memory)
        throw Error(
            fmt::format("the grid's stripes take more than the {} of main memory that there are for them; "
                        "allow more (--memory), or name a folder for what does not fit (--spill)",
                        human_bytes(worker.rank_memory)),
            Blame::machine);
    }
  }
}

}  // namespace asterism::relaxation
