#include "program_name.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>

namespace asterism {

const std::string& program_name() {
  static const std::string name = [] {
    std::error_code failed;
    const std::filesystem::path file = std::filesystem::read_symlink("/proc/self/exe", failed);
    std::uint32_t hash = 2166136261U;  // FNV-1a
    for (const char letter : file.string()) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
    std::string plain = file.filename().string();  // part of a file's name
    for (char& letter : plain)
      if (letter == '/' || letter == ' ' || letter == '.') letter = '_';
    return fmt::format("{}-{:08x}", plain.empty() ? "program" : plain, hash);
  }();
  return name;
}

}  // namespace asterism
