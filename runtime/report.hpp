/// \file
/// What a solver tells about its run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ports.hpp"

namespace asterism {

/// Why a solver stopped. Breakdown is a result, not an exception.
enum class Reason {
  solved,           ///< a direct method ran to its end, or the tolerance was reached
  iteration_limit,  ///< the tolerance was not reached in the iterations allowed
  stagnation,       ///< the residual no longer falls
  divergence,       ///< the residual grows
  indefinite,       ///< a matrix that has to be positive definite is not
  zero_pivot,       ///< an elimination met a zero pivot
  breakdown,        ///< there is nothing to divide by: the method cannot go on with this matrix
  not_finite,       ///< NaN or infinity appeared
  inaccurate,       ///< the residual is more than rounding can explain
};

/// "solved", "iteration limit", ...
std::string to_string(Reason reason);

/// Bytes that crossed links.
struct Traffic {
  std::int64_t to_device = 0, from_device = 0;  ///< main memory to GPUs and back
  std::int64_t to_disk = 0, from_disk = 0;
  /// Received by this rank from others: each tile once for all tasks that read it, until its owner writes it again.
  /// Bytes of elements, without the messages' envelopes; 0 with one rank. The sum over ranks is what the network
  /// carried.
  std::int64_t between_ranks = 0;

  Traffic operator-(const Traffic& earlier) const;
};

struct Report {
  Reason reason = Reason::solved;
  Index iterations = 0;
  /// One per check, of very many an evenly spaced part with the first and the last; a direct solver has at most one.
  std::vector<double> residual_history;
  std::vector<Index> residual_iterations;  ///< that were made before each of them; a direct solver has none
  std::map<std::string, double> seconds;   ///< wall time of each part by name ("solve", ...)
  Traffic traffic;
};

}  // namespace asterism
