#include "task_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace asterism::detail {
namespace {

/// "port 2", "port 2, tile 17"
std::string place(const TaskTiles::Entry& entry) {
  return fmt::format("port {}", entry.port) + (entry.place < 0 ? "" : fmt::format(", tile {}", entry.place));
}

/// Bytes that tiles take in a memory; in main memory borrowed ones are there already.
std::size_t bytes_in(const Buffers& buffers, MemoryKind kind) {
  std::size_t bytes = 0;
  for (const Buffer& buffer : buffers.all)
    if (kind != MemoryKind::main || !buffer.tile->borrowed) bytes += buffer.tile->bytes();
  return bytes;
}

/// Those that tiles take on one GPU at most, where each is at its home; that GPU may be the task's own, which has those
/// without a home, too.
std::size_t most_bytes_at_home(const Buffers& buffers) {
  std::map<int, std::size_t> at_home;
  std::size_t most = 0, homeless = 0;
  for (const Buffer& buffer : buffers.all) {
    std::size_t& bytes = buffer.tile->home < 0 ? homeless : at_home[buffer.tile->home];
    bytes += buffer.tile->bytes();
  }
  for (const auto& [home, bytes] : at_home) most = std::max(most, bytes);
  return most + homeless;
}

/// What a task needs at once in a memory of this kind.
std::size_t needed_in(const Buffers& buffers, MemoryKind kind, const Hints& hints) {
  return hints.together && kind == MemoryKind::gpu ? most_bytes_at_home(buffers) : bytes_in(buffers, kind);
}

/// "1 x 8 of 4 bytes, 20 times 1 x 8 of 8 bytes"
std::string describe(const ShortList<Buffer, 3>& buffers) {
  const auto shape = [](const Buffer& buffer) {
    const TileShape& s = buffer.tile->shape;
    return fmt::format("{} x {} of {} bytes", s.rows, s.cols, s.element_bytes);
  };
  std::string text;
  for (auto first = buffers.begin(), next = first; first != buffers.end(); first = next) {
    next = std::find_if(first, buffers.end(),
                        [&](const Buffer& other) { return shape(other) != shape(*first); });
    text += text.empty() ? "" : ", ";
    if (next - first > 1) text += fmt::format("{} times ", next - first);
    text += shape(*first);
  }
  return text;
}

/// Where the task can run: kernel, workers, and room for all its tiles at once. StarPU would retry for ever a task that
/// does not fit. @return 0: nowhere
std::uint32_t possible_workers(const CodeletCore::State& core, const Buffers& buffers, const Hints& hints) {
  if (std::max(core.cpu.size(), core.cuda.size()) > STARPU_MAXIMPLEMENTATIONS) return 0;
  const Workplaces& places = buffers.all.begin()->tile->runtime->workplaces;
  const auto fits = [&](Where where, std::size_t kernels, const Workplaces::Kind& kind, MemoryKind memory) {
    return (hints.where == Where::anywhere || hints.where == where) && kernels > 0 && kind.workers > 0 &&
           needed_in(buffers, memory, hints) <= kind.capacity;
  };
  return (fits(Where::cpu, core.cpu.size(), places.cpu, MemoryKind::main) ? STARPU_CPU : 0U) |
         (fits(Where::cuda, core.cuda.size(), places.cuda, MemoryKind::gpu) ? STARPU_CUDA : 0U);
}

/// Says why possible_workers() found none, or what is wrong with the codelet.
[[noreturn]] void explain(const CodeletCore::State& core, const Buffers& buffers, const Hints& hints) {
  struct Kind {
    Where where;
    const char* name;
    MemoryKind memory;
    const char* memory_name;
    std::size_t kernels;
    Workplaces::Kind room;
  };
  const Workplaces& places = buffers.all.begin()->tile->runtime->workplaces;
  const Kind kinds[] = {{Where::cpu, "CPU", MemoryKind::main, "main", core.cpu.size(), places.cpu},
                        {Where::cuda, "CUDA", MemoryKind::gpu, "GPU", core.cuda.size(), places.cuda}};
  Blame blame = Blame::machine;
  std::string verdict = "can run nowhere:", reasons, cures;
  const auto rule_out = [&](const std::string& reason, const std::string& cure) {
    reasons += (reasons.empty() ? "" : "; ") + reason;
    if (cures.find(cure) == std::string::npos) cures += (cures.empty() ? "" : ", or ") + cure;
  };
  for (const Kind& kind : kinds) {
    if (kind.kernels > STARPU_MAXIMPLEMENTATIONS)
      throw Error(fmt::format("codelet {} has {} {} kernels: StarPU takes {} at most", core.name,
                              kind.kernels, kind.name, STARPU_MAXIMPLEMENTATIONS));
    const bool asked = hints.where == kind.where;
    if (hints.where != Where::anywhere && !asked) continue;
    if (asked) verdict = fmt::format("asks for {} workers, but", kind.name);
    if (kind.where == Where::cuda && !built_with_cuda) {
      rule_out("this build has no CUDA", asked ? "leave Hints::where alone" : "");
    } else if (kind.kernels == 0) {
      rule_out(fmt::format("the codelet has no {} kernel", kind.name),
               asked ? "give it one, or leave Hints::where alone" : "");
      if (asked) blame = Blame::input;
    } else if (kind.room.workers == 0) {
      rule_out(fmt::format("there is no {} worker", kind.name), fmt::format("allow {} workers", kind.name));
    } else {
      rule_out(fmt::format("its tiles ({}) need {} at once, {} memory has {}", describe(buffers.all),
                           human_bytes(static_cast<double>(needed_in(buffers, kind.memory, hints))),
                           kind.memory_name, human_bytes(static_cast<double>(kind.room.capacity))),
               "use smaller tiles, or allow more memory");
    }
  }
  const std::string on_rank = hints.rank == -1 ? "" : fmt::format(" on rank {}", hints.rank);
  throw Error(fmt::format("task {}{} {} {}: {}", full_name(core.name, hints.label), on_rank, verdict, reasons,
                          cures.empty() ? "give it a kernel that can run here" : cures),
              blame);
}

/// StarPU's number of the worker that the submitter has chosen.
unsigned chosen_worker(const CodeletCore::State& core, const Hints& hints) {
  const auto task = [&] { return full_name(core.name, hints.label); };
  if (hints.where == Where::anywhere)
    throw Error(fmt::format("task {} asks for worker {} of no kind: say CPU or CUDA", task(), hints.worker));
  const bool cpu = hints.where == Where::cpu;
  const int worker = number_in_starpu(cpu ? WorkerKind::cpu : WorkerKind::cuda, hints.worker);
  if (worker < 0)
    throw Error(fmt::format("task {} asks for {} worker {}: there are {}, counted from 0", task(),
                            cpu ? "CPU" : "CUDA", hints.worker,
                            cpu ? starpu_cpu_worker_get_count() : starpu_cuda_worker_get_count()),
                Blame::machine);
  return static_cast<unsigned>(worker);
}

}  // namespace

void list_buffers(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints,
                  Buffers& buffers) {
  std::vector<std::size_t>& of_port = buffers.of_port;
  for (const TaskTiles::Entry& entry : tiles.entries) {
    TileState* const tile = &state(entry);
    Buffer* const same = std::find_if(buffers.all.begin(), buffers.all.end(),
                                      [&](const Buffer& b) { return b.tile.get() == tile; });
    const auto number = static_cast<std::size_t>(same - buffers.all.begin());
    if (same == buffers.all.end()) {
      if (!of_port.empty()) of_port.push_back(number);
      buffers.all.push_back({entry.tile->shared_state(), entry.access});
      continue;
    }
    if (of_port.empty())  // the first that is there twice
      for (std::size_t i = 0; i < buffers.all.size(); ++i) of_port.push_back(i);
    of_port.push_back(number);
    if ((same->access == Access::scratch) != (entry.access == Access::scratch))
      throw Error(fmt::format(
          "task {}: {} is the tile of another port, and one of them is scratch: give each its own",
          full_name(core.name, hints.label), place(entry)));
    if (same->access != entry.access) same->access = Access::read_write;
  }
}

void require_usable(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints) {
  if (tiles.entries.size() > most_tiles)
    throw Error(fmt::format("task {} has {} tiles: there may be {}; give them to several tasks",
                            full_name(core.name, hints.label), tiles.entries.size(), most_tiles));
  for (const TaskTiles::Entry& entry : tiles.entries) {
    const char* const flaw =
        entry.tile == nullptr ? "nullptr: leave it out of the list" : flaw_of(entry.tile->state());
    if (flaw != nullptr)
      throw Error(fmt::format("task {}: {} is {}", full_name(core.name, hints.label), place(entry), flaw));
  }
}

int executing_rank(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints) {
  int owner = -1;
  for (const TaskTiles::Entry& entry : tiles.entries) {
    if (!writes(entry.access)) continue;
    const int another = state(entry).owner;
    if (owner >= 0 && owner != another && hints.rank == -1)
      throw Error(fmt::format(
          "task {} writes tiles of rank {} and of rank {}: it can run on one rank only; choose it "
          "with Hints::rank",
          core.name, owner, another));
    owner = another;
  }
  if (owner < 0) throw Error(fmt::format("task {} writes no tile: it would have no effect", core.name));
  if (hints.rank == -1) return owner;
  if (const int ranks = state(*tiles.entries.begin()).runtime->ranks; hints.rank < 0 || hints.rank >= ranks)
    throw Error(fmt::format("task {} asks for rank {}: there {}", full_name(core.name, hints.label),
                            hints.rank,
                            ranks == 1 ? "is rank 0 only" : fmt::format("are ranks 0 to {}", ranks - 1)));
  return hints.rank;
}

void require_content(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints) {
  for (const TaskTiles::Entry& entry : tiles.entries) {
    const TileState& tile = state(entry);
    if (!reads(entry.access) || tile.owner != tile.runtime->rank) continue;
    if (!tile.written)
      throw Error(fmt::format("task {} reads a {} x {} tile ({}) before anything was written to it",
                              full_name(core.name, hints.label), tile.shape.rows, tile.shape.cols,
                              place(entry)));
    // Until wait() has thrown a failure the tasks after it do nothing, and nobody is told elsewhere.
    if (const Failure* const lost = tile.lost;
        lost != nullptr && lost != tile.mended && lost != tile.runtime->failure)
      throw Error(
          fmt::format("task {} reads a {} x {} tile ({}) whose content is lost, because task {} failed: {}; "
                      "write the tile anew before it is read",
                      full_name(core.name, hints.label), tile.shape.rows, tile.shape.cols, place(entry),
                      lost->task, lost->reason),
          Blame::task);
  }
}

void require_sendable(const CodeletCore::State& core, const TaskTiles& tiles, int executor) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  for (const TaskTiles::Entry& entry : tiles.entries) {
    const TileState& tile = state(entry);
    const TileShape& shape = tile.shape;
    if (entry.access == Access::scratch || tile.owner == executor) continue;
    if (reads(entry.access) && tile.is_outdated_on(executor))
      throw Error(fmt::format(
          "task {} on rank {} reads a tile of rank {} ({}) that a HostView has changed since it was "
          "sent there: call its tell_changed() on all ranks after such a change, or let a task "
          "write it",
          core.name, executor, tile.owner, place(entry)));
    if (static_cast<std::size_t>(shape.rows) > most ||
        static_cast<std::size_t>(shape.ld) > most / shape.element_bytes)
      throw Error(
          fmt::format("task {} on rank {} {} a tile of rank {} ({}) with {} rows, {} bytes apart: "
                      "neither may pass {} between ranks; use smaller tiles",
                      core.name, executor, reads(entry.access) ? "reads" : "writes", tile.owner, place(entry),
                      shape.rows, static_cast<std::size_t>(shape.ld) * shape.element_bytes, most));
  }
}

Workers workers_for(const CodeletCore::State& core, const Buffers& buffers, const Hints& hints) {
  if (hints.together && hints.where != Where::cuda)
    throw Error(fmt::format("task {} is for GPUs together, and not for them alone: say Where::cuda",
                            full_name(core.name, hints.label)));
  Workers workers{possible_workers(core, buffers, hints), std::nullopt};
  if (workers.where == 0) explain(core, buffers, hints);
  const bool only_one_can =
      workers.where == STARPU_CUDA && buffers.all.begin()->tile->runtime->workplaces.cuda.workers == 1;
  if (hints.worker != -1)
    workers.chosen = chosen_worker(core, hints);
  else if (only_one_can)  // a scheduler would look at all workers before it says so
    workers.chosen = static_cast<unsigned>(number_in_starpu(WorkerKind::cuda, 0));
  return workers;
}

}  // namespace asterism::detail
