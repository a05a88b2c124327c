/// \file
/// A sum in words of 64 bits that say themselves whether they have come.
#pragma once

#include <cstdint>

namespace asterism::sparse {

/// The two halves of a sum, each with the number of the meeting. (NCCL's protocol LL does the same.)
struct alignas(16) ToldSum {
  std::uint32_t low, meeting_of_low, high, meeting_of_high;
};

}  // namespace asterism::sparse
