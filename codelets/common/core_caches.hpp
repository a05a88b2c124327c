/// \file
/// The caches that each core has for itself.
#pragma once

#include <unistd.h>

#include "../../runtime/ports.hpp"

namespace asterism {

/// Bytes of the first level, for data, and of the second.
struct CoreCaches {
  Index first, second;
};

/// As the C library knows them; where it does not, as most cores have them at least.
inline const CoreCaches& core_caches() {
  static constexpr auto known = [](int name, Index otherwise) {
    const Index bytes = sysconf(name);
    return bytes > 0 ? bytes : otherwise;
  };
  static const CoreCaches caches{known(_SC_LEVEL1_DCACHE_SIZE, 32 << 10), known(_SC_LEVEL2_CACHE_SIZE, 512 << 10)};
  return caches;
}

}  // namespace asterism
