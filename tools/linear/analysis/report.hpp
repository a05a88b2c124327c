/// \file
/// What `asterism linear --analyse` tells.
#pragma once

#include "../../cli/report.hpp"
#include "analysis.hpp"

namespace asterism::tools {

/// Analyses the matrix, and prints what there is to say of it. @throw Error: bad input
void analyse(Runtime& runtime, const LinearOptions& options, const StatedLinear& stated);

/// All that is said of a matrix. @param number of rows, in messages
Section section_of(const MatrixAnalysis& analysis, const std::string& name, const Numbering& number,
                   const Recommendation& recommendation);

}  // namespace asterism::tools
