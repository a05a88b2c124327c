/// \file
/// Whether StarPU can read what it has written of a machine and its tasks. It asserts that: what is cut short, or
/// something else altogether, would abort the process. Private to runtime/.
#pragma once

#include <string_view>

namespace asterism::model_check {

/// What a machine has at least.
struct Counts {
  long numa_nodes = 1;
  long nodes = 1;  ///< memories of all kinds
};

// Each throws std::invalid_argument, which says what is wrong and in which line.
Counts config(std::string_view text);
void affinity(std::string_view text, const Counts& counts);
void latency(std::string_view text, const Counts& counts);    ///< microseconds between memories
void bandwidth(std::string_view text, const Counts& counts);  ///< MB/s between memories
/// The performance model of a codelet. @param version of the format: the name of the folder that it is in
void codelet(std::string_view text, std::string_view version);

}  // namespace asterism::model_check
