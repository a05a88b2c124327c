/// \file
/// What is behind a codelet. Private to runtime/.
#pragma once

#include <starpu.h>

#include <string>
#include <vector>

#include "../codelet.hpp"

namespace asterism::detail {

inline bool reads(Access access) { return access != Access::write && access != Access::scratch; }
inline bool writes(Access access) { return access != Access::read && access != Access::scratch; }

/// "axpy_f64 (slab 3)": of a task in messages
std::string full_name(const std::string& codelet, const std::string& label);

struct CodeletCore::State {
  std::string name;
  std::string symbol;  // names its performance model
  CpuCall call_cpu;
  std::vector<Kernel> cpu;
  CudaCall call_cuda;
  std::vector<Kernel> cuda;
  starpu_codelet codelet{};
  starpu_perfmodel model{};
};

}  // namespace asterism::detail
