#include "add_up.hpp"

#include <algorithm>

namespace asterism::sums::cpu {

template <class T>
void add_up(Many<In<T>> parts, Out<T> total) {
  for (Index i = 0; i < total.rows; ++i) {
    T* const sums = total.row(i);
    std::fill_n(sums, total.cols, T{});
    for (const In<T>& part : parts) {
      const T* const row = part.row(i);
      for (Index j = 0; j < total.cols; ++j) sums[j] += row[j];
    }
  }
}

template void add_up(Many<In<float>>, Out<float>);
template void add_up(Many<In<double>>, Out<double>);

}  // namespace asterism::sums::cpu
