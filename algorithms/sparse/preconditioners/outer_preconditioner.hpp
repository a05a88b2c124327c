/// \file
/// Preconditioners that others than this family make, for a matrix that it has in blocks.
#pragma once

#include <vector>

#include "../linear_system.hpp"

namespace asterism::sparse {

template <class T>
class OuterPreconditioner {
 public:
  using VectorOf = typename LinearSystem<T>::VectorOf;

  virtual ~OuterPreconditioner() = default;
  /// Called once, before any other. @param system rows keep their natural order in it; has to live as long. With several
  /// ranks: collective.
  virtual void attach(const LinearSystem<T>& system) = 0;
  /// How many vectors it can be applied to together, of so many that are wanted: as far as there is memory. The same on
  /// all ranks.
  [[nodiscard]] virtual Index most_together(Index wanted) const = 0;
  /// Called after attach() and before apply() has more vectors than ever before; at first there is room for one. With
  /// several ranks: collective.
  virtual void make_room(Index vectors) = 0;
  /// Submits tasks for z = M^-1 r of one vector or several, and waits for none. What becomes of a vector does not
  /// depend, to the last bit, on others that it is applied to together with. @param r blocks' own elements
  /// @param z vectors with what blocks have entries in, of which own ones are to be written: from
  /// LinearSystem::layout().own(block) on
  virtual void apply(const std::vector<VectorOf>& r, const std::vector<VectorOf>& z) = 0;
  /// Called when tasks of an application have been waited for. Ends what its set-up has left to tasks, if anything.
  /// With several ranks: collective. @throw Error: what was wrong with it
  virtual void settle() {}
};

}  // namespace asterism::sparse
