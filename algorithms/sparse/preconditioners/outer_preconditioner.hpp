/// \file
/// Preconditioners that others than this family make, for a matrix that it has in blocks.
#pragma once

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
  /// Submits tasks for z = M^-1 r, and waits for none. @param r blocks' own elements
  /// @param z vectors with what blocks have entries in, of which own ones are to be written: from
  /// LinearSystem::layout().own(block) on
  virtual void apply(const VectorOf& r, const VectorOf& z) = 0;
};

}  // namespace asterism::sparse
