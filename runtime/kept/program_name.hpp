/// \file
/// What this program's measurements are kept under. Private to runtime/.
#pragma once

#include <string>

namespace asterism {

/// The name of this program's file, and a number by which another file of that name differs: "solve-0123abcd".
const std::string& program_name();

}  // namespace asterism
