#include "textbook_cg.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "../../../runtime/loaded/cublas.hpp"
#include "../../../runtime/loaded/cusparse.hpp"
#include "../../../runtime/replay.hpp"

namespace asterism::sparse::cuda {
namespace {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::cublas;
using asterism::cuda::cusparse;

constexpr Index iterations_of_graph = 10;
constexpr int threads = 256;

/// What CUDA or one of its libraries made, and takes back.
template <class Handle, auto destroy>
struct Owned {
  Handle handle = nullptr;

  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle != nullptr) destroy(handle);
  }
};

void destroy_blas(cublasHandle_t handle) { cublas().destroy(handle); }
void destroy_sparse(cusparseHandle_t handle) { cusparse().destroy(handle); }
void destroy_matrix(cusparseSpMatDescr_t matrix) { cusparse().destroy_matrix(matrix); }
void destroy_vector(cusparseDnVecDescr_t vector) { cusparse().destroy_vector(vector); }

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    check(cudaMalloc(&data_, std::max<std::size_t>(count, 1) * sizeof(T)),
          "memory for textbook conjugate gradients");
  }
  DeviceArray(const T* from, std::size_t count) : DeviceArray(count) {
    if (count == 0) return;
    check(cudaMemcpy(data_, from, bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaStreamSynchronize(cudaStreamLegacy),
          "cudaMemcpy");  // for streams that do not wait for that one
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

template <class T>
struct Scalars {
  T rz, next_rz, pq, alpha, minus_alpha, beta, one;
};

template <class T>
__global__ void form_alpha(Scalars<T>* s) {
  s->alpha = s->rz / s->pq;
  s->minus_alpha = -s->alpha;
}
template <class T>
__global__ void form_beta(Scalars<T>* s) {
  s->beta = s->next_rz / s->rz;
  s->rz = s->next_rz;
}
template <class T>
__global__ void __launch_bounds__(threads) scale(int n, const T* d, const T* r, T* z) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i < n) z[i] = d[i] * r[i];
}

/// cuBLAS with scalars on the GPU.
template <class T>
class Blas {
 public:
  explicit Blas(cudaStream_t stream) : workspace_(std::size_t{4} << 20) {
    check(cublas().create(&blas_.handle), "start of cuBLAS");
    check(cublas().set_stream(blas_.handle, stream), "cuBLAS' stream");
    check(cublas().set_pointer_mode(blas_.handle, CUBLAS_POINTER_MODE_DEVICE), "cuBLAS' pointer mode");
    // What is captured in a graph may not ask for memory.
    check(cublas().set_workspace(blas_.handle, workspace_.data(), workspace_.bytes()), "cuBLAS' workspace");
  }
  void dot(int n, const T* a, const T* b, T* result) {
    if constexpr (std::is_same_v<T, float>)
      check(cublas().sdot(blas_.handle, n, a, 1, b, 1, result), "SDOT");
    else
      check(cublas().ddot(blas_.handle, n, a, 1, b, 1, result), "DDOT");
  }
  /// y += alpha x
  void add(int n, const T* alpha, const T* x, T* y) {
    if constexpr (std::is_same_v<T, float>)
      check(cublas().saxpy(blas_.handle, n, alpha, x, 1, y, 1), "SAXPY");
    else
      check(cublas().daxpy(blas_.handle, n, alpha, x, 1, y, 1), "DAXPY");
  }
  void scale(int n, const T* alpha, T* x) {
    if constexpr (std::is_same_v<T, float>)
      check(cublas().sscal(blas_.handle, n, alpha, x, 1), "SSCAL");
    else
      check(cublas().dscal(blas_.handle, n, alpha, x, 1), "DSCAL");
  }

 private:
  DeviceArray<char> workspace_;
  Owned<cublasHandle_t, destroy_blas> blas_;
};

/// y = alpha A x + beta y by cuSPARSE.
template <class T>
class Product {
 public:
  Product(cudaStream_t stream, const TextbookSystem<T>& a, cusparseSpMVAlg_t algorithm, T* x, T* y)
      : algorithm_(algorithm),
        begins_(a.begins, static_cast<std::size_t>(a.rows) + 1),
        columns_(a.columns, static_cast<std::size_t>(a.entries)),
        values_(a.values, static_cast<std::size_t>(a.entries)),
        buffer_(bytes_of_buffer(stream, a, x, y)) {
    constexpr T one = 1, zero = 0;
    check(cusparse().spmv_preprocess(sparse_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a_.handle,
                                     x_.handle, &zero, y_.handle, type, algorithm_, buffer_.data()),
          "cusparseSpMV_preprocess");
  }
  void multiply(T alpha, T* x, T beta, T* y) {
    check(cusparse().set_values(x_.handle, x), "cusparseDnVecSetValues");
    check(cusparse().set_values(y_.handle, y), "cusparseDnVecSetValues");
    check(cusparse().spmv(sparse_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, a_.handle, x_.handle,
                          &beta, y_.handle, type, algorithm_, buffer_.data()),
          "cusparseSpMV");
  }

 private:
  static constexpr cudaDataType type = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_64F;

  /// Makes the handles that the buffer depends on.
  std::size_t bytes_of_buffer(cudaStream_t stream, const TextbookSystem<T>& a, T* x, T* y) {
    check(cusparse().create(&sparse_.handle), "start of cuSPARSE");
    check(cusparse().set_stream(sparse_.handle, stream), "cuSPARSE's stream");
    check(cusparse().create_csr(&a_.handle, a.rows, a.rows, a.entries, begins_.data(), columns_.data(),
                                values_.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                CUSPARSE_INDEX_BASE_ZERO, type),
          "cusparseCreateCsr");
    check(cusparse().create_vector(&x_.handle, a.rows, x, type), "cusparseCreateDnVec");
    check(cusparse().create_vector(&y_.handle, a.rows, y, type), "cusparseCreateDnVec");
    constexpr T one = 1, zero = 0;
    std::size_t bytes = 0;
    check(cusparse().spmv_buffer_size(sparse_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a_.handle,
                                      x_.handle, &zero, y_.handle, type, algorithm_, &bytes),
          "cusparseSpMV_bufferSize");
    return bytes;
  }

  cusparseSpMVAlg_t algorithm_;
  DeviceArray<std::int32_t> begins_, columns_;
  DeviceArray<T> values_;
  Owned<cusparseHandle_t, destroy_sparse> sparse_;
  Owned<cusparseSpMatDescr_t, destroy_matrix> a_;
  Owned<cusparseDnVecDescr_t, destroy_vector> x_, y_;
  DeviceArray<char> buffer_;  // the last, as its size is asked for by the others
};

struct OwnStream : Owned<cudaStream_t, cudaStreamDestroy> {
  OwnStream() { check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreate"); }
};
struct OwnEvent : Owned<cudaEvent_t, cudaEventDestroy> {
  OwnEvent() { check(cudaEventCreate(&handle), "cudaEventCreate"); }
};

template <class T>
class TextbookCg {
 public:
  TextbookCg(const TextbookSystem<T>& system, cusparseSpMVAlg_t algorithm)
      : n_(system.rows),
        b_(system.b, size()),
        d_(system.inverse_diagonal, system.inverse_diagonal != nullptr ? size() : 0),
        x_(size()),
        r_(size()),
        z_(system.inverse_diagonal != nullptr ? size() : 0),
        p_(size()),
        q_(size()),
        scalars_(1),
        blas_(stream_.handle),
        product_(stream_.handle, system, algorithm, p_.data(), q_.data()) {
    begin();
    iterate();  // what the libraries do once only is not to be captured
    capture();
  }

  /// Of so many graphs, each of iterations_of_graph iterations, from x = 0.
  double seconds(Index graphs) {
    begin();
    check(cudaEventRecord(start_.handle, stream_.handle), "cudaEventRecord");
    for (Index i = 0; i < graphs; ++i) graph_->launch(stream_.handle);
    check(cudaEventRecord(end_.handle, stream_.handle), "cudaEventRecord");
    check(cudaEventSynchronize(end_.handle), "textbook conjugate gradients");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start_.handle, end_.handle), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1e3;
  }

  /// ||b - A x|| / ||b||
  double residual() {
    copy(q_, b_);
    product_.multiply(-1, x_.data(), 1, q_.data());
    return norm(q_) / norm(b_);
  }

 private:
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(n_); }
  [[nodiscard]] bool has_diagonal() const { return d_.bytes() > 0; }
  /// Where M^-1 r is.
  [[nodiscard]] T* z() const { return has_diagonal() ? z_.data() : r_.data(); }

  void copy(const DeviceArray<T>& to, const DeviceArray<T>& from) {
    check(cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyDeviceToDevice, stream_.handle),
          "cudaMemcpy");
  }

  double norm(const DeviceArray<T>& v) {
    blas_.dot(n_, v.data(), v.data(), &scalars_.data()->pq);
    T square = 0;
    check(cudaMemcpyAsync(&square, &scalars_.data()->pq, sizeof(T), cudaMemcpyDeviceToHost, stream_.handle),
          "cudaMemcpy");
    check(cudaStreamSynchronize(stream_.handle), "textbook conjugate gradients");
    return std::sqrt(static_cast<double>(square));
  }

  void precondition() {
    if (!has_diagonal()) return;
    scale<<<(n_ + threads - 1) / threads, threads, 0, stream_.handle>>>(n_, d_.data(), r_.data(), z_.data());
    check_launch("scale");
  }

  void begin() {
    Scalars<T> scalars{};
    scalars.one = 1;
    check(cudaMemcpyAsync(scalars_.data(), &scalars, sizeof scalars, cudaMemcpyHostToDevice, stream_.handle),
          "cudaMemcpy");
    check(cudaMemsetAsync(x_.data(), 0, x_.bytes(), stream_.handle), "cudaMemset");
    copy(r_, b_);
    precondition();
    check(cudaMemcpyAsync(p_.data(), z(), p_.bytes(), cudaMemcpyDeviceToDevice, stream_.handle),
          "cudaMemcpy");
    blas_.dot(n_, r_.data(), z(), &scalars_.data()->rz);
    check(cudaStreamSynchronize(stream_.handle), "textbook conjugate gradients");
  }

  void iterate() {
    Scalars<T>* const s = scalars_.data();
    product_.multiply(1, p_.data(), 0, q_.data());
    blas_.dot(n_, p_.data(), q_.data(), &s->pq);
    form_alpha<<<1, 1, 0, stream_.handle>>>(s);
    check_launch("form_alpha");
    blas_.add(n_, &s->alpha, p_.data(), x_.data());
    blas_.add(n_, &s->minus_alpha, q_.data(), r_.data());
    precondition();
    blas_.dot(n_, r_.data(), z(), &s->next_rz);
    form_beta<<<1, 1, 0, stream_.handle>>>(s);
    check_launch("form_beta");
    blas_.scale(n_, &s->beta, p_.data());
    blas_.add(n_, &s->one, z(), p_.data());
  }

  void capture() {
    check(cudaStreamSynchronize(stream_.handle), "textbook conjugate gradients");
    graph_.emplace(stream_.handle, [this] {
      for (Index i = 0; i < iterations_of_graph; ++i) iterate();
    });
  }

  int n_;
  OwnStream stream_;
  OwnEvent start_, end_;
  DeviceArray<T> b_, d_, x_, r_, z_, p_, q_;
  DeviceArray<Scalars<T>> scalars_;
  Blas<T> blas_;
  Product<T> product_;
  std::optional<asterism::cuda::Graph> graph_;
};

}  // namespace

template <class T>
TextbookTimes textbook_cg(const TextbookSystem<T>& system, Index iterations, int repeats) {
  const Index graphs = (iterations + iterations_of_graph - 1) / iterations_of_graph;
  TextbookTimes best{graphs * iterations_of_graph, std::numeric_limits<double>::infinity()};
  const struct {
    cusparseSpMVAlg_t algorithm;
    const char* name;
  } algorithms[] = {{CUSPARSE_SPMV_CSR_ALG1, "CUSPARSE_SPMV_CSR_ALG1"},
                    {CUSPARSE_SPMV_CSR_ALG2, "CUSPARSE_SPMV_CSR_ALG2"}};
  for (const auto& [algorithm, name] : algorithms) {
    TextbookCg<T> cg(system, algorithm);
    cg.seconds(graphs);  // to warm up
    double seconds = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeats; ++i) seconds = std::min(seconds, cg.seconds(graphs));
    seconds /= static_cast<double>(best.iterations);
    if (seconds < best.seconds_per_iteration) best = {best.iterations, seconds, cg.residual(), name};
  }
  return best;
}

template TextbookTimes textbook_cg(const TextbookSystem<float>&, Index, int);
template TextbookTimes textbook_cg(const TextbookSystem<double>&, Index, int);

}  // namespace asterism::sparse::cuda
