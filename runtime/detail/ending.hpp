/// \file
/// What a program that ends has to do or to know.
#pragma once

namespace asterism {

/// Removes the folders that this process has made for itself, after which it cannot spill any more: for handlers of
/// signals that end the process (async-signal-safe). However else it ends, apart from SIGKILL, this is done.
void remove_own_folders() noexcept;

/// Whether the trace of the last Runtime could not be written, which its destructor only tells on standard error.
bool trace_failed();

}  // namespace asterism
