#include "framed_grid.hpp"

#include <algorithm>

namespace asterism::wavefront {
namespace {

/// Whether a number along an axis of n nodes is that of one of its ends.
bool is_outside(Index i, Index n) { return i < 1 || i > n; }

}  // namespace

template <class T>
FramedGrid<T>::FramedGrid(Runtime& runtime, const WavefrontArgs& grid, Index height)
    : grid_(grid), height_(height) {
  if (grid.dimensions == 1) {
    tiles_ = Tiles<T>(runtime, 1, grid.nodes[2] + 2, 1, height);
    return;
  }
  const Index rows = grid.dimensions > 2 ? grid.nodes[1] + 2 : 1;  // of a slice
  tiles_ = Tiles<T>(runtime, wavefront_rows(grid), wavefront_cols(grid), height * rows, wavefront_cols(grid));
}

template <class T>
template <class Visit>
void FramedGrid<T>::for_rows(detail::HostAccess access, const Visit& visit) const {
  const Index rows = grid_.dimensions > 2 ? grid_.nodes[1] + 2 : 1;
  for (Index k = 0; k < tiles_.count(); ++k) {
    const HostView<T> view(tiles_[k], access);
    const Index first = k * height_;  // slice
    for (Index r = 0; r < view.rows(); ++r) {
      if (grid_.dimensions == 1)
        visit(Row{view.row(0), first, view.cols(), 1, 1});
      else if (grid_.dimensions == 2)
        visit(Row{view.row(r), 0, view.cols(), 1, first + r});
      else
        visit(Row{view.row(r), 0, view.cols(), first + r / rows, r % rows});
    }
  }
}

/// Whether the whole row lies on the frame.
template <class T>
bool FramedGrid<T>::is_framed(const Row& row) const {
  return is_outside(row.z, grid_.nodes[0]) || is_outside(row.y, grid_.nodes[1]);
}

/// The number of the first node of a row that is not framed.
template <class T>
Index FramedGrid<T>::first_node(const Row& row) const {
  return ((row.z - 1) * grid_.nodes[1] + (row.y - 1)) * grid_.nodes[2];
}

template <class T>
void FramedGrid<T>::fill(const T* u, const std::vector<Problem::Sides>& sides) const {
  // The value on the sides of an axis that end `i` belongs to.
  const auto side = [&](std::size_t axis, Index i) {
    const Problem::Sides& ends = sides[axis + sides.size() - 3];
    return static_cast<T>(i < 1 ? ends.lower : ends.upper);
  };
  const auto fill_row = [&](const Row& row, const auto& between) {
    for (Index j = 0; j < row.count; ++j) {
      const Index x = row.first + j;
      row.values[j] = is_outside(x, grid_.nodes[2]) ? side(2, x) : between(x);
    }
  };
  for_rows(detail::HostAccess::write, [&](const Row& row) {
    if (is_outside(row.z, grid_.nodes[0]))
      fill_row(row, [&](Index) { return side(0, row.z); });
    else if (is_outside(row.y, grid_.nodes[1]))
      fill_row(row, [&](Index) { return side(1, row.y); });
    else
      fill_row(row, [given = u + first_node(row)](Index x) { return given[x - 1]; });
  });
}

template <class T>
void FramedGrid<T>::fill_source(const T* f, double diagonal) const {
  const double scale = -1 / diagonal;
  for_rows(detail::HostAccess::write, [&](const Row& row) {
    std::fill_n(row.values, row.count, T{0});
    if (is_framed(row)) return;
    const T* const given = f + first_node(row);
    for (Index x = std::max(row.first, Index{1}); x < std::min(row.first + row.count, grid_.nodes[2] + 1);
         ++x)
      row.values[x - row.first] = static_cast<T>(scale * static_cast<double>(given[x - 1]));
  });
}

template <class T>
void FramedGrid<T>::store(T* u) const {
  for_rows(detail::HostAccess::read, [&](const Row& row) {
    if (is_framed(row)) return;
    const Index begin = std::max(row.first, Index{1}),
                end = std::min(row.first + row.count, grid_.nodes[2] + 1);
    if (begin < end)
      std::copy(row.values + (begin - row.first), row.values + (end - row.first),
                u + first_node(row) + begin - 1);
  });
}

template class FramedGrid<float>;
template class FramedGrid<double>;

}  // namespace asterism::wavefront
