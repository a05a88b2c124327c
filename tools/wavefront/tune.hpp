/// \file
/// `asterism tune wavefront`: the tiles of wavefront SOR that are the fastest on this machine.
#pragma once

#include <string>
#include <vector>

#include "../../codelets/wavefront/sweeps.hpp"
#include "../../runtime/runtime.hpp"
#include "../cli/options.hpp"
#include "../cli/report.hpp"

namespace asterism::tools {

struct TuneOptions {
  CommonOptions common;
  std::vector<Index> grid = {1023, 1023};
  Index sweeps = 1000;
  bool laplace = false, anew = false;
};

/// "1023 x 1023 unknowns, 1000 sweeps, f64"
std::string problem_text(const TuneOptions& options, Precision precision);

/// What the reports of both begin with. @param where "cpu" or "cuda"
Section start_of_report(const TuneOptions& options, Precision precision, const char* where);

/// Of the labels of these reports.
constexpr std::size_t tune_label_width = 12;

/// By the tile-size model. @param args the problem, all of its sweeps @return the exit status @throw Error
template <class T>
int tune_gpu(Runtime& runtime, const TuneOptions& options, wavefront::WavefrontArgs args);

/// By timing a few on a part of the problem.
template <class T>
int tune_cpu(Runtime& runtime, const TuneOptions& options, wavefront::WavefrontArgs args);

}  // namespace asterism::tools
