/// \file
/// Lines of numbers in a file, written in pieces, complete or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "../../../runtime/ports.hpp"
#include "../output_file.hpp"

namespace asterism::tools {

class TextOutput {
 public:
  /// @param target  for messages; `file` is its
  TextOutput(OutputFile& file, std::filesystem::path target) : file_(file), target_(std::move(target)) {}

  void put(std::string_view text) { piece_ += text; }
  void put(Index number);
  /// As short as it can be without being another number. @throw Error: it is not finite
  void put(double number);

  /// @throw Error: the disk refuses
  void end_line() {
    piece_ += '\n';
    if (piece_.size() >= enough) write();
  }

  /// Writes what is left; the file is not committed. @throw Error
  void write();

 private:
  static constexpr std::size_t enough = std::size_t{1} << 20;

  OutputFile& file_;
  std::filesystem::path target_;
  std::string piece_;
  std::size_t written_ = 0;
};

}  // namespace asterism::tools
