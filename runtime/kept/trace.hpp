/// \file
/// Traces: StarPU's raw trace turned into files that people look at. Private to runtime/.
#pragma once

#include <filesystem>
#include <string>

#include "../runtime.hpp"

namespace asterism::trace {

/// How StarPU's raw trace files in the trace folder begin; the rank follows.
constexpr const char* raw_prefix = "raw";

/// Makes the folder and tries to write in it, as StarPU ends the process where it cannot. Permission is not all that it
/// takes: there are /proc and full disks. @throw Error
void require_room(const std::filesystem::path& folder);

/// The text of summary.txt, made while StarPU still runs; empty where no trace is wanted.
struct Summary {
  std::string text;
  int rank = 0, ranks = 1;
};
Summary summarise(const Runtime::State& runtime);

/// After StarPU's end, on rank 0: paje.trace (for ViTE), dag.dot, trace.svg where ViTE is installed, summary.txt.
/// Does nothing when `folder` is empty. @throw Error when StarPU's converter fails, or when the disk is full.
void write(const std::filesystem::path& folder, const Summary& summary);

}  // namespace asterism::trace
