/// \file
/// Bytes at a place in an open file, all or none.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace asterism::tools {

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
