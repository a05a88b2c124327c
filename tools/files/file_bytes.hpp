/// \file
/// Bytes at a place in an open file, all or none.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "descriptor.hpp"

namespace asterism::tools {

/// Opens a file, of which it need not be known that it is one: see size_to_read. @throw Error
Descriptor open_to_read(const std::filesystem::path& path);

/// The size of an open file that can be read in any order and is not empty.
/// @param kind  what the caller wants: "a .npy file"
/// @throw Error: a folder, a pipe, an empty file
std::size_t size_to_read(int file, const std::filesystem::path& path, std::string_view kind);

/// Whether a file that can be read in any order begins with these bytes. Parameters and errors as of size_to_read.
bool begins_with(const std::filesystem::path& path, std::string_view bytes, std::string_view kind);

/// Reads up to `bytes` bytes at `offset`. @return how many there were. @throw Error
std::size_t read_up_to(int file, const std::filesystem::path& path, void* into, std::size_t bytes,
                       std::size_t offset);

/// @throw Error, also where the file ends before
void read_all(int file, const std::filesystem::path& path, void* into, std::size_t bytes, std::size_t offset);

/// @throw Error
void write_all(int file, const std::filesystem::path& path, const void* from, std::size_t bytes,
               std::size_t offset);

/// What the system says of its last refusal.
std::string system_reason();

}  // namespace asterism::tools
