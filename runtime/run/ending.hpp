/// \file
/// What a program that ends has to do or to know.
#pragma once

#include <functional>

#include "../runtime.hpp"

namespace asterism {

/// Removes the folders that this process has made for itself, after which it cannot spill any more: for handlers of
/// signals that end the process (async-signal-safe). However else it ends, apart from SIGKILL, this is done.
void remove_own_folders() noexcept;

/// Whether the trace of the last Runtime could not be written, which its destructor only tells on standard error.
bool trace_failed();

/// Says on standard error what went wrong, once where all ranks throw it. @return the exit status that belongs to it.
int tell(const Error& error);

/// What was thrown while it is handled, as an Error. @throw Error
[[noreturn]] void throw_as_error();

/// Runs `body` with a Runtime. After a Stall on a single rank the program ends here: unwinding would wait for ever.
/// @return what `body` returns; where the trace cannot be written the status of Blame::machine
/// @throw Error; of several ranks, only what they all throw
int in_runtime(const Options& options, const std::function<int(Runtime&)>& body);

}  // namespace asterism
