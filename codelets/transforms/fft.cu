#include <cufft.h>

#include <string>
#include <type_traits>

#include "rounds.hpp"

namespace asterism::transforms::cuda {
namespace {

void check(cufftResult status, const char* what) {
  if (status != CUFFT_SUCCESS)
    throw Error(std::string(what) + ": cuFFT gives status " + std::to_string(status) + " (see cufftResult)",
                Blame::task);
}

template <class U>
cufftType type(FftKind kind) {
  constexpr bool single = std::is_same_v<U, float>;
  switch (kind) {
    case FftKind::from_real:
      return single ? CUFFT_R2C : CUFFT_D2Z;
    case FftKind::to_real:
      return single ? CUFFT_C2R : CUFFT_Z2D;
    default:
      return single ? CUFFT_C2C : CUFFT_Z2Z;
  }
}

}  // namespace

template <class U>
Fft<U>::Fft(FftKind kind, Index length, Index pitch, Index count) : Fft() {
  // After Fft() the destructor cleans up when a check throws.
  kind_ = kind;
  if (length == 1) return;  // a number is its own spectrum
  // Rows of reals lie in the place of rows of complex numbers.
  long long size = length, in = kind == FftKind::from_real ? 2 * pitch : pitch,
            out = kind == FftKind::to_real ? 2 * pitch : pitch;
  check(cufftCreate(&fft_), "cufftCreate");
  created_ = true;
  check(cufftSetAutoAllocation(fft_, 0), "cufftSetAutoAllocation");
  const std::string what =
      "plan for " + std::to_string(count) + " transforms of length " + std::to_string(length);
  check(cufftMakePlanMany64(fft_, 1, &size, &in, 1, in, &out, 1, out, type<U>(kind), count, &work_bytes_),
        what.c_str());
}

template <class U>
Fft<U>::~Fft() {
  if (created_) cufftDestroy(fft_);
}

template <class U>
void Fft<U>::operator()(cudaStream_t stream, Complex<U>* rows, void* work_area) {
  execute(stream, rows, work_area, CUFFT_FORWARD);
}

template <class U>
void Fft<U>::inverse(cudaStream_t stream, Complex<U>* rows, void* work_area) {
  execute(stream, rows, work_area, CUFFT_INVERSE);
}

template <class U>
void Fft<U>::execute(cudaStream_t stream, Complex<U>* rows, void* work_area, int direction) {
  if (!created_) return;
  const std::scoped_lock lock(mutex_);  // stream and work area belong to the plan until it is launched
  check(cufftSetStream(fft_, stream), "cufftSetStream");
  check(cufftSetWorkArea(fft_, work_area), "cufftSetWorkArea");
  if constexpr (std::is_same_v<U, float>) {
    auto* const complex = reinterpret_cast<cufftComplex*>(rows);
    auto* const real = reinterpret_cast<cufftReal*>(rows);
    switch (kind_) {
      case FftKind::complex:
        return check(cufftExecC2C(fft_, complex, complex, direction), "cufftExecC2C");
      case FftKind::from_real:
        return check(cufftExecR2C(fft_, real, complex), "cufftExecR2C");
      case FftKind::to_real:
        return check(cufftExecC2R(fft_, complex, real), "cufftExecC2R");
    }
  } else {
    auto* const complex = reinterpret_cast<cufftDoubleComplex*>(rows);
    auto* const real = reinterpret_cast<cufftDoubleReal*>(rows);
    switch (kind_) {
      case FftKind::complex:
        return check(cufftExecZ2Z(fft_, complex, complex, direction), "cufftExecZ2Z");
      case FftKind::from_real:
        return check(cufftExecD2Z(fft_, real, complex), "cufftExecD2Z");
      case FftKind::to_real:
        return check(cufftExecZ2D(fft_, complex, real), "cufftExecZ2D");
    }
  }
}

template class Fft<float>;
template class Fft<double>;

}  // namespace asterism::transforms::cuda
