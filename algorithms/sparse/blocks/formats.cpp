#include "formats.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>

#include "../../../codelets/sparse/units.hpp"
#include "../../../runtime/collectives.hpp"
#include "../../common/team.hpp"

namespace asterism::sparse {
namespace {

/// A diagonal, and the value that all its entries have.
struct Diagonal {
  Index offset;
  double value;
  bool constant;
};

/// Those of several parts of the rows.
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

/// Of rows [first, end) of those that are here: those that they have, or more than there may be.
template <class T>
std::vector<Diagonal> diagonals_of(const Csr<T>& rows, Index first, Index end) {
  std::map<Index, Diagonal> found;
  std::vector<Diagonal*> before;  // of the entries of the row before: most rows are like it
  for (Index i = first; i < end && found.size() <= most_diagonals; ++i) {
    const Index begin = rows.row_begin[i], count = rows.row_begin[i + 1] - begin;
    if (static_cast<Index>(before.size()) < count) before.resize(count);
    for (Index k = 0; k < count; ++k) {
      const Index offset = rows.columns[begin + k] - (rows.first_row + i);
      const double value = static_cast<double>(rows.values[begin + k]);
      if (before[k] == nullptr || before[k]->offset != offset)
        before[k] = &found.try_emplace(offset, Diagonal{offset, value, true}).first->second;
      if (before[k]->value != value) before[k]->constant = false;
    }
  }
  std::vector<Diagonal> diagonals;
  for (const auto& [offset, diagonal] : found) diagonals.push_back(diagonal);
  return diagonals;
}

/// Of the rows of this rank; none where there are too many.
template <class T>
std::vector<Diagonal> diagonals_of(const Csr<T>& rows) {
  std::vector<Diagonal> of_parts;
  std::mutex mutex;
  in_parts(rows.rows(), 0, [&](Index first, Index end) {
    const std::vector<Diagonal> part = diagonals_of(rows, first, end);
    const std::lock_guard lock(mutex);
    of_parts.insert(of_parts.end(), part.begin(), part.end());
  });
  std::vector<Diagonal> all = together(of_parts);
  if (all.size() > most_diagonals) all.clear();
  return all;
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

/// Whether rows have the entries that a stencil has there, and no others.
template <class T>
bool have_stencil(const Csr<T>& rows, Index first, Index end, const Stencil& s) {
  const Index plane = s.nx * s.ny;
  const Index offsets[7] = {-plane, -s.nx, -1, 0, 1, s.nx, plane};
  for (Index i = first; i < end; ++i) {
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
template <class T>
bool have_stencil(const Csr<T>& rows, const Stencil& s) {
  std::atomic<bool> all_have = true;
  in_parts(rows.rows(), 0, [&](Index first, Index end) {
    if (!have_stencil(rows, first, end, s)) all_have = false;
  });
  return all_have;
}

/// With its padding.
Index entries_of_slice(std::span<const Index> row_begin, Index slice) {
  const Index rows = static_cast<Index>(row_begin.size()) - 1, first = slice * slice_rows;
  Index longest = 0;
  for (Index i = first; i < std::min(rows, first + slice_rows); ++i)
    longest = std::max(longest, row_begin[i + 1] - row_begin[i]);
  return longest * slice_rows;
}

Index slices_of(std::span<const Index> row_begin) {
  return units_of(static_cast<Index>(row_begin.size()) - 1, slice_rows);
}

Index padded_entries(std::span<const Index> row_begin) {
  Index padded = 0;
  for (Index s = 0; s < slices_of(row_begin); ++s) padded += entries_of_slice(row_begin, s);
  return padded;
}

template <class V, class T>
void arrange_csr(const RowsView<T>& block, std::span<const std::int32_t> places, BlockArrays<V>& to) {
  to.begins = Uncleared<std::int32_t>(block.rows() + 1);
  to.columns = Uncleared<std::int32_t>(block.entries());
  to.values = Uncleared<V>(block.entries());
  in_parts(block.rows() + 1, 0, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i)
      to.begins[i] = static_cast<std::int32_t>(block.row_begin[i] - block.row_begin.front());
  });
  const std::span<const T> values = block.values();
  in_parts(block.entries(), 0, [&](Index first, Index end) {
    for (Index k = first; k < end; ++k) {
      to.columns[k] = places[k];
      to.values[k] = static_cast<V>(values[k]);
    }
  });
}

/// Where each slice begins, and the last one ends.
Uncleared<std::int32_t> slice_begins(std::span<const Index> row_begin) {
  Uncleared<std::int32_t> begins(slices_of(row_begin) + 1);
  begins[0] = 0;
  for (Index s = 0; s + 1 < begins.size(); ++s)
    begins[s + 1] = static_cast<std::int32_t>(begins[s] + entries_of_slice(row_begin, s));
  return begins;
}

/// @return the largest distance of a column from its row's own
template <class V, class T>
Index fill_slice(const RowsView<T>& block, std::span<const std::int32_t> places, Index slice,
                 BlockArrays<V>& to) {
  const std::span<const T> values = block.values();
  const Index rows = block.rows(), own = to.shape.own, begin = to.begins[slice];
  const Index longest = (to.begins[slice + 1] - begin) / slice_rows;
  Index reach = 0;
  for (Index lane = 0; lane < slice_rows; ++lane) {
    const Index i = slice * slice_rows + lane, row = std::min(i, rows - 1);
    const Index entry = block.row_begin[row] - block.row_begin.front();
    const Index count = i < rows ? block.row_begin[row + 1] - block.row_begin[row] : 0;
    for (Index k = 0; k < longest; ++k) {
      const Index at = begin + k * slice_rows + lane;
      const std::int32_t column = k < count ? places[entry + k] : static_cast<std::int32_t>(own + row);
      to.columns[at] = column;
      to.values[at] = k < count ? static_cast<V>(values[entry + k]) : V{};
      reach = std::max(reach, std::abs(column - own - i));
    }
  }
  return reach;
}

template <class V, class T>
void arrange_slices(const RowsView<T>& block, std::span<const std::int32_t> places, BlockArrays<V>& to) {
  constexpr Index least_slices = 32;  // for which another thread pays
  to.begins = slice_begins(block.row_begin);
  const Index slices = to.begins.size() - 1, padded = to.begins[slices];
  to.values = Uncleared<V>(padded);
  to.columns = Uncleared<std::int32_t>(padded);
  std::mutex mutex;
  const auto fill = [&](Index first, Index end) {
    Index reach = 0;
    for (Index s = first; s < end; ++s) reach = std::max(reach, fill_slice(block, places, s, to));
    const std::lock_guard lock(mutex);
    to.shape.reach = std::max(to.shape.reach, reach);
  };
  in_parts(slices, 0, fill, least_slices);
  if (to.shape.reach > std::numeric_limits<std::int16_t>::max()) return;
  to.differences = Uncleared<std::int16_t>(padded);
  const auto subtract = [&](Index first, Index end) {
    for (Index s = first; s < end; ++s)
      for (std::int32_t at = to.begins[s]; at < to.begins[s + 1]; ++at) {
        const Index i = s * slice_rows + (at - to.begins[s]) % slice_rows;
        to.differences[at] = static_cast<std::int16_t>(to.columns[at] - to.shape.own - i);
      }
  };
  in_parts(slices, 0, subtract, least_slices);
  to.columns = {};
}

template <class V, class T>
void arrange_diagonals(const DiagonalStructure& structure, const RowsView<T>& block, BlockArrays<V>& to) {
  const auto& offsets = structure.diagonals;
  const Index rows = block.rows(), count = static_cast<Index>(offsets.size());
  to.columns = Uncleared<std::int32_t>(count);
  std::ranges::copy(offsets, to.columns.data());
  to.shape.reach = std::max(std::abs(offsets.front()), std::abs(offsets.back()));
  to.values = Uncleared<V>(count * rows);
  in_parts(rows, 0, [&](Index first, Index end) {
    for (Index d = 0; d < count; ++d) std::fill_n(to.values.data() + d * rows + first, end - first, V{});
    for (Index i = first; i < end; ++i)
      for (Index k = block.row_begin[i]; k < block.row_begin[i + 1]; ++k) {
        const Index d =
            std::ranges::lower_bound(offsets, block.all.columns[k] - (block.first_row + i)) - offsets.begin();
        to.values[d * rows + i] = static_cast<V>(block.all.values[k]);
      }
  });
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
  if (!any(runtime, !stencil || !have_stencil(mine, *stencil))) structure.stencil = stencil;
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
BlockArrays<V> arranged(const DiagonalStructure& structure, Format format, const RowsView<T>& block,
                        Index own, Index cols, std::span<const std::int32_t> places) {
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
      arrays.shape.reach = structure.diagonals.back();
      break;
    }
    case Format::schur:  // of half a matrix: UnformedSchur
      break;
  }
  return arrays;
}

#define ASTERISM_INSTANTIATE(V, T)                                                                     \
  template BlockArrays<V> arranged(const DiagonalStructure&, Format, const RowsView<T>&, Index, Index, \
                                   std::span<const std::int32_t>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(float, double);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE
template DiagonalStructure diagonal_structure(const Runtime&, const Csr<float>&);
template DiagonalStructure diagonal_structure(const Runtime&, const Csr<double>&);

}  // namespace asterism::sparse
