/// \file
/// How a matrix is stored: which format, by its structure, and its rows in that format.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "../../../codelets/sparse/matrix.hpp"
#include "../../../runtime/runtime.hpp"
#include "../../common/uncleared.hpp"
#include "../csr.hpp"

namespace asterism::sparse {

/// What all rows of a matrix have in common.
struct DiagonalStructure {
  /// Columns minus rows of all entries, ascending; empty where there are more than most_diagonals.
  std::vector<Index> diagonals = {};
  Index entries = 0;                    ///< of all rows
  Index padded_entries = 0;             ///< in slices
  std::optional<Stencil> stencil = {};  ///< without the block's place
};

/// Finds out what the rows of all ranks have in common. With several ranks: collective; the same on every rank.
/// A stencil has the offsets -nx ny, -nx, -1, 0, 1, nx, nx ny, or those in one or two dimensions, each with one value
/// wherever it lies in the grid, and no entry elsewhere.
template <class T>
DiagonalStructure diagonal_structure(const Runtime& runtime, const Csr<T>& mine);

/// Whether whole diagonals take fewer bytes than entries with their columns. @param n rows
bool fills_diagonals(const DiagonalStructure& structure, Index n);

/// The format that takes the fewest bytes: a stencil; diagonals, where at most a fifth of them is padding; on GPUs
/// sliced ELL, unless its padding takes more than a third; else compressed rows. The same for all blocks of a kind of
/// worker, as GPUs add up rows in an order that the format decides. @param n rows
Format choose_format(const DiagonalStructure& structure, Index n, bool on_gpu);

/// A block's arrays, as BlockPorts has them; those that its format does not have are empty.
template <class T>
struct BlockArrays {
  BlockShape shape;
  Uncleared<T> values;
  Uncleared<std::int32_t> begins, columns;
  Uncleared<std::int16_t> differences;

  /// Bytes of all of them.
  [[nodiscard]] Index bytes() const {
    const auto bytes_of = [](const auto& array) {
      return array.size() * static_cast<Index>(sizeof(array[0]));
    };
    return bytes_of(values) + bytes_of(begins) + bytes_of(columns) + bytes_of(differences);
  }
};

/// Whether a format has the columns of entries.
constexpr bool has_columns(Format format) { return format == Format::csr || format == Format::sliced_ell; }

/// @param places of each entry's column in the block's vector, where the format has columns; own where the block's own
/// elements begin
template <class V, class T>
BlockArrays<V> arranged(const DiagonalStructure& structure, Format format, const RowsView<T>& block,
                        Index own, Index cols, std::span<const std::int32_t> places);

}  // namespace asterism::sparse
