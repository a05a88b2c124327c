/// \file
/// Multi-colouring of the rows of a matrix, so that those of a colour can be worked on at once [Weiss 2011].
#pragma once

#include <optional>
#include <vector>

#include "pattern.hpp"

namespace asterism::sparse {

/// A colour for each row; rows of a colour have no entry of |A|^q in common.
struct Colouring {
  int count = 0;       ///< colours are 0 ... count - 1, each has a row
  Array<int> of_rows;  ///< the colour of each row
};

/// Colours the rows of A for |A|^q: rows that are up to q steps from each other in the graph of A + A^T get different
/// colours. Two for q = 1 wherever two are enough; else each row, in their order, gets the least that no row before it
/// has within q steps. |A|^q is not formed: a row's neighbourhood is searched for when its turn comes.
///
/// @param threads at most so many; 0: as many as there are cores. The colours are the same for any number.
/// @throw Error q < 1; a matrix that is not square, or not whole
Colouring colour(PatternView pattern, int q, int threads = 0);

/// For q = 1, where two are enough; a matrix without entries beside its diagonal has one. @throw Error: as colour()
std::optional<Colouring> two_colours(PatternView pattern, int threads = 0);

}  // namespace asterism::sparse
