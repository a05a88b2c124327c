/// \file
/// Where StarPU's own memory comes from. Private to runtime/.
#pragma once

namespace asterism {

/// From now on StarPU has its memory for tiles in huge pages: all that is page-locked, which by itself it takes from
/// cudaHostAlloc (the first small tile of a program waits for 32 MiB of that), and else what is as large as one of them.
void give_starpu_huge_pages();

}  // namespace asterism
