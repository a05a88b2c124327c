#include "spill_disk.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "../run/state.hpp"

namespace asterism {
namespace {

Runtime::State* spilling = nullptr;  // StarPU hands nothing of ours to the functions of a disk

/// StarPU's own, but for a file whose room is reserved.
void* new_object(void* base, std::size_t bytes) {
  auto [name, error] = spilling->spill->reserve(bytes);
  void* object = nullptr;
  if (error == 0) {
    object = starpu_disk_unistd_ops.open(base, name.data(), bytes);
    if (object == nullptr) error = errno;
  }
  if (error != 0 && error != ECANCELED)
    spilling->give_up(
        fmt::format("spill folder {}: no room for {} more: {}; make room, or name a folder on a larger disk",
                    spilling->options.spill.string(), human_bytes(static_cast<double>(bytes)), std::strerror(error)));
  return object;
}

starpu_disk_ops with_reserved_room() {
  starpu_disk_ops ops = starpu_disk_unistd_ops;
  ops.alloc = new_object;
  return ops;
}

}  // namespace

void register_spill_disk(Runtime::State& state) {
  const Options& options = state.options;
  std::string folder = state.spill.emplace(options.spill).path().string();  // first, as it may free room
  std::size_t room = options.spill_bytes;
  std::error_code failed;
  if (room == 0) room = std::filesystem::space(options.spill, failed).available / 10 * 9;
  if (failed || room < STARPU_DISK_SIZE_MIN)
    throw Error(fmt::format("spill folder {}: {} of room, at least {} are needed; allow more or name another folder",
                            options.spill.string(), human_bytes(failed ? 0. : static_cast<double>(room)),
                            human_bytes(STARPU_DISK_SIZE_MIN)));
  static starpu_disk_ops ops = with_reserved_room();
  spilling = &state;
  if (starpu_disk_register(&ops, folder.data(), static_cast<starpu_ssize_t>(room)) < 0)
    throw Error(state.stalled ? state.stall
                              : fmt::format("spill folder {}: StarPU cannot use it as a disk", options.spill.string()),
                Blame::machine);
}

}  // namespace asterism
