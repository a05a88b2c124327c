/// \file
/// The spill folder as a memory of StarPU's. Private to runtime/.
#pragma once

#include "../runtime.hpp"

namespace asterism {

/// Makes Runtime::State::spill in the folder of the options, and tells StarPU, which runs, to evict tiles to it. When
/// its disk is full later, the Runtime gives up: StarPU aborts where it cannot write.
/// @throw Error when there is not enough room, or StarPU cannot use the folder.
void register_spill_disk(Runtime::State& state);

}  // namespace asterism
