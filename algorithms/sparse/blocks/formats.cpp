#include "formats.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "../../../runtime/collectives.hpp"

namespace asterism::sparse {
namespace {

/// A diagonal, and the value that all its entries have.
struct Diagonal {
  Index offset;
  double value;
  bool constant;
};

/// Of the rows of this rank: those that they have, none where there are too many.
template <class T>
std::vector<Diagonal> diagonals_of(const Csr<T>& rows) {
  std::map<Index, Diagonal> found;
  for (Index i = 0; i < rows.rows(); ++i)
    for (Index k = rows.row_begin[i]; k < rows.row_begin[i + 1]; ++k) {
      const Index offset = rows.columns[k] - (rows.first_row + i);
      const double value = static_cast<double>(rows.values[k]);
      const auto [at, is_new] = found.try_emplace(offset, Diagonal{offset, value, true});
      if (at->second.value != value) at->second.constant = false;
      if (is_new && found.size() > most_diagonals) return {};
    }
  std::vector<Diagonal> diagonals;
  for (const auto& [offset, diagonal] : found) diagonals.push_back(diagonal);
  return diagonals;
}

/// Those of all ranks.
std::vector<Diagonal> together(const std::vector<Diagonal>& of_ranks) {
  std::map<Index, Diagonal> all;
  for (const Diagonal& d : of_ranks) {
    const auto [at, is_new] = all.try_emplace(d.offset, d);
    if (at->second.value != d.value || !d.constant) at->second.constant = false;
  }
  std::vector<Diagonal> diagonals;
  for (const auto& [offset, diagonal] : all) diagonals.push_back(diagonal);
  return diagonals;
}

/// The grid whose stencil the diagonals may be: their offsets are 0, +-1, +-nx, +-nx ny.
std::optional<Stencil> stencil_of(const std::vector<Diagonal>& diagonals, Index n) {
  const std::size_t count = diagonals.size(), middle = count / 2;
  if (count != 3 && count != 5 && count != 7) return {};
  if (!std::ranges::all_of(diagonals, &Diagonal::constant)) return {};
  for (std::size_t k = 0; k < count; ++k)
    if (diagonals[k].offset != -diagonals[count - 1 - k].offset) return {};
  if (diagonals[middle].offset != 0 || diagonals[middle + 1].offset != 1) return {};
  Stencil stencil{.coefficients = {}, .nx = n, .ny = 1, .nz = 1};
  if (count >= 5) {
    stencil.nx = diagonals[middle + 2].offset;
    stencil.ny = n / stencil.nx;
  }
  if (count == 7) {
    const Index plane = diagonals[middle + 3].offset;
    if (plane % stencil.nx != 0) return {};
    stencil.ny = plane / stencil.nx;
    stencil.nz = n / plane;
  }
  if (stencil.nx < 2 || (count == 7 && stencil.ny < 2) || stencil.nx * stencil.ny * stencil.nz != n)
    return {};
  for (std::size_t k = 0; k < count; ++k) stencil.coefficients[3 - middle + k] = diagonals[k].value;
  return stencil;
}

/// Whether a row has the entries that a stencil has there, and no others.
template <class T>
bool has_stencil(const Csr<T>& rows, const Stencil& s) {
  const Index plane = s.nx * s.ny;
  const Index offsets[7] = {-plane, -s.nx, -1, 0, 1, s.nx, plane};
  for (Index i = 0; i < rows.rows(); ++i) {
    const Index node = rows.first_row + i, x = node % s.nx, y = node / s.nx % s.ny, z = node / plane;
    const bool there[7] = {z > 0, y > 0, x > 0, true, x + 1 < s.nx, y + 1 < s.ny, z + 1 < s.nz};
    Index k = rows.row_begin[i];
    for (int d = 0; d < 7; ++d) {
      if (!there[d] || (d != 3 && s.coefficients[d] == 0)) continue;
      if (k == rows.row_begin[i + 1] || rows.columns[k] != node + offsets[d]) return false;
      ++k;
    }
    if (k != rows.row_begin[i + 1]) return false;
  }
  return true;
}

Index padded_entries(const std::vector<Index>& row_begin) {
  const Index rows = static_cast<Index>(row_begin.size()) - 1;
  Index padded = 0;
  for (Index first = 0; first < rows; first += slice_rows) {
    Index longest = 0;
    for (Index i = first; i < std::min(rows, first + slice_rows); ++i)
      longest = std::max(longest, row_begin[i + 1] - row_begin[i]);
    padded += longest * slice_rows;
  }
  return padded;
}

template <class V, class T>
void arrange_csr(const Csr<T>& block, const std::vector<std::int32_t>& places, BlockArrays<V>& to) {
  to.begins.assign(block.row_begin.begin(), block.row_begin.end());
  to.columns = places;
  to.values.assign(block.values.begin(), block.values.end());
}

template <class V, class T>
void arrange_slices(const Csr<T>& block, const std::vector<std::int32_t>& places, BlockArrays<V>& to) {
  const Index rows = block.rows(), own = to.shape.own;
  const auto padded = static_cast<std::size_t>(padded_entries(block.row_begin));
  to.values.assign(padded, V{});
  to.columns.resize(padded);
  to.begins = {0};
  bool fits = true;
  for (Index first = 0; first < rows; first += slice_rows) {
    const Index begin = to.begins.back();
    Index longest = 0;
    for (Index i = first; i < std::min(rows, first + slice_rows); ++i)
      longest = std::max(longest, block.row_begin[i + 1] - block.row_begin[i]);
    for (Index lane = 0; lane < slice_rows; ++lane) {
      const Index i = first + lane, row = std::min(i, rows - 1);
      const Index entry = block.row_begin[row], count = i < rows ? block.row_begin[row + 1] - entry : 0;
      for (Index k = 0; k < longest; ++k) {
        const auto at = static_cast<std::size_t>(begin + k * slice_rows + lane);
        const std::int32_t column = k < count ? places[entry + k] : static_cast<std::int32_t>(own + row);
        to.columns[at] = column;
        if (k < count) to.values[at] = static_cast<V>(block.values[entry + k]);
        const Index difference = column - own - i;
        fits = fits && difference >= std::numeric_limits<std::int16_t>::min() &&
               difference <= std::numeric_limits<std::int16_t>::max();
      }
    }
    to.begins.push_back(static_cast<std::int32_t>(begin + longest * slice_rows));
  }
  if (!fits) return;
  to.differences.resize(padded);
  for (std::size_t s = 0; s + 1 < to.begins.size(); ++s)
    for (std::int32_t at = to.begins[s]; at < to.begins[s + 1]; ++at) {
      const Index i = static_cast<Index>(s) * slice_rows + (at - to.begins[s]) % slice_rows;
      to.differences[at] = static_cast<std::int16_t>(to.columns[at] - own - i);
    }
  to.columns.clear();
}

template <class V, class T>
void arrange_diagonals(const DiagonalStructure& structure, const Csr<T>& block, BlockArrays<V>& to) {
  const auto& offsets = structure.diagonals;
  const Index rows = block.rows();
  to.columns.assign(offsets.begin(), offsets.end());
  to.values.assign(offsets.size() * static_cast<std::size_t>(rows), V{});
  for (Index i = 0; i < rows; ++i)
    for (Index k = block.row_begin[i]; k < block.row_begin[i + 1]; ++k) {
      const Index d =
          std::ranges::lower_bound(offsets, block.columns[k] - (block.first_row + i)) - offsets.begin();
      to.values[d * rows + i] = static_cast<V>(block.values[k]);
    }
}

}  // namespace

template <class T>
DiagonalStructure diagonal_structure(const Runtime& runtime, const Csr<T>& mine) {
  const std::vector<Diagonal> here = diagonals_of(mine);
  const bool too_many = any(runtime, here.empty() && mine.entries() > 0);
  const std::vector<Diagonal> all = together(gather_lists(runtime, here));
  DiagonalStructure structure;
  for (const Index entries : gather(runtime, mine.entries())) structure.entries += entries;
  for (const Index entries : gather(runtime, padded_entries(mine.row_begin)))
    structure.padded_entries += entries;
  if (too_many || all.size() > most_diagonals) return structure;
  for (const Diagonal& d : all) structure.diagonals.push_back(d.offset);
  const std::optional<Stencil> stencil = stencil_of(all, mine.total_rows);
  if (!any(runtime, !stencil || !has_stencil(mine, *stencil))) structure.stencil = stencil;
  return structure;
}

bool fills_diagonals(const DiagonalStructure& structure, Index n) {
  const auto diagonals = static_cast<double>(structure.diagonals.size());
  return diagonals > 0 && static_cast<double>(structure.entries) >= 0.8 * diagonals * static_cast<double>(n);
}

Format choose_format(const DiagonalStructure& structure, Index n, bool on_gpu) {
  if (structure.stencil) return Format::stencil;
  if (fills_diagonals(structure, n)) return Format::diagonals;
  if (on_gpu && 3 * structure.padded_entries <= 4 * (structure.entries + slice_rows))
    return Format::sliced_ell;
  return Format::csr;
}

template <class V, class T>
BlockArrays<V> arranged(const DiagonalStructure& structure, Format format, const Csr<T>& block, Index own,
                        Index cols, const std::vector<std::int32_t>& places) {
  BlockArrays<V> arrays;
  arrays.shape = {.format = format, .rows = block.rows(), .cols = cols, .own = own};
  switch (format) {
    case Format::csr:
      arrange_csr(block, places, arrays);
      break;
    case Format::sliced_ell:
      arrange_slices(block, places, arrays);
      break;
    case Format::diagonals:
      arrange_diagonals(structure, block, arrays);
      break;
    case Format::stencil: {
      arrays.shape.stencil = *structure.stencil;
      const Index plane = structure.stencil->nx * structure.stencil->ny;
      arrays.shape.stencil.first_plane = block.first_row / plane;
      arrays.shape.stencil.first_in_plane = block.first_row % plane;
    }
  }
  return arrays;
}

#define ASTERISM_INSTANTIATE(V, T)                                                                \
  template BlockArrays<V> arranged(const DiagonalStructure&, Format, const Csr<T>&, Index, Index, \
                                   const std::vector<std::int32_t>&)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(float, double);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE
template DiagonalStructure diagonal_structure(const Runtime&, const Csr<float>&);
template DiagonalStructure diagonal_structure(const Runtime&, const Csr<double>&);

}  // namespace asterism::sparse
