/// \file
/// What is behind a codelet. Private to runtime/.
#pragma once

#include <starpu.h>

#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "../codelet.hpp"

namespace asterism::detail {

inline bool reads(Access access) { return access != Access::write && access != Access::scratch; }
inline bool writes(Access access) { return access != Access::read && access != Access::scratch; }

/// "axpy_f64 (slab 3)": of a task in messages
std::string full_name(const std::string& codelet, const std::string& label);

/// A codelet of StarPU's whose tasks find their tiles in certain memory nodes, whichever worker runs them.
struct CodeletOnNodes {
  std::vector<int> nodes;  ///< of each tile, or STARPU_SPECIFIC_NODE_LOCAL and the like
  starpu_codelet codelet{};
};

struct CodeletCore::State {
  std::string name;
  std::string symbol;  // names its performance model
  CpuCall call_cpu;
  std::vector<Kernel> cpu;
  CudaCall call_cuda;
  std::vector<Kernel> cuda;
  starpu_codelet codelet{};
  starpu_perfmodel model{};
  std::mutex mutex;                    // guards the list
  std::list<CodeletOnNodes> on_nodes;  // as StarPU knows the nodes of a codelet, not of a task; few

  /// Makes a codelet of StarPU's of this, for any tiles.
  void fill(starpu_codelet& its) const;
  /// @param nodes as CodeletOnNodes
  starpu_codelet& on(const std::vector<int>& nodes);
};

}  // namespace asterism::detail
