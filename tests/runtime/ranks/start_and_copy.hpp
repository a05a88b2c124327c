/// \file
/// Tasks that give a row of a tile its first numbers, and that copy tiles, from rank to rank.
#pragma once

#include <algorithm>

#include "runtime/codelet.hpp"

namespace asterism::test {

struct Cell {
  Index index;
};

inline void cpu_start(const Cell& cell, Out<double> x) {
  for (Index j = 0; j < x.cols; ++j) x.data[j] = static_cast<double>((cell.index * 31 + j * 7) % 101);
}
inline const Codelet<Cell, Out<double>> start{"test_ranks_start", cpu_start};

inline void cpu_copy(const NoArgs&, In<double> from, Out<double> to) {
  for (Index i = 0; i < to.rows; ++i) std::copy_n(from.row(i), to.cols, to.row(i));
}
inline const Codelet<NoArgs, In<double>, Out<double>> copy{"test_ranks_copy", cpu_copy};

}  // namespace asterism::test
