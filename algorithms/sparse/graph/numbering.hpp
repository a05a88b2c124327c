/// \file
/// New numbers for the rows of a matrix, by their colours.
#pragma once

#include <vector>

#include "colouring.hpp"

namespace asterism::sparse {

/// Rows in a new order, in which those of a colour lie together, at least those of a colour and a unit.
struct Numbering {
  /// Rows [first, end) of the new order, of one unit and one colour.
  struct Segment {
    Index first = 0, end = 0;
    int colour = 0;
    bool operator==(const Segment&) const = default;
  };

  std::vector<Index> new_of_old, old_of_new;
  std::vector<Segment> segments;                 ///< in their order, none of them empty
  std::vector<std::vector<Segment>> of_colours;  ///< the same by their colours

  [[nodiscard]] Index rows() const { return static_cast<Index>(new_of_old.size()); }
};

/// Sorts rows by unit, then by colour, then by their number. A unit is so many consecutive rows of the old order: what
/// belongs to one rank or tile, and stays with it. With all rows in one unit they are sorted by colour alone.
/// @throw Error unit < 1
Numbering number_by_colour(const Colouring& colours, Index unit);

/// From one order of the rows to another: new_of_old takes a row's number in `from` to that in `to`, whose segments it
/// has. Fill and factorisations follow the colours, so that they are found in the order of one unit, and then brought
/// into that of several. @throw Error: they have not equally many rows
Numbering renumbering(const Numbering& from, const Numbering& to);

/// P A P^T: row i is old row old_of_new[i], and so are columns; entries ascend by their new columns.
/// @throw Error: a matrix that is not square, not whole, or of another size
template <class T>
Csr<T> permuted(const Csr<T>& matrix, const Numbering& numbering, int threads = 0);

/// The same for the rows of a rank, which the numbering leaves among themselves; all others' numbers are known.
template <class T>
Csr<T> permuted_rows(const Csr<T>& mine, const Numbering& numbering, int threads = 0);

/// Its pattern alone. @throw Error as above
Pattern permuted(PatternView pattern, const Numbering& numbering, int threads = 0);

extern template Csr<float> permuted(const Csr<float>&, const Numbering&, int);
extern template Csr<double> permuted(const Csr<double>&, const Numbering&, int);
extern template Csr<float> permuted_rows(const Csr<float>&, const Numbering&, int);
extern template Csr<double> permuted_rows(const Csr<double>&, const Numbering&, int);

}  // namespace asterism::sparse
