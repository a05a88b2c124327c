/// \file
/// The matrix of a linear system in blocks, and vectors that go with it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "blocks/block_matrix.hpp"
#include "blocks/vectors.hpp"
#include "preconditioners/preconditioner.hpp"

namespace asterism::sparse {

template <class T>
class LinearSystem {
 public:
  LinearSystem() = default;
  /// @param prepared the matrix in the order that its preconditioner wants @param format of all blocks; none: chosen
  /// With several ranks: collective. @throw Error: a format that the matrix has not
  LinearSystem(Runtime& runtime, const Partition& blocks, const PreparedPreconditioner<T>& prepared,
               std::optional<Format> format);

  /// @param block that is all of the matrix, on one rank; outlives the system @param entries that it has
  LinearSystem(Runtime& runtime, const Partition& blocks, const BlockArrays<T>& block, Index entries);

  /// Without a matrix: matrix() is I, and nothing is exchanged. With several ranks: collective.
  LinearSystem(Runtime& runtime, const Partition& blocks);
  /// Other values in the same places. With several ranks: collective. @throw Error: a format that they have not
  void refresh(const PreparedPreconditioner<T>& prepared);

  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  [[nodiscard]] Index rows() const { return blocks_->extent(); }
  [[nodiscard]] Index unit() const { return unit_; }
  [[nodiscard]] Index count() const { return blocks_->count(); }
  [[nodiscard]] const Partition& blocks() const { return *blocks_; }
  [[nodiscard]] const VectorLayout& layout() const { return layout_; }
  [[nodiscard]] const DiagonalStructure& structure() const { return structure_; }
  /// As it was asked for.
  [[nodiscard]] std::optional<Format> format() const { return format_; }
  [[nodiscard]] const BlockMatrix<T>& matrix() const { return matrix_; }
  /// Of vectors that the matrix is multiplied with; each that is sent while another is under way needs its own.
  [[nodiscard]] const Exchange<T>& exchange() const { return exchange_; }
  [[nodiscard]] Exchange<T> another_exchange() const { return Exchange<T>(*runtime_, layout_, wanted_); }

  /// Tiles of a block, with zeros: its own elements of a vector, or of several one behind the other; a vector with what
  /// it has entries in; sums over units.
  [[nodiscard]] Tile<T> own_vector(Index block) const;
  [[nodiscard]] Tile<T> own_vectors(Index block, Index count) const;
  [[nodiscard]] Tile<T> whole_vector(Index block) const;
  [[nodiscard]] Tile<double> sums(Index block, Index lists = 1) const;

  /// A block's own elements of a vector.
  using VectorOf = std::function<const Tile<T>&(Index block)>;
  /// Between this rank's rows in main memory, in their natural order, and tiles. @param scale of what is in main memory
  void load(const T* mine, double scale, const VectorOf& tiles) const;
  void store(const VectorOf& tiles, double scale, T* mine) const;

 private:
  /// Where an element of this rank is in its block, both counted from the first.
  [[nodiscard]] Index place(Index element) const {
    return new_of_old_.empty() ? element : new_of_old_[element];
  }
  template <class X>
  [[nodiscard]] Tile<X> zeros(Index block, Index size) const;
  /// Calls body(tile, first element) for this rank's blocks, elements counted from this rank's first.
  void for_each_mine(const VectorOf& tiles, const std::function<void(const Tile<T>&, Index)>& body) const;

  Runtime* runtime_ = nullptr;
  const Partition* blocks_ = nullptr;
  Index first_mine_ = 0, unit_ = 0;
  std::vector<Index> new_of_old_;  // of this rank's rows, from 0; empty: as they are
  DiagonalStructure structure_;
  std::optional<Format> format_;
  std::vector<std::vector<Index>> wanted_;
  VectorLayout layout_;
  BlockMatrix<T> matrix_;
  Exchange<T> exchange_;
};

}  // namespace asterism::sparse
