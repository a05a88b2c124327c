/// \file
/// The NumPy file that most tests of the reader begin with.
#pragma once

#include <string>

#include "../support/files.hpp"

namespace asterism::test {

inline const std::string two_by_three = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
inline const std::string six_numbers = bytes<double>({1, 2, 3, 4, 5, 6.5});

}  // namespace asterism::test
