#include "bias.hpp"

#include <cmath>
#include <cstdint>

namespace asterism::transforms {

template <class T>
std::vector<T> noise(Index count) {
  std::vector<T> numbers(static_cast<std::size_t>(count));
  std::uint64_t state = 1;  // Knuth's linear congruential generator: any noise will do
  for (T& number : numbers) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    number = static_cast<T>(static_cast<double>(state >> 40) * 0x1p-23 - 1);
  }
  return numbers;
}

template <class T>
double bias_of(Transform kind, Index n, const std::vector<T>& after) {
  const std::vector<T> before = noise<T>(static_cast<Index>(after.size()));
  const double factor = round_trip(kind, n);
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto x = static_cast<double>(before[i]);
    errors += x * std::fma(-factor, x, static_cast<double>(after[i]));
    squares += x * x;
  }
  return errors / (factor * squares);
}

template <class T>
double cpu::bias(Transform kind, Index n, Care care) {
  return remembered(kind, n, care, [=] {
    const Index count = noisy_lines(n);
    std::vector<T> points = noise<T>(count * n);
    const Lines<T> lines{points.data(), count, n, n, 1, 1, care};
    transform(kind, lines);
    transform(inverse(kind), lines);
    return bias_of(kind, n, points);
  });
}

#define ASTERISM_INSTANTIATE(T)                                     \
  template std::vector<T> noise(Index);                             \
  template double bias_of(Transform, Index, const std::vector<T>&); \
  template double cpu::bias<T>(Transform, Index, Care);
ASTERISM_INSTANTIATE(float)
ASTERISM_INSTANTIATE(double)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::transforms
