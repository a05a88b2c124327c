/// \file
/// A sparse matrix in blocks of rows, each a few tiles with the worker that it was divided to.
#pragma once

#include <optional>
#include <vector>

#include "../csr.hpp"
#include "formats.hpp"
#include "vectors.hpp"

namespace asterism::sparse {

/// The rows of a block, out of those of a rank.
template <class T>
Csr<T> rows_of(const Csr<T>& mine, const Part& part);

/// For every block of this rank, in their order: the columns of its entries that are rows of other blocks; each once,
/// ascending.
template <class T>
std::vector<std::vector<Index>> foreign_columns(const Runtime& runtime, const Partition& blocks,
                                                const Csr<T>& mine);

/// The same for a format that reads a diagonal as a whole: all elements that a stencil or diagonals reach.
std::vector<std::vector<Index>> reached_columns(const Runtime& runtime, const Partition& blocks,
                                                const std::vector<Index>& diagonals);

template <class V>
class BlockMatrix {
 public:
  BlockMatrix() = default;
  /// @param mine this rank's rows @param format of all blocks; none: what suits each best
  /// With several ranks: collective. @throw Error: a matrix of this structure cannot be stored in the format
  template <class T>
  BlockMatrix(Runtime& runtime, const VectorLayout& layout, const DiagonalStructure& structure,
              const Csr<T>& mine, std::optional<Format> format);

  /// A block that is all of the matrix, in arrays that outlive it. @param partition that block alone, of one rank
  BlockMatrix(Runtime& runtime, const Partition& partition, const BlockArrays<V>& arrays);

  /// I, of which nothing is stored: for residuals where the product with A is there already.
  explicit BlockMatrix(const Partition& blocks);

  [[nodiscard]] const BlockShape& shape(Index block) const {
    return blocks_[static_cast<std::size_t>(block)].shape;
  }
  [[nodiscard]] BlockPorts<AsTiles, V> ports(Index block) const;
  /// Of all blocks, without vectors.
  [[nodiscard]] Index bytes() const { return bytes_; }

 private:
  /// Of the arrays of a block, on all ranks.
  struct Sizes {
    Sizes() = default;
    explicit Sizes(const BlockArrays<V>& arrays);
    BlockShape shape;
    Index values = 0, begins = 0, columns = 0, differences = 0, bytes = 0;
  };
  struct Block {
    BlockShape shape;
    BlockArrays<V> arrays;  // this rank's, of which the tiles are, unless others have them
    Tile<V> values;
    Tile<std::int32_t> begins, columns;
    Tile<std::int16_t> differences;
  };
  static Block lent_block(Runtime& runtime, int owner, const BlockArrays<V>& arrays, const Sizes& sizes);

  std::vector<Block> blocks_;
  Index bytes_ = 0;
};

}  // namespace asterism::sparse
