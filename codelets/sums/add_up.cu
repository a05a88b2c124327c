#include <algorithm>

#include "../../runtime/cuda.hpp"
#include "add_up.hpp"

namespace asterism::sums::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int threads = 256;

/// As many parts as travel with a launch.
template <class T>
struct Parts {
  static constexpr Index most = 64;
  In<T> at[most];
  Index count;
};

/// @param goes_on whether `total` has what earlier launches have added up
template <class T>
__global__ void __launch_bounds__(threads) add_up_kernel(Parts<T> parts, bool goes_on, Out<T> total) {
  for (Index k = blockIdx.x * Index{threads} + threadIdx.x; k < total.rows * total.cols;
       k += Index{threads} * gridDim.x) {
    const Index i = k / total.cols, j = k % total.cols;
    T sum = goes_on ? total.row(i)[j] : T{};
    for (Index p = 0; p < parts.count; ++p) sum += parts.at[p].row(i)[j];
    total.row(i)[j] = sum;
  }
}

}  // namespace

template <class T>
void add_up(Stream stream, Many<In<T>> parts, Out<T> total) {
  const Index elements = total.rows * total.cols,
              blocks = std::min<Index>((elements + threads - 1) / threads, 65535);
  Index next = 0;
  do {
    Parts<T> some{};
    const bool goes_on = next > 0;
    while (some.count < Parts<T>::most && next < parts.size()) some.at[some.count++] = parts[next++];
    add_up_kernel<<<static_cast<unsigned>(blocks), threads, 0, native(stream)>>>(some, goes_on, total);
    check_launch("add_up");
  } while (next < parts.size());
}

template void add_up(Stream, Many<In<float>>, Out<float>);
template void add_up(Stream, Many<In<double>>, Out<double>);

}  // namespace asterism::sums::cuda
