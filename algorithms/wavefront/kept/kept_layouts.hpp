/// \file
/// Tile layouts of wavefront SOR that are kept on disk from one run of a program to the next, and the problems that they
/// were chosen for: a file beside that of the costs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "../../../codelets/wavefront/sweeps.hpp"

namespace asterism::wavefront {

/// A layout, and the problem that it was chosen for.
struct KeptLayout {
  std::vector<Index> grid;
  Index sweeps;
  WavefrontLayout layout;
};

/// Layouts of one machine, number of dimensions, precision, with or without a source. A file that is missing or damaged
/// has none.
class KeptLayouts {
 public:
  /// @param costs the file of the costs, as costs_file() names it; empty: nothing can be kept
  /// @param basis what they were chosen by: layouts with another basis are taken for none
  KeptLayouts(std::filesystem::path costs, int dimensions, std::string basis);

  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

  /// That of a grid whose extents differ least, none by more than a factor of sqrt(2), and of as many sweeps
  /// as can be.
  [[nodiscard]] const KeptLayout* nearest(const std::vector<Index>& grid, Index sweeps) const;

  [[nodiscard]] const KeptLayout* exact(const std::vector<Index>& grid, Index sweeps) const;

  /// In the place of one of the same problem. @return whether the file could be written
  bool keep(const KeptLayout& layout);

 private:
  void load();
  [[nodiscard]] bool save() const;

  std::filesystem::path file_;
  std::size_t dimensions_;
  std::string basis_;
  std::vector<KeptLayout> layouts_;  // the oldest first
};

}  // namespace asterism::wavefront
