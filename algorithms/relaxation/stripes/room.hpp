/// \file
/// The memory that stripes take.
#pragma once

#include <cstddef>

#include "../../../codelets/relaxation/sweeps.hpp"
#include "division.hpp"

namespace asterism::relaxation {

/// How many rows a stripe may have on a worker: as many as its memory has room for while a task works on it,
/// and as StarPU can count; 0 where there is not room for one.
/// @param stripe all but its rows
Index most_rows(const Candidate& worker, const Stripe& stripe, std::size_t element_bytes);

/// Gives those workers more stripes whose present ones are too high for them. @param stripe all but its rows
/// @param possible no more stripes than these in all
/// @return whether there was any, and more stripes were possible
bool split_too_high(Division& division, const std::vector<Part>& stripes, const Stripe& stripe,
                    std::size_t element_bytes, Index possible);

/// Checks that the workers have room for their stripes: for each of them, and for all those of a rank
/// together.
/// @param stripe all but its rows @param possible that there cannot be more stripes than these is told
/// @throw Error
void require_room(const Division& division, const std::vector<Part>& stripes, const Stripe& stripe,
                  std::size_t element_bytes, Index possible);

}  // namespace asterism::relaxation
