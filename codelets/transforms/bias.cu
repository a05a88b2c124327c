#include "bias.hpp"
#include "rounds.hpp"

namespace asterism::transforms::cuda {

using asterism::cuda::check;

template <class T>
double bias(Transform kind, Index n, Care care) {
  return remembered(kind, n, care, [=] {
    const Index count = noisy_lines(n);
    std::vector<T> points = noise<T>(count * n);
    const std::size_t bytes = points.size() * sizeof(T);
    const Transform back = inverse(kind);
    const Lines<T> shape{nullptr, count, n, n, 1, 1, care};
    const auto scratch = static_cast<std::size_t>(std::max(transform_scratch(kind, shape), transform_scratch(back, shape)));
    const auto memory = device_memory(aligned(bytes) + scratch * sizeof(T));
    Lines<T> lines = shape;
    lines.data = static_cast<T*>(memory.get());
    check(cudaMemcpy(lines.data, points.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    for (const Transform direction : {kind, back})
      transform<T>({nullptr}, direction, to_read(lines), lines, lines.data + aligned(bytes) / sizeof(T));
    check(cudaMemcpy(points.data(), lines.data, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return bias_of(kind, n, points);
  });
}

template double bias<float>(Transform, Index, Care);
template double bias<double>(Transform, Index, Care);

}  // namespace asterism::transforms::cuda
