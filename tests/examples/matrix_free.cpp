// -(k u_x)_x - (k u_y)_y = f on a square, u = 0 on its border, by conjugate gradients that never see a matrix: k is a
// formula, and codelets of our own multiply with A and precondition, on cores and, compiled by nvcc, on GPUs.
#include <asterism/algorithms/sparse/conjugate_gradients.hpp>
#include <cmath>
#include <cstdio>
#include <vector>
using namespace asterism;
constexpr Index n = 200;  // nodes along each axis, numbered row by row
ASTERISM_HOST_DEVICE double k(double y, double x) { return 1 + 500 * x * x * y / n / n / n; }
/// The sum of term(k, node beyond) over the four sides of a node; -1: beyond is the border.
template <class Term>
ASTERISM_HOST_DEVICE double sum_over_sides(Index node, Term term) {
  const Index i = node / n, j = node % n;
  return term(k(i - .5, j), i > 0 ? node - n : -1) + term(k(i + .5, j), i + 1 < n ? node + n : -1) +
         term(k(i, j - .5), j > 0 ? node - 1 : -1) + term(k(i, j + .5), j + 1 < n ? node + 1 : -1);
}
template <template <class> class As>
struct Ports { As<Optional<In<double>>> above; As<In<double>> p; As<Optional<In<double>>> below; As<Out<double>> q; };
ASTERISM_HOST_DEVICE void multiply(Index first, const Ports<AsPorts>& t, Index at) {
  const auto value = [&](Index i) {  // in the block, or beside it
    return i < 0 ? t.above.data[t.above.cols + i] : i < t.p.cols ? t.p.data[i] : t.below.data[i - t.p.cols];
  };
  t.q.data[at] = sum_over_sides(
      first + at, [&](double c, Index to) { return c * (value(at) - (to < 0 ? 0 : value(to - first))); });
}
ASTERISM_HOST_DEVICE void divide(Index first, const Ports<AsPorts>& t, Index at) {  // by the diagonal
  t.q.data[at] = t.p.data[at] / sum_over_sides(first + at, [](double c, Index) { return c; });
}
ASTERISM_HOST_DEVICE double if_border(double c, Index to) { return to < 0 ? c : 0; }
template <auto one> void on_core(const Index& b, Ports<AsPorts> t) { for (Index i{}; i < t.q.cols; ++i) one(b, t, i); }
#ifdef __CUDACC__  // a thread for each node
template <auto one> __global__ void threads(Index first, Ports<AsPorts> t) {
  if (const Index i = Index{blockIdx.x} * 256 + threadIdx.x; i < t.q.cols) one(first, t, i);
}
template <auto one> void on_gpu(Stream stream, const Index& first, Ports<AsPorts> t) {
  threads<one><<<unsigned(t.q.cols / 256 + 1), 256, 0, cudaStream_t(stream.handle)>>>(first, t);
}
#endif
const Codelet product{"five_points", on_core<multiply>, ASTERISM_CUDA_KERNEL(on_gpu<multiply>)};
const Codelet quotient{"diagonal", on_core<divide>, ASTERISM_CUDA_KERNEL(on_gpu<divide>)};
int main() {
  Runtime runtime;
  sparse::LinearOperator<double> a{.rows = n * n, .line = n};  // blocks of whole rows of the grid
  a.multiply = [](const auto& p, const auto& q) {
    for (Index b = 0; b < q.count(); ++b)
      product(q.first(b), {.above = p.if_there(b - 1), .p = p[b], .below = p.if_there(b + 1), .q = q[b]}, q.hints(b));
  };
  a.precondition = [](const auto& r, const auto& z) {
    for (Index b = 0; b < z.count(); ++b) quotient(z.first(b), {.p = r[b], .q = z[b]}, z.hints(b));
  };
  sparse::ConjugateGradients<double> solver(runtime, a, {.tolerance = 1e-10});
  std::vector<double> f(n * n), u(n * n);
  for (Index i = 0; i < n * n; ++i) f[i] = sum_over_sides(i, if_border);  // then u is 1 everywhere
  const bool solved = solver.solve(f.data(), u.data()).reason == Reason::solved;
  double error = 0;
  for (const double value : u)
    if (!(std::abs(value - 1) <= error)) error = std::abs(value - 1);  // nor NaN
  std::printf("largest error %.1e\n", error);
  return solved && error < 1e-6 ? 0 : 1;
}
