/// \file
/// Values for a tile, from the host: set(runtime, tile, value).
#pragma once

#include "../../runtime/contents.hpp"
