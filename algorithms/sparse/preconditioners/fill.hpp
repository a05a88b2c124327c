/// \file
/// Which entries an incomplete factorisation has: ILU(p) by levels of fill [Weiss 2011].
#pragma once

#include <span>

#include "../graph/numbering.hpp"
#include "../graph/pattern.hpp"

namespace asterism::sparse {

/// The pattern of L + U for ILU(p) of a matrix in the order of its elimination: its entries with lev <= p, where
///
///     lev(i, j) = 0 for entries of A and the diagonal, else min over k < i, j of lev(i, k) + lev(k, j) + 1    (I1)
///
/// An entry of level l stands for a path of l + 1 steps in the graph of A, so that all of them are entries of
/// |A|^(p + 1). The diagonal is always there. p = 0 gives A's own pattern.
///
/// @param segments the rows' numbering by colours. Entries of two rows of a segment, except the diagonal, are dropped,
///   and are no part of (I1): the rows of a segment then depend on none of each other, whatever the colours' q. There
///   are none where q > p. Empty: nothing is dropped. Otherwise they have all rows, one after the other.
/// @param threads at most so many, that share the rows of a segment; 0: as many as there are cores
/// @throw Error p < 0; segments that are not those of this matrix; a matrix that is not square, or not whole
Pattern fill_pattern(PatternView matrix, int p, std::span<const Numbering::Segment> segments = {},
                     int threads = 0);

}  // namespace asterism::sparse
