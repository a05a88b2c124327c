// The Cholesky factorisation A = L L^T of a symmetric positive definite matrix in tiles: BLAS and LAPACK on cores, cuBLAS
// and cuSOLVER on GPUs.   cholesky [N [TILE [compare]]]   compare: with cuSOLVER on the whole matrix, on the first GPU
#include <asterism/runtime/contents.hpp>
#include <asterism/runtime/run.hpp>
#include <cblas.h>
#include <cstdio>
#include <dlfcn.h>
#include "cholesky_check.hpp"
extern "C" void dpotrf_(const char* half, const int* n, double* a, const int* ld, int* info);
const char* const bad = "not positive definite: leading minor";

// LAPACK and CUDA's libraries count along columns: to them a tile is its transpose, and L an upper triangle.
void factorise(InOut<double> a, Scratch<double>) {  // A_kk = L_kk L_kk^T
  int n = int(a.rows), ld = int(a.ld), minor = 0;
  dpotrf_("U", &n, a.data, &ld, &minor);
  if (minor != 0) throw Error(bad + (" " + std::to_string(minor)));
}
void solve(In<double> l, InOut<double> a) {  // A_ik = L_ik L_kk^T
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit, int(a.cols), int(a.rows), 1, l.data,
              int(l.ld), a.data, int(a.ld));
}
void square(In<double> l, InOut<double> a) {  // A_ii -= L_ik L_ik^T
  cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, int(a.rows), int(l.cols), -1, l.data, int(l.ld), 1, a.data,
              int(a.ld));
}
void multiply(In<double> x, In<double> y, InOut<double> a) {  // A_ij -= L_ik L_jk^T
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, int(a.cols), int(a.rows), int(x.cols), -1, y.data, int(y.ld),
              x.data, int(x.ld), 1, a.data, int(a.ld));
}
void stay(InOut<double>) {}
#ifdef ASTERISM_WITH_CUDA
using cuda::check;
constexpr cublasFillMode_t upper = CUBLAS_FILL_MODE_UPPER;
const double one = 1, minus = -1;
void cuda_factorise(Stream stream, InOut<double> a, Scratch<double> work) {
  check(cusolverDnDpotrf(stream.cusolver(), upper, int(a.rows), a.data, int(a.ld), work.data, int(work.cols),
                         stream.status(bad)), "cusolverDnDpotrf");
}
void cuda_solve(Stream stream, In<double> l, InOut<double> a) {
  check(cublasDtrsm(stream.cublas(), CUBLAS_SIDE_LEFT, upper, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, int(a.cols),
                    int(a.rows), &one, l.data, int(l.ld), a.data, int(a.ld)), "cublasDtrsm");
}
void cuda_square(Stream stream, In<double> l, InOut<double> a) {
  check(cublasDsyrk(stream.cublas(), upper, CUBLAS_OP_T, int(a.rows), int(l.cols), &minus, l.data, int(l.ld), &one,
                    a.data, int(a.ld)), "cublasDsyrk");
}
void cuda_multiply(Stream stream, In<double> x, In<double> y, InOut<double> a) {
  check(cublasDgemm(stream.cublas(), CUBLAS_OP_T, CUBLAS_OP_N, int(a.cols), int(a.rows), int(x.cols), &minus, y.data,
                    int(y.ld), x.data, int(x.ld), &one, a.data, int(a.ld)), "cublasDgemm");
}
void cuda_stay(Stream, InOut<double>) {}
#endif
const Codelet factorise_tile{"factorise", factorise, ASTERISM_CUDA_KERNEL(cuda_factorise)};
const Codelet solve_tile{"solve", solve, ASTERISM_CUDA_KERNEL(cuda_solve)};
const Codelet square_tile{"square", square, ASTERISM_CUDA_KERNEL(cuda_square)};
const Codelet multiply_tile{"multiply", multiply, ASTERISM_CUDA_KERNEL(cuda_multiply)};
const Codelet bring{"bring", stay, ASTERISM_CUDA_KERNEL(cuda_stay)};  // to where the tasks run

int main(int count, char** words) {
  const auto given = [&](int k, Index otherwise) { return k < count ? Index(std::atoll(words[k])) : otherwise; };
  if (void* const set_threads = dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))
    reinterpret_cast<void (*)(int)>(set_threads)(1);  // a task has one core
  return run({}, [&](Runtime& runtime) {
    const bool gpu = runtime.machine().count(WorkerKind::cuda) > 0;
    const Where where = gpu ? Where::cuda : Where::cpu;
    const Index n = given(1, 1024);
    const Index size =
        given(2, gpu ? std::clamp<Index>(n / 2048 * 512, 512, 4096) : std::clamp<Index>(n / 384 * 32, 128, 512));
    runtime.require_alike("size of tiles: " + std::to_string(size));
    int down = int(std::sqrt(runtime.ranks()));  // ranks in a grid of down x across, laid on the tiles again and again
    while (runtime.ranks() % down != 0) --down;
    const int across = runtime.ranks() / down;
    const Tiles<double> a(runtime, n, n, size, size,
                          [&](Index i, Index j) { return int(i % down * across + j % across); });
    const Index tiles = a.count_rows();
    Index work_size = 1;
    if (gpu) runtime.on_worker(WorkerKind::cuda, 0, [&] { work_size = words_for(size); });
    const Tile<double> work(runtime, 1, work_size);
    double took = 0;
    for (int round = 0; round < 2; ++round) {  // the first loads libraries
      for (Index i = 0; i < tiles; ++i)
        for (Index j = 0; j <= i; ++j) {
          generate(a(i, j), [=](Index r, Index c) { return entry(i * size + r, j * size + c, n); });
          bring(a(i, j), {.where = where});
        }
      runtime.wait();
      const double start = seconds();
      for (Index k = 0; k < tiles; ++k) {
        const auto hints = [&](Index i, Index j) {
          return Hints{.where = where, .priority = int(3 * tiles - i - j - k)};
        };
        factorise_tile(a(k, k), work, hints(k, k));
        for (Index i = k + 1; i < tiles; ++i) solve_tile(a(k, k), a(i, k), hints(i, k));
        for (Index i = k + 1; i < tiles; ++i) {
          for (Index j = k + 1; j < i; ++j) multiply_tile(a(i, k), a(j, k), a(i, j), hints(i, j));
          square_tile(a(i, k), a(i, i), hints(i, i));
        }
      }
      runtime.wait();
      took = seconds() - start;
    }
    const double error = residual(runtime, a, n), flops = double(n) * double(n) * double(n) / 3;
    if (runtime.rank() == 0)
      std::printf("%d x %d in tiles of %d, %d %s: %.3f s, %.1f GFLOP/s, residual %.1e\n", int(n), int(n), int(size),
                  runtime.ranks(), runtime.ranks() == 1 ? "rank" : "ranks", took, 1e-9 * flops / took, error);
#ifdef ASTERISM_WITH_CUDA
    if (gpu && count > 3) {
      const double alone = seconds_of_cusolver(runtime, n);
      std::printf("cuSOLVER alone: %.3f s, %.1f GFLOP/s; tiles have %.0f %% of that\n", alone, 1e-9 * flops / alone,
                  100 * alone / took);
    }
#endif
    return error < 1e-12 ? 0 : 1;
  });
}
