/// \file
/// Matrices of tests to tiles and back.
#pragma once

#include "matrix.hpp"
#include "runtime/codelet.hpp"

namespace asterism::test {

template <class T>
Tile<T> upload(Runtime& runtime, const Matrix<T>& matrix) {
  Tile<T> tile(runtime, matrix.rows(), matrix.cols());
  {
    const HostView<T> view(tile, HostView<T>::Access::write);
    for (Index i = 0; i < matrix.rows(); ++i)
      for (Index j = 0; j < matrix.cols(); ++j) view.row(i)[j] = matrix(i, j);
  }
  return tile;
}

template <class T>
Matrix<T> download(const Tile<T>& tile) {
  const HostView<T> view(tile, HostView<T>::Access::read);
  return Matrix<T>(tile.rows(), tile.cols()).fill([&](Index i, Index j) { return view.row(i)[j]; });
}

}  // namespace asterism::test
