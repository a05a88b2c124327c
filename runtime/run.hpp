/// \file
/// A program on a Runtime: what `main` does when something goes wrong.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>

#include "runtime.hpp"

namespace asterism {

namespace detail {
int run(const Options& options, const std::function<int(Runtime&)>& body);
}

/// Runs `body` with a Runtime of its own, waits for its tasks, and tells on standard error what any of it throws: once, with
/// the number of the rank that it happened to, where not all ranks have the same. An exception of one rank ends all.
///
///     int main() {
///       return asterism::run({.gpus = 0}, [](asterism::Runtime& runtime) { ... });
///     }
///
/// @param body takes the Runtime; returns an exit status, or nothing
/// @return what `body` returns, or 0; after an Error the status of its blame, after another exception that of Blame::task,
/// where the trace cannot be written that of Blame::machine
template <std::invocable<Runtime&> Body>
int run(const Options& options, Body&& body) {
  return detail::run(options, [&](Runtime& runtime) {
    if constexpr (std::is_void_v<std::invoke_result_t<Body&, Runtime&>>) {
      body(runtime);
      return 0;
    } else {
      return static_cast<int>(body(runtime));
    }
  });
}

}  // namespace asterism
