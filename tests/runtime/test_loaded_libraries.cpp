// Libraries that are loaded when first used: what is in them, and what is said of those that are not there.
#include <doctest/doctest.h>

#include <string>

#include "runtime/error.hpp"
#include "runtime/loaded/library.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "runtime/loaded/cublas.hpp"
#include "runtime/loaded/cusolver.hpp"
#include "runtime/loaded/cusparse.hpp"
#endif

using namespace asterism;

namespace {

std::string message_of(const auto& what) {
  try {
    what();
    return {};
  } catch (const Error& error) {
    CHECK(error.blame() == Blame::machine);
    return error.what();
  }
}

}  // namespace

TEST_CASE("runtime: a library's functions are found by their names") {
  const LoadedLibrary mathematics("the mathematical library", "libm.so.6");
  double (*hypotenuse)(double, double) = mathematics["hypot"];
  CHECK(hypotenuse(3, 4) == 5);
  CHECK(message_of([&] {
          hypotenuse = mathematics["no_such_function"];
        }).starts_with("the mathematical library has no function no_such_function: "));
}

TEST_CASE("runtime: a library that is not there is an error of the machine") {
  const std::string message = message_of([] { LoadedLibrary("cuBLAS", "libcublas.so.999"); });
  CHECK(message.starts_with("cuBLAS cannot be loaded: libcublas.so.999: "));
  CHECK(message.ends_with("or name its folder in LD_LIBRARY_PATH"));
}

#ifdef ASTERISM_WITH_CUDA
TEST_CASE("runtime: cuBLAS, cuSPARSE and cuSOLVER of this machine have what codelets call") {
  CHECK_THROWS_WITH_AS(cuda::check(CUBLAS_STATUS_NOT_INITIALIZED, "DGEMM"),
                       "DGEMM: cuBLAS says the library was not initialized", Error);
  CHECK_THROWS_WITH_AS(cuda::check(CUSPARSE_STATUS_ALLOC_FAILED, "cusparseSpMV"),
                       "cusparseSpMV: cuSPARSE says out of memory", Error);
  CHECK_THROWS_WITH_AS(cuda::check(CUSOLVER_STATUS_INVALID_VALUE, "cusolverDnDpotrf"),
                       "cusolverDnDpotrf: cuSOLVER says status 3", Error);
  CHECK_NOTHROW(cuda::cusolver());
}
#endif
