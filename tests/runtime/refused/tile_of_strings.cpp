// Does not compile: test tile_of_strings looks at what the compiler says.

#include <string>

#include "runtime/tile.hpp"

const asterism::Tile<std::string> names;
