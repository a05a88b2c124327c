/// \file
/// Products of rows on a GPU: (B1).
///
/// What kernels multiply is given by an object, `x[j]`, as it need not be stored. All loads of a batch are under way
/// before the first is waited for.
#pragma once

#include <type_traits>

#include "matrix.hpp"
#include "unit_sums.cuh"

namespace asterism::sparse::cuda {

/// What nobody writes during the kernel.
template <class T>
struct Constant {
  using Element = T;
  static constexpr bool is_set = true;
  const T* data;
  [[nodiscard]] __device__ T operator[](Index j) const { return __ldg(data + j); }
  [[nodiscard]] __device__ Constant from(Index j) const { return {data + j}; }
};

/// What others write meanwhile, and what was never written: padding must not read it.
template <class T>
struct Changing {
  using Element = T;
  static constexpr bool is_set = false;
  const T* data;
  [[nodiscard]] __device__ T operator[](Index j) const { return data[j]; }
  [[nodiscard]] __device__ Changing from(Index j) const { return {data + j}; }
};

__device__ inline float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }

/// What another lane of the warp has.
template <class T>
requires std::is_arithmetic_v<T> __device__ T of_other_lane(T own, int distance) {
  return __shfl_xor_sync(whole_warp, own, distance);
}

// ---- A row by a thread -------------------------------------------------------------------------------------------

/// The entries first, first + stride, ... before `end`. @param x what columns are counted from
template <int batch, class V, class C, class X>
__device__ typename X::Element product_of_entries(const V* values, const C* columns, int first, int end,
                                                  int stride, const X& x) {
  using T = typename X::Element;
  T sum = 0;
  for (int k = first; k < end; k += batch * stride) {
    V v[batch] = {};
    C c[batch];
    T at[batch];
    const auto counts = [&](int b) { return k + b * stride < end && (X::is_set || v[b] != 0); };
#pragma unroll
    for (int b = 0; b < batch; ++b)
      if (k + b * stride < end) {
        v[b] = __ldcs(values + k + b * stride);
        c[b] = __ldcs(columns + k + b * stride);
      }
#pragma unroll
    for (int b = 0; b < batch; ++b)
      if (counts(b)) at[b] = x[c[b]];
#pragma unroll
    for (int b = 0; b < batch; ++b)
      if (counts(b)) sum = multiply_add(static_cast<T>(v[b]), at[b], sum);
  }
  return sum;
}

template <int batch = 4, class V, class X>
__device__ typename X::Element product_of_row(const CsrRows<V>& rows, Index i, const X& x) {
  return product_of_entries<batch>(rows.values, rows.columns, __ldg(rows.begins + i),
                                   __ldg(rows.begins + i + 1), 1, x);
}

template <int batch = 4, class V, class C, class X>
__device__ typename X::Element product_of_row(const SlicedRows<V, C>& rows, Index i, const X& x) {
  const Index slice = i / slice_rows;
  const int lane = static_cast<int>(i % slice_rows);
  const X from = sizeof(C) == 2 ? x.from(rows.own + i) : x;
  return product_of_entries<batch>(rows.values, rows.columns, __ldg(rows.begins + slice) + lane,
                                   __ldg(rows.begins + slice + 1), slice_rows, from);
}

template <int batch = 4, class V, class X>
__device__ typename X::Element product_of_row(const DiagonalRows<V>& rows, Index i, const X& x) {
  using T = typename X::Element;
  // What is left of the first column or right of the last is at least 2^31 there.
  const auto place = static_cast<std::uint32_t>(rows.own + i), cols = static_cast<std::uint32_t>(rows.cols);
  const V* values = rows.values + i;
  T sum = 0;
  for (int k = 0; k < rows.count; k += batch) {
    V v[batch];
    T at[batch];
    bool there[batch];
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      const std::uint32_t column =
          k + b < rows.count ? place + static_cast<std::uint32_t>(__ldg(rows.offsets + k + b)) : cols;
      there[b] = column < cols;
      if (there[b]) {
        v[b] = __ldcs(values);
        at[b] = x[column];
      }
      values += rows.rows;
    }
#pragma unroll
    for (int b = 0; b < batch; ++b)
      if (there[b]) sum = multiply_add(static_cast<T>(v[b]), at[b], sum);
  }
  return sum;
}

/// n / divisor for n < 2^31, without a division.
struct Division {
  std::uint32_t divisor = 1, factor = 1u << 31;
  int shift = 31;

  Division() = default;
  explicit Division(Index by) : divisor(static_cast<std::uint32_t>(by)) {
    while (Index{1} << (shift - 31) < by) ++shift;
    // n (factor divisor - 2^shift) < 2^shift: what is too much in the factor does not reach the next whole number.
    factor = static_cast<std::uint32_t>(((std::uint64_t{1} << shift) + divisor - 1) / divisor);
  }
  [[nodiscard]] __device__ std::uint32_t quotient(std::uint32_t n) const {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(n) * factor >> shift);
  }
};

/// StencilRows whose nodes 32 bits can count.
template <class T>
struct NodeRows {
  T c[7];
  Division line, plane;
  std::uint32_t ny, nz, first_plane, first_in_plane;
  Index own;

  static constexpr Index most = Index{1} << 31;
  static bool fits(const Stencil& s, Index rows) {
    return s.nx < most && s.ny < most && s.nz < most && s.nx * s.ny < most && s.first_in_plane + rows < most;
  }
  explicit NodeRows(const StencilRows<T>& rows)
      : line(rows.stencil.nx),
        plane(rows.stencil.nx * rows.stencil.ny),
        ny(static_cast<std::uint32_t>(rows.stencil.ny)),
        nz(static_cast<std::uint32_t>(rows.stencil.nz)),
        first_plane(static_cast<std::uint32_t>(rows.stencil.first_plane)),
        first_in_plane(static_cast<std::uint32_t>(rows.stencil.first_in_plane)),
        own(rows.own) {
    for (int k = 0; k < 7; ++k) c[k] = static_cast<T>(rows.stencil.coefficients[k]);
  }
};

template <int batch = 4, class V, class X>
__device__ typename X::Element product_of_row(const NodeRows<V>& rows, Index i, const X& vector) {
  using T = typename X::Element;
  std::uint32_t at = rows.first_in_plane + static_cast<std::uint32_t>(i), z = 0;
  if (rows.nz > 1) {
    z = rows.plane.quotient(at);
    at -= z * rows.plane.divisor;
    z += rows.first_plane;
  }
  const std::uint32_t y = rows.line.quotient(at);
  at -= y * rows.line.divisor;
  const X x = vector.from(rows.own + i);
  const Index nx = rows.line.divisor, plane = rows.plane.divisor;
  const bool there[7] = {z > 0, y > 0, at > 0, true, at + 1 < nx, y + 1 < rows.ny, z + 1 < rows.nz};
  const Index distances[7] = {-plane, -nx, -1, 0, 1, nx, plane};
  T neighbours[7];
#pragma unroll
  for (int k = 0; k < 7; ++k)
    if (there[k]) neighbours[k] = x[distances[k]];
  T sum = 0;
#pragma unroll
  for (int k = 0; k < 7; ++k)
    if (there[k]) sum = multiply_add(static_cast<T>(rows.c[k]), neighbours[k], sum);
  return sum;
}

/// Nodes that only 64 bits can count.
template <int batch = 4, class V, class X>
__device__ typename X::Element product_of_row(const StencilRows<V>& rows, Index i, const X& x) {
  return rows.product(i, x.data);
}

/// (B2), each t_j anew for every row that it is for: where no kernel has them at hand.
template <int batch = 4, class V, class X>
__device__ typename X::Element product_of_row(const SchurRows<V>& rows, Index i, const X& x) {
  using T = typename X::Element;
  T sum = static_cast<T>(__ldg(rows.c + i)) * x[i];
  for (int d = 0; d < rows.count; ++d) {
    T t = 0;
    for (int e = 0; e < rows.count; ++e)
      if (const Index k = i + __ldg(rows.offsets + d) - __ldg(rows.offsets + e); k >= 0 && k < rows.rows)
        t = multiply_add(static_cast<T>(__ldg(rows.g + e * rows.rows + k)), x[k], t);
    sum = multiply_add(-static_cast<T>(__ldg(rows.g + d * rows.rows + i)), t, sum);
  }
  return sum;
}

/// Calls body(rows) as with_rows does, with rows that are quick on a GPU.
template <class V, class Body>
void with_device_rows(const BlockShape& shape, const BlockPorts<AsPorts, V>& block, Body body) {
  with_rows<V>(shape, block, [&](const auto& rows) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(rows)>, StencilRows<V>>) {
      if (NodeRows<V>::fits(shape.stencil, shape.rows)) return body(NodeRows<V>(rows));
    }
    body(rows);
  });
}

// ---- The rows of a unit by a block of threads ----------------------------------------------------------------------

// Calls row.take(i, product, row.bring(i)) for all rows of a unit, i counted in it: each by one thread, which
// follows from the unit alone. `bring` is called before anything is waited for.

/// A thread takes row.at_once rows at a time, where one alone brings little.
template <class Rows, class X, class Row>
__device__ void take_products(const Rows& rows, const Unit& unit, const X& x, Row& row) {
  constexpr int at_once = Row::at_once;
  for (int i = static_cast<int>(threadIdx.x); i < unit.rows; i += at_once * unit_threads) {
    typename X::Element products[at_once];
    decltype(row.bring(i)) brought[at_once];
#pragma unroll
    for (int a = 0; a < at_once; ++a)
      if (i + a * unit_threads < unit.rows) {
        brought[a] = row.bring(i + a * unit_threads);
        products[a] = product_of_row(rows, unit.first + i + a * unit_threads, x);
      }
#pragma unroll
    for (int a = 0; a < at_once; ++a)
      if (i + a * unit_threads < unit.rows) row.take(i + a * unit_threads, products[a], brought[a]);
  }
}

/// A row's entries are a batch; where those of the next slice begin is known by then.
template <class V, class C, class X, class Row>
__device__ void take_products(const SlicedRows<V, C>& rows, const Unit& unit, const X& x, Row& row) {
  constexpr int batch = 5;  // longer ones cost registers, and rows of five entries as much as their loads
  constexpr int slices_at_once = unit_threads / static_cast<int>(slice_rows);
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::int32_t* const begins = rows.begins + (unit.first + threadIdx.x) / slice_rows;
  int begin = 0, end = 0;
  const auto look_ahead = [&](int i, int further) {
    if (i >= unit.rows) return;
    begin = __ldg(begins + further);
    end = __ldg(begins + further + 1);
  };
  int i = static_cast<int>(threadIdx.x), slice = 0;
  look_ahead(i, slice);
  while (i < unit.rows) {
    const auto brought = row.bring(i);
    const int first = begin + lane, last = end;
    slice += slices_at_once;
    look_ahead(i + unit_threads, slice);
    const X from = sizeof(C) == 2 ? x.from(rows.own + unit.first + i) : x;
    row.take(i, product_of_entries<batch>(rows.values, rows.columns, first, last, slice_rows, from), brought);
    i += unit_threads;
  }
}
template <int batch, class V, class X, class Row>
__device__ void take_diagonal_products(const DiagonalRows<V>& rows, const Unit& unit, const X& x, Row& row) {
  for (int i = static_cast<int>(threadIdx.x); i < unit.rows; i += unit_threads) {
    const auto brought = row.bring(i);
    row.take(i, product_of_row<batch>(rows, unit.first + i, x), brought);
  }
}
template <class V, class X, class Row>
__device__ void take_products(const DiagonalRows<V>& rows, const Unit& unit, const X& x, Row& row) {
  take_diagonal_products<5>(rows, unit, x, row);
}
/// More than five of them, in batches that seven and eleven nearly fill; in a kernel of their own, as registers for both
/// are more than there are.
template <class V>
struct ManyDiagonalRows {
  DiagonalRows<V> rows;
};
template <class V, class X, class Row>
__device__ void take_products(const ManyDiagonalRows<V>& many, const Unit& unit, const X& x, Row& row) {
  take_diagonal_products<6>(many.rows, unit, x, row);
}

/// @tparam lanes that a row has; its product is the sum of theirs
template <int lanes, class V, class X, class Row>
__device__ void take_shared_products(const CsrRows<V>& rows, const Unit& unit, const X& x, Row& row) {
  constexpr int groups = unit_threads / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes, group = static_cast<int>(threadIdx.x) / lanes;
  const std::int32_t* const begins = rows.begins + unit.first;
  for (int base = 0; base < unit.rows; base += groups) {
    const int i = base + group;
    typename X::Element product = 0;
    decltype(row.bring(i)) brought{};
    if (i < unit.rows) {
      if (lane == 0) brought = row.bring(i);
      product = product_of_entries<4>(rows.values, rows.columns, __ldg(begins + i) + lane,
                                      __ldg(begins + i + 1), lanes, x);
    }
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) product += of_other_lane(product, distance);
    if (lane == 0 && i < unit.rows) row.take(i, product, brought);
  }
}

/// How many lanes a row has follows from how long the unit's rows are.
template <class V, class X, class Row>
__device__ void take_products(const CsrRows<V>& rows, const Unit& unit, const X& x, Row& row) {
  const int entries = rows.begins[unit.first + unit.rows] - rows.begins[unit.first];
  const int mean = entries / unit.rows;
  if (mean <= 10)
    take_shared_products<4>(rows, unit, x, row);
  else if (mean <= 40)
    take_shared_products<8>(rows, unit, x, row);
  else
    take_shared_products<warp_lanes>(rows, unit, x, row);
}

}  // namespace asterism::sparse::cuda
