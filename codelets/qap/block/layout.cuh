/// \file
/// Where the arrays of a walk lie in the memory of its block, for `.cu` files only.
#pragma once

#include <string>

#include "../../../runtime/cuda.hpp"
#include "units.cuh"

namespace asterism::qap::cuda {

/// Where the two tables of a walk are; all else that every iteration uses is in shared memory anyway.
enum class Tables { shared, global };

/// What a swap changes at a location k, for a row of the tables: x_k and y_k of each term, and the sum of their
/// products.
template <class E, int terms>
struct alignas(terms == 1 && sizeof(E) == 2 ? 8 : 16) RowFactors {
  Unsigned<E> x[terms], y[terms], z;
};

/// Where things begin: bytes from the end of the tables, where those are in shared memory.
template <class E, int terms>
struct Layout {
  int n, units;     ///< that a row has something in
  int ld;           ///< units from a row to the next: an odd number, as columns are read, too
  Index table;      ///< bytes of one
  Tables tables;    ///< in shared memory where they fit
  Index bytes = 0;  ///< of shared memory
  int rows, x, y, h, z, diagonal, p, inverse, forbidden, hidden;

  /// @param capacity of the tabu list @throw Error: it does not fit; from CUDA
  Layout(Index locations, Index capacity)
      : n(static_cast<int>(locations)),
        units((n + Unit<E>::elements - 1) / Unit<E>::elements),
        ld(units | 1),
        table(locations * ld * static_cast<Index>(sizeof(Unit<E>))) {
    const Index row = units * static_cast<Index>(sizeof(Unit<E>)),
                numbers = locations * static_cast<Index>(sizeof(std::int32_t)),
                most_forbidden = 2 * capacity;  // an entry may be about two assignments
    rows = take(locations * static_cast<Index>(sizeof(RowFactors<E, terms>)));
    x = take(terms * row);
    y = take(terms * row);
    h = take(terms * row);
    z = take(row);
    diagonal = take(row);
    p = take(2 * numbers);
    inverse = take(numbers);
    forbidden = take(most_forbidden * static_cast<Index>(sizeof(std::int32_t)));
    hidden = take(most_forbidden * static_cast<Index>(sizeof(E)));
    const Index most = most_shared();
    if (bytes > most)
      throw Error("qap: " + std::to_string(n) + " locations with a tabu list of " + std::to_string(capacity) +
                      " moves need " + std::to_string(bytes) + " bytes of a GPU's shared memory, which has " +
                      std::to_string(most) + ": take shorter tenures, or let cores walk",
                  Blame::task);
    tables = bytes + 2 * table <= most ? Tables::shared : Tables::global;
    if (tables == Tables::shared) bytes += 2 * table;
  }

 private:
  int take(Index size) {
    const Index begin = bytes;
    bytes += (size + 15) / 16 * 16;
    return static_cast<int>(begin);
  }

  static Index most_shared() {
    constexpr Index of_kernels = 2048;  // what they have beside the arrays
    int device = 0, most = 0;
    asterism::cuda::check(cudaGetDevice(&device), "qap");
    asterism::cuda::check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                          "qap");
    return most - of_kernels;
  }
};

/// The arrays themselves.
template <class E, int terms>
struct Arrays {
  using U = Unsigned<E>;
  Unit<E>*w, *delta;           ///< see cpu::MoveTable; delta for r > s, too, and no_delta() where r is s
  RowFactors<E, terms>* rows;  ///< of the last swap, as the next four
  U *x, *y, *h;                ///< a row of units for each term: see (M2), (M3)
  U* z;                        ///< x_k y_k, the sum over the terms
  U* diagonal;                 ///< w[r][p(r)]
  std::int32_t *p, *inverse;   ///< n as it is and n as it becomes, in turns
  std::int32_t* forbidden;     ///< moves r, s that the list's entries forbid: r << 15 | s, or -1
  U* hidden;                   ///< the changes by these

  /// @param tables_of_walk where they lie, if that is not shared memory
  template <Tables tables>
  static __device__ Arrays of(const Layout<E, terms>& layout, unsigned char* shared,
                              unsigned char* tables_of_walk) {
    Arrays a;
    unsigned char* rest = shared;
    if constexpr (tables == Tables::shared) {
      a.w = reinterpret_cast<Unit<E>*>(shared);
      a.delta = reinterpret_cast<Unit<E>*>(shared + layout.table);
      rest += 2 * layout.table;
    } else {
      a.w = reinterpret_cast<Unit<E>*>(tables_of_walk);
      a.delta = reinterpret_cast<Unit<E>*>(tables_of_walk + layout.table);
    }
    a.rows = reinterpret_cast<RowFactors<E, terms>*>(rest + layout.rows);
    a.x = reinterpret_cast<U*>(rest + layout.x);
    a.y = reinterpret_cast<U*>(rest + layout.y);
    a.h = reinterpret_cast<U*>(rest + layout.h);
    a.z = reinterpret_cast<U*>(rest + layout.z);
    a.diagonal = reinterpret_cast<U*>(rest + layout.diagonal);
    a.p = reinterpret_cast<std::int32_t*>(rest + layout.p);
    a.inverse = reinterpret_cast<std::int32_t*>(rest + layout.inverse);
    a.forbidden = reinterpret_cast<std::int32_t*>(rest + layout.forbidden);
    a.hidden = reinterpret_cast<U*>(rest + layout.hidden);
    return a;
  }
};

/// Launches kernels that are templates.
/// @param launch called as launch.operator()<terms, where the tables are>(layout) @throw Error: see Layout
template <class E, class Launch>
void launch_with_layout(Index n, int terms, Index capacity, const Launch& launch) {
  const auto of_terms = [&]<int number>() {
    const Layout<E, number> layout(n, capacity);
    if (layout.tables == Tables::shared)
      launch.template operator()<number, Tables::shared>(layout);
    else
      launch.template operator()<number, Tables::global>(layout);
  };
  if (terms == 1)
    of_terms.template operator()<1>();
  else
    of_terms.template operator()<2>();
}

}  // namespace asterism::qap::cuda
