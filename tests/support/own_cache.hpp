/// \file
/// A place for what programs keep from one run to the next that belongs to one test case.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "process.hpp"

namespace asterism::test {

/// XDG_CACHE_HOME is a fresh folder as long as this lives.
class OwnCache {
 public:
  OwnCache() {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;
  ~OwnCache() { before_ ? ::setenv("XDG_CACHE_HOME", before_->c_str(), 1) : ::unsetenv("XDG_CACHE_HOME"); }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  std::optional<std::string> before_;
  std::filesystem::path folder_ = fresh_folder("cache");
};

}  // namespace asterism::test
