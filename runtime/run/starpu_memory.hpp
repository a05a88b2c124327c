/// \file
/// Where StarPU's own memory comes from. Private to runtime/.
#pragma once

namespace asterism {

/// From now on StarPU has its page-locked memory for tiles in huge pages: by itself it takes it from cudaHostAlloc, and the
/// first small tile of a program waits for 32 MiB of that.
void give_starpu_huge_pages();

}  // namespace asterism
