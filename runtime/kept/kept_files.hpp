/// \file
/// What is kept on disk from one run of a program to the next. It is worth keeping, but not worth a run: whatever lies
/// there, and however full the disk is, nothing here throws or waits.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace asterism {

/// Where programs keep what they measured: $XDG_CACHE_HOME/asterism, or ~/.cache/asterism; empty where there is neither.
std::filesystem::path cache_folder();

/// Whether a folder is there, or can be made, and can be written to.
bool can_write(const std::filesystem::path& folder);

/// What a file holds. Nothing where there is none, or something else than a file that can be read (a named pipe would
/// be waited for), or one much larger than what programs keep.
std::optional<std::string> read_kept(const std::filesystem::path& file);

/// Replaces a file, by way of a temporary name: it has all of the text, or what it had before.
/// @return whether it could be written
bool keep(const std::filesystem::path& file, const std::string& text);

}  // namespace asterism
