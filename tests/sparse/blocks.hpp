/// \file
/// Small sparse matrices for tests of kernels: entry by entry, cut into blocks in any format, and as tiles.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "codelets/sparse/matrix.hpp"
#include "runtime/codelet.hpp"

namespace asterism::sparse::test {

using Real = long double;

/// Row by row, column and value. The values are such as float has.
using Entries = std::vector<std::map<Index, double>>;

/// The formats, sliced_ell in both kinds.
enum class Stored { csr, sliced, sliced_differences, diagonals, stencil };
inline constexpr Stored all_stored[] = {Stored::csr, Stored::sliced, Stored::sliced_differences,
                                        Stored::diagonals, Stored::stencil};

inline double random_value(std::mt19937_64& engine) {
  return static_cast<float>(std::uniform_real_distribution<double>(-1, 1)(engine));
}
template <class T>
std::vector<T> random_values(Index n, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& value : values) value = static_cast<T>(random_value(engine));
  return values;
}
template <class T>
std::vector<T> poison(Index n) {
  return std::vector<T>(static_cast<std::size_t>(n), std::numeric_limits<T>::quiet_NaN());
}

/// Rows of 0 to 9 entries, one of n / 2, within `reach` of the diagonal.
inline Entries random_entries(Index n, Index reach, unsigned seed) {
  std::mt19937_64 engine(seed);
  Entries entries(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    const Index count = i == n / 3 ? n / 2 : static_cast<Index>(engine() % 10);
    for (Index k = 0; k < count; ++k) {
      const Index j = i + static_cast<Index>(engine() % static_cast<std::uint64_t>(2 * reach + 1)) - reach;
      if (j >= 0 && j < n) entries[static_cast<std::size_t>(i)][j] = random_value(engine);
    }
  }
  return entries;
}

/// The nodes of a grid, plane by plane.
inline Stencil stencil_of(Index nx, Index ny, Index nz) {
  return {{-0.5, -0.75, -1.25, nz > 1 ? 6.5 : 5.0, -1.25, -0.75, -0.5}, nx, ny, nz};
}
inline Entries entries_of(const Stencil& s) {
  Entries entries(static_cast<std::size_t>(s.nx * s.ny * s.nz));
  const Index plane = s.nx * s.ny;
  for (Index z = 0; z < s.nz; ++z)
    for (Index y = 0; y < s.ny; ++y)
      for (Index x = 0; x < s.nx; ++x) {
        const Index i = z * plane + y * s.nx + x;
        auto& row = entries[static_cast<std::size_t>(i)];
        row[i] = s.coefficients[3];
        if (z > 0) row[i - plane] = s.coefficients[0];
        if (y > 0) row[i - s.nx] = s.coefficients[1];
        if (x > 0) row[i - 1] = s.coefficients[2];
        if (x + 1 < s.nx) row[i + 1] = s.coefficients[4];
        if (y + 1 < s.ny) row[i + s.nx] = s.coefficients[5];
        if (z + 1 < s.nz) row[i + plane] = s.coefficients[6];
      }
  return entries;
}

/// Row i of the twin, and the sum of magnitudes that bounds its rounding.
template <class X>
std::pair<Real, Real> product_of(const std::map<Index, double>& row, const X& x) {
  Real sum = 0, magnitude = 0;
  for (const auto& [j, value] : row) {
    const Real term = static_cast<Real>(value) * static_cast<Real>(x[static_cast<std::size_t>(j)]);
    sum += term;
    magnitude += std::abs(term);
  }
  return {sum, magnitude};
}

template <class T>
Tile<T> tile_of(Runtime& runtime, std::vector<T> values) {
  if (values.empty()) values.push_back(T{});
  Tile<T> tile(runtime, 1, static_cast<Index>(values.size()));
  const HostView<T> view(tile, HostView<T>::Access::write);
  std::copy(values.begin(), values.end(), view.row(0));
  return tile;
}
template <class T>
std::vector<T> values_of(const Tile<T>& tile) {
  const HostView<T> view(tile, HostView<T>::Access::read);
  return {view.row(0), view.row(0) + tile.cols()};
}

/// Rows [first, end) of a matrix.
template <class V>
struct Block {
  BlockShape shape;
  std::vector<Index> numbers;  ///< in the whole matrix, of the elements of the block's vector
  Tile<V> values;
  Tile<std::int32_t> begins, columns;
  Tile<std::int16_t> differences;

  [[nodiscard]] BlockPorts<AsTiles, V> tiles() const {
    const auto there = [](const auto& tile) { return tile.state() != nullptr ? &tile : nullptr; };
    return {there(values), there(begins), there(columns), there(differences)};
  }
};

/// Elements of a block's vector: those that its rows have entries in, and its own.
inline std::vector<Index> numbers_of(const Entries& entries, Index first, Index end) {
  std::vector<Index> numbers;
  for (Index i = first; i < end; ++i) {
    numbers.push_back(i);
    for (const auto& [j, value] : entries[static_cast<std::size_t>(i)]) numbers.push_back(j);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}
inline Index place_of(const std::vector<Index>& numbers, Index number) {
  return std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin();
}

/// The tiles of Stored::csr, sliced or sliced_differences; `rows` are the block's, with columns of its vector.
template <class V>
void store_entries(Runtime& runtime, const Entries& rows, Stored stored, Block<V>& block) {
  const bool sliced = stored != Stored::csr;
  const Index n = static_cast<Index>(rows.size()), together = sliced ? slice_rows : 1;
  std::vector<V> values;
  std::vector<std::int32_t> begins{0}, columns;
  std::vector<std::int16_t> differences;
  for (Index slice = 0; slice * together < n; ++slice) {
    std::size_t longest = 0;
    const Index from = slice * together, to = std::min(n, from + together);
    for (Index i = from; i < to; ++i) longest = std::max(longest, rows[static_cast<std::size_t>(i)].size());
    for (std::size_t k = 0; k < longest; ++k)
      for (Index i = from; i < from + together; ++i) {
        const Index own = block.shape.own + i;
        std::pair<Index, double> entry{own, 0};  // padding
        if (i < n && k < rows[static_cast<std::size_t>(i)].size())
          entry = *std::next(rows[static_cast<std::size_t>(i)].begin(), static_cast<std::ptrdiff_t>(k));
        values.push_back(static_cast<V>(entry.second));
        columns.push_back(static_cast<std::int32_t>(entry.first));
        differences.push_back(static_cast<std::int16_t>(entry.first - own));
      }
    begins.push_back(static_cast<std::int32_t>(values.size()));
  }
  block.values = tile_of(runtime, values);
  block.begins = tile_of(runtime, begins);
  if (stored == Stored::sliced_differences)
    block.differences = tile_of(runtime, differences);
  else
    block.columns = tile_of(runtime, columns);
}

/// The tiles of Stored::diagonals, for matrices of few diagonals.
template <class V>
void store_diagonals(Runtime& runtime, const Entries& rows, Block<V>& block) {
  const Index n = static_cast<Index>(rows.size());
  std::map<Index, std::vector<V>> diagonals;
  for (Index i = 0; i < n; ++i)
    for (const auto& [j, value] : rows[static_cast<std::size_t>(i)]) {
      std::vector<V>& diagonal = diagonals[j - block.shape.own - i];
      diagonal.resize(static_cast<std::size_t>(n));
      diagonal[static_cast<std::size_t>(i)] = static_cast<V>(value);
    }
  std::vector<V> values;
  std::vector<std::int32_t> offsets;
  for (const auto& [offset, diagonal] : diagonals) {
    offsets.push_back(static_cast<std::int32_t>(offset));
    values.insert(values.end(), diagonal.begin(), diagonal.end());
  }
  block.values = tile_of(runtime, values);
  block.columns = tile_of(runtime, offsets);
}

/// @param stencil that the entries are of, for Stored::stencil
template <class V>
Block<V> block_of(Runtime& runtime, const Entries& entries, Index first, Index end, Stored stored,
                  const Stencil& stencil = {}) {
  Block<V> block;
  block.numbers = numbers_of(entries, first, end);
  block.shape.rows = end - first;
  block.shape.cols = static_cast<Index>(block.numbers.size());
  block.shape.own = place_of(block.numbers, first);
  Entries rows;
  for (Index i = first; i < end; ++i) {
    auto& row = rows.emplace_back();
    for (const auto& [j, value] : entries[static_cast<std::size_t>(i)])
      row[place_of(block.numbers, j)] = value;
    const Index own = block.shape.own + i - first;
    for (const auto& [place, value] : row)
      block.shape.reach = std::max(block.shape.reach, std::abs(place - own));
  }
  if (stored == Stored::stencil) {
    block.shape.format = Format::stencil;
    block.shape.stencil = stencil;
    block.shape.stencil.first_plane = first / (stencil.nx * stencil.ny);
    block.shape.stencil.first_in_plane = first % (stencil.nx * stencil.ny);
  } else if (stored == Stored::diagonals) {
    block.shape.format = Format::diagonals;
    store_diagonals(runtime, rows, block);
  } else {
    block.shape.format = stored == Stored::csr ? Format::csr : Format::sliced_ell;
    store_entries(runtime, rows, stored, block);
  }
  return block;
}

}  // namespace asterism::sparse::test
