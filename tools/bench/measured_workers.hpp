/// \file
/// On which workers sweeps are measured, and how a grid is cut for them.
#pragma once

#include <string>

#include "../../runtime/codelet.hpp"
#include "figures.hpp"

namespace asterism::tools {

/// The workers that are measured, and what their memory does at best: the first GPU, or where there is none
/// all cores.
struct Measured {
  Where where;
  Index count;
  double ceiling;  ///< bytes per second
  const char* ceiling_name;
};

/// Adds the ceilings to the figures, too. @throw Error where there are several ranks
Measured measure_ceiling(Runtime& runtime, Figures& figures);

/// Stripes of an n x n grid for tasks of so many sweeps: one for each core; on a GPU few where tasks are neither long
/// nor short, or else one.
Index stripes_for(const Measured& workers, Index n, Index sweeps);

/// What tables say of that.
std::string note_on_stripes(const Measured& workers);

/// How many sweeps a task makes one by one, each in a kernel of its own.
Index sweeps_one_by_one(const Measured& workers, Index n);

}  // namespace asterism::tools
