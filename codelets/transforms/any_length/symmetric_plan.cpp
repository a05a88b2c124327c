#include "symmetric_plan.hpp"

#include <numeric>

#include "radices.hpp"

namespace asterism::transforms::cuda {

int symmetric_radix(Index N) {
  if (N < 3 || N % 2 == 0) return 0;
  for (const int radix : {15, 13, 11, 9, 7, 5, 3})
    if (N % radix == 0 && N > radix && std::gcd(N / radix, Index{radix}) == 1 &&
        fft_plan_numbers(N / radix) > 0)
      return radix;
  return 0;
}

int symmetric_numbers(Index N) {
  const int radix = symmetric_radix(N);
  const Index numbers = Index{fft_plan_numbers(N / radix)} * (radix / 2 + 1);
  return numbers < mirrored ? static_cast<int>(numbers) : 0;
}

template <class T>
SymmetricPlan<T>::SymmetricPlan(Index N)
    : radix(symmetric_radix(N)),
      rows(N / radix, radix / 2 + 1),
      in(static_cast<std::size_t>(N)),
      out(static_cast<std::size_t>(N / 2 + 1)) {
  const Index D = radix, Q = N / D, row = rows.view.numbers / (D / 2 + 1);
  const auto inverse = [](Index a, Index n) {
    Index b = 1;
    while (a % n * b % n != 1) ++b;
    return b;
  };
  const Index of_Q = inverse(Q, D), of_D = inverse(D, Q);
  for (Index j = 0; j < N; ++j) {
    const Index a = j * of_Q % D, b = j * of_D % Q;
    const bool other = a > D / 2;
    const Index place = other ? (D - a) * row + rows.in[static_cast<std::size_t>((Q - b) % Q)]
                              : a * row + rows.in[static_cast<std::size_t>(b)];
    in[static_cast<std::size_t>(j)] = static_cast<std::uint16_t>(place | (other ? mirrored : 0));
  }
  for (Index k = 0; k <= N / 2; ++k) {
    bool other = 2 * (k % Q) > Q;
    const Index c = other ? (D - k % D) % D : k % D, d = other ? Q - k % Q : k % Q;
    Index place = c * row + rows.out[static_cast<std::size_t>(d)];
    if (c > D / 2) {
      place = (D - c) * row + rows.out[static_cast<std::size_t>((Q - d) % Q)];
      other = other != (d == 0);  // Z_{c,0} is the mirror of Z_{D-c,0}, which is stored
    }
    out[static_cast<std::size_t>(k)] = static_cast<std::uint16_t>(place | (other ? mirrored : 0));
  }
}

template struct SymmetricPlan<float>;
template struct SymmetricPlan<double>;

}  // namespace asterism::transforms::cuda
