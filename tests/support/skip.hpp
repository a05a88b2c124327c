/// \file
/// Test cases that cannot run everywhere. A `return` at their beginning would count as passed; doctest counts these as
/// skipped, and main.cpp prints the reasons.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>

namespace asterism::test {

/// Whether CTest runs this in a machine shape whose name begins so: "mpi" is "mpi2" and "mpi4".
inline bool shape_is(std::string_view name) {
  const char* const shape = std::getenv("ASTERISM_SHAPE");
  return shape != nullptr && std::string_view(shape).starts_with(name);
}

/// Whether there are several ranks and some of them have GPUs, which add up in another way than cores.
inline bool ranks_have_gpus() { return shape_is("mpi_unlike3_gpu") || shape_is("mpi2_gpu"); }

/// Where all cores are busy with more ranks than two, a solve takes seconds; and to most of it they do nothing that two
/// ranks do not do.
inline bool more_than_two_ranks() {
  return shape_is("mpi4") || (shape_is("mpi_unlike3") && !shape_is("mpi_unlike3_gpu"));
}

/// `TEST_CASE("..." * SkipUnless(there, "what is missing"))`: for what this machine or this build lacks. What belongs to
/// another shape, which will run it, is `doctest::skip(!shape_is("disk"))` and nobody is told.
class SkipUnless {
 public:
  SkipUnless(bool there, const char* reason) : there_(there), reason_(reason) {}
  void fill(doctest::detail::TestCase& test_case) const {
    if (there_) return;
    test_case.m_skip = true;
    test_case.m_description = reason_;
  }

 private:
  bool there_;
  const char* reason_;
};

#if defined(ASTERISM_SANITIZE_ADDRESS) || defined(ASTERISM_SANITIZE_THREAD)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// For test cases whose point is the size of a computation: of what sanitizers look at they do nothing that smaller ones
/// do not.
inline SkipUnless quick_enough() { return {!sanitized, "takes minutes under sanitizers"}; }

/// Within a test case, for some of many sizes: the others do all that they do.
constexpr bool left_out_when_sanitized(bool these) { return sanitized && these; }

}  // namespace asterism::test
