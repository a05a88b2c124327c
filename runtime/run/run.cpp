#include "../run.hpp"

#include <fmt/format.h>

#include <new>

#include "ending.hpp"
#include "state.hpp"

namespace asterism {

void throw_as_error() {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error("main memory is full; use a smaller problem, more ranks, or a spill folder", Blame::machine);
  } catch (const std::exception& error) {
    throw Error(error.what(), Blame::task);
  } catch (...) {
    throw Error(no_standard_exception, Blame::task);
  }
}

int tell(const Error& error) {
  const bool on_all_ranks = error.thrown_by() == ThrownBy::all_ranks;
  const int rank = ranks::known_rank();
  if (on_all_ranks && rank > 0)
    ranks::let_first_rank_speak();
  else
    fmt::print(stderr, "asterism{}: {}\n", rank > 0 ? fmt::format(" (rank {})", rank) : "", error.what());
  return static_cast<int>(error.blame());
}

int in_runtime(const Options& options, const std::function<int(Runtime&)>& body) {
  const int status = [&] {
    Runtime runtime(options);
    try {
      return body(runtime);
    } catch (const Stall& stall) {
      if (runtime.ranks() == 1) end_all_ranks(tell(stall));
      throw;
    } catch (...) {
      throw_as_error();  // here, where the other ranks can still be told its message
    }
  }();
  return trace_failed() ? static_cast<int>(Blame::machine) : status;
}

int detail::run(const Options& options, const std::function<int(Runtime&)>& body) {
  try {
    return in_runtime(options, [&](Runtime& runtime) {
      const int status = body(runtime);
      runtime.wait();  // what failed in a task is thrown here at the latest
      return status;
    });
  } catch (const Error& error) {
    return tell(error);
  }
}

}  // namespace asterism
