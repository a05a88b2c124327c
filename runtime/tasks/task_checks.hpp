/// \file
/// What has to hold before a task is submitted, and where it may run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "../run/state.hpp"

namespace asterism::detail {

/// The most tiles of a task.
constexpr std::size_t most_tiles = std::size_t{1} << 16;

inline TileState& state(const TaskTiles::Entry& entry) { return *entry.tile->state(); }

/// Fills `buffers` with the tiles of a task, each once. @throw Error
void list_buffers(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints, Buffers& buffers);

/// That there is a tile for every port, of a Runtime that lives. @throw Error
void require_usable(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints);

/// The rank that runs the task: the one that the submitter has chosen, or that owns what it writes. @throw Error
int executing_rank(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints);

/// That those tiles of this rank which the task reads have something to be read. @throw Error, TaskFailure
void require_content(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints);

/// That what a task reads can be sent to the rank that runs it, and what it writes to its owner: MPI counts the bytes of a
/// row, and rows, in an int. And that no tile of this rank which is there already is another one now.
/// @throw Error
void require_sendable(const CodeletCore::State& core, const TaskTiles& tiles, int executor);

/// Where StarPU may run a task.
struct Workers {
  std::uint32_t where;
  std::optional<unsigned> chosen;
};
/// @throw Error: no worker can run it, or its tiles do not fit
Workers workers_for(const CodeletCore::State& core, const Buffers& buffers, const Hints& hints);

}  // namespace asterism::detail
