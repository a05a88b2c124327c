#include "factorise.hpp"

#include "../../runtime/cuda.hpp"

namespace asterism::decomposition::cuda {

using asterism::cuda::check;
using asterism::cuda::native;

template <class V>
void join_panels(Stream stream, Many<In<V>> parts, Out<V> panels) {
  const auto bytes = [](Index numbers) { return sizeof(V) * static_cast<std::size_t>(numbers); };
  V* next = panels.data;
  for (const In<V>& part : parts) {
    const Index numbers = part.cols - panel_margin;
    check(cudaMemcpyAsync(next, part.data, bytes(numbers), cudaMemcpyDeviceToDevice, native(stream)),
          "cudaMemcpyAsync");
    next += numbers;
  }
  check(cudaMemsetAsync(next, 0, bytes(panel_margin), native(stream)), "cudaMemsetAsync");
}

template void join_panels(Stream, Many<In<float>>, Out<float>);
template void join_panels(Stream, Many<In<double>>, Out<double>);

}  // namespace asterism::decomposition::cuda
