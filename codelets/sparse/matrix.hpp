/// \file
/// Sparse matrices as tasks see them: a block of consecutive rows in one of five formats, and their product with a
/// vector:
///
///     (B1)  y_i = sum_j a_ij x_j, j ascending
///
/// Of a Schur complement that is not formed, S = C - G G^T with C diagonal:
///
///     (B2)  t_j = sum_k g_kj x_k, k descending;  y_i = c_i x_i - sum_j g_ij t_j, j ascending
///
/// A block multiplies a vector of its own: in ascending order of their numbers in the whole matrix, the elements whose
/// columns the block has entries in, among them, next to each other, those of its own rows. Columns are numbered in
/// that vector. What order rows are in does not matter here; with the order of addition fixed by (B1) a row's product
/// has the same bits in every division into blocks.
#pragma once

#include <cstdint>

#include "../../runtime/codelet.hpp"

namespace asterism::sparse {

/// How the entries of a block are stored.
enum class Format {
  csr,         ///< rows one after the other: value and column of each entry
  sliced_ell,  ///< slices of 32 rows, padded to the longest: what the threads of a warp read lies next to each other
  diagonals,  ///< whole diagonals: values without columns
  stencil,    ///< a few numbers: the rows of a grid with constant coefficients
  schur,      ///< C and whole diagonals of G: a Schur complement, of one block that is all of the matrix
};

/// Rows of a slice of Format::sliced_ell.
inline constexpr Index slice_rows = 32;

/// Most diagonals of Format::diagonals.
inline constexpr int most_diagonals = 32;

/// Most diagonals of G in Format::schur.
inline constexpr int most_schur_diagonals = 5;

/// A constant stencil on a grid of nx x ny x nz nodes, x fastest, numbered line by line: in two dimensions nz = 1, in
/// one also ny = 1. Neighbours outside of the grid are left out.
struct Stencil {
  double coefficients[7];  ///< of the nodes at z - 1, y - 1, x - 1, the node itself, x + 1, y + 1, z + 1
  std::int64_t nx = 0, ny = 0, nz = 0;
  std::int64_t first_plane = 0;     ///< z of the block's first row
  std::int64_t first_in_plane = 0;  ///< that row's number in its plane
};

/// What of a block is known when a task is submitted.
struct BlockShape {
  Format format = Format::csr;
  Index rows = 0;
  Index cols = 0;  ///< elements of the vector that it multiplies
  Index own = 0;   ///< of these, the first of its own rows
  Stencil stencil = {};
  Index reach = 0;  ///< columns of a row are at most so far from its own; 0: not known
};

/// The tiles of a block. Each has one row.
///
/// | Format       | values            | begins           | columns       | differences              |
/// |--------------|-------------------|------------------|---------------|--------------------------|
/// | `csr`        | of the entries    | rows + 1 numbers | of the entries| none                     |
/// | `sliced_ell` | slice by slice    | slices + 1       | as the values, or none | columns - (own + row), where they fit in 16 bits |
/// | `diagonals`  | diagonal by diagonal, a value for each row | none | column - (own + row) of each diagonal, ascending | none |
/// | `stencil`    | none              | none             | none          | none                     |
/// | `schur`      | C, then G diagonal by diagonal, a value for each row | none | column of G - row of each diagonal, ascending | none |
///
/// Values of slices lie entry by entry: the k-th entries of all 32 rows, then the next ones. Padding has the value 0
/// and the column own + row. Diagonals have the value 0 where they leave the vector.
template <template <class> class As, class T>
struct BlockPorts {
  As<Optional<In<T>>> values;
  As<Optional<In<std::int32_t>>> begins;
  As<Optional<In<std::int32_t>>> columns;
  As<Optional<In<std::int16_t>>> differences;
};

/// Rows one after the other.
template <class V>
struct CsrRows {
  const std::int32_t* begins;
  const std::int32_t* columns;
  const V* values;

  /// (B1) for row i. @param x the whole vector
  template <class T>
  ASTERISM_HOST_DEVICE T product(Index i, const T* x) const {
    T sum = 0;
    for (std::int32_t k = begins[i]; k < begins[i + 1]; ++k) sum += static_cast<T>(values[k]) * x[columns[k]];
    return sum;
  }
};

/// Slices of 32 rows. @tparam C std::int32_t: columns; std::int16_t: what they are beyond own + row
template <class V, class C>
struct SlicedRows {
  const std::int32_t* begins;
  const C* columns;
  const V* values;
  Index own;

  template <class T>
  ASTERISM_HOST_DEVICE T product(Index i, const T* x) const {
    const Index slice = i / slice_rows, lane = i % slice_rows;
    const T* const from = sizeof(C) == 2 ? x + own + i : x;
    T sum = 0;
    for (Index k = begins[slice] + lane; k < begins[slice + 1]; k += slice_rows)
      sum += static_cast<T>(values[k]) * from[columns[k]];
    return sum;
  }
};

/// Whole diagonals.
template <class V>
struct DiagonalRows {
  const V* values;
  Index rows, cols, own;
  int count;
  const std::int32_t* offsets;

  template <class T>
  ASTERISM_HOST_DEVICE T product(Index i, const T* x) const {
    T sum = 0;
    for (int k = 0; k < count; ++k) {
      const Index column = own + i + offsets[k];
      if (column >= 0 && column < cols) sum += static_cast<T>(values[k * rows + i]) * x[column];
    }
    return sum;
  }
};

/// The nodes of a grid.
template <class V>
struct StencilRows {
  Stencil stencil;
  Index own;

  template <class T>
  ASTERISM_HOST_DEVICE T product(Index i, const T* x) const {
    const std::int64_t plane = stencil.nx * stencil.ny, place = stencil.first_in_plane + i;
    const std::int64_t z = stencil.first_plane + place / plane, y = place % plane / stencil.nx,
                       at = place % stencil.nx;
    const auto coefficient = [&](int k) { return static_cast<T>(static_cast<V>(stencil.coefficients[k])); };
    x += own + i;
    T sum = 0;
    if (z > 0) sum += coefficient(0) * x[-plane];
    if (y > 0) sum += coefficient(1) * x[-stencil.nx];
    if (at > 0) sum += coefficient(2) * x[-1];
    sum += coefficient(3) * x[0];
    if (at + 1 < stencil.nx) sum += coefficient(4) * x[1];
    if (y + 1 < stencil.ny) sum += coefficient(5) * x[stencil.nx];
    if (z + 1 < stencil.nz) sum += coefficient(6) * x[plane];
    return sum;
  }
};

/// (B2)
template <class V>
struct SchurRows {
  const V* c;
  const V* g;  ///< 0 where a diagonal leaves G
  Index rows;
  int count;  ///< of diagonals
  const std::int32_t* offsets;

  template <class T>
  ASTERISM_HOST_DEVICE T product(Index i, const T* x) const {
    T sum = static_cast<T>(c[i]) * x[i];
    for (int d = 0; d < count; ++d) {
      T t = 0;
      for (int e = 0; e < count; ++e)
        if (const Index k = i + offsets[d] - offsets[e]; k >= 0 && k < rows)
          t += static_cast<T>(g[e * rows + k]) * x[k];
      sum -= static_cast<T>(g[d * rows + i]) * t;
    }
    return sum;
  }
};

/// Calls body(rows) with the rows of a block in its format.
template <class V, class Body>
void with_rows(const BlockShape& shape, const BlockPorts<AsPorts, V>& block, Body body) {
  switch (shape.format) {
    case Format::csr:
      return body(CsrRows<V>{block.begins.data, block.columns.data, block.values.data});
    case Format::sliced_ell:
      if (block.differences)
        return body(SlicedRows<V, std::int16_t>{block.begins.data, block.differences.data, block.values.data,
                                                shape.own});
      return body(
          SlicedRows<V, std::int32_t>{block.begins.data, block.columns.data, block.values.data, shape.own});
    case Format::diagonals:
      return body(DiagonalRows<V>{block.values.data, shape.rows, shape.cols, shape.own,
                                  static_cast<int>(block.columns.cols), block.columns.data});
    case Format::stencil:
      return body(StencilRows<V>{shape.stencil, shape.own});
    case Format::schur:
      return body(SchurRows<V>{block.values.data, block.values.data + shape.rows, shape.rows,
                               static_cast<int>(block.columns.cols), block.columns.data});
  }
}

}  // namespace asterism::sparse
